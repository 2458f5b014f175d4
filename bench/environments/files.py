"""Data files of the environments: found by path, read whole, and refused by name if they are not right."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from bench.datasets import ENVIRONMENT_NAME
from shared.errors import Code, InputError

T = TypeVar("T")


def matching(data: Path | None, pattern: str, source: str) -> list[Path]:
    """Files below the data directory, by name; InputError(BAD_INPUT_FILE) that says where they come from."""
    found = present(data, pattern)
    if not found:
        raise InputError(
            Code.BAD_INPUT_FILE,
            "the environment's data are not here",
            path=str(data / pattern) if data is not None else pattern,
            hint=f"Give --data DIR or set {ENVIRONMENT_NAME} to a folder with {pattern} ({source}).",
        )
    return found


def present(data: Path | None, pattern: str) -> list[Path]:
    """Files below the data directory, by name; empty where there are none."""
    return sorted(path for path in data.glob(pattern) if path.is_file()) if data is not None else []


def read(path: Path, layout: str, parse: Callable[[Any], T]) -> T:
    """What `parse` makes of a JSON file; InputError(BAD_INPUT_FILE) naming file and layout if it is none."""
    try:
        return parsed(path.read_bytes(), str(path), layout, parse)
    except OSError as problem:
        raise InputError(
            Code.BAD_INPUT_FILE, "the file cannot be read", path=str(path), reason=str(problem)
        ) from None


def parsed(raw: bytes, name: str, layout: str, parse: Callable[[Any], T]) -> T:
    """`read` for bytes that are here already."""
    try:
        return parse(json.loads(raw.decode("utf-8")))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as problem:
        raise InputError(
            Code.BAD_INPUT_FILE,
            f"not in the layout of {layout}",
            path=name,
            reason=f"{type(problem).__name__}: {problem}"[:200],
            hint="The file must be UTF-8 JSON as its publisher has it.",
        ) from None


def own(name: str, layout: str, parse: Callable[[Any], T]) -> T:
    """What ships with the package (written by us, CC0)."""
    raw = (files("bench.environments") / "data" / name).read_bytes()
    return parsed(raw, name, layout, parse)


def text_of(value: object) -> str:
    """A string field; ValueError for anything else, for an empty one, and for what no store takes."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"a text was expected, not {value!r}"[:120])
    value.encode()
    if "\0" in value:
        raise ValueError("a text may not hold a zero byte")
    return value
