"""Atoms: the smallest pieces the distiller chooses among - names, numbered things, numbers, dates, words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import chain, repeat

from edge_agent import weights
from edge_agent.words import Group, known
from shared.memory.lexicon import CALENDAR, STOP_WORDS, UNITS
from shared.memory.tokens import Place, negates, norm, numeric, punctuation


class AtomClass(IntEnum):
    """Classes above STOP carry content; from ID on they name a thing."""

    MARK = 0
    STOP = 1
    SIGN = 2
    PIECE = 3
    GLYPH = 4
    WORD = 5
    ACTION = 6
    NEGATION = 7
    INTEGER = 8
    NUMBER = 9
    ID = 10
    DATE = 11
    NAME = 12
    ENTITY = 13


@dataclass
class Atoms:
    """Columns, one row an atom: text[start:end] of the original, in order.

    `token`: its first token's number; `clause`: its claim's; `size`: UTF-8 bytes; `value`: what it is worth.
    """

    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    token: list[int] = field(default_factory=list)
    clause: list[int] = field(default_factory=list)
    kind: list[AtomClass] = field(default_factory=list)
    norm: list[str] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    value: list[int] = field(default_factory=list)
    asked: set[int] = field(default_factory=set)
    """Numbers of the clauses that end in a question mark."""

    def __len__(self) -> int:
        return len(self.start)

    def add(
        self,
        start: int,
        end: int,
        token: int,
        clause: int,
        kind: AtomClass,
        word: str,
        size: int,
        value: int,
    ) -> None:
        """Append a row."""
        self.start.append(start)
        self.end.append(end)
        self.token.append(token)
        self.clause.append(clause)
        self.kind.append(kind)
        self.norm.append(word)
        self.size.append(size)
        self.value.append(value)


Look = tuple[str, AtomClass, AtomClass, int, Group, int, bool]
"""Of one token: norm, class, class where a clause opens, UTF-8 bytes, group, own value, telling word."""

# A token longer than this is cut: no byte aim could ever be met by a text that is one long word.
LONGEST_TOKEN = 48
_LONGEST_GLYPHS = 4  # Han and kana stand alone as tokens; a word of theirs is mostly one to four
_ALSO_WORDS = frozenset({"may", "march", "sun", "mar", "sat"})  # calendar words only with a capital
_DATE = re.compile(
    r"\d{4}[-/]\d{1,2}(?:[-/]\d{1,2})?|\d{1,2}[:/]\d{1,2}(?:[:/]\d{2,4})?(?:am|pm)?|\d{1,2}(?:am|pm)"
)
_PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*%?")
_GLYPH = re.compile("[\u30a0-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA = re.compile("[\u3040-\u309f]")  # endings and particles
# Han that only join others, in Chinese; they part runs as blanks part words.
_HAN_STOPS = frozenset("的了是在和我他她它们你这那就也与及或被把从吗呢吧啊很而且但之于")
_SIGNS = frozenset("><|=~^`")  # symbols that only lay a text out
_TIED_SIGNS = frozenset("+#$€£¥%‰°")  # they belong to what they touch
_MARKS = {
    ",": Group.COMMA,
    ";": Group.COMMA,
    ".": Group.END,
    "!": Group.CALLED,
    "?": Group.ASKED,
    ":": Group.COLON,
    ">": Group.PROMPT,
}
_OPENERS = frozenset({Group.EDGE, Group.COLON, Group.MARK, Group.PROMPT})  # a sentence may open behind these
_CALLING = frozenset({Group.EDGE, Group.COLON, Group.COMMA, Group.COURTESY})
_CALLED = frozenset({Group.COMMA, Group.END, Group.ASKED, Group.CALLED})
# 'fridge' + '1' is one thing, so are 'Ana' + 'Maria' and '8' + 'May' + '2023'.
# Keyed by plain integers: an enum's own hash runs in Python, once a token.
_JOINS = {
    AtomClass.WORD << 8 | AtomClass.INTEGER: AtomClass.ENTITY,
    AtomClass.NAME << 8 | AtomClass.NAME: AtomClass.NAME,
    AtomClass.DATE << 8 | AtomClass.DATE: AtomClass.DATE,
    AtomClass.INTEGER << 8 | AtomClass.DATE: AtomClass.DATE,
    AtomClass.DATE << 8 | AtomClass.INTEGER: AtomClass.DATE,
}
# Without a blank: C++, $5.
_TIGHT_JOINS = {
    AtomClass.WORD << 8 | AtomClass.SIGN: AtomClass.NAME,
    AtomClass.NAME << 8 | AtomClass.SIGN: AtomClass.NAME,
    AtomClass.SIGN << 8 | AtomClass.SIGN: AtomClass.SIGN,
    AtomClass.SIGN << 8 | AtomClass.INTEGER: AtomClass.NUMBER,
    AtomClass.SIGN << 8 | AtomClass.NUMBER: AtomClass.NUMBER,
}
# A line can state a task or an outcome only with one of these in it.
_TELLING_WORDS = (
    "task goal instruction question query outcome result status reward score answer error exit exit_code "
    "exitcode won lost"
)
_TELLING = frozenset(_TELLING_WORDS.split())
_TELLING_STEMS = ("succe", "fail")
_EDGE: Look = ("", AtomClass.MARK, AtomClass.MARK, 0, Group.EDGE, 0, False)
_MOST_LOOKS = 32_768
_looks: dict[str, Look] = {}


def looks_of(text: str, places: Sequence[Place]) -> list[Look]:
    """How each token looks by itself; what was seen before is remembered, up to a bound."""
    if len(_looks) > _MOST_LOOKS:
        _looks.clear()
    seen = _looks.get
    return [seen(text[start:end]) or _look(text[start:end]) for start, end, _ in places]


def atoms(text: str, places: Sequence[Place], looks: Sequence[Look]) -> Atoms:
    """Atoms of a text in order, from its located tokens; punctuation and white space are nobody's."""
    found = Atoms()
    kinds, clauses = found.kind, found.clause
    before_clause, acts = -1, False
    last = before = Group.EDGE
    after_next = chain((look[4] for look in looks[2:]), repeat(Group.EDGE))
    nexts = chain((look[4] for look in looks[1:]), repeat(Group.EDGE))
    for token, ((start, end, clause), look, after, beyond) in enumerate(
        zip(places, looks, nexts, after_next, strict=False)
    ):
        word, kind, opening, size, group, value, _ = look
        if clause != before_clause:
            before_clause, acts = clause, group is Group.PROMPT
            last = before = Group.EDGE
            kind = opening
        elif before in _OPENERS:
            kind = opening
        if kind is AtomClass.MARK:
            if group is Group.ASKED:
                found.asked.add(clause)
        elif end - start > LONGEST_TOKEN:
            _cut(found, text, start, end, token, clause)
        elif not (kinds and clauses[-1] == clause and _joined(found, text, start, end, kind, look)):
            value += (
                weights.BEFORE[before] + weights.LAST[last] + weights.AFTER[after] + weights.BEYOND[beyond]
            )
            if acts:
                kind, acts = AtomClass.ACTION, False
            elif kind is AtomClass.NAME and before in _CALLING and after in _CALLED:
                value += weights.VOCATIVE
            if group is Group.NAME and after is Group.COLON and before in _OPENERS:
                value += weights.SPEAKER
            found.add(start, end, token, clause, kind, word, size, value + weights.KIND[kind])
        last, before = before, group
    return found if found.start or not text else _only_marks(text)


