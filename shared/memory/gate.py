"""The verification operator V: a draft against an entry's invariants, admitted or rejected with a reason.

`paper`: every key span, tuple and outcome fact is entailed. `strict`: also no unsupported content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from shared.memory import support
from shared.memory.evidence import Evidence, Marks, Phrase
from shared.memory.invariants import Invariant, InvariantType
from shared.memory.spans import Base, render
from shared.memory.tokens import canonical, clauses, numeric
from shared.ports import Verdict


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
    """One invariant that a text does not entail."""

    reason: Reason
    invariant: Invariant


_SUPPORT_REASONS = {
    support.Lack.NUMBER: Reason.UNSUPPORTED_NUMBER,
    support.Lack.NAME: Reason.UNSUPPORTED_NAME,
    support.Lack.CLAUSE: Reason.UNSUPPORTED_CLAUSE,
    support.Lack.NEIGHBOUR: Reason.NEIGHBOUR_FACT,
}


def judge(base: Base, draft: str, neighbours: Sequence[str] = (), *, strict: bool = True) -> Verdict:
    """Judge a draft of an entry whose exact base this is."""
    evidence = Evidence(clauses(draft))
    if not evidence.clauses:
        return _rejected(Reason.EMPTY)
    rendered = render(base)
    if _same_words(draft, rendered):
        return _rejected(Reason.ECHO)
    trace = base.trace
    missing = list(failures(trace, base.invariants, evidence))
    if missing:
        first = missing[0]
        reason = Reason.TRUNCATED if _stops_early(missing, base.invariants, draft) else first.reason
        return _rejected(reason, _in_words(first.invariant, trace))
    if not strict:
        return Verdict(admitted=True)
    contradiction = _contradiction(trace, base.invariants, evidence, Evidence(clauses(rendered)))
    if contradiction is not None:
        return _rejected(contradiction.reason, _in_words(contradiction.invariant, trace))
    unsupported = support.first_lack(evidence.clauses, [span.text for span in base.spans], neighbours)
    if unsupported is not None:
        lack, offending = unsupported
        return _rejected(_SUPPORT_REASONS[lack], offending=offending)
    return Verdict(admitted=True)


def failures(trace: Sequence[str], invariants: Sequence[Invariant], evidence: Evidence) -> Iterator[Failure]:
    """Every invariant that the text behind `evidence` does not entail, in order."""
    phrases = [Phrase.of(text) for text in trace]
    related = {phrases[index] for claim in invariants if len(claim.spans) > 1 for index in claim.spans}
    marks = evidence.mark(related)
    judged: dict[tuple[InvariantType, bool, tuple[Phrase, ...]], Reason | None] = {}
    for invariant in invariants:
        members = tuple(phrases[index] for index in invariant.spans)
        key = (invariant.type, invariant.positive, members)
        if key not in judged:
            judged[key] = _claim(invariant, members, evidence, marks)
        reason = judged[key]
        if reason is not None:
            yield Failure(reason, invariant)


def describe(base: Base) -> tuple[str, ...]:
    """Invariants in words, for a prompt."""
    trace = base.trace
    return tuple(dict.fromkeys(_in_words(invariant, trace) for invariant in base.invariants))


def _claim(
    invariant: Invariant, members: Sequence[Phrase], evidence: Evidence, marks: Marks
) -> Reason | None:
    if len(members) == 1:
        reason = _span(members[0], invariant.positive, evidence)
    else:
        reason = _relation(members, invariant.positive, evidence, marks)
    if reason is not None and invariant.type is InvariantType.OUTCOME:
        return Reason.OUTCOME_CHANGED
    return reason


def _span(phrase: Phrase, positive: bool, evidence: Evidence) -> Reason | None:
    found = evidence.clauses_with(phrase)
    if any(evidence.positive(clause) is positive for clause in found):
        return None
    if found:
        return Reason.POLARITY_FLIPPED
    words = [word for word in phrase.words if not numeric(word)]
    if len(words) < len(phrase.words) and evidence.has_numbers and all(map(evidence.has_word, words)):
        return Reason.NUMBER_CHANGED
    return Reason.SPAN_MISSING


def _relation(members: Sequence[Phrase], positive: bool, evidence: Evidence, marks: Marks) -> Reason | None:
    """All members in one clause, in order, with nothing that belongs to another relation between them."""
    rarest = min(members, key=lambda phrase: len(evidence.clauses_with(phrase)))
    found = flipped = swapped = False
    for clause in evidence.clauses_with(rarest):
        if evidence.in_order(clause, members, marks):
            found = found or evidence.positive(clause) is positive
            flipped = flipped or evidence.positive(clause) is not positive
        else:
            strangers = any(phrase not in members for _, phrase in marks.get(clause, ()))
            swapped = swapped or strangers or sum(evidence.holds(clause, phrase) for phrase in members) > 1
    if found:
        return None
    if flipped:
        return Reason.POLARITY_FLIPPED
    return Reason.TUPLE_SWAPPED if swapped else Reason.TUPLE_MISSING


def _contradiction(
    trace: Sequence[str], invariants: Sequence[Invariant], evidence: Evidence, residue: Evidence
) -> Failure | None:
    """A clause that denies a tuple, or turns it round, beside the one that states it right."""
    phrases = [Phrase.of(text) for text in trace]
    ordered: dict[tuple[Phrase, Phrase], Invariant] = {}
    for invariant in invariants:
        for before, after in pairwise(phrases[index] for index in invariant.spans):
            ordered.setdefault((before, after), invariant)
    for (before, after), invariant in ordered.items():
        denied = not invariant.positive
        if evidence.together(before, after, denied) and not residue.together(before, after, denied):
            return Failure(Reason.POLARITY_FLIPPED, invariant)
        turned = evidence.reversed_somewhere(before, after) and not residue.reversed_somewhere(before, after)
        if turned and (after, before) not in ordered:
            return Failure(Reason.TUPLE_SWAPPED, invariant)
    return None


def _same_words(draft: str, rendered: str) -> bool:
    return canonical(draft).casefold().split() == canonical(rendered).casefold().split()


def _stops_early(missing: Sequence[Failure], invariants: Sequence[Invariant], draft: str) -> bool:
    """True where the last key spans are missing, more than one, and the draft's last sentence has no end."""
    lost = {failure.invariant.spans[0] for failure in missing if len(failure.invariant.spans) == 1}
    last = max((index for invariant in invariants for index in invariant.spans), default=-1)
    unfinished = canonical(draft).rstrip()[-1:] not in ".!?。\"')]"
    return unfinished and len(lost) > 1 and lost == set(range(min(lost), last + 1))


def _in_words(invariant: Invariant, trace: Sequence[str]) -> str:
    claim = " / ".join(" ".join(trace[index].split()) for index in invariant.spans)
    return f"{'' if invariant.positive else 'not '}{invariant.type.name.lower()}: {claim}"


def _rejected(reason: Reason, invariant: str = "", offending: str = "") -> Verdict:
    return Verdict(admitted=False, reason=reason.value, invariant=invariant, offending=offending)
