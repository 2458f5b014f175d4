"""Invariants of an original: claims over its TRACE spans, kept only where the original entails them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from edge_agent.atoms import Atom, AtomClass
from shared.memory import gate
from shared.memory.evidence import Evidence
from shared.memory.invariants import Invariant, InvariantType
from shared.memory.tokens import Place, canonical, clauses, clauses_at, denials_by_clause

_TYPES = {
    AtomClass.NUMBER: InvariantType.NUMBER,
    AtomClass.INTEGER: InvariantType.NUMBER,
    AtomClass.DATE: InvariantType.DATE,
    AtomClass.ID: InvariantType.ID,
}
_LONGEST_TUPLE = 8  # a longer list is cut into tuples that share an end
_MOST_ROUNDS = 8  # one or two are usual; a text that needs more says everything both ways


def find_invariants(
    text: str, places: Sequence[Place], found: Sequence[Atom], trace: Sequence[Atom]
) -> tuple[Invariant, ...]:
    """Spans, tuples and outcome facts over the TRACE atoms among all that were found."""
    keyed = [(index, atom) for index, atom in enumerate(trace) if atom.kind > AtomClass.PIECE]
    if not keyed:
        return ()
    denials = denials_by_clause(text, places)
    spans = [
        Invariant(_TYPES.get(atom.kind, InvariantType.SPAN), (index,), sign)
        for index, atom in keyed
        for sign in _signs(denials.get(atom.clause, 0))
    ]
    relations: list[Invariant] = []
    for clause, members in groupby(keyed, key=lambda pair: pair[1].clause):
        group = list(members)
        kind = InvariantType.OUTCOME if group[0][1].outcome else InvariantType.TUPLE
        indexes = [index for index, _ in group]
        if len(indexes) > 1 or kind is InvariantType.OUTCOME:
            relations.extend(
                Invariant(kind, tuple(chunk), sign)
                for chunk in _chunks(indexes)
                for sign in _signs(denials.get(clause, 0))
            )
    candidates = (*sorted(spans, key=lambda claim: (claim.type, not claim.positive)), *relations)
    evidence = Evidence(clauses_at(text, places) if canonical(text) == text else clauses(text))
    return _entailed(candidates, [text[atom.start : atom.end] for atom in trace], evidence)


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


def _signs(denials: int) -> tuple[bool, ...]:
    """What is turned round twice is claimed both ways: the gate takes it as it stands, or not at all."""
    return (True, False) if denials > 1 else (not denials,)


def _chunks(indexes: Sequence[int]) -> list[Sequence[int]]:
    if len(indexes) <= _LONGEST_TUPLE:
        return [indexes]
    step = _LONGEST_TUPLE - 1
    return [indexes[at : at + _LONGEST_TUPLE] for at in range(0, len(indexes) - 1, step)]
