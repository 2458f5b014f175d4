"""Sizes, times and tokens: integers inside, units when printed or read."""

from __future__ import annotations

import re
from typing import NewType

from shared.errors import Code, InputError

Bytes = NewType("Bytes", int)
Joules = NewType("Joules", float)
Seconds = NewType("Seconds", float)
Tokens = NewType("Tokens", int)

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

_SIZES = {"": 1, "B": 1, "KB": 1000, "MB": 10**6, "GB": 10**9, "KIB": KIB, "MIB": MIB, "GIB": GIB}
_TIMES = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*$")
_MAX_BYTES = 2**53


def parse_bytes(text: str | int) -> Bytes:
    """`"64MiB"`, `"1.5 GB"` or an int; InputError names the value and the units that are known."""
    if isinstance(text, bool) or not isinstance(text, (str, int)):
        raise InputError(Code.BAD_REQUEST, "a size is an integer or a text like '64MiB'", value=text)
    if isinstance(text, int):
        size = text
    else:
        match = _NUMBER.match(text)
        if match is None or match[2].upper() not in _SIZES:
            raise InputError(
                Code.BAD_REQUEST, "not a size", value=text, hint="Write a number with B, KiB, MiB or GiB"
            )
        size = round(float(match[1]) * _SIZES[match[2].upper()])
    if not 0 <= size <= _MAX_BYTES:
        raise InputError(Code.BAD_REQUEST, "a size must lie in 0..2^53 bytes", value=text)
    return Bytes(size)


def format_bytes(size: float) -> str:
    """`67108864` -> `64.0 MiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < KIB:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= KIB
    return f"{value:.1f} GiB"


def parse_seconds(text: str | float) -> Seconds:
    """`"250ms"`, `"2s"`, `"1h"` or a number of seconds."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        seconds = float(text)
    else:
        match = _NUMBER.match(text) if isinstance(text, str) else None
        if match is None or (match[2] or "s") not in _TIMES:
            raise InputError(
                Code.BAD_REQUEST, "not a duration", value=text, hint="Write a number with ms, s, m, h or d"
            )
        seconds = float(match[1]) * _TIMES[match[2] or "s"]
    if not 0 <= seconds < float("inf"):
        raise InputError(Code.BAD_REQUEST, "a duration must be finite and not negative", value=text)
    return Seconds(seconds)
