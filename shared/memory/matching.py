"""Which statement of the residue one of the draft repeats, or why the nearest one is another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import NamedTuple

from shared.memory.direction import conflict
from shared.memory.entailment import Reason
from shared.memory.grammar import VERB
from shared.memory.lexicon import ROUNDERS
from shared.memory.residue import PRONOUNS, Lack, Residue
from shared.memory.statements import Statement

_NO_WORDS: frozenset[str] = frozenset()
Said = tuple[AbstractSet[int], Mapping[int, AbstractSet[str]]]
"""Statements that the draft repeats word for word, and the words of others that it has said already."""

_MOST_TRIED = 6  # statements of the residue that one of the draft is held against
_WIDEST = 4  # clauses of a sentence that a writer may run together


class Match(NamedTuple):
    """Statements of the residue that one of the draft says, and their words it says them with."""

    places: tuple[int, ...]
    said: frozenset[str]


def find(statement: Statement, residue: Residue, last: int, already: Said) -> Match | Lack:
    """The statements that say it, or why the nearest one does not."""
    whole, covered = already
    votes: dict[int, int] = {}
    for form in statement.content:
        for place in {place for other in residue.meanings(form) for place in residue.forms[other]}:
            # What is said already is not said again with other words.
            if (
                place not in whole
                and not covered.get(place, _NO_WORDS) >= residue.statements[place].content.keys()
            ):
                votes[place] = votes.get(place, 0) + 1
    ranked = sorted(votes, key=lambda place: (-votes[place], abs(place - last - 1)))[:_MOST_TRIED]
    first: Lack | None = None
    for places in _candidates(ranked, residue):
        match = _covers(statement, residue, places)
        if match is None:
            continue
        if len(places) > 1 and not _whole(statement, residue, match):
            continue
        lack = _differs(statement, residue, match)
        if lack is None:
            return match
        first = first or lack
    return first or Lack(
        Reason.TUPLE_SWAPPED if statement.content else Reason.POLARITY_FLIPPED, statement.text()
    )


def _whole(statement: Statement, residue: Residue, match: Match) -> bool:
    """Clauses run together must all be said, every word; those of several sentences in their order."""
    there = [residue.statements[place] for place in match.places]
    words = [form for one in there for form in one.content]
    if not match.said.issuperset(words):
        return False
    if all(one.clause.joint for one in there[1:]):
        return True
    if any(one.clause.denials for one in there):
        return False
    said = [
        next((word for word in residue.meanings(form) if word in match.said), form)
        for form in statement.content
    ]
    return said == list(dict.fromkeys(words))


def _candidates(ranked: Sequence[int], residue: Residue) -> Iterator[tuple[int, ...]]:
    """Single statements, then neighbours of one sentence."""
    for place in ranked:
        yield (place,)
    for place in ranked:
        for width in range(2, _WIDEST + 1):
            for low in range(max(0, place - width + 1), place + 1):
                if low + width <= len(residue.statements):
                    yield tuple(range(low, low + width))


def _covers(statement: Statement, residue: Residue, places: tuple[int, ...]) -> Match | None:
    """Every word stands in these statements, or is who they are about."""
    said: set[str] = set()
    for form in statement.content:
        there = next(
            (
                other
                for other in residue.meanings(form)
                if any(place in residue.forms[other] for place in places)
            ),
            None,
        )
        if there is None:
            if not any(_may_name(residue, place, form) for place in places):
                return None
            there = form
        said.add(there)
    return Match(places, frozenset(said))


def _may_name(residue: Residue, place: int, form: str) -> bool:
    """ "She left": the one that the clause before is about may be named."""
    there = residue.statements[place]
    if form in there.subject:
        return True
    if not place or not (there.pronouns() or there.clause.joint):
        return False
    return form in residue.statements[place - 1].subject


def _differs(statement: Statement, residue: Residue, match: Match) -> Lack | None:
    """The first thing that changes what the residue says."""
    there = [residue.statements[place] for place in match.places]
    for check in (_polarity, _qualifiers, _condition):
        lack = check(statement, there, residue)
        if lack is not None:
            return lack
    replaced = _replaced(statement, there, match)
    if replaced:
        return Lack(Reason.TUPLE_SWAPPED, replaced)
    numbers = _renumbered(statement, there)
    if numbers is not None:
        return Lack(Reason.UNSUPPORTED_NUMBER, numbers)
    turned = len(there) == 1 and _turned(statement, there[0], residue, match)
    return (
        Lack(Reason.TUPLE_SWAPPED, statement.text()) if turned or _of_another(statement, there[0]) else None
    )


def _polarity(statement: Statement, there: Sequence[Statement], residue: Residue) -> Lack | None:
    if residue.loose or statement.denied == bool(sum(one.denied for one in there) % 2):
        return None
    return Lack(Reason.POLARITY_FLIPPED, statement.text())


def _qualifiers(statement: Statement, there: Sequence[Statement], residue: Residue) -> Lack | None:
    qualified = set().union(*(one.qualifiers for one in there))
    added, gone = statement.qualifiers - qualified, qualified - statement.qualifiers
    if added or (gone and not (residue.loose and len(statement.content) < len(there[0].content))):
        return Lack(Reason.QUALIFIER_CHANGED, " ".join(sorted(added or gone)))
    return None


def _condition(statement: Statement, there: Sequence[Statement], residue: Residue) -> Lack | None:
    if (statement.opening == ">") != (there[0].opening == ">") and not residue.loose:
        return Lack(Reason.MARKUP, statement.opening)
    said, meant = statement.condition, there[0].condition
    if residue.loose:
        changed = said in _STRONG and said not in residue.words
    else:
        changed = said != meant and (bool(said and meant) or said in _STRONG or meant in _STRONG)
    return Lack(Reason.CONDITION_CHANGED, statement.text()) if changed else None


def _turned(statement: Statement, there: Statement, residue: Residue, match: Match) -> bool:
    """True where somebody has another's role."""
    if residue.loose and _several(there):
        return False
    return conflict(there.roles, _renamed(statement, residue, match), loose=residue.loose) is not None


