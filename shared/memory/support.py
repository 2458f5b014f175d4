"""The strict half of the gate: every statement of a draft must be one of the residue's, and a whole one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from shared.memory import denial, matching, order, wording
from shared.memory.entailment import Reason
from shared.memory.evidence import Evidence, Phrase
from shared.memory.grammar import VERB
from shared.memory.lexicon import CALENDAR, UNITS
from shared.memory.residue import PRONOUNS, Lack, Residue
from shared.memory.statements import SEQUENCE, SHARING, Statement, Statements, contentful
from shared.memory.tokens import Clause, clauses
from shared.memory.vocabulary import KNOWN_WORDS, SYNONYMS

__all__ = ["Lack", "Residue", "first_lack", "verbatim"]


def first_lack(
    draft: Sequence[Clause], residue: Residue, neighbours: Sequence[str], claimed: AbstractSet[int]
) -> Lack | None:
    """The first thing that the draft says and the residue does not, or says only a part of.

    A word that stands nowhere fails no rule: the first one comes back, `open`, where nothing else is wrong.

    claimed: clauses whose negation an invariant claims; the residue may have lost it.
    """
    read = Statements(draft)
    repeated = _repeated(draft, read, residue)
    if isinstance(repeated, Lack):
        return repeated
    whole = set(repeated.values())
    covered: dict[int, set[str]] = {}
    leaning: set[int] = set()
    last = -1
    free: dict[int, int] = {}
    strange: Lack | None = None
    said: dict[int, tuple[int, ...]] = {at: (place,) for at, place in repeated.items()}
    for at, clause in enumerate(draft):
        if at in repeated:
            last = repeated[at]
            continue
        found, lack, unknown = _new(
            read[at], residue, neighbours, last, (whole, covered), claimed=at in claimed
        )
        if lack is not None and not lack.open:
            return lack
        strange = strange or lack
        if found is None:
            continue
        if clause.tokens[0].norm in SEQUENCE and last > found.places[0] and not residue.loose:
            return Lack(Reason.UNSUPPORTED_CLAUSE, clause.tokens[0].surface)
        for place in found.places:
            covered.setdefault(place, set()).update(found.said)
            free[place] = free.get(place, 0) + unknown
            if _leans(read[at], residue.statements[place]):
                leaning.add(place)
        last = found.places[-1]
        said[at] = found.places
    moved = order.changed(draft, residue, said)
    if moved:
        return Lack(Reason.TUPLE_SWAPPED, moved)
    dropped = _dropped(whole, covered, free, leaning, residue)
    if strange is not None and dropped is not None and dropped.reason is Reason.PART_DROPPED:
        return strange._replace(open=False)  # more is gone than the unknown words could say
    return dropped or strange


def _repeated(draft: Sequence[Clause], read: Statements, residue: Residue) -> dict[int, int] | Lack:
    """Clauses that stand word for word in the residue, and where; none more often than there."""
    places: dict[int, int] = {}
    taken: dict[tuple[str, ...], int] = {}
    for at, clause in enumerate(draft):
        words = tuple([token.norm for token in clause.tokens])
        same = residue.verbatim.get(words)
        if not same:
            continue
        turn = taken.get(words, 0)
        if turn == len(same):
            return Lack(Reason.TUPLE_SWAPPED, _shown(clause))
        if residue.clauses[same[turn]].joint == clause.joint and _borrows(read, at, residue, same[turn]):
            taken[words] = turn + 1
            places[at] = same[turn]
    return places


def _new(
    statement: Statement,
    residue: Residue,
    neighbours: Sequence[str],
    last: int,
    said: matching.Said,
    *,
    claimed: bool,
) -> _Found:
    """Which statement this one says in other words; nothing for one that says nothing."""
    unknown = _unknown(statement, residue, neighbours)
    if unknown is not None and not unknown.open:
        return _Found(None, unknown)
    if residue.loose and not claimed and denial.turned(statement.clause, residue.denials):
        return _Found(None, Lack(Reason.POLARITY_FLIPPED, statement.text()))
    if unknown is not None:
        return _around(unknown, statement, residue, last, said, claimed=claimed)
    if statement.content or statement.clause.denials:
        found = matching.find(statement, residue, last, said)
        if isinstance(found, Lack):
            return _Found(None, found)
        if residue.loose and not claimed and denial.lifted(statement.clause, _clauses(found, residue)):
            return _Found(None, Lack(Reason.POLARITY_FLIPPED, statement.text()))
        turned = wording.changed(statement, _clauses(found, residue), residue)
        return _Found(found) if turned is None else _Found(None, turned)
    if statement.qualifiers - _HARMLESS and len(statement.clause.tokens) > 1:
        return _Found(None, Lack(Reason.UNSUPPORTED_CLAUSE, statement.text()))
    return _Found()


class _Found(NamedTuple):
    """What a statement of the draft says, and what is wrong with it; both where it has an unknown word."""

    match: matching.Match | None = None
    lack: Lack | None = None
    unknown: int = 0
    """Words that may stand for as many of the residue's."""


