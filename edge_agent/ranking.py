"""Which atoms to keep first: what each is worth by itself, among its neighbours, in its clause and line."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from edge_agent import weights
from edge_agent.atoms import Atoms
from edge_agent.looks import AtomClass, Look
from shared.memory.tokens import Place

_INVENTORY_FROM = 7
_REACH = 40  # atoms: a negation turns round what is near, and "not not not" is no square
# An enum's member is looked up through its class at some cost; these are needed once an atom.
_STOP, _NEGATION, _THING = AtomClass.STOP, AtomClass.NEGATION, AtomClass.ID
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
_FIELD_END = re.compile(r"[,}\n]")
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
            for low, high, task, outcome in _roles(text[begin : min(read, begin + _SCANNED_LINE)]):
                lines.append(Line(begin + low, read if high < 0 else begin + high, task, outcome))
    return lines


@lru_cache(maxsize=1024)
def _roles(head: str) -> list[tuple[int, int, bool, bool]]:
    """Start, end (-1: the line's) of what states a task or an outcome: the line, or one field of a record."""
    task = _TASK_LINE.search(head) is not None
    stated = _OUTCOME_LINE.search(head)
    said = len(head) <= _SHORT_LINE and _OUTCOME_WORDS.search(head) is not None
    if stated is not None and stated.start() and "," in head:
        end = _FIELD_END.search(head, stated.end())
        found = [(stated.start(), end.start() if end else len(head), task, True)]
        return [(0, stated.start(), True, False), *found] if task else found
    return [(0, -1, task, stated is not None or said)] if task or stated or said else []


def ranked(text: str, found: Atoms, lines: Sequence[Line], chosen: Collection[int]) -> list[int]:
    """Atom numbers, best first; equals are spread over the text clause by clause."""
    values = found.value
    _weigh_head(text, found)
    deeds, anchors = _weigh_relations(found)
    _weigh_said(found, chosen)
    _weigh_lines(found, lines)
    _weigh_repeats(found, deeds)
    for place, low, high in anchors:
        values[place] = max(values[place], max(values[low:high]) - weights.ANCHOR)
    _lift(found)
    keys = [
        (value << _SPREAD_BITS) | (clause * _SPREAD & _SPREAD_MASK)
        for value, clause in zip(values, found.clause, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)


def _weigh_head(text: str, found: Atoms) -> None:
    """When an entry was said stands in every entry, and in its time; it goes before what was said."""
    head = _HEAD.match(text)
    if head is not None:
        for at in range(bisect_left(found.start, head.end())):
            found.value[at] -= weights.HEAD


def _weigh_relations(found: Atoms) -> tuple[set[int], list[tuple[int, int, int]]]:
    """A deed ties things together, a list looks around.

    Returns the deeds' rows, and for each other relation between entities the row of its first one, the place,
    and the range of the rest.
    """
    kinds, norms, clauses = found.kind, found.norm, found.clause
    deeds: set[int] = set()
    anchors: list[tuple[int, int, int]] = []
    rows = [at for at, kind in enumerate(kinds) if kind >= _THING]
    for clause, members in groupby(rows, key=clauses.__getitem__):
        named = list(members)
        things = len({norms[at] for at in named}) if len(named) > 1 else 1
        if things == 1:
            continue
        low, high = bisect_left(clauses, clause), bisect_right(clauses, clause)
        if things >= _INVENTORY_FROM:
            extra = -weights.INVENTORY
        elif kinds[low] is AtomClass.ACTION and norms[low] not in _TAKES:
            extra = weights.DEED
            deeds.update(range(low, high))
        else:
            extra = weights.RELATION
            if kinds[named[0]] is AtomClass.ENTITY:
                anchors.append((named[0], named[1], named[-1] + 1))
        _add(found, low, high, extra)
    return deeds, anchors


def _weigh_said(found: Atoms, chosen: Collection[int]) -> None:
    """What is asked is not told, what a model chose is; and a negation goes with what it turns round."""
    clauses, kinds, values = found.clause, found.kind, found.value
    for numbers, extra in ((found.asked, weights.ASKED), (chosen, weights.CHOSEN)):
        for clause in numbers:
            _add(found, bisect_left(clauses, clause), bisect_right(clauses, clause), extra)
    for at, kind in enumerate(kinds):
        if kind is _NEGATION:
            low, high = bisect_left(clauses, clauses[at]), bisect_right(clauses, clauses[at])
            low, high = max(low, at - _REACH), min(high, at + _REACH)
            # Kept without it, the clause would say the opposite.
            values[at] = max(values[at], max(values[low:high]) - weights.DENIES)


def _add(found: Atoms, low: int, high: int, extra: int) -> None:
    kinds, values = found.kind, found.value
    for at in range(low, high):
        if kinds[at] > _STOP:
            values[at] += extra


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
    norms, values, kinds = found.norm, found.value, found.kind
    best: dict[str, int] = {}
    again: list[int] = []
    for at, (word, value) in enumerate(zip(norms, values, strict=True)):
        worse = best.setdefault(word, at)
        if worse != at:
            if values[worse] < value:
                best[word] = at
                again.append(worse)
            else:
                again.append(at)
    for at in again:
        if at not in deeds and kinds[at] is not _NEGATION:
            values[at] -= weights.REPEATED
    # A thing that is named all over is where the others are, not news.
    for word, times in Counter(norms[at] for at in again if kinds[at] is AtomClass.ENTITY).items():
        at = best[word]
        if times > 1 and at not in deeds:
            values[at] -= min(times, weights.MOST_TIMES) * weights.FAMILIAR


def _lift(found: Atoms) -> None:
    """The pull of a better neighbour: half an answer is none."""
    starts, ends, values = found.start, found.end, found.value
    end, value = -2, 0
    most = weights.PULL
    for at, (start, stop, own) in enumerate(zip(starts, ends, list(values), strict=True)):
        if start - end <= 1:
            lead = own - value
            if lead > 1:
                pulled = value + (lead >> 1 if lead < 2 * most else most)
                values[at - 1] = max(values[at - 1], pulled)
            elif lead < -1:
                values[at] = own + (-lead >> 1 if -lead < 2 * most else most)
        end, value = stop, own
