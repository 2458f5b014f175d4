"""Invariants of an original: claims over its TRACE spans, kept only where the original entails them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from edge_agent.atoms import Atoms
from edge_agent.looks import AtomClass, Look
from edge_agent.ranking import Line
from shared.memory import gate
from shared.memory.evidence import Evidence, Phrase
from shared.memory.invariants import Invariant, InvariantType
from shared.memory.tokens import Clause, Place, canonical, clauses, clauses_at, denies

_TYPES = {
    AtomClass.NUMBER: InvariantType.NUMBER,
    AtomClass.INTEGER: InvariantType.NUMBER,
    AtomClass.DATE: InvariantType.DATE,
    AtomClass.ID: InvariantType.ID,
}
_LONGEST_TUPLE = 8  # a longer list is cut into tuples that share an end
_MOST_ROUNDS = 8  # one or two are usual; a text that needs more says everything both ways


def find_invariants(
    text: str,
    places: Sequence[Place],
    looks: Sequence[Look],
    found: Atoms,
    trace: Sequence[int],
    lines: Sequence[Line],
) -> tuple[Invariant, ...]:
    """Spans, tuples and outcome facts over the TRACE atoms, whose rows `trace` has in order."""
    keyed = [(index, at) for index, at in enumerate(trace) if found.kind[at] > AtomClass.PIECE]
    if not keyed:
        return ()
    numbers = [clause for _, _, clause in places]
    spans: list[Invariant] = []
    relations: list[Invariant] = []
    for clause, members in groupby(keyed, key=lambda pair: found.clause[pair[1]]):
        group = list(members)
        own = range(bisect_left(numbers, clause), bisect_right(numbers, clause))
        signs = _signs(sum(denies(looks[token][0]) for token in own))
        spans.extend(
            Invariant(_TYPES.get(found.kind[at], InvariantType.SPAN), (index,), sign)
            for index, at in group
            for sign in signs
        )
        outcome = _outcome(lines, found.start[group[0][1]])
        if outcome or len(group) > 1:
            kind = InvariantType.OUTCOME if outcome else InvariantType.TUPLE
            chunks = _chunks([index for index, _ in group])
            relations.extend(Invariant(kind, tuple(chunk), sign) for chunk in chunks for sign in signs)
    candidates = (*sorted(spans, key=lambda claim: (claim.type, not claim.positive)), *relations)
    texts = [text[found.start[at] : found.end[at]] for at in trace]
    return _entailed(candidates, texts, Evidence(_telling_clauses(text, places, looks, texts)))


def _telling_clauses(
    text: str, places: Sequence[Place], looks: Sequence[Look], texts: Sequence[str]
) -> list[Clause]:
    """The clauses that can speak for or against any of these spans: those with a span's rarest word.

    Whatever the gate looks up, it looks up by phrase; a clause without a phrase's rarest word has no phrase.
    """
    if canonical(text) != text:
        return clauses(text)
    counts = Counter(look[0] for look in looks)
    rarest = {min(part, key=counts.__getitem__) for span in texts for part in Phrase.of(span).parts if part}
    wanted = {place[2] for place, look in zip(places, looks, strict=True) if look[0] in rarest}
    return clauses_at(text, [place for place in places if place[2] in wanted])


def _entailed(
    candidates: tuple[Invariant, ...], trace: Sequence[str], evidence: Evidence
) -> tuple[Invariant, ...]:
    """Those that the gate finds in the original itself, and finds nothing against ("5, no, 6")."""
    for _ in range(_MOST_ROUNDS):
        failed = {
            invariant
            for failure in gate.failures(trace, candidates, evidence)
            for invariant in failure.invariants
        }
        if not failed:
            return candidates
        # What goes may have been what kept another claim apart: ask again.
        candidates = tuple(claim for claim in candidates if claim not in failed)
    return ()


def _outcome(lines: Sequence[Line], start: int) -> bool:
    at = bisect_right(lines, start, key=lambda line: line.start) - 1
    return at >= 0 and lines[at].outcome and start < lines[at].end


def _signs(denials: int) -> tuple[bool, ...]:
    """What is turned round twice is claimed both ways: the gate takes it as it stands, or not at all."""
    return (True, False) if denials > 1 else (not denials,)


def _chunks(indexes: Sequence[int]) -> list[Sequence[int]]:
    if len(indexes) <= _LONGEST_TUPLE:
        return [indexes]
    step = _LONGEST_TUPLE - 1
    return [indexes[at : at + _LONGEST_TUPLE] for at in range(0, len(indexes) - 1, step)]
