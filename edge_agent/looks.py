"""How a token looks by itself: what class of atom it may be, what its neighbours see, what it is worth."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

from edge_agent import weights
from edge_agent.words import Group, known
from shared.memory.grammar import form
from shared.memory.lexicon import CALENDAR, STOP_WORDS
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


Look = tuple[str, AtomClass, AtomClass, int, Group, int, bool, str]
"""Of a token: norm, class, class where a clause opens, UTF-8 bytes, group, own value, telling word, form."""

# A token longer than this is cut: no byte aim could ever be met by a text that is one long word.
LONGEST_TOKEN = 48
_SHORT_WORD = 3
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
# A line can state a task or an outcome only with one of these in it.
_TELLING_WORDS = (
    "task goal instruction question query outcome result status reward score answer error exit exit_code "
    "exitcode won lost"
)
_TELLING = frozenset(_TELLING_WORDS.split())
_TELLING_STEMS = ("succe", "fail")
MOST_LOOKS = 16_384
_looks: dict[str, Look] = {}


def looks_of(text: str, places: Sequence[Place]) -> list[Look]:
    """How each token looks by itself; what was seen before is remembered, up to a bound."""
    if len(_looks) >= MOST_LOOKS:
        _looks.clear()
    seen = _looks.get
    return [seen(surface := text[start:end]) or _look(surface) for start, end, _ in places]


def _look(surface: str) -> Look:
    word = norm(surface)
    inside, opening = _classify(surface, word, first=False), _classify(surface, word, first=True)
    group, common = _group(surface, word, opening)
    size = len(surface.encode())
    length = min(len(surface), len(weights.LENGTH) - 1)
    value = weights.OWN[group] + weights.COMMON[common] + weights.LENGTH[length]
    if size > length and length <= _SHORT_WORD and inside is AtomClass.WORD:
        value += weights.SHORT  # no table knows the small words of this script, but they are short
    telling = word in _TELLING or word.startswith(_TELLING_STEMS)
    look = word, inside, opening, size, group, value, telling, form(word)
    if len(surface) <= LONGEST_TOKEN and len(_looks) < MOST_LOOKS:
        _looks[surface] = look
    return look


def remembered() -> int:
    """How many looks are remembered now."""
    return len(_looks)


def commonness(surface: str, word: str, kind: AtomClass) -> int:
    """How common a word it is, 0 to 15; `kind`: its class where a clause opens."""
    return _group(surface, word, kind)[1]


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