def _around(
    unknown: Lack,
    statement: Statement,
    residue: Residue,
    last: int,
    said: matching.Said,
    *,
    claimed: bool,
) -> _Found:
    """What the words beside an unknown one say. They too must be of one statement."""
    known = {form: token for form, token in statement.content.items() if residue.knows(token)}
    if 2 * len(known) < len(statement.content):
        return _Found(None, unknown._replace(open=False))  # it says something else altogether
    # An adverb is nobody that acts ("and gladly left"); a verb still tells who does.
    clause = statement.clause
    strange = statement.content.keys() - known.keys()
    kept = [
        token
        for at, token in enumerate(clause.tokens)
        if at < clause.label or token.form not in strange or token.tag & VERB
    ]
    rest = statement.saying(known, clause._replace(tokens=tuple(kept)))
    found = matching.find(rest, residue, last, said)
    if isinstance(found, Lack):
        return _Found(None, found)
    if residue.loose and not claimed and denial.lifted(statement.clause, _clauses(found, residue)):
        return _Found(None, Lack(Reason.POLARITY_FLIPPED, statement.text()))
    turned = wording.changed(rest, _clauses(found, residue), residue)
    if turned is not None:
        return _Found(None, turned)
    return _Found(found, unknown, len(statement.content) - len(known))


def _clauses(found: matching.Match, residue: Residue) -> list[Clause]:
    return [residue.clauses[place] for place in found.places]


_HARMLESS = frozenset(("again", "too", "same", "other"))


def _borrows(read: Statements, at: int, residue: Residue, place: int) -> bool:
    """A clause that has its subject from the one before it must have the right one."""
    if residue.clauses[place].joint not in SHARING or residue.statements[place].own:
        return True
    return read[at].subject == residue.statements[place].subject


def _unknown(statement: Statement, residue: Residue, neighbours: Sequence[str]) -> Lack | None:
    """A number or a name that stands nowhere; else, `open`, the first word that does not."""
    strange: Lack | None = None
    for form, token in statement.content.items():
        if residue.knows(token):
            continue
        if token.norm in _borrowed(neighbours):
            return Lack(Reason.NEIGHBOUR_FACT, token.surface)
        if token.numeric:
            return Lack(Reason.UNSUPPORTED_NUMBER, token.surface)
        first = token is statement.clause.tokens[0]
        ordinary = bool(token.tag) or form in SYNONYMS or token.norm in KNOWN_WORDS
        named = token.surface[:1].isupper() and not (first and ordinary)
        if named or form in residue.names:
            return Lack(Reason.UNSUPPORTED_NAME, token.surface)
        if token.norm in UNITS or token.form in UNITS or token.norm in CALENDAR:
            return Lack(Reason.UNSUPPORTED_CLAUSE, token.surface)
        strange = strange or Lack(Reason.UNSUPPORTED_CLAUSE, token.surface, open=True)
    return strange


def _borrowed(neighbours: Sequence[str]) -> set[str]:
    return {token.norm for text in neighbours for clause in clauses(text) for token in clause.tokens}


def _leans(statement: Statement, there: Statement) -> bool:
    """True where the draft has a pronoun, or nothing, in the place of who it is about."""
    if not statement.own:
        return bool(statement.subject)
    return statement.subject <= PRONOUNS and bool(statement.pronouns() - there.pronouns())


def _shown(clause: Clause) -> str:
    return " ".join(token.surface for token in clause.tokens)


def _dropped(
    whole: set[int],
    covered: dict[int, set[str]],
    free: dict[int, int],
    leaning: set[int],
    residue: Residue,
) -> Lack | None:
    """A statement that the draft makes without all its words, or without its condition."""
    for place, said in covered.items():
        there = residue.statements[place]
        missing = [form for form in there.content if form not in said]
        if missing and all(form in there.subject and place in leaning for form in missing):
            continue
        if len(missing) > free[place] or any(there.content[form].numeric for form in missing):
            return Lack(Reason.PART_DROPPED, there.content[missing[0]].surface)
    for place in (*covered, *whole):
        for other in _conditions(residue, place):
            if other not in covered and other not in whole:
                return Lack(Reason.CONDITION_CHANGED, residue.statements[other].text())
    return None


def _conditions(residue: Residue, place: int) -> Iterator[int]:
    """Clauses of the same sentence that say when this one holds."""
    found, clauses_there = residue.statements, residue.clauses
    behind = place + 1
    tied = bool(clauses_there[place].joint)
    if not tied and not (behind < len(found) and clauses_there[behind].joint):
        return  # a sentence of one clause
    if found[place].condition:
        return
    while behind < len(found) and clauses_there[behind].joint:
        if found[behind].condition:
            yield behind
        behind += 1
    if place and tied and found[place - 1].condition:
        yield place - 1


def verbatim(draft: Sequence[Clause], rendered: Sequence[Clause]) -> set[int]:
    """Clauses whose words with content stand in the residue in one piece."""
    shown = Evidence([_bare(clause) for clause in rendered])
    found = set()
    for at, clause in enumerate(draft):
        words = tuple([token.form for token in _bare(clause).tokens])
        if words and shown.clauses_with(Phrase((words,))):
            found.add(at)
    return found


def _bare(clause: Clause) -> Clause:
    said = [token for token in clause.tokens if contentful(token) or token.numeric or token.denies]
    return clause._replace(tokens=tuple(said))
