"""A word on its own: its normal form, its stem, and what it can do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from shared.memory.grammar import form, tag
from shared.memory.lexicon import DENIALS, NEGATIONS, NUMBERS, UNIT_SIGNS, UNITS

# Nothing is drawn for these: "n\u200bever" reads "never", and must.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+"
)
_APOSTROPHES = str.maketrans("’‘ʼ´`", "'''''")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[-+]?\d+\.\d+")
_VALUE_WORDS = (
    "january february march april may june july august september october november december jan feb "
    "mar apr jun jul aug sep sept oct nov dec twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million billion am pm a.m a.m. p.m p.m. € $ £ ¥ one noon midnight o'clock half "
    "quarter percent mon tue wed thu fri tues thurs monday tuesday wednesday thursday friday "
    "saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays"
)
_PART_OF_VALUE = frozenset(_VALUE_WORDS.split())
_CACHED_TOKENS = 16384
_CACHED_LENGTH = 64  # a token of a megabyte must not stay in memory


class Token(NamedTuple):
    """`form` is what comparisons use, `norm` is the word itself, `surface` keeps the case.

    denies: it turns its clause round. tag: what it can do in a clause (grammar). special: it may be part of a
    number, a date, a time or a phrase that is written in several ways.
    """

    norm: str
    surface: str
    numeric: bool
    denies: bool
    form: str
    tag: int
    special: bool


def canonical(text: str) -> str:
    """NFKC without what nobody sees: full-width digits, ligatures and decomposed letters read alike."""
    if text.isascii() and (text.replace("\n", "").isprintable() or not INVISIBLE.search(text)):
        return text  # most text: what can be printed hides nothing
    return unicodedata.normalize("NFKC", INVISIBLE.sub("", text))


def norm(surface: str) -> str:
    """Normal form of one token."""
    return _short_norm(surface) if len(surface) <= _CACHED_LENGTH else _norm(surface)


def _norm(surface: str) -> str:
    word = canonical(surface).casefold().translate(_APOSTROPHES) or surface
    word = NUMBERS.get(word, word)
    if word[0].isdigit() or word[0] in "-+":
        word = word.removeprefix("+") or word
        if _GROUPED.fullmatch(word):
            word = word.replace(",", "")
        if _DECIMAL.fullmatch(word):
            word = word.rstrip("0").removesuffix(".")
    return word.removesuffix("'s") or word


_short_norm = lru_cache(maxsize=_CACHED_TOKENS)(_norm)


def numeric(word: str) -> bool:
    """True for a normal form that holds a digit."""
    return any(character.isdigit() for character in word)


def negates(word: str) -> bool:
    """True for a normal form that is a negating particle."""
    return word in NEGATIONS or word.endswith("n't")


def denies(word: str) -> bool:
    """True for a normal form that turns its clause's claim round: a particle, or a word like `refused`."""
    return word in DENIALS or negates(word)


def punctuation(surface: str) -> bool:
    """True for one-character tokens that carry no content; symbols and emoji do."""
    return len(surface) == 1 and unicodedata.category(surface)[0] in "PCZM"


def token(surface: str) -> Token | None:
    """The token of a surface; None for punctuation."""
    return _short_token(surface) if len(surface) <= _CACHED_LENGTH else _token(surface)


def tokens_of(surfaces: Sequence[str]) -> list[Token]:
    """The tokens of some surfaces, without punctuation."""
    read = _short_token
    made = [read(one) if len(one) <= _CACHED_LENGTH else _token(one) for one in surfaces]
    return [one for one in made if one is not None]


def word_token(word: str) -> Token:
    """The token of a word in small letters."""
    made = token(word)
    assert made is not None, word  # noqa: S101 (only words of our own tables come here)
    return made


def _token(surface: str) -> Token | None:
    if punctuation(surface) and surface not in UNIT_SIGNS:
        return None
    word = norm(surface)
    bits = tag(word)
    return Token(
        word,
        surface,
        numeric(word),
        denies(word),
        form(word),
        bits,
        not surface.isdigit() if word[0].isdigit() else special(word),
    )


_short_token = lru_cache(maxsize=_CACHED_TOKENS)(_token)


def special(word: str) -> bool:
    """True for a word that may be part of a value. A plain number matters only beside one that is."""
    return bool(word in _PART_OF_VALUE or word in UNITS or "-" in word)
