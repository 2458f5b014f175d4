"""Invariants of an original: claims over its TRACE spans, kept only where the original entails them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from edge_agent.atoms import Atoms
from edge_agent.looks import AtomClass, Look
from edge_agent.ranking import Line
from shared.memory import gate
from shared.memory.evidence import Evidence, Phrase
from shared.memory.invariants import Invariant, InvariantType
from shared.memory.tokens import Clause, Place, canonical, clauses, clauses_at, denials_by_clause
from shared.memory.words import special

_TYPES = {
    AtomClass.NUMBER: InvariantType.NUMBER,
    AtomClass.INTEGER: InvariantType.NUMBER,
    AtomClass.DATE: InvariantType.DATE,
    AtomClass.ID: InvariantType.ID,
}
_LONGEST_TUPLE = 8  # a longer list is cut into tuples that share an end
_MOST_TRIED = 64  # places where a phrase's first word stands: "the the the" is no square
_number = itemgetter(2)  # of a place, its clause's
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
    texts = [text[found.start[at] : found.end[at]] for at in trace]
    if canonical(text) != text:
        return _from_whole(text, places, found, keyed, texts, lines)
    spans: list[Invariant] = []
    relations: list[Invariant] = []
    read: dict[int, Clause] = {}
    parts: dict[int, tuple[str, ...]] = {}
    for number, members in groupby(keyed, key=lambda pair: found.clause[pair[1]]):
        own = _clause(text, places, number)
        if own is not None:
            read[number] = own
            # Its own clause says a single span, with its own sign; no other clause can take that back.
            group = _standing(list(members), found, places, looks, texts, own, parts)
            _claim(group, _signs(own.denials), found, lines, spans, relations)
    if any(len(claim.spans) > 1 for claim in relations):
        others = _telling(places, looks, _members(relations, parts, found, trace))
        if others is not None:
            told = {number: _clause(text, places, number) for number in others - read.keys()}
            clauses_told = [clause for _, clause in sorted((told | read).items()) if clause is not None]
            relations = list(_entailed(relations, texts, Evidence(clauses_told)))
    spans.sort(key=lambda claim: (claim.type, not claim.positive))
    return (*spans, *relations)


def _from_whole(
    text: str,
    places: Sequence[Place],
    found: Atoms,
    keyed: Sequence[tuple[int, int]],
    texts: Sequence[str],
    lines: Sequence[Line],
) -> tuple[Invariant, ...]:
    """The slow way, for text that the gate reads otherwise than it is written: its clauses are others."""
    spans: list[Invariant] = []
    relations: list[Invariant] = []
    denials = denials_by_clause(text, places)
    for number, members in groupby(keyed, key=lambda pair: found.clause[pair[1]]):
        _claim(list(members), _signs(denials.get(number, 0)), found, lines, spans, relations)
    spans.sort(key=lambda claim: (claim.type, not claim.positive))
    return tuple(_entailed([*spans, *relations], texts, Evidence(clauses(text))))


def _claim(
    group: Sequence[tuple[int, int]],
    signs: Sequence[bool],
    found: Atoms,
    lines: Sequence[Line],
    spans: list[Invariant],
    relations: list[Invariant],
) -> None:
    """What the TRACE atoms of one clause claim: each that it stands, and together what they say."""
    spans.extend(
        Invariant(_TYPES.get(found.kind[at], InvariantType.SPAN), (index,), sign)
        for index, at in group
        for sign in signs
    )
    outcome = bool(group) and _outcome(lines, found.start[group[0][1]])
    if outcome or len(group) > 1:
        kind = InvariantType.OUTCOME if outcome else InvariantType.TUPLE
        chunks = _chunks([index for index, _ in group])
        relations.extend(Invariant(kind, tuple(chunk), sign) for chunk in chunks for sign in signs)


def _clause(text: str, places: Sequence[Place], number: int) -> Clause | None:
    """One clause as the gate reads it."""
    low = bisect_left(places, number, key=_number)
    read = clauses_at(text, places[low : bisect_right(places, number, low, key=_number)])
    return read[0] if read else None


def _standing(
    group: Sequence[tuple[int, int]],
    found: Atoms,
    places: Sequence[Place],
    looks: Sequence[Look],
    texts: Sequence[str],
    clause: Clause,
    phrases: dict[int, tuple[str, ...]],
) -> list[tuple[int, int]]:
    """Those of a clause's atoms whose phrases are runs of its forms, in order. Notes the phrases."""
    asked: list[tuple[int, int, tuple[str, ...]]] = []
    for index, row in group:
        token = found.token[row]
        look = looks[token]
        word = look[0]
        if places[token][1] == found.end[row] and word.isalpha() and not special(word):
            asked.append((index, row, (look[7],)))  # what Phrase.of says of a word that is no part of a value
        else:
            parts = Phrase.of(texts[index]).parts
            if len(parts) == 1 and parts[0]:
                asked.append((index, row, parts[0]))
    forms = [token.form for token in clause.tokens]
    where: dict[str, list[int]] = {part[0]: [] for _, _, part in asked}
    for at, word in enumerate(forms):
        if word in where:
            where[word].append(at)
    standing: list[tuple[int, int]] = []
    free = 0
    for index, row, part in asked:
        starts = where[part[0]]
        first = bisect_left(starts, free)
        for start in starts[first : first + _MOST_TRIED]:
            if tuple(forms[start : start + len(part)]) == part:
                standing.append((index, row))
                phrases[index] = part
                free = start + len(part)
                break
    return standing


