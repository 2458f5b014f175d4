"""Tokens, their normal forms, and clauses: what the gate compares and the distiller cuts at. Linear."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from shared.memory.lexicon import CONTRASTS, NEGATIONS, NUMBERS

# Han and kana carry no spaces: one character, one token.
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# \w knows no combining marks; these keep a word in decomposed Latin, Arabic, Hebrew and Indic text whole.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u200c\u200d"
_LETTER = f"[^\\W\\d_{_IDEOGRAPH}]"
_IN_WORD = f"(?:[^\\W{_IDEOGRAPH}]|[{_MARKS}])"
_DIGITS = r"\d[0-9A-Za-z]*(?:[.,:/\-]\d[0-9A-Za-z]*)*%?"  # 12, 1,000.5, 2023-05-08, 7:30pm, 3rd
_TOKEN = re.compile(
    r"https?://[^\s<>\"']*[^\s<>\"'.,;:!?)]"
    rf"|(?<![^\s(\[$€£])[-+]?{_DIGITS}"  # a sign counts only where no word stands before it
    rf"|{_DIGITS}"
    rf"|{_LETTER}{_IN_WORD}*(?:['’\-]{_IN_WORD}+)*"  # don't, well-known, AB-1234
    rf"|[{_IDEOGRAPH}]"
    r"|[^\s]",
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[-+]?\d+\.\d+")
_LINE_BREAK = re.compile(r"[\n\r\u2028\u2029]")
_ENDS = frozenset(".!?;。")
_PLACES = frozenset({"in", "on", "inside"})
_IT = frozenset({"it", "them"})
_CACHED_TOKENS = 16384


class Token(NamedTuple):
    """`norm` is what comparisons use; `surface` keeps the case."""

    norm: str
    surface: str
    numeric: bool


class Clause(NamedTuple):
    """A stretch of tokens with one claim in it; punctuation is not kept."""

    tokens: tuple[Token, ...]
    negative: bool


def canonical(text: str) -> str:
    """NFKC: full-width digits, ligatures and decomposed letters read alike."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=_CACHED_TOKENS)
def norm(surface: str) -> str:
    """Normal form of one token."""
    word = canonical(surface).casefold().replace("’", "'")
    word = NUMBERS.get(word, word)
    if word[0].isdigit() or word[0] in "-+":
        word = word.removeprefix("+") or word
        if _GROUPED.fullmatch(word):
            word = word.replace(",", "")
        if _DECIMAL.fullmatch(word):
            word = word.rstrip("0").removesuffix(".")
    return word.removesuffix("'s") or word


def numeric(word: str) -> bool:
    """True for a normal form that holds a digit."""
    return any(character.isdigit() for character in word)


def negates(word: str) -> bool:
    """True for a normal form that turns its clause's claim round."""
    return word in NEGATIONS or word.endswith("n't")


def punctuation(surface: str) -> bool:
    """True for one-character tokens that carry no content; symbols and emoji do."""
    return len(surface) == 1 and unicodedata.category(surface)[0] in "PCZM"


def clauses(text: str) -> tuple[Clause, ...]:
    """Clauses of any text, in order."""
    found: list[Clause] = []
    current: list[Token] = []
    number = 0
    text = canonical(text)
    for start, end, clause in located(text):
        if clause != number:
            _close(found, current)
            current, number = [], clause
        token = _token(text[start:end])
        if token is not None:
            current.append(token)
    _close(found, current)
    return tuple(found)


def located(text: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, clause number) of each token of `text` as it stands, for whoever cuts the original."""
    clause, opens, previous_end = 0, False, 0
    for match, following in _with_next(_TOKEN.finditer(text)):
        start, end = match.span()
        surface = match[0]
        word = surface.casefold()
        if not opens and (start > previous_end or word in CONTRASTS):
            opens = word in CONTRASTS or _LINE_BREAK.search(text, previous_end, start) is not None
        # "The fridge is open. In it, you see ...": the second sentence goes on about the first's object.
        if opens and not (word in _PLACES and following is not None and following[0].casefold() in _IT):
            clause += 1
        yield start, end, clause
        opens = surface in _ENDS
        previous_end = end


@lru_cache(maxsize=_CACHED_TOKENS)
def _token(surface: str) -> Token | None:
    if punctuation(surface):
        return None
    word = norm(surface)
    return Token(word, surface, numeric(word))


def _close(found: list[Clause], tokens: list[Token]) -> None:
    if tokens:
        found.append(Clause(tuple(tokens), any(negates(token.norm) for token in tokens)))


def _with_next(matches: Iterator[re.Match[str]]) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    current = next(matches, None)
    while current is not None:
        following = next(matches, None)
        yield current, following
        current = following
