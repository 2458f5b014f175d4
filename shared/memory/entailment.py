"""Which invariants a text entails, and why not the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum

from shared.memory.direction import conflict, passive, roles
from shared.memory.evidence import Evidence, Marks, Phrase
from shared.memory.grammar import FUNCTION, PREPOSITION
from shared.memory.invariants import Invariant, InvariantType
from shared.memory.tokens import Token, numeric


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
    QUALIFIER_CHANGED = "qualifier_changed"
    CONDITION_CHANGED = "condition_changed"
    PART_DROPPED = "part_dropped"
    MARKUP = "markup"
    DISGUISED = "disguised"
    TOO_LONG = "too_long"
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


def failures(
    made: Sequence[Claim],
    evidence: Evidence,
    marked: Marks,
    source: Evidence | None = None,
    *,
    loose: bool = False,
) -> Iterator[Failure]:
    """Every claim that the text behind `evidence` does not entail, in order.

    source: the residue, whose clauses say who acts: without it a relation must stand in its own order.
    loose: words were dropped between the residue's.
    """
    for claim in made:
        single = len(claim.members) == 1
        reason = _span(claim, evidence) if single else _relation(claim, evidence, marked, source, loose=loose)
        if reason is not None:
            yield claim.failure(reason)


def claimed_denials(made: Sequence[Claim], evidence: Evidence) -> AbstractSet[int]:
    """Clauses that are turned round as what they name is claimed to be, all of it."""
    signs: dict[Phrase, set[bool]] = {}
    for claim in made:
        for phrase in claim.members:
            if not phrase.denying:
                signs.setdefault(phrase, set()).add(claim.positive)
    claimed: set[int] = set()
    stated: set[int] = set()
    for phrase, found in signs.items():
        for clause in evidence.clauses_with(phrase):
            sign = evidence.positive(clause)
            if not sign and (sign is None or len(found) == 1):  # said both ways it tells nothing here
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


def _relation(
    claim: Claim, evidence: Evidence, marked: Marks, source: Evidence | None, *, loose: bool
) -> Reason | None:
    """All members in one clause, nothing of another relation between them, in their roles."""
    members = claim.members
    found = flipped = swapped = False
    for clause in evidence.clauses_near(members):
        standing = sum(evidence.holds(clause, phrase) for phrase in members)
        if (
            _keeps_roles(claim, clause, evidence, marked, source, loose=loose)
            if standing == len(members)
            else False
        ):
            agrees = claim.agrees(evidence.positive(clause))
            found, flipped = found or agrees, flipped or not agrees
        else:
            strangers = any(phrase not in members for _, phrase in marked.get(clause, ()))
            swapped = swapped or strangers or standing > 1
    if found:
        return None
    if flipped:
        return Reason.POLARITY_FLIPPED
    return Reason.TUPLE_SWAPPED if swapped else Reason.TUPLE_MISSING


def _keeps_roles(
    claim: Claim, clause: int, evidence: Evidence, marked: Marks, source: Evidence | None, *, loose: bool
) -> bool:
    """In order and in one voice; or in the roles that they have in a clause of the residue."""
    ordered = evidence.in_order(clause, claim.members, marked)
    if source is None:
        return ordered
    tokens, label = evidence.clauses[clause].tokens, evidence.clauses[clause].label
    if ordered and not passive(tokens, label):
        return True
    there = [
        at for at in source.clauses_near(claim.members) if all(source.holds(at, one) for one in claim.members)
    ]
    if not there:
        return ordered
    said = roles(tokens, label)
    if not any(
        conflict(roles(source.clauses[at].tokens, source.clauses[at].label), said, loose=loose) is None
        and (ordered or _same_counts(source.clauses[at].tokens, tokens))
        for at in there
    ):
        return False
    strangers = {phrase for _, phrase in marked.get(clause, ()) if phrase not in claim.members}
    return ordered or any(all(source.holds(at, phrase) for phrase in strangers) for at in there)


def _same_counts(said: Sequence[Token], draft: Sequence[Token]) -> bool:
    """Every number beside a word that it stands beside in the residue."""
    there = _beside(said)
    return all(
        not there.get(number) or not words or words & there[number]
        for number, words in _beside(draft).items()
    )


def _beside(tokens: Sequence[Token]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for at, token in enumerate(tokens):
        if token.numeric:
            near = (*tokens[max(0, at - 1) : at], *tokens[at + 1 : at + 2])
            words = {
                other.form for other in near if not other.numeric and not other.tag & (FUNCTION | PREPOSITION)
            }
            found.setdefault(token.form, set()).update(words)
    return found