def _joined(found: Atoms, text: str, start: int, end: int, kind: AtomClass, look: Look) -> bool:
    """Add the token to the atom before it where the two are one thing."""
    gap = start - found.end[-1]
    if gap > 1 or (gap and text[start - 1] != " "):
        return False
    before = found.kind[-1]
    longest = LONGEST_TOKEN
    if look[0] in UNITS and AtomClass.INTEGER <= before <= AtomClass.NUMBER:
        joined: AtomClass | None = AtomClass.NUMBER
    elif gap:
        joined = _JOINS.get(before << 8 | kind)
    elif kind is AtomClass.GLYPH and before is kind:
        joined, longest = kind, _LONGEST_GLYPHS
    else:
        joined = _TIGHT_JOINS.get(before << 8 | kind)
    if joined is None or end - found.start[-1] > longest:
        return False
    found.end[-1] = end
    found.kind[-1] = joined
    found.norm[-1] += " " * gap + look[0]
    found.size[-1] += gap + look[3]
    if joined is AtomClass.ENTITY:
        # One thing is worth another; a short name leaves room for one more.
        found.value[-1] = weights.KIND[joined] - found.size[-1] // weights.BYTES_A_POINT
    else:
        found.value[-1] = max(found.value[-1], look[5] + weights.KIND[joined])
    return True


def _cut(found: Atoms, text: str, start: int, end: int, token: int, clause: int) -> None:
    for at in range(start, end, LONGEST_TOKEN):
        surface = text[at : min(at + LONGEST_TOKEN, end)]
        found.add(at, at + len(surface), token, clause, AtomClass.PIECE, surface, len(surface.encode()), 0)


def _only_marks(text: str) -> Atoms:
    found = Atoms()
    found.add(0, 1, 0, 0, AtomClass.MARK, text[0], len(text[0].encode()), 0)
    return found


def _look(surface: str) -> Look:
    word = norm(surface)
    inside, opening = _classify(surface, word, first=False), _classify(surface, word, first=True)
    group, common = _group(surface, word, opening)
    size = len(surface.encode())
    value = weights.OWN[group] + weights.COMMON[common] + weights.LENGTH[min(size, len(weights.LENGTH) - 1)]
    look = word, inside, opening, size, group, value, word in _TELLING or word.startswith(_TELLING_STEMS)
    if len(surface) <= LONGEST_TOKEN:
        _looks[surface] = look
    return look


def _group(surface: str, word: str, kind: AtomClass) -> tuple[Group, int]:
    """The token as its neighbours see it, and how common a word it is."""
    if kind is AtomClass.MARK:
        return _MARKS.get(surface, Group.MARK), 0
    if kind is AtomClass.DATE:
        return Group.CALENDAR, 0
    if numeric(surface):
        return Group.COUNT, 0
    group, common = known(surface.casefold().replace("\u2019", "'").removesuffix("'s"))
    return Group.NAME if not common and surface[0].isupper() else group, common


def _classify(surface: str, word: str, *, first: bool) -> AtomClass:
    kind = AtomClass.WORD
    if surface in _TIED_SIGNS:
        kind = AtomClass.SIGN
    elif punctuation(surface) or surface in _SIGNS:
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
    elif len(surface) == 1 and surface > "\u3000":
        kind = _glyph(surface)
    elif _named(surface, first=first):
        kind = AtomClass.NAME
    return kind


def _glyph(surface: str) -> AtomClass:
    if surface in _HAN_STOPS or _KANA.match(surface):
        return AtomClass.STOP
    return AtomClass.GLYPH if _GLYPH.match(surface) else AtomClass.WORD


def _named(surface: str, *, first: bool) -> bool:
    """Capitals inside a clause, or more than one in a word."""
    capitals = sum(character.isupper() for character in surface)
    return capitals > 1 or (capitals == 1 and surface[0].isupper() and not first)
