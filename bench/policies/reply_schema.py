"""Reading a model's JSON: found in what it wrote around it, and checked against the schema it was given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def read_json(answer: str, schema: Mapping[str, Any]) -> Any:
    """The first JSON value in `answer` that fits `schema`; ValueError when there is none."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    problem = "no JSON in it"
    for start in _starts(answer):
        try:
            value, _ = decoder.raw_decode(answer, start)
        except (ValueError, RecursionError):
            continue
        problem = misfit(value, schema)
        if not problem:
            return value
    raise ValueError(problem)


def misfit(value: Any, schema: Mapping[str, Any], where: str = "$") -> str:
    """Why a value does not fit; empty when it does.

    Knows type, enum, properties, required, items, minItems, maxItems, minimum, maximum, minLength, maxLength.
    """
    kind = schema.get("type")
    if kind is not None:
        fits = isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
        if not fits:
            return f"{where} is no {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of {schema['enum']}"
    if isinstance(value, dict):
        return _object_misfit(value, schema, where)
    if isinstance(value, list):
        return _bounds(len(value), schema, "Items", where) or next(
            (
                found
                for at, part in enumerate(value)
                if (found := misfit(part, schema.get("items", {}), f"{where}[{at}]"))
            ),
            "",
        )
    if isinstance(value, str):
        if any("\ud800" <= char <= "\udfff" for char in value):
            return f"{where} has half a character"
        return _bounds(len(value), schema, "Length", where)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        return "" if low <= value <= high else f"{where} is outside {low}..{high}"
    return ""


def _object_misfit(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> str:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where}.{name} is missing"
    for name, part in schema.get("properties", {}).items():
        if name in value and (found := misfit(value[name], part, f"{where}.{name}")):
            return found
    return ""


def _bounds(size: int, schema: Mapping[str, Any], what: str, where: str) -> str:
    low, high = schema.get(f"min{what}", 0), schema.get(f"max{what}", size)
    return "" if low <= size <= high else f"{where} has {size}, not {low}..{high}"


def _starts(answer: str) -> list[int]:
    """Where a document may begin: the whole answer, then every bracket (models like to talk around it)."""
    stripped = len(answer) - len(answer.lstrip())
    brackets = [at for at, char in enumerate(answer[:_LOOKED_AT]) if char in "[{"]
    return list(dict.fromkeys((stripped, *brackets[:_TRIED])))


_LOOKED_AT = 20_000
_TRIED = 64


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
