"""Tokens, their normal forms, and clauses: what the gate compares and the distiller cuts at. Linear."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from shared.memory.lexicon import CONTRASTS, DENIALS, NEGATIONS, NUMBERS, UNIT_SIGNS

# Han and kana carry no spaces: one character, one token.
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# \w knows no combining marks; these keep a word in decomposed Latin, Arabic, Hebrew and Indic text whole.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u200c\u200d"
_LETTER = f"[^\\W\\d_{_IDEOGRAPH}]"
_IN_WORD = f"(?:[^\\W{_IDEOGRAPH}]|[{_MARKS}])"
_DIGITS = r"\d[0-9A-Za-z]*(?:[.,:/\-]\d[0-9A-Za-z]*)*%?"  # 12, 1,000.5, 2023-05-08, 7:30pm, 3rd
_TOKEN = re.compile(
    r"[A-Za-z]+(?![^\s.,;!?])"  # plain words and numbers are most of any text: no other branch is tried
    r"|https?://[^\s<>\"']*[^\s<>\"'.,;:!?)]"
    rf"|(?<![^\s(\[$€£])[-+]?{_DIGITS}"  # a sign counts only where no word stands before it
    rf"|{_DIGITS}"
    rf"|{_LETTER}{_IN_WORD}*(?:['’\-]{_IN_WORD}+)*"  # don't, well-known, AB-1234
    rf"|[{_IDEOGRAPH}]"
    r"|[^\s]",
)
# Nothing is drawn for these: "n\u200bever" reads "never", and must.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+"
)
_APOSTROPHES = str.maketrans("’‘ʼ´`", "'''''")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[-+]?\d+\.\d+")
_LINE_BREAK = re.compile(r"[\n\r\u2028\u2029]")
_ENDS = frozenset(".!?;。")
_PLACES = frozenset({"in", "on", "inside"})
_IT = frozenset({"it", "them"})
_CACHED_TOKENS = 16384
_CACHED_LENGTH = 64  # a token of a megabyte must not stay in memory

Place = tuple[int, int, int]
"""Start and end offset of a token, and the number of its clause."""


class Token(NamedTuple):
    """`norm` is what comparisons use, `surface` keeps the case; `denies`: it turns its clause round."""

    norm: str
    surface: str
    numeric: bool
    denies: bool


class Clause(NamedTuple):
    """A stretch of tokens with one claim in it; punctuation is not kept."""

    tokens: tuple[Token, ...]
    denials: int
    """How many of its words turn the claim round."""


def canonical(text: str) -> str:
    """NFKC without what nobody sees: full-width digits, ligatures and decomposed letters read alike."""
    if text.isascii() and not INVISIBLE.search(text):
        return text
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


def denials_by_clause(text: str, places: Sequence[Place]) -> dict[int, int]:
    """How many words turn each clause's claim round, in the clause numbers of `places`."""
    counts: dict[int, int] = {}
    for start, end, clause in places:
        if denies(norm(text[start:end])):
            counts[clause] = counts.get(clause, 0) + 1
    return counts


def punctuation(surface: str) -> bool:
    """True for one-character tokens that carry no content; symbols and emoji do."""
    return len(surface) == 1 and unicodedata.category(surface)[0] in "PCZM"


def clauses(text: str) -> list[Clause]:
    """Clauses of any text, in order."""
    text = canonical(text)
    return clauses_at(text, located(text))


def clauses_at(text: str, places: Sequence[Place]) -> list[Clause]:
    """Clauses of canonical text whose tokens are already located."""
    found: list[Clause] = []
    current: list[Token] = []
    number = 0
    for start, end, clause in places:
        if clause != number:
            _close(found, current)
            current, number = [], clause
        surface = text[start:end]
        token = _short_token(surface) if end - start <= _CACHED_LENGTH else _token(surface)
        if token is not None:
            current.append(token)
    _close(found, current)
    return found


def located(text: str) -> list[Place]:
    """Every token of `text` as it stands, for whoever cuts the original."""
    places: list[Place] = []
    clause, previous_end, opens, waiting = 0, 0, False, False
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        word = match[0].casefold()
        if waiting and word not in _IT:
            # The place word before did open a clause after all.
            clause += 1
            places[-1] = (*places[-1][:2], clause)
        waiting = False
        if not opens:
            blank = start > previous_end and text[previous_end:start] != " "
            opens = word in CONTRASTS or (blank and _LINE_BREAK.search(text, previous_end, start) is not None)
        if opens:
            # "The fridge is open. In it, you see ...": the second sentence goes on about the first's object.
            waiting = word in _PLACES
            clause += not waiting
        places.append((start, end, clause))
        opens = word in _ENDS
        previous_end = end
    if waiting:
        places[-1] = (*places[-1][:2], clause + 1)
    return places


def _token(surface: str) -> Token | None:
    if punctuation(surface) and surface not in UNIT_SIGNS:
        return None
    word = norm(surface)
    return Token(word, surface, numeric(word), denies(word))


_short_token = lru_cache(maxsize=_CACHED_TOKENS)(_token)


def _close(found: list[Clause], tokens: list[Token]) -> None:
    if tokens:
        found.append(Clause(tuple(tokens), sum(token.denies for token in tokens)))
