"""The plain extractive distiller: which pieces of a text outlive which rung. Linear, no model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from edge_agent.atoms import Atoms, atoms
from edge_agent.facts import find_invariants
from edge_agent.looks import AtomClass, looks_of
from edge_agent.ranking import ranked, telling_lines
from shared.memory.model import Ladder, Rung
from shared.memory.spans import Levelled
from shared.memory.tokens import located

_FULL, _TRACE, _STOP = Rung.FULL, Rung.TRACE, AtomClass.STOP


class PlainDistiller:
    """Ranks atoms by word, neighbours, clause, line and novelty; fills the rungs from the deepest up."""

    version = 2

    def distil(self, text: str, ladder: Ladder, chosen: Collection[int] = ()) -> Levelled:
        """Levels and invariants of an original.

        `chosen`: numbers of clauses (see `sentences`) that a model would rather keep. They are ranked
        higher and nothing else: what a layer holds is still a span of the text, within the same byte aims.
        """
        places = located(text)
        looks = looks_of(text, places)
        found = atoms(text, places, looks)
        lines = telling_lines(text, places, looks)
        levels = [_FULL] * len(found)
        size = len(text.encode())
        aims = [(spec.rung, int(size * spec.text_fraction)) for spec in reversed(ladder.lossy)]
        if aims and levels:
            _fill(found, levels, ranked(text, found, lines, frozenset(chosen)), aims)
        ends, span_levels, trace = _spans(text, found, levels)
        return Levelled(text, ends, span_levels, find_invariants(text, places, looks, found, trace, lines))


def sentences(text: str) -> list[tuple[int, int, int]]:
    """What a model may choose among: (start, end, number) of each clause, in order; numbers may skip."""
    found: list[tuple[int, int, int]] = []
    for start, end, clause in located(text):
        if found and found[-1][2] == clause:
            found[-1] = (found[-1][0], end, clause)
        else:
            found.append((start, end, clause))
    return found


def _fill(found: Atoms, levels: list[Rung], order: Sequence[int], aims: Sequence[tuple[Rung, int]]) -> None:
    """Give every rung its atoms, deepest first, within its bytes.

    What is read of n atoms has at most n - 1 blanks or line breaks between them. What carries nothing is kept
    by the shallowest rung only. TRACE is never empty: where no atom fits it, it gets the best one within the
    tightest aim that one fits.
    """
    sizes, kinds = found.size, found.kind
    content = [at for at in order if kinds[at] > _STOP] or order
    first = next((at for _, aim in aims for at in content if sizes[at] <= aim), None)
    if first is None:
        first = min(content, key=sizes.__getitem__)
    levels[first] = _TRACE
    used, smallest = sizes[first] + 1, min(sizes) + 1
    for rung, aim in aims:
        left = aim + 1 - used
        for at in order if rung is aims[-1][0] else content:
            if left < smallest:
                break
            cost = sizes[at] + 1
            if cost <= left and levels[at] is _FULL:
                levels[at] = rung
                left -= cost
        used = aim + 1 - left


def _spans(
    text: str, found: Atoms, levels: Sequence[Rung]
) -> tuple[tuple[int, ...], tuple[Rung, ...], list[int]]:
    """Cover the text: neighbours of one level with one blank between them are one span, but for TRACE."""
    ends: list[int] = []
    span_levels: list[Rung] = []
    trace: list[int] = []
    last, last_level = 0, _FULL
    for index, level in enumerate(levels):
        if level is _FULL:
            continue
        start, end = found.start[index], found.end[index]
        if level is _TRACE:
            trace.append(index)
        gap = start - last
        if level is last_level and level is not _TRACE and (gap == 0 or (gap == 1 and text[last] == " ")):
            ends[-1] = end
        else:
            if gap:
                ends.append(start)
                span_levels.append(_FULL)
            ends.append(end)
            span_levels.append(level)
        last, last_level = end, level
    if last < len(text):
        ends.append(len(text))
        span_levels.append(_FULL)
    return tuple(ends), tuple(span_levels), trace
