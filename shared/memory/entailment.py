"""Which invariants a text entails, and why not the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum

from shared.memory.evidence import Evidence, Marks, Phrase
from shared.memory.invariants import Invariant, InvariantType
from shared.memory.tokens import denies, numeric


class Reason(str, Enum):
    """Closed: why a draft was rejected. The ledger's and the metric's label."""

    EMPTY = "empty"
    ECHO = "echo"
    TRUNCATED = "truncated"
    SPAN_MISSING = "span_missing"
    NUMBER_CHANGED = "number_changed"
    TUPLE_MISSING = "tuple_missing"
    TUPLE_SWAPPED = "tuple_swapped"
    POLARITY_FLIPPED = "polarity_flipped"
    OUTCOME_CHANGED = "outcome_changed"
    UNSUPPORTED_NUMBER = "unsupported_number"
    UNSUPPORTED_NAME = "unsupported_name"
    UNSUPPORTED_CLAUSE = "unsupported_clause"
    NEIGHBOUR_FACT = "neighbour_fact"
    # not the gate's own findings, but the same ledger column
    DIGEST_MISMATCH = "digest_mismatch"
    SUPERSEDED = "superseded"
    OVER_BUDGET = "over_budget"
    SOURCE_FAILED = "source_failed"


@dataclass(frozen=True)
class Failure:
    """A claim that a text does not entail, or contradicts, and the invariants that make it."""

    reason: Reason
    invariants: Sequence[Invariant]

    @property
    def invariant(self) -> Invariant:
        return self.invariants[0]


@dataclass(frozen=True)
class Claim:
    """What one or more invariants say, in phrases.

    signs: the polarities it is claimed with. Both, where its original says it both ways or in a clause that
    is turned round twice ("never failed to"): only such a clause, or both kinds, entail that.
    """

    invariants: Sequence[Invariant]
    members: tuple[Phrase, ...]
    signs: Collection[bool]

    @property
    def positive(self) -> bool:
        return self.invariants[0].positive

    @property
    def outcome(self) -> bool:
        return self.invariants[0].type is InvariantType.OUTCOME

    def failure(self, reason: Reason) -> Failure:
        """An outcome fact is changed, however it is."""
        return Failure(Reason.OUTCOME_CHANGED if self.outcome else reason, self.invariants)

    def agrees(self, sign: bool | None) -> bool:
        """True where a clause of this polarity says what is claimed."""
        return len(self.signs) > 1 if sign is None else sign is self.positive

    def allows(self, sign: bool | None) -> bool:
        """True where a clause of this polarity may stand beside the claim."""
        return len(self.signs) > 1 or sign in self.signs


def claims(trace: Sequence[str], invariants: Sequence[Invariant]) -> tuple[Claim, ...]:
    """The different claims among these invariants, in order."""
    phrases = [Phrase.of(text) for text in trace]
    signs: dict[tuple[InvariantType, tuple[Phrase, ...]], set[bool]] = {}
    found: dict[tuple[InvariantType, bool, tuple[Phrase, ...]], list[Invariant]] = {}
    for invariant in invariants:
        members = tuple(phrases[index] for index in invariant.spans)
        signs.setdefault((invariant.type, members), set()).add(invariant.positive)
        found.setdefault((invariant.type, invariant.positive, members), []).append(invariant)
    return tuple(Claim(same, members, signs[kind, members]) for (kind, _, members), same in found.items())


def marks(made: Sequence[Claim], evidence: Evidence) -> Marks:
    """Where the members of any relation stand in a text."""
    return evidence.mark({phrase for claim in made if len(claim.members) > 1 for phrase in claim.members})


def failures(made: Sequence[Claim], evidence: Evidence, marked: Marks) -> Iterator[Failure]:
    """Every claim that the text behind `evidence` does not entail, in order."""
    for claim in made:
        single = len(claim.members) == 1
        reason = _span(claim, evidence) if single else _relation(claim, evidence, marked)
        if reason is not None:
            yield claim.failure(reason)


def claimed_denials(made: Sequence[Claim], evidence: Evidence) -> AbstractSet[int]:
    """Clauses that are turned round as what they name is claimed to be, all of it."""
    signs: dict[Phrase, set[bool]] = {}
    for claim in made:
        for phrase in claim.members:
            if not all(map(denies, phrase.words)):
                signs.setdefault(phrase, set()).add(claim.positive)
    claimed: set[int] = set()
    stated: set[int] = set()
    for phrase, found in signs.items():
        for clause in evidence.clauses_with(phrase):
            sign = evidence.positive(clause)
            if not sign:
                agrees = len(found) > 1 if sign is None else False in found
                (claimed if agrees else stated).add(clause)
    return claimed - stated


def _span(claim: Claim, evidence: Evidence) -> Reason | None:
    phrase = claim.members[0]
    found = evidence.clauses_with(phrase)
    if any(claim.agrees(evidence.positive(clause)) for clause in found):
        return None
    if found:
        return Reason.POLARITY_FLIPPED
    words = [word for word in phrase.words if not numeric(word)]
    if len(words) < len(phrase.words) and evidence.has_numbers and all(map(evidence.has_word, words)):
        return Reason.NUMBER_CHANGED
    return Reason.SPAN_MISSING


def _relation(claim: Claim, evidence: Evidence, marked: Marks) -> Reason | None:
    """All members in one clause, in order, with nothing that belongs to another relation between them."""
    members = claim.members
    found = flipped = swapped = False
    for clause in evidence.clauses_near(members):
        if evidence.in_order(clause, members, marked):
            agrees = claim.agrees(evidence.positive(clause))
            found, flipped = found or agrees, flipped or not agrees
        else:
            strangers = any(phrase not in members for _, phrase in marked.get(clause, ()))
            swapped = swapped or strangers or sum(evidence.holds(clause, phrase) for phrase in members) > 1
    if found:
        return None
    if flipped:
        return Reason.POLARITY_FLIPPED
    return Reason.TUPLE_SWAPPED if swapped else Reason.TUPLE_MISSING
