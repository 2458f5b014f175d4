"""A text as the gate sees it: clauses of normal forms, and where each phrase stands in them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from shared.memory.tokens import Clause, clauses


@dataclass(frozen=True)
class Phrase:
    """A span's normal form: whole tokens, in parts where the span itself runs over a clause's end."""

    parts: tuple[tuple[str, ...], ...]
    denying: bool = False
    """It is nothing but words that turn a clause round."""

    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, text: str) -> Phrase:
        """The normal form of a span."""
        found = clauses(text)
        denying = all(token.denies for clause in found for token in clause.tokens)
        return cls(tuple(tuple(token.form for token in clause.tokens) for clause in found), denying)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All tokens, parts end to end."""
        return tuple(word for part in self.parts for word in part)


Marks = Mapping[int, Sequence[tuple[int, Phrase]]]
"""Start and phrase, in order, by clause."""


class Evidence:
    """Postings of a text's tokens by clause."""

    def __init__(self, found: Sequence[Clause]) -> None:
        self.clauses = tuple(found)
        self._places: dict[tuple[str, ...], dict[int, list[int]]] = {}

    # Made when asked for: of a residue that a draft repeats in its own order nothing is looked up.
    @cached_property
    def _norms(self) -> list[tuple[str, ...]]:
        return [tuple([token.form for token in clause.tokens]) for clause in self.clauses]

    @cached_property
    def _postings(self) -> dict[str, list[tuple[int, int]]]:
        postings: dict[str, list[tuple[int, int]]] = {}
        known = postings.get
        for number, norms in enumerate(self._norms):
            for position, word in enumerate(norms):
                held = known(word)
                if held is None:
                    postings[word] = [(number, position)]
                else:
                    held.append((number, position))
        return postings

    @cached_property
    def has_numbers(self) -> bool:
        """True where a number stands anywhere."""
        return any(token.numeric for clause in self.clauses for token in clause.tokens)

    def has_word(self, word: str) -> bool:
        """True where the token stands anywhere."""
        return word in self._postings

    def positive(self, clause: int) -> bool | None:
        """False where one word turns the clause's claim round, None (neither) where more than one does."""
        denials = self.clauses[clause].denials
        return None if denials > 1 else not denials

    def clauses_with(self, phrase: Phrase) -> Collection[int]:
        """Clauses in which the phrase begins; none when any part of it is missing."""
        return self._found(phrase).keys()

    def clauses_near(self, phrases: Iterable[Phrase]) -> Collection[int]:
        """Clauses with the rarest of these phrases: no other clause can hold them all."""
        return min((self.clauses_with(phrase) for phrase in phrases), key=len)

    def holds(self, clause: int, phrase: Phrase) -> bool:
        """True where the phrase begins in this clause."""
        return bool(self._starts(clause, phrase))

    def mark(self, phrases: Iterable[Phrase]) -> Marks:
        """Where any of these phrases begins, by clause, in order."""
        marks: dict[int, list[tuple[int, Phrase]]] = {}
        for phrase in phrases:
            for clause, starts in self._found(phrase).items():
                marks.setdefault(clause, []).extend([(start, phrase) for start in starts])
        for found in marks.values():
            found.sort(key=_start)
        return marks

    def in_order(self, clause: int, members: Sequence[Phrase], marks: Marks) -> bool:
        """True where the members stand in this clause in order, with no other mark between them."""
        return any(self.chains(clause, members, marks))

    def chains(self, clause: int, members: Sequence[Phrase], marks: Marks) -> Iterator[range]:
        """Each stretch of a clause in which the members stand in order, with no other mark between them."""
        here = marks.get(clause, ())
        for end in self._starts(clause, members[-1]):
            start = self._chain(clause, members, end, here)
            if start >= 0:
                yield range(start, end + len(members[-1].parts[0]))

    def together(self, one: Phrase, other: Phrase) -> Iterator[int]:
        """Clauses that hold both."""
        return (clause for clause in self.clauses_with(one) if self.holds(clause, other))

    def turned(self, clause: int, before: Phrase, after: Phrase) -> bool:
        """True where every `after` stands ahead of every `before` in a clause that holds both."""
        return before != after and self._starts(clause, after)[-1] < self._starts(clause, before)[0]

    def _chain(
        self, clause: int, members: Sequence[Phrase], end: int, marks: Sequence[tuple[int, Phrase]]
    ) -> int:
        """Walk back from `end`, always to the nearest earlier member: the tightest chain's start, or -1."""
        at = end
        for member in reversed(members[:-1]):
            starts, size = self._starts(clause, member), len(member.parts[0])
            nearest = bisect_right(starts, at - size) - 1
            if nearest < 0 or _rival(marks, starts[nearest] + size, at, members):
                return -1
            at = starts[nearest]
        return at

    def _found(self, phrase: Phrase) -> Mapping[int, list[int]]:
        """Where it begins, by clause; nowhere when any part of it is missing."""
        parts = phrase.parts
        if len(parts) == 1 or (parts and all(map(self._positions, parts))):
            return self._positions(parts[0])
        return _NOWHERE

    def _starts(self, clause: int, phrase: Phrase) -> list[int]:
        return self._positions(phrase.parts[0]).get(clause, []) if phrase.parts else []

    def _positions(self, part: tuple[str, ...]) -> dict[int, list[int]]:
        """Clause number to start positions; found from the part's rarest token, once."""
        places = self._places.get(part)
        if places is None:
            places = self._places[part] = {}
            rows = [self._postings.get(word, ()) for word in part]
            rarest = min(rows, key=len)
            offset, size = rows.index(rarest), len(part)
            for clause, position in rarest:
                start = position - offset
                if size == 1 or (start >= 0 and self._norms[clause][start : start + size] == part):
                    places.setdefault(clause, []).append(start)
        return places


_NOWHERE: Mapping[int, list[int]] = {}


def _start(mark: tuple[int, Phrase]) -> int:
    return mark[0]


def _rival(marks: Sequence[tuple[int, Phrase]], low: int, high: int, members: Sequence[Phrase]) -> bool:
    """True where a marked phrase that is no member begins in [low, high)."""
    for index in range(bisect_left(marks, low, key=_start), len(marks)):
        start, phrase = marks[index]
        if start >= high:
            break
        if phrase not in members:
            return True
    return False
