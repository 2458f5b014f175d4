"""What a draft says against a relation, beside the clause that states it right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from shared.memory.entailment import Claim, Failure, Reason
from shared.memory.evidence import Evidence, Marks, Phrase
from shared.memory.tokens import numeric

_FEWEST_WORDS = 2  # "books 7": one word beside the number does not say which fact it is
_MOST_TRIED = 64  # relations that share one phrase; keeps a clause's cost bounded


def contradictions(made: Sequence[Claim], evidence: Evidence, marked: Marks) -> Iterator[Failure]:
    """Clauses that repeat a relation with another polarity or number, or an outcome with a part changed."""
    for claim in made:
        if len(claim.members) > 1:
            checks = (check(claim, evidence, marked) for check in (_denied, _renumbered, _altered))
            yield from (claim.failure(reason) for reason in checks if reason is not None)


def loose_pairs(made: Sequence[Claim], evidence: Evidence, verbatim: AbstractSet[int]) -> Iterator[Failure]:
    """Clauses, not verbatim ones, in which two neighbours of a relation are denied or turned round."""
    ordered: dict[tuple[Phrase, Phrase], list[Claim]] = {}
    for claim in made:
        for pair in pairwise(claim.members):
            ordered.setdefault(pair, []).append(claim)
    for (before, after), holders in ordered.items():
        for clause in evidence.together(before, after):
            if clause in verbatim:
                continue
            sign = evidence.positive(clause)
            if not any(claim.allows(sign) for claim in holders):
                yield holders[0].failure(Reason.POLARITY_FLIPPED)
            if (after, before) not in ordered and evidence.turned(clause, before, after):
                yield holders[0].failure(Reason.TUPLE_SWAPPED)


def recombined(
    made: Sequence[Claim], evidence: Evidence, marked: Marks, verbatim: AbstractSet[int]
) -> int | None:
    """The first clause, not a verbatim one, that ties parts of different relations together."""
    relations = [claim.members for claim in made if len(claim.members) > 1]
    with_phrase: dict[Phrase, list[tuple[Phrase, ...]]] = {}
    for members in relations:
        for phrase in set(members):
            with_phrase.setdefault(phrase, []).append(members)
    for clause, found in marked.items():
        if clause in verbatim:
            continue
        standing = _outermost(found)
        here = [phrase for _, phrase in standing]
        near = min((with_phrase[phrase] for phrase in here), key=len)
        if len(here) < _FEWEST_WORDS or any(_is_part(here, members) for members in near):
            continue
        candidates = {members: None for phrase in here for members in with_phrase[phrase][:_MOST_TRIED]}
        whole = [span for members in candidates for span in evidence.chains(clause, members, marked)]
        covered = {at for span in whole for at in span}
        if not all(start in covered for start, _ in standing):
            return clause
    return None


def _denied(claim: Claim, evidence: Evidence, marked: Marks) -> Reason | None:
    for clause in evidence.clauses_near(claim.members):
        if not claim.allows(evidence.positive(clause)) and evidence.in_order(clause, claim.members, marked):
            return Reason.POLARITY_FLIPPED
    return None


def _renumbered(claim: Claim, evidence: Evidence, marked: Marks) -> Reason | None:
    """All its words in order with none of its numbers, but another one."""
    words = [phrase for phrase in claim.members if not all(map(numeric, phrase.words))]
    numbers = [phrase for phrase in claim.members if phrase not in words]
    if not numbers or len(words) < _FEWEST_WORDS:
        return None
    taken = {word for phrase in words for word in phrase.words}
    for clause in evidence.clauses_near(words):
        if any(evidence.holds(clause, number) for number in numbers):
            continue
        tokens = evidence.clauses[clause].tokens
        strangers = any(token.numeric and token.norm not in taken for token in tokens)
        if strangers and evidence.in_order(clause, words, marked):
            return Reason.NUMBER_CHANGED
    return None


def _altered(claim: Claim, evidence: Evidence, marked: Marks) -> Reason | None:
    """All parts of an outcome but one ("lost after 9 steps" beside "won after 9 steps")."""
    members = claim.members
    if not claim.outcome or len(members) <= _FEWEST_WORDS:
        return None
    for at, left_out in enumerate(members):
        rest = (*members[:at], *members[at + 1 :])
        for clause in evidence.clauses_near(rest):
            if all(map(numeric, left_out.words)) and not any(
                token.numeric for token in evidence.clauses[clause].tokens
            ):
                continue  # nothing stands in its place
            if not evidence.holds(clause, left_out) and evidence.in_order(clause, rest, marked):
                return Reason.OUTCOME_CHANGED
    return None


def _outermost(found: Sequence[tuple[int, Phrase]]) -> list[tuple[int, Phrase]]:
    """Marks that lie in no longer mark."""
    standing: list[tuple[int, Phrase]] = []
    end = 0
    for start, phrase in sorted(found, key=lambda mark: (mark[0], -len(mark[1].parts[0]))):
        if start >= end:
            standing.append((start, phrase))
            end = start + len(phrase.parts[0])
    return standing


def _is_part(here: Sequence[Phrase], members: Sequence[Phrase]) -> bool:
    """True where `here` are some of the members, in order."""
    rest = iter(members)
    return all(phrase in rest for phrase in here)
