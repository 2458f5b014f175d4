"""Dates as the conversation data sets write them, in seconds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone

_MONTHS_TOLD = "january february march april may june july august september october november december"
_MONTHS = {name: number for number, name in enumerate(_MONTHS_TOLD.split(), 1)}
_SPOKEN = re.compile(r"(\d{1,2}):(\d{2})\s*([ap])m on (\d{1,2}) (\w+),? (\d{4})", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?: \(\w+\))?(?: (\d{1,2}):(\d{2}))?")


def seconds(date: str) -> float | None:
    """Seconds since 1970 of "1:56 pm on 8 May, 2023" or "2023/05/20 (Sat) 02:21"; None for anything else."""
    if spoken := _SPOKEN.search(date):
        hour = int(spoken[1]) % 12 + (12 if spoken[3].lower() == "p" else 0)
        month = _MONTHS.get(spoken[5].lower(), 0)
        return _at(int(spoken[6]), month, int(spoken[4]), hour, int(spoken[2]))
    if numbers := _NUMBERS.search(date):
        year, month, day, hour, minute = (int(part or 0) for part in numbers.groups())
        return _at(year, month, day, hour, minute)
    return None


def rising(times: Iterable[float | None]) -> list[float]:
    """The same times, each at least a second behind the one before; unknown ones follow at once."""
    found: list[float] = []
    for time in times:
        least = found[-1] + 1.0 if found else 0.0
        found.append(least if time is None else max(time, least))
    return found


def _at(year: int, month: int, day: int, hour: int, minute: int) -> float | None:
    try:
        return datetime(year, month, day, hour, minute, tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None
