"""The plain extractive distiller: which pieces of a text outlive which rung. Linear, no model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from edge_agent.atoms import AtomClass, Atoms, atoms, looks_of
from edge_agent.facts import find_invariants
from edge_agent.ranking import ranked, telling_lines
from shared.memory.model import Ladder, Rung
from shared.memory.spans import Levelled
from shared.memory.tokens import located


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
        levels = [Rung.FULL] * len(found)
        if ladder.lossy:
            _fill_all(
                found, levels, ranked(text, found, lines, frozenset(chosen)), ladder, len(text.encode())
            )
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


def _fill_all(found: Atoms, levels: list[Rung], order: Sequence[int], ladder: Ladder, size: int) -> None:
    """Give every rung its atoms. What is read has one blank or line break fewer than it has pieces."""
    smallest = min(found.size, default=0)
    kinds = found.kind
    content = [index for index in order if kinds[index] > AtomClass.STOP]
    used = _keep_one(found, levels, content or order, ladder, size)
    for spec in reversed(ladder.lossy):
        aim, rung = int(size * spec.text_fraction) + 1, spec.rung
        for index in order if spec is ladder.lossy[0] else content:
            if used + smallest >= aim:
                break
            cost = found.size[index] + 1
            if used + cost <= aim and levels[index] is Rung.FULL:
                levels[index] = rung
                used += cost


def _keep_one(found: Atoms, levels: list[Rung], order: Sequence[int], ladder: Ladder, size: int) -> int:
    """TRACE is never empty: where no atom fits it, it gets the best within the tightest aim that one fits."""
    if not order:
        return 0
    for spec in reversed(ladder.lossy):
        for index in order:
            if found.size[index] <= int(size * spec.text_fraction):
                levels[index] = Rung.TRACE
                return found.size[index] + 1
    index = min(order, key=found.size.__getitem__)
    levels[index] = Rung.TRACE
    return found.size[index] + 1


def _spans(
    text: str, found: Atoms, levels: Sequence[Rung]
) -> tuple[tuple[int, ...], tuple[Rung, ...], list[int]]:
    """Cover the text: neighbours of one level with one blank between them are one span, but for TRACE."""
    ends: list[int] = []
    span_levels: list[Rung] = []
    trace: list[int] = []
    full, deepest = Rung.FULL, Rung.TRACE
    last, last_level = 0, full
    for index, level in enumerate(levels):
        if level is full:
            continue
        start, end = found.start[index], found.end[index]
        if level is deepest:
            trace.append(index)
        gap = start - last
        if level is last_level and level is not deepest and (gap == 0 or (gap == 1 and text[last] == " ")):
            ends[-1] = end
        else:
            if gap:
                ends.append(start)
                span_levels.append(full)
            ends.append(end)
            span_levels.append(level)
        last, last_level = end, level
    if last < len(text):
        ends.append(len(text))
        span_levels.append(full)
    return tuple(ends), tuple(span_levels), trace
