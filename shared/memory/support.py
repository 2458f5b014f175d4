"""The strict half of the gate: does everything a draft says stand in the residue?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from shared.memory.evidence import Evidence, Phrase
from shared.memory.lexicon import FUNCTION_WORDS, IRREGULAR, ROUNDERS, SYNONYMS, UNIT_SIGNS, UNITS
from shared.memory.tokens import Clause, Token, clauses, negates

_SUFFIXES = ("ing", "ies", "ied", "ed", "es", "s")
_SHORTEST_STEM = 3
_SHORT = 64  # what is longer is not kept in a cache
_PROMPT_MARK = ">"  # leads an action's line in transcripts

Frame = tuple[str, str]
"""What stands before and behind a number and changes it: a rounding word or currency, and a unit."""


class Lack(Enum):
    """What kind of thing stands nowhere in the residue."""

    NUMBER = "number"
    NAME = "name"
    CLAUSE = "clause"
    NEIGHBOUR = "neighbour"
    POLARITY = "polarity"


def lemma(word: str) -> str:
    """A word without its ending, folded onto the first of its fixed synonyms."""
    return _short_lemma(word) if len(word) <= _SHORT else _lemma(word)


def _lemma(word: str) -> str:
    word = IRREGULAR.get(word, word)
    if word not in SYNONYMS:
        for suffix in _SUFFIXES:
            if (
                word.endswith(suffix)
                and not word.endswith("ss")
                and len(word) - len(suffix) >= _SHORTEST_STEM
            ):
                word = word[: -len(suffix)]
                break
        word = word if word in SYNONYMS else word.rstrip("e")
    return SYNONYMS.get(word, SYNONYMS.get(word + "e", word))


_short_lemma = lru_cache(maxsize=16384)(_lemma)


class Residue:
    """What a base's spans hold: words, what its numbers belong to, and what its negations turn round."""

    def __init__(self, spans: Iterable[str], rendered: Sequence[Clause]) -> None:
        self.words: set[str] = set()
        self.lemmas: set[str] = set()
        self.counted: set[tuple[str, str]] = set()
        self.plain: set[str] = set()
        self.denied: set[str] = set()
        self.frames: dict[str, set[Frame]] = {}
        self.before_denial: set[str] = set()
        self.behind_denial: set[str] = set()
        for text in spans:
            self._learn(_short_read(text) if len(text) <= _SHORT else _read(text))
        self.numbered = {word for word, _ in self.counted}
        for clause in rendered:
            for number, frame in _frames(clause):
                self.frames.setdefault(number.norm, set()).add(frame)
            for before, _, behind in _denials(clause):
                self.before_denial.add(before)
                self.behind_denial.add(behind)

    def _learn(self, read: _Read) -> None:
        self.words |= read.words
        self.lemmas |= read.lemmas
        self.counted |= read.counted
        self.denied |= read.denied
        self.plain |= read.plain


class _Read(NamedTuple):
    """One span's words."""

    words: AbstractSet[str]
    lemmas: AbstractSet[str]
    counted: AbstractSet[tuple[str, str]]
    denied: AbstractSet[str]
    plain: AbstractSet[str]


def _read(text: str) -> _Read:
    """A name has no endings ('Ana' supports no 'anas'); what a particle stands before is denied."""
    found = clauses(text)
    tokens = [token for clause in found for token in clause.tokens]
    denied = {behind for clause in found for _, _, behind in _denials(clause)}
    said = {lemma(token.norm) for clause in found for token in _content(clause)}
    return _Read(
        {token.norm for token in tokens},
        {lemma(token.norm) for token in tokens if token.surface.islower()},
        {(a.norm, b.norm) for clause in found for a, b in pairwise(clause.tokens) if b.numeric},
        denied,
        said - denied,
    )


_short_read = lru_cache(maxsize=4096)(_read)


def first_lack(
    draft: Sequence[Clause], residue: Residue, neighbours: Sequence[str], denial_claimed: AbstractSet[int]
) -> tuple[Lack, str] | None:
    """The first thing the draft says and the residue does not; neighbours guide wording, no more.

    denial_claimed: clauses whose negation an invariant claims.
    """
    borrowed = {token.norm for text in neighbours for clause in clauses(text) for token in clause.tokens}
    for at, clause in enumerate(draft):
        for check in _CHECKS:
            found = check(clause, residue)
            if found is not None:
                lack, token = found
                return (Lack.NEIGHBOUR if token.norm in borrowed else lack), token.surface
        if at not in denial_claimed and _turned(clause, residue):
            return Lack.POLARITY, " ".join(token.surface for token in clause.tokens)
    return None


