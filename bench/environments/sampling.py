"""Seeded choices that all text environments make: what is asked to measure, and what is asked as traffic."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

from bench.environments.contract import STAGES, Size
from shared.errors import Code, InputError

T = TypeVar("T")
MEASURED_SHARE = 2 / 3
"""At most this share of a small pool of questions measures; the rest is serving traffic."""


def generator(*parts: object) -> random.Random:
    """A generator that the parts alone decide, on every machine."""
    return random.Random("/".join(str(part) for part in parts))


def split(rng: random.Random, pool: Sequence[T], measuring: int) -> tuple[list[T], list[T]]:
    """(measuring, the rest) in seeded order, disjoint."""
    mixed = rng.sample(pool, len(pool))
    count = min(measuring, int(MEASURED_SHARE * len(mixed)))
    return mixed[:count], mixed[count:]


def rounds(rng: random.Random, pool: Sequence[T], count: int) -> tuple[tuple[T, ...], ...]:
    """One sample of `count` a stage, without repeats inside it; the whole pool where it is smaller."""
    return tuple(tuple(rng.sample(pool, min(count, len(pool)))) for _ in range(STAGES))


def preset(sizes: Mapping[str, Size], name: str) -> Size:
    """The size of this name; InputError(BAD_REQUEST) for any other."""
    if name not in sizes:
        raise InputError(Code.BAD_REQUEST, "no such preset", preset=name, hint=f"one of {', '.join(sizes)}")
    return sizes[name]
