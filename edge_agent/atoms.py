"""Atoms: the smallest pieces the distiller chooses among - names, numbered things, numbers, dates, words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import IntEnum

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


Row = tuple[int, int, int, int, "AtomClass", str, int, int]
"""Start, end, first token's number, clause, class, norm, UTF-8 bytes, value."""


class Atoms:
    """Columns, one row an atom: text[start:end] of the original, in order.

    `token`: its first token's number; `clause`: its claim's; `size`: UTF-8 bytes; `value`: what it is worth.
    `asked`: numbers of the clauses that end in a question mark.
    """

    def __init__(self, rows: Sequence[Row], asked: AbstractSet[int] = frozenset()) -> None:
        # One tuple a row and one transposition: half the time of a list for each column, filled as they come.
        columns = zip(*rows, strict=True) if rows else ((),) * 8
        self.start, self.end, self.token, self.clause, self.kind, self.norm, self.size, values = columns
        self.value = list(values)
        self.asked = asked

    def __len__(self) -> int:
        return len(self.start)


Look = tuple[str, AtomClass, AtomClass, int, Group, int, bool]
"""Of one token: norm, class, class where a clause opens, UTF-8 bytes, group, own value, telling word."""

# A token longer than this is cut: no byte aim could ever be met by a text that is one long word.
LONGEST_TOKEN = 48
_COUNTS = frozenset({AtomClass.INTEGER, AtomClass.NUMBER})
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
# An enum's member is looked up through its class at some cost; these are needed once a token.
_EDGE, _PROMPT, _ASKED, _COLON = Group.EDGE, Group.PROMPT, Group.ASKED, Group.COLON
_MARK, _NAME = AtomClass.MARK, AtomClass.NAME
# Classes that may be the second part of a thing; a unit is a word or a sign.
_JOINABLE = tuple(
    AtomClass(kind) in {AtomClass.SIGN, AtomClass.GLYPH, AtomClass.WORD} or kind >= AtomClass.INTEGER
    for kind in AtomClass
)
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
    rows: list[Row] = []
    asked: set[int] = set()
    before_weights, last_weights = weights.BEFORE, weights.LAST
    after_weights, beyond_weights, kind_weights = weights.AFTER, weights.BEYOND, weights.KIND
    groups = [look[4] for look in looks]
    following = zip([*groups[1:], _EDGE], [*groups[2:], _EDGE, _EDGE], strict=False)
    before_clause, acts = -1, False
    last = before = _EDGE
    for token, ((start, end, clause), look, (after, beyond)) in enumerate(
        zip(places, looks, following, strict=False)
    ):
        word, kind, opening, size, group, value, _ = look
        joins = clause == before_clause
        if not joins:
            before_clause, acts = clause, group is _PROMPT
            last = before = _EDGE
            kind = opening
        elif before in _OPENERS:
            kind = opening
        if kind is _MARK:
            if group is _ASKED:
                asked.add(clause)
        elif end - start > LONGEST_TOKEN:
            rows.extend(_cut(text, start, end, token, clause))
        elif not (joins and _JOINABLE[kind] and rows and _joined(rows, text, start, end, clause, kind, look)):
            value += (
                before_weights[before] + last_weights[last] + after_weights[after] + beyond_weights[beyond]
            )
            if acts:
                kind, acts = AtomClass.ACTION, False
            elif kind is _NAME and before in _CALLING and after in _CALLED:
                value += weights.VOCATIVE
            if after is _COLON and group is Group.NAME and before in _OPENERS:
                value += weights.SPEAKER
            rows.append((start, end, token, clause, kind, word, size, value + kind_weights[kind]))
        last, before = before, group
    if not rows and text:
        rows.append((0, 1, 0, 0, _MARK, text[0], len(text[0].encode()), 0))
    return Atoms(rows, asked)


def _joined(
    rows: list[Row], text: str, start: int, end: int, clause: int, kind: AtomClass, look: Look
) -> bool:
    """Add the token to the atom before it where the two are one thing."""
    begin, stop, token, clause_before, before, word, size, value = rows[-1]
    gap = start - stop
    if gap > 1 or clause != clause_before or (gap and text[start - 1] != " "):
        return False
    longest = LONGEST_TOKEN
    if before in _COUNTS and look[0] in UNITS:
        joined: AtomClass | None = AtomClass.NUMBER
    elif gap:
        joined = _JOINS.get(before << 8 | kind)
    elif kind is AtomClass.GLYPH and before is kind:
        joined, longest = kind, _LONGEST_GLYPHS
    else:
        joined = _TIGHT_JOINS.get(before << 8 | kind)
    if joined is None or end - begin > longest:
        return False
    size += gap + look[3]
    if joined is AtomClass.ENTITY:
        # One thing is worth another; a short name leaves room for one more.
        value = weights.KIND[joined] - size // weights.BYTES_A_POINT
    else:
        value = max(value, look[5] + weights.KIND[joined])
    rows[-1] = begin, end, token, clause, joined, f"{word}{' ' * gap}{look[0]}", size, value
    return True


def _cut(text: str, start: int, end: int, token: int, clause: int) -> Iterator[Row]:
    for at in range(start, end, LONGEST_TOKEN):
        surface = text[at : min(at + LONGEST_TOKEN, end)]
        size = len(surface.encode())
        yield at, at + len(surface), token, clause, AtomClass.PIECE, surface, size, 0


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
