"""The plain extractive distiller: which pieces of a text outlive which rung. Linear, no model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from edge_agent.atoms import Atom, AtomClass, atoms
from edge_agent.facts import find_invariants
from shared.memory.model import Ladder, Rung
from shared.memory.spans import Levelled
from shared.memory.tokens import located

# What a byte of each class is worth when it must be chosen; only the order and rough distances matter.
_CLASS_SCORE = {
    AtomClass.ENTITY: 60,
    AtomClass.DATE: 60,
    AtomClass.ID: 55,
    AtomClass.NAME: 55,
    AtomClass.NUMBER: 50,
    AtomClass.INTEGER: 50,
    AtomClass.NEGATION: 40,
    AtomClass.ACTION: 40,
    AtomClass.WORD: 30,
    AtomClass.PIECE: 20,
    AtomClass.STOP: 4,
    AtomClass.MARK: 1,
}
_CLASS_SCORES = tuple(_CLASS_SCORE[kind] for kind in AtomClass)
_TASK_BONUS = 30
_OUTCOME_BONUS = 45
_CHOSEN_BONUS = 35  # more than any difference between classes, less than an outcome
_RELATION_BONUS = 10  # a clause that ties two things together says more than one that names a thing
_INVENTORY_PENALTY = 25  # "you see a cabinet 6, a cabinet 5, ..." repeats what visits will name
_INVENTORY_FROM = 7
_REPEAT_PENALTY = 30
_BYTES_A_POINT = 8
_LONGEST_MALUS = 20
_TOP_SCORE = 127
_STRIDE = 0.6180339887  # spreads equal scores over the text, and keeps a clause together


class PlainDistiller:
    """Scores atoms by class, clause and novelty, and fills each rung's byte aim from the deepest rung up."""

    version = 1

    def distil(self, text: str, ladder: Ladder, chosen: Collection[int] = ()) -> Levelled:
        """Levels and invariants of an original.

        `chosen`: numbers of clauses (see `sentences`) that a model would rather keep. They are ranked
        higher and nothing else: what a layer holds is still a span of the text, within the same byte aims.
        """
        places = located(text)
        found = atoms(text, places)
        levels = [Rung.FULL] * len(found)
        size = len(text.encode())
        order = list(_ranked(found, frozenset(chosen)))
        if ladder.lossy:
            used = _keep_one(found, levels, order, ladder, size)
            for spec in reversed(ladder.lossy):
                used += _fill(found, levels, order, spec.rung, int(size * spec.text_fraction) - used)
        ends, span_levels, kept = _spans(text, found, levels)
        return Levelled(text, ends, span_levels, find_invariants(text, places, found, kept))


def sentences(text: str) -> list[tuple[int, int, int]]:
    """What a model may choose among: (start, end, number) of each clause, in order; numbers may skip."""
    found: list[tuple[int, int, int]] = []
    for start, end, clause in located(text):
        if found and found[-1][2] == clause:
            found[-1] = (found[-1][0], end, clause)
        else:
            found.append((start, end, clause))
    return found


def _ranked(found: Sequence[Atom], chosen: Collection[int]) -> Iterator[int]:
    """Atom indexes, best first: a counting sort, equal scores spread over the text clause by clause."""
    scores = _scores(found, chosen)
    buckets: list[list[int]] = [[] for _ in range(_TOP_SCORE + 1)]
    for index, score in enumerate(scores):
        buckets[score].append(index)
    for bucket in reversed(buckets):
        groups: list[list[int]] = []
        for index in bucket:
            if groups and found[groups[-1][0]].clause == found[index].clause:
                groups[-1].append(index)
            else:
                groups.append([index])
        for position in _spread(len(groups)):
            yield from groups[position]


def _scores(found: Sequence[Atom], chosen: Collection[int]) -> list[int]:
    things: dict[int, set[str]] = {}
    for atom in found:
        if atom.kind >= AtomClass.ID:
            things.setdefault(atom.clause, set()).add(atom.norm)
    nothing: set[str] = set()
    best: dict[str, int] = {}
    scores = []
    for index, (_, _, kind, word, clause, size, task, outcome) in enumerate(found):
        score = _CLASS_SCORES[kind]
        if kind > AtomClass.STOP:
            score += (
                _TASK_BONUS * task
                + _OUTCOME_BONUS * outcome
                + _CHOSEN_BONUS * (clause in chosen)
                - min(size // _BYTES_A_POINT, _LONGEST_MALUS)
            )
            named = len(things.get(clause, nothing))
            if named >= _INVENTORY_FROM:
                score -= _INVENTORY_PENALTY
            elif named > 1:
                score += _RELATION_BONUS
        scores.append(score)
        if scores[best.setdefault(word, index)] < score:
            best[word] = index
    repeats = (best[atom.norm] != index for index, atom in enumerate(found))
    return [
        max(0, min(_TOP_SCORE, score - _REPEAT_PENALTY * repeat))
        for score, repeat in zip(scores, repeats, strict=True)
    ]


def _spread(count: int) -> Iterator[int]:
    """A permutation of range(count) that jumps by the golden section."""
    step = max(1, round(count * _STRIDE))
    while _common(step, count) > 1:
        step += 1
    position = 0
    for _ in range(count):
        yield position
        position = (position + step) % count


def _common(one: int, other: int) -> int:
    while other:
        one, other = other, one % other
    return one


def _fill(found: Sequence[Atom], levels: list[Rung], order: Sequence[int], rung: Rung, aim: int) -> int:
    """Give `rung` to the best atoms that fit in `aim` bytes; each costs its text and one marker or space."""
    used = 0
    for index in order:
        cost = found[index].size + 1
        if levels[index] is Rung.FULL and used + cost <= aim:
            levels[index] = rung
            used += cost
    return used


def _keep_one(
    found: Sequence[Atom], levels: list[Rung], order: Sequence[int], ladder: Ladder, size: int
) -> int:
    """TRACE is never empty: where no atom fits it, it gets the best within the tightest aim that one fits."""
    smallest = min((atom.size for atom in found), default=0) + 1
    if not found or smallest <= int(size * ladder.lossy[-1].text_fraction):
        return 0
    for spec in reversed(ladder.lossy):
        for index in order:
            if found[index].size <= int(size * spec.text_fraction):
                levels[index] = Rung.TRACE
                return found[index].size
    index = min(order, key=lambda index: found[index].size)
    levels[index] = Rung.TRACE
    return found[index].size


def _spans(
    text: str, found: Sequence[Atom], levels: Sequence[Rung]
) -> tuple[tuple[int, ...], tuple[Rung, ...], tuple[Atom, ...]]:
    """Cover the text: neighbours of one level with one blank between them are one span, but for TRACE."""
    ends: list[int] = []
    span_levels: list[Rung] = []

    def close(end: int, level: Rung) -> None:
        if end > (ends[-1] if ends else 0):
            if span_levels and span_levels[-1] is level and level is not Rung.TRACE:
                ends[-1] = end
            else:
                ends.append(end)
                span_levels.append(level)

    kept = []
    for atom, level in zip(found, levels, strict=True):
        if level is Rung.FULL:
            continue
        before = ends[-1] if ends else 0
        joined = span_levels and span_levels[-1] is level and level is not Rung.TRACE
        blank = joined and atom.start - before <= 1 and text[before : atom.start] in ("", " ")
        close(atom.start, level if blank else Rung.FULL)
        close(atom.end, level)
        if level is Rung.TRACE:
            kept.append(atom)
    close(len(text), Rung.FULL)
    return tuple(ends), tuple(span_levels), tuple(kept)
