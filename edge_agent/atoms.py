"""Atoms: the smallest pieces the distiller chooses among - names, numbered things, numbers, dates, words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

from shared.memory.lexicon import CALENDAR, STOP_WORDS
from shared.memory.tokens import located, negates, norm, numeric, punctuation


class AtomClass(IntEnum):
    """Classes above STOP carry content."""

    MARK = 0
    STOP = 1
    PIECE = 2
    WORD = 3
    ACTION = 4
    NEGATION = 5
    NUMBER = 6
    ID = 7
    DATE = 8
    NAME = 9
    ENTITY = 10

    @property
    def names_a_thing(self) -> bool:
        """True for what a relation can be about."""
        return self >= AtomClass.ID


@dataclass(frozen=True)
class Atom:
    """text[start:end] of the original; `clause` numbers its claim; `size` is its UTF-8 bytes."""

    start: int
    end: int
    kind: AtomClass
    norm: str
    clause: int
    size: int
    task: bool = False
    outcome: bool = False


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
    r"^\W*(?:outcome|result|status|reward|score|final answer|answer)\b\s*[:=]"
    r"|\b(?:succe(?:ss|eded)\w*|fail(?:ed|ure)|you won|you lost|task (?:is )?(?:done|complete\w*|solved))\b",
    re.IGNORECASE,
)
_ACTION_LINE = re.compile(r"\s*(?:>|action\b[^:]{0,12}:|act:)\s*", re.IGNORECASE)
_LINE = re.compile(r"[^\n\r]*(?:\r\n|\n|\r|$)")
_SCANNED_LINE = 400  # a line's role shows at its start; a 5 MB line is not searched


@dataclass(frozen=True)
class _Line:
    end: int
    task: bool
    outcome: bool
    action_at: int


def atoms(text: str) -> Iterator[Atom]:
    """Atoms of a text in order; white space between them is nobody's."""
    pending: Atom | None = None
    for atom in _singles(text):
        if pending is not None:
            joined = _join(text, pending, atom)
            if joined is not None:
                pending = joined
                continue
            yield pending
        pending = atom
    if pending is not None:
        yield pending
    elif text:
        yield Atom(0, 1, AtomClass.MARK, text[0], 0, len(text[0].encode()))


def _singles(text: str) -> Iterator[Atom]:
    lines = _lines(text)
    line = next(lines)
    previous_clause = -1
    for start, end, clause in located(text):
        while start >= line.end:
            line = next(lines)
        first = clause != previous_clause
        previous_clause = clause
        for at in range(start, end, _LONGEST_TOKEN):
            to = min(at + _LONGEST_TOKEN, end)
            kind = AtomClass.PIECE
            if end - start <= _LONGEST_TOKEN:
                kind = AtomClass.ACTION if start == line.action_at else _classify(text[start:end], first)
            surface = text[at:to]
            yield Atom(at, to, kind, norm(surface), clause, len(surface.encode()), line.task, line.outcome)


def _lines(text: str) -> Iterator[_Line]:
    for match in _LINE.finditer(text):
        head = match[0][:_SCANNED_LINE]
        action = _ACTION_LINE.match(head)
        yield _Line(
            match.end(),
            _TASK_LINE.search(head) is not None,
            _OUTCOME_LINE.search(head) is not None,
            match.start() + action.end() if action else -1,
        )


@lru_cache(maxsize=16384)
def _classify(surface: str, first: bool) -> AtomClass:
    word = norm(surface)
    kind = AtomClass.WORD
    if punctuation(surface):
        kind = AtomClass.MARK
    elif negates(word):
        kind = AtomClass.NEGATION
    elif word in STOP_WORDS:
        kind = AtomClass.STOP
    elif numeric(surface):
        kind = AtomClass.NUMBER if _PLAIN_NUMBER.fullmatch(surface) else AtomClass.ID
        kind = AtomClass.DATE if _DATE.fullmatch(surface.casefold()) else kind
    elif word in CALENDAR and (surface[0].isupper() or word not in _ALSO_WORDS):
        kind = AtomClass.DATE
    elif "://" in surface or "_" in surface:
        kind = AtomClass.ID
    elif _named(surface, first):
        kind = AtomClass.NAME
    return kind


def _named(surface: str, first: bool) -> bool:
    """Capitals inside a clause, or more than one in a word."""
    capitals = sum(character.isupper() for character in surface)
    return capitals > 1 or (capitals == 1 and surface[0].isupper() and not first)


def _join(text: str, before: Atom, after: Atom) -> Atom | None:
    """'fridge' + '1' is one thing, so are 'Ana' + 'Maria' and '8' + 'May' + '2023'."""
    if text[before.end : after.start] != " " or before.clause != after.clause:
        return None
    pair = before.kind, after.kind
    if pair == (AtomClass.WORD, AtomClass.NUMBER) and text[after.start : after.end].isdigit():
        kind = AtomClass.ENTITY
    elif pair in ((AtomClass.NAME, AtomClass.NAME), (AtomClass.DATE, AtomClass.DATE)):
        kind = before.kind
    elif pair in ((AtomClass.NUMBER, AtomClass.DATE), (AtomClass.DATE, AtomClass.NUMBER)):
        kind = AtomClass.DATE
    else:
        return None
    if after.end - before.start > _LONGEST_TOKEN:
        return None
    return replace(
        before,
        end=after.end,
        kind=kind,
        norm=f"{before.norm} {after.norm}",
        size=before.size + 1 + after.size,
    )
