"""The verification operator V: a draft against an entry's invariants, admitted or rejected with a reason.

`paper`: every key span, tuple and outcome fact is entailed, and no tuple contradicted. `strict`: also no
unsupported content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shared.memory import contradiction, entailment, support
from shared.memory.entailment import Claim, Failure, Reason
from shared.memory.evidence import Evidence, Marks
from shared.memory.invariants import Invariant
from shared.memory.spans import Base, render
from shared.memory.tokens import INVISIBLE, Clause, canonical, clauses
from shared.ports import Verdict

__all__ = ["Failure", "Reason", "describe", "failures", "judge"]

_SUPPORT_REASONS = {
    support.Lack.NUMBER: Reason.UNSUPPORTED_NUMBER,
    support.Lack.NAME: Reason.UNSUPPORTED_NAME,
    support.Lack.CLAUSE: Reason.UNSUPPORTED_CLAUSE,
    support.Lack.NEIGHBOUR: Reason.NEIGHBOUR_FACT,
    support.Lack.POLARITY: Reason.POLARITY_FLIPPED,
}
REMEMBERED: tuple[object, ...] = ()
_ADMITTED = Verdict(admitted=True)
_SENTENCE_ENDS = frozenset(".!?。\"')]")


def judge(base: Base, draft: str, neighbours: Sequence[str] = (), *, strict: bool = True) -> Verdict:
    """Judge a draft of an entry whose exact base this is."""
    evidence = Evidence(clauses(draft))
    if not evidence.clauses:
        return _rejected(Reason.EMPTY)
    rendered = render(base)
    if _echoes(draft, base, rendered):
        return _rejected(Reason.ECHO)
    trace = base.trace
    made = entailment.claims(trace, base.invariants)
    marked = entailment.marks(made, evidence)
    missing = list(entailment.failures(made, evidence, marked))
    if missing and _stops_early(missing, base.invariants, draft):
        return _rejected(Reason.TRUNCATED, _in_words(missing[0].invariant, trace))
    failed = missing or list(contradiction.contradictions(made, evidence, marked))
    if failed:
        return _rejected(failed[0].reason, _in_words(failed[0].invariant, trace))
    return (
        _strict(base, draft, neighbours, _Reading(evidence, made, marked, rendered)) if strict else _ADMITTED
    )


def failures(trace: Sequence[str], invariants: Sequence[Invariant], evidence: Evidence) -> Iterator[Failure]:
    """Every invariant that the text behind `evidence` does not entail, or contradicts."""
    made = entailment.claims(trace, invariants)
    marked = entailment.marks(made, evidence)
    yield from entailment.failures(made, evidence, marked)
    yield from contradiction.contradictions(made, evidence, marked)


def describe(base: Base) -> tuple[str, ...]:
    """Invariants in words, for a prompt."""
    trace = base.trace
    return tuple(dict.fromkeys(_in_words(invariant, trace) for invariant in base.invariants))


class _Reading(NamedTuple):
    """A draft as read against a base."""

    evidence: Evidence
    made: Sequence[Claim]
    marked: Marks
    rendered: str


def _strict(base: Base, draft: str, neighbours: Sequence[str], read: _Reading) -> Verdict:
    """Nothing beyond the residue: no hidden character, denied or turned pair, stranger, or new relation."""
    evidence, trace = read.evidence, base.trace
    hidden = set("".join(INVISIBLE.findall(draft))).difference(read.rendered)
    if hidden:
        return _rejected(Reason.UNSUPPORTED_CLAUSE, offending=ascii(min(hidden)))
    shown = clauses(read.rendered)
    if _asks(draft) and not _asks(read.rendered):
        return _rejected(Reason.UNSUPPORTED_CLAUSE, offending="?")
    verbatim = support.verbatim(evidence.clauses, shown)
    loose = next(contradiction.loose_pairs(read.made, evidence, verbatim), None)
    if loose is not None:
        return _rejected(loose.reason, _in_words(loose.invariant, trace))
    residue = support.Residue((span.text for span in base.spans), shown)
    unsupported = support.first_lack(
        evidence.clauses, residue, neighbours, entailment.claimed_denials(read.made, evidence)
    )
    if unsupported is not None:
        lack, offending = unsupported
        return _rejected(_SUPPORT_REASONS[lack], offending=offending)
    mixed = contradiction.recombined(read.made, evidence, read.marked, verbatim)
    if mixed is not None:
        return _rejected(Reason.TUPLE_SWAPPED, offending=_surface(evidence.clauses[mixed]))
    last = evidence.clauses[-1].tokens[-1]
    if _unfinished(draft) and last.norm not in residue.words:
        return _rejected(Reason.TRUNCATED, offending=last.surface)
    return _ADMITTED


def _echoes(draft: str, base: Base, rendered: str) -> bool:
    """True for the residue itself, and for the prompt's list of facts."""
    if canonical(draft).casefold().split() == canonical(rendered).casefold().split():
        return True
    facts = describe(base)
    return bool(facts) and all(fact in draft for fact in facts)


def _asks(text: str) -> bool:
    """True where a word ends in a question mark: what is asked is not said."""
    return "?" in canonical(text) and any(
        word.rstrip("\"')]*!").endswith("?") for word in canonical(text).split()
    )


def _surface(clause: Clause) -> str:
    return " ".join(token.surface for token in clause.tokens)


def _unfinished(draft: str) -> bool:
    return canonical(draft).rstrip()[-1:] not in _SENTENCE_ENDS


def _stops_early(missing: Sequence[Failure], invariants: Sequence[Invariant], draft: str) -> bool:
    """True where the last key spans are missing, more than one, and the draft's last sentence has no end."""
    lost = {claim.spans[0] for failure in missing for claim in failure.invariants if len(claim.spans) == 1}
    last = max((index for invariant in invariants for index in invariant.spans), default=-1)
    return _unfinished(draft) and len(lost) > 1 and lost == set(range(min(lost), last + 1))


def _in_words(invariant: Invariant, trace: Sequence[str]) -> str:
    claim = " / ".join(" ".join(trace[index].split()) for index in invariant.spans)
    return f"{'' if invariant.positive else 'not '}{invariant.type.name.lower()}: {claim}"


def _rejected(reason: Reason, invariant: str = "", offending: str = "") -> Verdict:
    return Verdict(admitted=False, reason=reason.value, invariant=invariant, offending=offending)