def _of_another(statement: Statement, there: Statement) -> bool:
    """ "Ana came and left": the second half is about Ana, whoever it was that left."""
    if statement.own or not statement.subject or not there.subject:
        return False
    if there.subject & statement.subject or (there.subject | statement.subject) & PRONOUNS:
        return False
    # "the cube was taken by the arm and put away" for "the arm took the cube and put it away"
    moved = (there.pronouns() - statement.pronouns()) & PRONOUNS
    return not (moved and there.subject & statement.agents)


def _several(there: Statement) -> bool:
    """True where a line of what is left has several verbs: it may be several statements in one."""
    return sum(bool(token.tag & VERB) for token in there.clause.tokens) > 1


_STRONG = frozenset(("if", "unless", "until", "because"))


def _renamed(statement: Statement, residue: Residue, match: Match) -> dict[str, frozenset[str]]:
    """Roles with the residue's words in the place of their synonyms."""
    found: dict[str, frozenset[str]] = {}
    for form, some in statement.roles.items():
        other = next((word for word in residue.meanings(form) if word in match.said), form)
        found[other] = found.get(other, frozenset()) | some
    return found


def _renumbered(statement: Statement, there: Sequence[Statement]) -> str | None:
    """A number behind another word, with another unit, or of another thing."""
    pairs = {pair for one in there for pair in one.pairs}
    before = {word for word, _ in pairs}
    for word, number in statement.pairs:
        if word in before and (word, number) not in pairs and word not in _numbers(there):
            return f"{word} {number}"
    units = {pair for one in there for pair in one.units}
    measured = {number: unit for number, unit in units if unit[0] != "+"}
    for number, unit in statement.units:
        if (number, unit) in units:
            continue
        if unit[0] != "+" or any(other == unit for _, other in units):
            return f"{number} {unit.removeprefix('+')}"
    own = {number for number, unit in statement.units if unit[0] != "+"}
    for number, unit in measured.items():
        if number in statement.content and number not in own and not any(
            token.form == unit for token in statement.clause.tokens
        ):  # fmt: skip
            return number
    return _rounded(statement, there)


def _replaced(statement: Statement, there: Sequence[Statement], match: Match) -> str:
    """A numbered thing that is gone, though its word and its number still stand there apart."""
    for word, number in set().union(*(one.things for one in there)) - statement.pairs:
        if word in match.said and number in match.said:
            return f"{word} {number}"
    return ""


def _numbers(there: Sequence[Statement]) -> set[str]:
    return {form for one in there for form, token in one.content.items() if token.numeric}


def _rounded(statement: Statement, there: Sequence[Statement]) -> str | None:
    """ "over 5" for 5."""
    rounded = {pair for one in there for pair in _roundings(one)}
    for word, number in _roundings(statement):
        if (word, number) not in rounded:
            return f"{word} {number}"
    return None


def _roundings(statement: Statement) -> Iterator[tuple[str, str]]:
    tokens = statement.clause.tokens
    for one, other in pairwise(tokens):
        if other.numeric and one.norm in ROUNDERS and one.norm not in ("about", "around"):
            yield one.norm, other.form
