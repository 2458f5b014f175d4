"""The strict half of the gate: does everything a draft says stand in the residue?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise

from shared.memory.lexicon import IRREGULAR, STOP_WORDS, SYNONYMS
from shared.memory.tokens import Clause, Token, clauses

_SUFFIXES = ("ing", "ies", "ied", "ed", "es", "s", "ly")
_SHORTEST_STEM = 3


class Lack(Enum):
    """What kind of thing stands nowhere in the residue."""

    NUMBER = "number"
    NAME = "name"
    CLAUSE = "clause"
    NEIGHBOUR = "neighbour"


def lemma(word: str) -> str:
    """A word without its ending, folded onto the first of its fixed synonyms."""
    word = IRREGULAR.get(word, word)
    if word not in SYNONYMS:
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
                word = word[: -len(suffix)]
                break
        word = word if word in SYNONYMS else word.rstrip("e")
    return SYNONYMS.get(word, SYNONYMS.get(word + "e", word))


def first_lack(
    draft: Sequence[Clause], residue: Iterable[str], neighbours: Sequence[str]
) -> tuple[Lack, str] | None:
    """The first thing the draft says and the residue does not; neighbours guide wording, no more."""
    known = _Known(residue)
    borrowed = {token.norm for text in neighbours for clause in clauses(text) for token in clause.tokens}
    for clause in draft:
        found = _number(clause, known) or _name(clause, known)
        if found is not None:
            lack, token = found
            return (Lack.NEIGHBOUR if token.norm in borrowed else lack), token.surface
        content = [token for token in clause.tokens if token.norm not in STOP_WORDS and not token.numeric]
        supported = sum(lemma(token.norm) in known.lemmas for token in content)
        if content and supported * 2 < len(content):
            return Lack.CLAUSE, " ".join(token.surface for token in clause.tokens)
    return None


class _Known:
    """What the residue's spans hold: tokens, lemmas, and which number belongs to which word."""

    def __init__(self, residue: Iterable[str]) -> None:
        self.words: set[str] = set()
        self.counted: set[tuple[str, str]] = set()
        for text in residue:
            for clause in clauses(text):
                self.words.update(token.norm for token in clause.tokens)
                self.counted.update(
                    (before.norm, token.norm) for before, token in pairwise(clause.tokens) if token.numeric
                )
        self.numbered = {word for word, _ in self.counted}
        self.lemmas = {lemma(word) for word in self.words}


def _number(clause: Clause, known: _Known) -> tuple[Lack, Token] | None:
    """A number that stands nowhere, or behind a word that has other numbers ('apple 2' for 'apple 1')."""
    before = ""
    for token in clause.tokens:
        if token.numeric:
            stranger = before in known.numbered and (before, token.norm) not in known.counted
            if token.norm not in known.words or stranger:
                return Lack.NUMBER, token
        before = token.norm
    return None


def _name(clause: Clause, known: _Known) -> tuple[Lack, Token] | None:
    """Capitals inside a clause, or more than one in a word, mark a name."""
    for position, token in enumerate(clause.tokens):
        capitals = sum(character.isupper() for character in token.surface)
        named = capitals > 1 or (capitals == 1 and token.surface[0].isupper() and position > 0)
        if named and token.norm not in known.words and token.norm not in STOP_WORDS:
            return Lack.NAME, token
    return None