def _members(
    relations: Iterable[Invariant],
    phrases: Mapping[int, tuple[str, ...]],
    found: Atoms,
    trace: Sequence[int],
) -> dict[int, set[tuple[str, ...]]]:
    """What each clause's relations tie together."""
    members: dict[int, set[tuple[str, ...]]] = {}
    for claim in relations:
        if len(claim.spans) > 1:
            clause = found.clause[trace[claim.spans[0]]]
            members.setdefault(clause, set()).update(phrases[at] for at in claim.spans)
    return members


def _telling(
    places: Sequence[Place], looks: Sequence[Look], members: Mapping[int, Collection[tuple[str, ...]]]
) -> set[int] | None:
    """Numbers of the clauses that can speak for or against relations beside their own; None where none can.

    Whatever the gate looks up, it looks up by phrase; a clause without a phrase's rarest word has no phrase,
    and one without two phrases of a relation says nothing about it. A relation's own clause says it, in
    order: what could part its members there is a phrase of another relation.
    """
    forms = [look[7] for look in looks]
    counts = Counter(forms)
    sizes: Counter[frozenset[str]] = Counter()  # relations of the same words are one question
    own: dict[int, frozenset[str]] = {}
    valued = alike = False
    for number, tied in members.items():
        words = set()
        for member in tied:
            plain = [word for word in member if word in counts]
            # A date or a number may stand elsewhere in another dress.
            valued = valued or len(plain) < len(member)
            words.add(min(plain, key=counts.__getitem__) if plain else " ".join(member))
        alike = alike or len(words) < len(tied)
        own[number] = frozenset(words)
        sizes[own[number]] += 1
    sought = frozenset().union(*sizes)
    held: dict[int, set[str]] = {}
    for (_, _, clause), word in zip(places, forms, strict=True):
        if word in sought:
            held.setdefault(clause, set()).add(word)
    telling = _telling_two(held, own, sizes, counts)
    contested = any(clause in own and words - own[clause] for clause, words in held.items())
    if valued or alike:
        telling |= held.keys()
    if valued:
        pairs = zip(places, looks, strict=True)
        telling |= {place[2] for place, look in pairs if look[0][0].isdigit() or special(look[0])}
    return telling if telling or valued or alike or contested else None


def _telling_two(
    held: Mapping[int, set[str]],
    own: Mapping[int, frozenset[str]],
    sizes: Mapping[frozenset[str], int],
    counts: Mapping[str, int],
) -> set[int]:
    """Clauses that hold two words of a relation of another clause."""
    # Who holds two words of a relation holds one besides its commonest: looking there keeps the search short.
    by_word: dict[str, list[frozenset[str]]] = {}
    for words in sizes:
        commonest = max(words, key=lambda word: (counts.get(word, 0), word))
        for word in words - {commonest}:
            by_word.setdefault(word, []).append(words)
    return {
        clause
        for clause, found in held.items()
        if any(
            len(found & words) > 1 and (own.get(clause) != words or sizes[words] > 1)
            for word in found
            for words in by_word.get(word, ())
        )
    }


def _entailed(
    candidates: Sequence[Invariant], trace: Sequence[str], evidence: Evidence
) -> Sequence[Invariant]:
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
        candidates = [claim for claim in candidates if claim not in failed]
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
