"""Which atoms to keep first: what each is worth by itself, among its neighbours, in its clause and line."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from edge_agent import weights
from edge_agent.atoms import AtomClass, Atoms, Look
from shared.memory.tokens import Place

_INVENTORY_FROM = 7
_TAKES = frozenset({"take", "pick", "grab", "get", "fetch"})  # where it went is what counts
_SPREAD = 40_503  # times 2^-16 the golden section: consecutive clauses fall far apart
_SPREAD_BITS = 16
_SPREAD_MASK = (1 << _SPREAD_BITS) - 1

_TASK_LINE = re.compile(
    r"\b(?:your task is|task|goal|instruction|question|query)\b\s*(?:to\b\s*)?:", re.IGNORECASE
)
_OUTCOME_LINE = re.compile(
    r"(?:^\W*|[\"'])(?:outcome|result|status|reward|score|final answer|answer|error|exit[ _]code)\b"
    r"[^:=]{0,24}[:=]",
    re.IGNORECASE,
)
_OUTCOME_WORDS = re.compile(
    r"\b(?:succe(?:ss|eded)\w*|fail(?:ed|ure)|you won|you lost|task (?:is )?(?:done|complete\w*|solved))\b",
    re.IGNORECASE,
)
_HEAD = re.compile(r"\s{0,8}[\[(][^\])\n]{1,60}[\])]")  # [8 May, 2023]
_SCANNED_LINE = 400  # a line's role shows at its start; a 5 MB line is not searched
_SHORT_LINE = 160  # a longer line with "failed" in it tells more than an outcome


class Line(NamedTuple):
    """A line that states a task or an outcome."""

    start: int
    end: int
    task: bool
    outcome: bool


def telling_lines(text: str, places: Sequence[Place], looks: Sequence[Look]) -> list[Line]:
    """The lines that state a task or an outcome; only those with a word that can say so are read."""
    lines: list[Line] = []
    read = 0
    for (start, _, _), look in zip(places, looks, strict=True):
        if look[6] and start >= read:
            begin = max(text.rfind("\n", read, start) + 1, read)
            read = text.find("\n", start) + 1 or len(text) + 1
            task, outcome = _role(text[begin : min(read, begin + _SCANNED_LINE)])
            if task or outcome:
                lines.append(Line(begin, read, task, outcome))
    return lines


@lru_cache(maxsize=1024)
def _role(head: str) -> tuple[bool, bool]:
    said = len(head) <= _SHORT_LINE and _OUTCOME_WORDS.search(head)
    return bool(_TASK_LINE.search(head)), bool(said or _OUTCOME_LINE.search(head))


def ranked(text: str, found: Atoms, lines: Sequence[Line], chosen: Collection[int]) -> list[int]:
    """Atom numbers, best first; equals are spread over the text clause by clause."""
    values = found.value
    _weigh_head(text, found)
    deeds, anchors = _weigh_clauses(found, chosen)
    _weigh_lines(found, lines)
    _weigh_repeats(found, deeds)
    for place, low, high in anchors:
        values[place] = max(values[place], max(values[low:high]) - weights.ANCHOR)
    worth = _lifted(found, values)
    keys = [
        (value << _SPREAD_BITS) | (clause * _SPREAD & _SPREAD_MASK)
        for value, clause in zip(worth, found.clause, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)


def clause_ranges(clauses: Sequence[int]) -> list[tuple[int, int]]:
    """First row and the row behind the last of each clause."""
    edges = [at for at in range(1, len(clauses)) if clauses[at] != clauses[at - 1]]
    return list(zip([0, *edges], [*edges, len(clauses)], strict=True)) if clauses else []


def _weigh_head(text: str, found: Atoms) -> None:
    """When an entry was said stands in every entry, and in its time; it goes before what was said."""
    head = _HEAD.match(text)
    if head is not None:
        for at in range(bisect_left(found.start, head.end())):
            found.value[at] -= weights.HEAD


def _weigh_clauses(found: Atoms, chosen: Collection[int]) -> tuple[set[int], list[tuple[int, int, int]]]:
    """A question asks, a list looks around, a deed ties things together; the deeds' rows."""
    deeds: set[int] = set()
    anchors: list[tuple[int, int, int]] = []
    kinds, values, norms = found.kind, found.value, found.norm
    for low, high in clause_ranges(found.clause):
        clause = found.clause[low]
        extra = weights.ASKED if clause in found.asked else 0
        if clause in chosen:
            extra += weights.CHOSEN
        named = [at for at in range(low, high) if kinds[at] >= AtomClass.ID]
        things = {norms[at] for at in named} if len(named) > 1 else named
        if len(things) >= _INVENTORY_FROM:
            extra -= weights.INVENTORY
        elif len(things) > 1:
            acts = kinds[low] is AtomClass.ACTION and norms[low] not in _TAKES
            extra += weights.DEED if acts else weights.RELATION
            if acts:
                deeds.update(range(low, high))
            elif kinds[named[0]] is AtomClass.ENTITY:
                anchors.append((named[0], named[1], named[-1] + 1))
        if extra:
            for at in range(low, high):
                if kinds[at] > AtomClass.STOP:
                    values[at] += extra
        if AtomClass.NEGATION in kinds[low:high]:
            # Kept without it, the clause would say the opposite.
            best = max(values[low:high]) - weights.DENIES
            for at in range(low, high):
                if kinds[at] is AtomClass.NEGATION:
                    values[at] = max(values[at], best)
    return deeds, anchors


def _weigh_lines(found: Atoms, lines: Sequence[Line]) -> None:
    """Outcomes first; of a task its things, by which the entry is found, ahead of its words."""
    for line in lines:
        outcome = weights.OUTCOME * line.outcome
        for at in range(bisect_left(found.start, line.start), bisect_left(found.start, line.end)):
            kind = found.kind[at]
            if kind > AtomClass.STOP:
                task = weights.TASK_THING if kind >= AtomClass.ID else weights.TASK
                found.value[at] += outcome + task * line.task


def _weigh_repeats(found: Atoms, deeds: Collection[int]) -> None:
    """What is said again is worth less, but in a deed; the best place keeps it, the first among equals."""
    values, best = found.value, dict[str, int]()
    again: list[int] = []
    for at, word in enumerate(found.norm):
        held = best.setdefault(word, at)
        if held != at:
            again.append(held)
            worse = at
            if values[held] < values[at]:
                best[word], worse = at, held
            if worse not in deeds and found.kind[worse] is not AtomClass.NEGATION:
                values[worse] -= weights.REPEATED
    # A thing that is named all over is where the others are, not news.
    for at, times in Counter(best[found.norm[at]] for at in again).items():
        if found.kind[at] is AtomClass.ENTITY and times > 1 and at not in deeds:
            values[at] -= min(times, weights.MOST_TIMES) * weights.FAMILIAR


def _lifted(found: Atoms, values: Sequence[int]) -> list[int]:
    """Worth with the pull of a better neighbour: half an answer is none."""
    lifted = list(values)
    starts, ends = found.start, found.end
    for at in range(1, len(lifted)):
        if starts[at] - ends[at - 1] <= 1:
            lead = values[at] - values[at - 1]
            if lead > 0:
                lifted[at - 1] = max(lifted[at - 1], values[at - 1] + min(weights.PULL, lead >> 1))
            elif lead < 0:
                lifted[at] += min(weights.PULL, -lead >> 1)
    return lifted