def verbatim(draft: Sequence[Clause], rendered: Sequence[Clause]) -> AbstractSet[int]:
    """Clauses whose words, function words aside, stand in the residue in one piece."""
    shown = Evidence([_without_function_words(clause) for clause in rendered])
    found = set()
    for at, clause in enumerate(draft):
        words = tuple(token.norm for token in _without_function_words(clause).tokens)
        if words and shown.clauses_with(Phrase((words,))):
            found.add(at)
    return found


def _without_function_words(clause: Clause) -> Clause:
    said = (token for token in clause.tokens if token.norm not in FUNCTION_WORDS or token.denies)
    return Clause(tuple(said), clause.denials)


def _number(clause: Clause, residue: Residue) -> tuple[Lack, Token] | None:
    """A number that stands nowhere, behind a word that has other numbers ('apple 2'), or in another frame."""
    before = ""
    for token in clause.tokens:
        if token.numeric:
            stranger = before in residue.numbered and (before, token.norm) not in residue.counted
            if token.norm not in residue.words or stranger:
                return Lack.NUMBER, token
        before = token.norm
    for token, frame in _frames(clause):
        if frame not in residue.frames.get(token.norm, ()):
            return Lack.NUMBER, token
    return None


def _name(clause: Clause, residue: Residue) -> tuple[Lack, Token] | None:
    """Capitals inside a clause, or more than one in a word, mark a name."""
    for position, token in enumerate(clause.tokens):
        capitals = sum(character.isupper() for character in token.surface)
        named = capitals > 1 or (capitals == 1 and token.surface[0].isupper() and position > 0)
        if named and not (token.norm in residue.words or _functional(token)):
            return Lack.NAME, token
    return None


def _word(clause: Clause, residue: Residue) -> tuple[Lack, Token] | None:
    """Any other word with content, by lemma or fixed synonym: also a name in small letters."""
    for token in _content(clause):
        known = token.norm in residue.words or lemma(token.norm) in residue.lemmas
        if not known:
            return Lack.CLAUSE, token
    return None


_CHECKS: tuple[Callable[[Clause, Residue], tuple[Lack, Token] | None], ...] = (_number, _name, _word)


def _turned(clause: Clause, residue: Residue) -> bool:
    """True where the clause denies what the residue does not, or states what the residue only denies."""
    if not clause.denials:
        return any(
            word in residue.denied and word not in residue.plain
            for word in (lemma(token.norm) for token in _content(clause))
        )
    return any(
        behind not in residue.behind_denial if behind else not before or before not in residue.before_denial
        for before, _, behind in _denials(clause)
    )


def _content(clause: Clause) -> Iterator[Token]:
    """Tokens that say something: no function words, particles or numbers."""
    for position, token in enumerate(clause.tokens):
        mark = position == 0 and token.surface == _PROMPT_MARK
        if not (mark or token.numeric or _functional(token)):
            yield token


def _functional(token: Token) -> bool:
    """True for a word without content; particles are the polarity check's."""
    return token.norm in FUNCTION_WORDS or negates(token.norm)


def _denials(clause: Clause) -> Iterator[tuple[str, str, str]]:
    """Each word that turns the claim round, between the lemmas of what it stands between (or "")."""
    if not clause.denials:
        return
    said = _without_function_words(clause).tokens
    words = ["", *(lemma(token.norm) for token in said), ""]
    for at, token in enumerate(said):
        if token.denies:
            yield words[at], token.norm, words[at + 2]


def _frames(clause: Clause) -> Iterator[tuple[Token, Frame]]:
    """Each number with what changes it on both sides."""
    tokens = clause.tokens
    for at, token in enumerate(tokens):
        if token.numeric:
            back = 2 if at > 1 and tokens[at - 1].norm == "to" else 1  # "up to 5"
            before = tokens[at - back].norm if at >= back else ""
            behind = tokens[at + 1].norm if at + 1 < len(tokens) else ""
            changed = before in ROUNDERS or before in UNIT_SIGNS
            yield token, (before if changed else "", lemma(behind) if behind in UNITS else "")
