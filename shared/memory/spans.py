"""Spans and their levels: how an original is cut, what a rung keeps of it, and how that reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from operator import lt
from typing import NamedTuple

from shared.memory.invariants import Invariant
from shared.memory.model import Rung

_LEVELS = tuple(rung for rung in Rung if rung is Rung.FULL or rung.lossy)
_LINE_BREAK = re.compile(r"[\n\r\u2028\u2029]")


class Gap(IntEnum):
    """What was dropped between a span and the one before it; only rendering looks at it."""

    NONE = 0
    INLINE = 1
    LINE = 2


@dataclass(frozen=True)
class Levelled:
    """An original cut into spans.

    ends: code point offsets, the last is len(text).
    levels: the deepest rung at which each span is still there, FULL for one that only the original has.
    invariants: index the TRACE spans in text order.
    """

    text: str
    ends: tuple[int, ...]
    levels: tuple[Rung, ...]
    invariants: tuple[Invariant, ...] = ()

    def __post_init__(self) -> None:
        # Whole columns at once: this runs for every text that is distilled.
        ends, levels = self.ends, self.levels
        if (ends and ends[0] <= 0) or not all(map(lt, ends, ends[1:])):
            raise ValueError("span ends must increase")
        if (ends[-1] if ends else 0) != len(self.text) or len(levels) != len(ends):
            raise ValueError("spans must cover the text, one level each")
        if sum(map(levels.count, _LEVELS)) != len(levels):
            raise ValueError("a level is FULL or a lossy rung")
        traces = levels.count(Rung.TRACE)
        if any(max(invariant.spans) >= traces for invariant in self.invariants):
            raise ValueError("an invariant names a TRACE span that is not there")


class Span(NamedTuple):
    """A verbatim piece of the original, its level, and the gap before it."""

    text: str
    level: Rung
    gap: Gap = Gap.NONE


@dataclass(frozen=True)
class Base:
    """The spans an entry has at `rung` (FULL: all of them)."""

    rung: Rung
    levelling: int
    spans: tuple[Span, ...]
    invariants: tuple[Invariant, ...] = ()

    @property
    def text(self) -> str:
        """The verbatim spans end to end: what layers are positioned in, not what people read."""
        return "".join(span.text for span in self.spans)

    @property
    def trace(self) -> tuple[str, ...]:
        """Texts of the TRACE spans, as invariants index them."""
        return tuple(span.text for span in self.spans if span.level is Rung.TRACE)


def whole(levelled: Levelled, levelling: int) -> Base:
    """The original as a base at FULL."""
    starts = (0, *levelled.ends)
    spans = (
        Span(levelled.text[start:end], level)
        for start, end, level in zip(starts, levelled.ends, levelled.levels, strict=False)
    )
    return Base(Rung.FULL, levelling, tuple(spans), levelled.invariants)


def lower(base: Base, to: Rung) -> Base:
    """The base at a deeper rung: dropping in steps or at once gives the same base."""
    kept: list[Span] = []
    gap = Gap.NONE
    for span in base.spans:
        gap = max(gap, span.gap)
        if span.level >= to:
            kept.append(Span(span.text, span.level, gap if kept else Gap.NONE))
            gap = Gap.NONE
        else:
            gap = Gap.LINE if _LINE_BREAK.search(span.text) else max(gap, Gap.INLINE)
    return Base(to, base.levelling, tuple(kept), base.invariants)


def render(base: Base) -> str:
    """Readable text: a space or a line break stands where something was dropped between two spans."""
    pieces: list[str] = []
    last = " "
    for span in base.spans:
        if span.gap is Gap.LINE and last != "\n":
            pieces.append("\n")
        elif span.gap is Gap.INLINE and not last.isspace() and not span.text[0].isspace():
            pieces.append(" ")
        pieces.append(span.text)
        last = span.text[-1]
    return "".join(pieces)
