"""Atoms: the smallest pieces the distiller chooses among - names, numbered things, numbers, dates, words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from shared.memory.lexicon import CALENDAR, STOP_WORDS
from shared.memory.tokens import Place, negates, norm, numeric, punctuation


class AtomClass(IntEnum):
    """Classes above STOP carry content; from ID on they name a thing."""

    MARK = 0
    STOP = 1
    PIECE = 2
    WORD = 3
    ACTION = 4
    NEGATION = 5
    INTEGER = 6
    NUMBER = 7
    ID = 8
    DATE = 9
    NAME = 10
    ENTITY = 11


class Atom(NamedTuple):
    """text[start:end] of the original; `clause` numbers its claim; `size` is its UTF-8 bytes."""

    start: int
    end: int
    kind: AtomClass
    norm: str
    clause: int
    size: int
    task: bool
    outcome: bool


# A token longer than this is cut: no byte aim could ever be met by a text that is one long word.
_LONGEST_TOKEN = 48
_ALSO_WORDS = frozenset({"may", "march", "sun", "mar", "sat"})  # calendar words only with a capital
_DATE = re.compile(
    r"\d{4}[-/]\d{1,2}(?:[-/]\d{1,2})?|\d{1,2}[:/]\d{1,2}(?:[:/]\d{2,4})?(?:am|pm)?|\d{1,2}(?:am|pm)"
)
_PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*%?")
_TASK_LINE = re.compile(
    r"\b(?:your task is|task|goal|instruction|question|query)\b\s*(?:to\b\s*)?:", re.IGNORECASE
)
_OUTCOME_LINE = re.compile(
    r"^\W*(?:outcome|result|status|reward|score|final answer|answer)\b[^:=]{0,24}[:=]"
    r"|\b(?:succe(?:ss|eded)\w*|fail(?:ed|ure)|you won|you lost|task (?:is )?(?:done|complete\w*|solved))\b",
    re.IGNORECASE,
)
_ACTION_LINE = re.compile(r"\s*(?:>|action\b[^:]{0,12}:|act:)\s*", re.IGNORECASE)
_SCANNED_LINE = 400  # a line's role shows at its start; a 5 MB line is not searched
# 'fridge' + '1' is one thing, so are 'Ana' + 'Maria' and '8' + 'May' + '2023'.
# Keyed by plain integers: an enum's own hash runs in Python, once a token.
_JOINS = {
    AtomClass.WORD << 8 | AtomClass.INTEGER: AtomClass.ENTITY,
    AtomClass.NAME << 8 | AtomClass.NAME: AtomClass.NAME,
    AtomClass.DATE << 8 | AtomClass.DATE: AtomClass.DATE,
    AtomClass.INTEGER << 8 | AtomClass.DATE: AtomClass.DATE,
    AtomClass.DATE << 8 | AtomClass.INTEGER: AtomClass.DATE,
}


class _Line(NamedTuple):
    end: int
    task: bool
    outcome: bool
    action_at: int


class _Look(NamedTuple):
    norm: str
    kind: AtomClass
    size: int


def atoms(text: str, places: Sequence[Place]) -> list[Atom]:
    """Atoms of a text in order, from its located tokens; punctuation and white space are nobody's."""
    found: list[Atom] = []
    lines = _lines(text)
    line = next(lines)
    previous_clause = -1
    for start, end, clause in places:
        while start >= line.end:
            line = next(lines)
        first, previous_clause = clause != previous_clause, clause
        if end - start > _LONGEST_TOKEN:
            found.extend(_pieces(text, start, end, clause, line))
            continue
        looks = _look(text[start:end], first)
        if looks.kind is AtomClass.MARK:
            continue
        kind = AtomClass.ACTION if start == line.action_at else looks.kind
        before = found[-1] if found else None
        joined = None
        if before is not None and before.clause == clause and text[before.end : start] == " ":
            joined = _JOINS.get(before.kind << 8 | kind)
        if before is None or joined is None or end - before.start > _LONGEST_TOKEN:
            found.append(Atom(start, end, kind, looks.norm, clause, looks.size, line.task, line.outcome))
        else:
            word, size = f"{before.norm} {looks.norm}", before.size + 1 + looks.size
            found[-1] = Atom(before.start, end, joined, word, clause, size, line.task, line.outcome)
    return found or _only_marks(text)


def _pieces(text: str, start: int, end: int, clause: int, line: _Line) -> Iterator[Atom]:
    for at in range(start, end, _LONGEST_TOKEN):
        surface = text[at : min(at + _LONGEST_TOKEN, end)]
        size = len(surface.encode())
        yield Atom(at, at + len(surface), AtomClass.PIECE, surface, clause, size, line.task, line.outcome)


def _only_marks(text: str) -> list[Atom]:
    return [Atom(0, 1, AtomClass.MARK, text[0], 0, len(text[0].encode()), False, False)] if text else []


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    while start <= len(text):
        end = text.find("\n", start) + 1 or len(text) + 1
        role = _role(text[start : min(end, start + _SCANNED_LINE)])
        yield _Line(end, role.task, role.outcome, start + role.action_at if role.action_at >= 0 else -1)
        start = end


@lru_cache(maxsize=4096)
def _role(head: str) -> _Line:
    action = _ACTION_LINE.match(head)
    return _Line(
        0, bool(_TASK_LINE.search(head)), bool(_OUTCOME_LINE.search(head)), action.end() if action else -1
    )


@lru_cache(maxsize=16384)
def _look(surface: str, first: bool) -> _Look:
    return _Look(norm(surface), _classify(surface, first), len(surface.encode()))


def _classify(surface: str, first: bool) -> AtomClass:
    word = norm(surface)
    kind = AtomClass.WORD
    if punctuation(surface):
        kind = AtomClass.MARK
    elif negates(word):
        kind = AtomClass.NEGATION
    elif word in CALENDAR and (surface[0].isupper() or word not in _ALSO_WORDS):
        kind = AtomClass.DATE
    elif word in STOP_WORDS:
        kind = AtomClass.STOP
    elif numeric(surface):
        kind = AtomClass.INTEGER if surface.isdigit() else AtomClass.ID
        kind = AtomClass.NUMBER if kind is AtomClass.ID and _PLAIN_NUMBER.fullmatch(surface) else kind
        kind = AtomClass.DATE if _DATE.fullmatch(surface.casefold()) else kind
    elif "://" in surface or "_" in surface:
        kind = AtomClass.ID
    elif _named(surface, first):
        kind = AtomClass.NAME
    return kind


def _named(surface: str, first: bool) -> bool:
    """Capitals inside a clause, or more than one in a word."""
    capitals = sum(character.isupper() for character in surface)
    return capitals > 1 or (capitals == 1 and surface[0].isupper() and not first)
