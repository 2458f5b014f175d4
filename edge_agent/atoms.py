"""Atoms: the smallest pieces the distiller chooses among - names, numbered things, numbers, dates, words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from edge_agent import weights
from edge_agent.looks import LONGEST_TOKEN, AtomClass, Look
from edge_agent.words import Group
from shared.memory.lexicon import UNITS
from shared.memory.tokens import Place

Row = tuple[int, int, int, int, "AtomClass", str, int, int]
"""Start, end, first token's number, clause, class, norm, UTF-8 bytes, value."""


class Atoms:
    """Columns, one row an atom: text[start:end] of the original, in order.

    `token`: its first token's number; `clause`: its claim's; `size`: UTF-8 bytes; `value`: what it is worth.
    `asked`: numbers of the clauses that end in a question mark.
    """

    def __init__(self, rows: Sequence[Row], asked: AbstractSet[int] = frozenset()) -> None:
        # One tuple a row and one transposition: half the time of a list for each column, filled as they come.
        columns = tuple(zip(*rows, strict=True)) or ((),) * 8
        self.start: tuple[int, ...] = columns[0]
        self.end: tuple[int, ...] = columns[1]
        self.token: tuple[int, ...] = columns[2]
        self.clause: tuple[int, ...] = columns[3]
        self.kind: tuple[AtomClass, ...] = columns[4]
        self.norm: tuple[str, ...] = columns[5]
        self.size: tuple[int, ...] = columns[6]
        self.value: list[int] = list(columns[7])
        self.asked = asked

    def __len__(self) -> int:
        return len(self.start)


_COUNTS = frozenset({AtomClass.INTEGER, AtomClass.NUMBER})
_LONGEST_KANA = 12
_LONGEST_GLYPHS = 4  # Han and kana stand alone as tokens; a word of theirs is mostly one to four
_KATAKANA = re.compile("[\u30a0-\u30ff]")
OPENERS = frozenset({Group.EDGE, Group.COLON, Group.MARK, Group.PROMPT})  # a sentence may open behind these
CALLING = frozenset({Group.EDGE, Group.COLON, Group.COMMA, Group.COURTESY})
CALLED = frozenset({Group.COMMA, Group.END, Group.ASKED, Group.CALLED})
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
    AtomClass.INTEGER << 8 | AtomClass.INTEGER: AtomClass.INTEGER,  # Arabic digits are tokens one by one
    AtomClass.SIGN << 8 | AtomClass.NUMBER: AtomClass.NUMBER,
}
# An enum's member is looked up through its class at some cost; these are needed once a token.
_EDGE, _PROMPT, _ASKED, _COLON = Group.EDGE, Group.PROMPT, Group.ASKED, Group.COLON
_MARK, _NAME, _STOP = AtomClass.MARK, AtomClass.NAME, AtomClass.STOP
_ACTION, _DATE, _ENTITY, _GLYPH = AtomClass.ACTION, AtomClass.DATE, AtomClass.ENTITY, AtomClass.GLYPH
_ID, _NUMBER = AtomClass.ID, AtomClass.NUMBER
_PATH_SIGNS = frozenset("/\\@")
_PATH_PARTS = frozenset({AtomClass.WORD, AtomClass.NAME, AtomClass.ID, AtomClass.INTEGER, AtomClass.NUMBER})
# Classes that may be the second part of a thing; a unit is a word or a sign.
_JOINABLE = tuple(
    AtomClass(kind) in {AtomClass.SIGN, AtomClass.GLYPH, AtomClass.WORD} or kind >= AtomClass.INTEGER
    for kind in AtomClass
)
# What a blank always parts, whatever the words: most neighbours.
_APART = frozenset(
    before << 8 | kind
    for before in AtomClass
    for kind in AtomClass
    if before not in _COUNTS and before is not AtomClass.ENTITY and before << 8 | kind not in _JOINS
)


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
        word, kind, opening, size, group, value, _, _ = look
        joins = clause == before_clause
        if not joins:
            before_clause, acts = clause, group is _PROMPT
            last = before = _EDGE
            kind = opening
        elif before in OPENERS:
            kind = opening
        if kind is _MARK:
            if group is _ASKED:
                asked.add(clause)
        elif end - start > LONGEST_TOKEN:
            rows.extend(_cut(text, start, end, token, clause))
        elif not (
            joins
            and _JOINABLE[kind]
            and rows
            and (text[start - 1] != " " or rows[-1][4] << 8 | kind not in _APART)
            and _joined(rows, text, start, end, clause, kind, look)
        ):
            value += (
                before_weights[before] + last_weights[last] + after_weights[after] + beyond_weights[beyond]
            )
            if acts:
                kind, acts = _ACTION, False
            elif kind is _NAME and before in CALLING and after in CALLED:
                value += weights.VOCATIVE
            if after is _COLON and group is Group.NAME and before in OPENERS:
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
    if gap > 1 or clause != clause_before:
        return False
    between = text[stop:start]
    if before is _ENTITY and look[0] in UNITS and text[stop:start] == " ":
        rows[-1:] = _measured(rows[-1], text, end, look)
        return True
    joined: AtomClass | None
    longest = LONGEST_TOKEN
    if between and between != " ":
        path = between in _PATH_SIGNS and before > _STOP and before is not _DATE
        joined = _ID if path and kind in _PATH_PARTS else None
    elif before in _COUNTS and look[0] in UNITS:
        joined = _NUMBER
    elif gap:
        joined = _JOINS.get(before << 8 | kind)
    elif kind is _GLYPH and before is kind:
        kana = _KATAKANA.match(look[0]) is not None
        joined = kind if kana == (_KATAKANA.match(word, len(word) - 1) is not None) else None
        longest = _LONGEST_KANA if kana else _LONGEST_GLYPHS
    else:
        joined = _TIGHT_JOINS.get(before << 8 | kind)
    if joined is None or end - begin > longest:
        return False
    size += gap + look[3]
    if joined is _ENTITY:
        # One thing is worth another; a short name leaves room for one more.
        value = weights.KIND[joined] - size // weights.BYTES_A_POINT
    else:
        value = max(value, look[5] + weights.KIND[joined])
    if joined is _GLYPH:
        value += weights.GLYPHS
    rows[-1] = begin, end, token, clause, joined, f"{word}{between}{look[0]}", size, value
    return True


def _measured(row: Row, text: str, end: int, look: Look) -> list[Row]:
    """A word and a number that looked like one thing ("weighs 32") once a unit follows ("kg")."""
    begin, stop, token, clause, _, word, _, value = row
    number = text.rindex(" ", begin, stop) + 1
    name, count = word.rsplit(" ", 1)
    name_size = len(text[begin : number - 1].encode())
    size = len(text[number:end].encode())
    own = value - weights.KIND[AtomClass.ENTITY]
    return [
        (begin, number - 1, token, clause, AtomClass.WORD, name, name_size, own),
        (
            number,
            end,
            token + 1,
            clause,
            AtomClass.NUMBER,
            f"{count} {look[0]}",
            size,
            own + weights.KIND[AtomClass.NUMBER],
        ),
    ]


def _cut(text: str, start: int, end: int, token: int, clause: int) -> Iterator[Row]:
    for at in range(start, end, LONGEST_TOKEN):
        surface = text[at : min(at + LONGEST_TOKEN, end)]
        size = len(surface.encode())
        yield at, at + len(surface), token, clause, AtomClass.PIECE, surface, size, 0
