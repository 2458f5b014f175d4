"""Moves inside one statement that keep its meaning: see `order`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from shared.memory.direction import WHEN_WORDS, predicate
from shared.memory.grammar import CONDITION, FINITE, JOINT, PREPOSITION, PRONOUN, VERB
from shared.memory.tokens import Clause
from shared.memory.values import WEEKDAYS
from shared.memory.words import Token

_PAIRED = frozenset(("from", "to", "than"))
"""What a lossy residue may have lost the counterpart of."""
_BOUND = frozenset(
    ("if", "unless", "when", "whenever", "until", "while", "because", "after", "before", "once")
)
_GIFTS = ({"", "to"}, {"", "for"})
_WHEN = frozenset(("at", "on", "in"))
_MOST_TURNS = 8  # places at which a sequence may have been cut and turned


class Unit(NamedTuple):
    """A word that says something, with the preposition that leads to it."""

    form: str
    lead: str
    at: int  # of its token in the clause
    token: Token
    clause: int


def keeps(
    meant: Sequence[Unit], spoken: Sequence[Unit], clauses: tuple[Clause, Clause] | None, *, loose: bool
) -> bool:
    """True where a known move leads from one to the other."""
    verb = -1
    if clauses is not None:
        there, said = clauses
        verb = predicate(there.tokens, there.label)[1]
        if _voice(meant, there, spoken, said) or _voice(spoken, said, meant, there):
            return True
        label = [unit.form for unit in spoken if unit.at < said.label]
        if there.label and said.label and label != [unit.form for unit in meant if unit.at < there.label]:
            return False
        if label or not said.label:
            meant, spoken = _inside(meant, there.label), _inside(spoken, said.label)
        if len(meant) != len(spoken):
            return False
        if _enumerated(meant, there) == _enumerated(spoken, said) is not None:
            return True
        if _apart(meant, spoken):
            return True
    return _one_move(meant, spoken, clauses, verb, loose=loose)


def _inside(units: Sequence[Unit], label: int) -> list[Unit]:
    """Without who speaks."""
    return [unit for unit in units if unit.at >= label]


def _one_move(
    meant: Sequence[Unit],
    spoken: Sequence[Unit],
    clauses: tuple[Clause, Clause] | None,
    verb: int,
    *,
    loose: bool,
) -> bool:
    """One phrase, or the items of a list, in another place."""
    low, high = _middle(meant, spoken)
    if low == high:
        return True
    here, there = meant[low:high], spoken[low:high]
    if clauses is not None and all(
        _listed(units, low, high, clause) for units, clause in zip((meant, spoken), clauses, strict=True)
    ):
        return True
    for cut in _turns(here, there):
        first = (here[:cut], there[len(there) - cut :])
        second = (here[cut:], there[: len(there) - cut])
        if _given(first, second, meant[low - 1] if low else None, verb):
            return True
        if low and high < len(meant):
            continue
        # In front of the verb and behind a noun a phrase says which one it is: it does not move.
        tied = bool(low) and (here[0].at <= verb or verb < 0)
        whole = not low and high == len(meant)
        if not tied and any(_free(*block, verb, loose=loose, whole=whole) for block in (first, second)):
            return True
    return False


def _free(here: Sequence[Unit], there: Sequence[Unit], verb: int, *, loose: bool, whole: bool) -> bool:
    """True for a phrase that may stand at either end: with its preposition in both, or a time."""
    if any(unit.at == verb for unit in here) and here[0].lead not in _BOUND:
        return False
    one, other = here[0].lead, there[0].lead
    if loose and not one and other not in _PAIRED:
        one = other
    return one == other and (one != "of" if one else whole and _time(here))


def _time(units: Sequence[Unit]) -> bool:
    return all(
        unit.form in WHEN_WORDS or unit.form in WEEKDAYS or unit.form[0] == "#" or ":" in unit.form
        for unit in units
    )


Block = tuple[Sequence[Unit], Sequence[Unit]]


def _given(first: Block, second: Block, before: Unit | None, verb: int) -> bool:
    """ "gave Bob the key", "gave the key to Bob"."""
    if before is None or (before.at != verb and not before.token.tag & VERB):
        return False
    for (here, there), (beside, moved) in ((first, second), (second, first)):
        leads = {here[0].lead, there[0].lead}
        if leads in _GIFTS and not beside[0].lead and not moved[0].lead and not here[0].token.numeric:
            return True
    return False


def _listed(units: Sequence[Unit], low: int, high: int, clause: Clause) -> bool:
    """True where these are the items of "Ana, Bo and Cy", single words without number."""
    items = units[low:high]
    if any(unit.token.numeric or unit.token.tag & VERB or unit.form in WEEKDAYS for unit in items):
        return False
    if len({unit.clause for unit in items}) > 1 or any(unit.lead for unit in items[1:]):
        return False
    gaps = [other.at - one.at for one, other in pairwise(items)]
    if gaps[-1] != 2 or clause.tokens[items[-1].at - 1].norm != "and" or any(gap != 1 for gap in gaps[:-1]):
        return False
    if len(items) > 2 and not all(unit.token.surface[0].isupper() for unit in items):
        return False
    ahead = low and units[low - 1].at + 1 == items[0].at and not units[low - 1].token.tag & VERB
    behind = high < len(units) and units[high].at == items[-1].at + 1 and not units[high].token.tag & VERB
    return not ahead and not behind


def _enumerated(units: Sequence[Unit], clause: Clause) -> tuple[list[str], list[list[str]]] | None:
    """What stands before "a mug 3, a plate 1 and a fork 2", and these items in one order."""
    tokens = clause.tokens
    starts = [at for at, token in enumerate(tokens) if token.norm in ("a", "an") and token.surface.islower()]
    if len(starts) < 2 or tokens[starts[-1] - 1].norm != "and":
        return None
    first, joined = starts[0], starts[-1] - 1
    if any(bool(token.tag & _OTHER) and at not in starts and at != joined
           for at, token in enumerate(tokens[first:], first)):  # fmt: skip
        return None
    items = [
        [unit.form for unit in units if low <= unit.at < high]
        for low, high in pairwise([*starts, len(tokens)])
    ]
    return [unit.form for unit in units if unit.at < first], sorted(items)


_OTHER = PREPOSITION | FINITE | PRONOUN | CONDITION | JOINT


def _clocked(unit: Unit, before: Unit | None, *, dated: bool) -> bool:
    """True for a unit of a date or a time of day that "at" or "on" leads to."""
    if unit.lead:
        return unit.lead in _WHEN and _date(unit)
    return dated and before is not None and before.at + 1 == unit.at and _date(unit)


def _date(unit: Unit) -> bool:
    form = unit.form
    return form in WEEKDAYS or (unit.token.numeric and (":" in form or form[0] == "#" or form.isdigit()))


def _split(units: Sequence[Unit]) -> tuple[list[Unit], list[tuple[str, ...]]]:
    """The rest, and its dates and times of day in one order."""
    rest: list[Unit] = []
    times: list[list[Unit]] = []
    dated, before = False, None
    for unit in units:
        dated = _clocked(unit, before, dated=dated)
        if not dated:
            rest.append(unit)
        elif unit.lead:
            times.append([unit])
        else:
            times[-1].append(unit)
        before = unit
    return rest, sorted((*tuple(unit.form for unit in some), some[0].lead) for some in times)


def _apart(meant: Sequence[Unit], spoken: Sequence[Unit]) -> bool:
    """ "on 4 May at 9:00" moved, one of each: nothing else can be meant by either."""
    (here, when), (there, said) = _split(meant), _split(spoken)
    if when != said or not when or not _same(here, there):
        return False
    if not all(any(form[0] == "#" or ":" in form or form in WEEKDAYS for form in some) for some in when):
        return False
    count = sum(map(len, when)) - len(when)
    if not (_same(here, meant[count:]) or _same(here, meant[:-count])):
        return False
    if not (_same(there, spoken[count:]) or _same(there, spoken[:-count])):
        return False
    clocks = sum(any(":" in form for form in some) for some in when)
    return clocks <= 1 and len(when) - clocks <= 1


def _voice(active: Sequence[Unit], one: Clause, passive: Sequence[Unit], other: Clause) -> bool:
    """ "Ana sold the car to Bo" for "the car was sold to Bo by Ana"."""
    begins, acted, is_passive = predicate(other.tokens, other.label)
    if not is_passive or predicate(one.tokens, one.label)[2]:
        return False
    verbs = [unit.at for unit in active if unit.form == other.tokens[acted].form]
    if len(verbs) != 1:
        return False
    verb = verbs[0]
    label = [unit.form for unit in active if unit.at < one.label]
    if label != [unit.form for unit in passive if unit.at < other.label]:
        return False
    subject = [unit for unit in active if one.label <= unit.at < verb]
    rest = [unit for unit in active if unit.at > verb]
    about = [unit for unit in passive if other.label <= unit.at < begins]
    behind = [unit for unit in passive if unit.at >= begins and unit.at != acted]
    led = list(islice((at for at, unit in enumerate(behind) if unit.lead == "by"), _MOST_TURNS))
    for cut in {0, *range(max(0, len(subject) - _MOST_TURNS), len(subject))}:
        who = [unit.form for unit in subject[cut:]]  # "in 2011 the council": the last is who acts
        for at in led:
            if who and [each.form for each in behind[at : at + len(who)]] == who:
                left = [*subject[:cut], *rest], [*about, *behind[:at], *behind[at + len(who) :]]
                return _same(*left) or _shifted(*left)
    return False


def _same(one: Sequence[Unit], other: Sequence[Unit]) -> bool:
    return [unit.form for unit in one] == [unit.form for unit in other]


def _shifted(active: Sequence[Unit], passive: Sequence[Unit]) -> bool:
    """What is left of both: a phrase moved, or the gift before the one who gets it."""
    if len(active) != len(passive):
        return False
    low, high = _middle(active, passive)
    here, there = active[low:high], passive[low:high]
    for cut in _turns(here, there):
        first = here[0].lead, there[len(there) - cut].lead
        second = here[cut].lead, there[0].lead
        if any(one == other and one not in ("", "of") for one, other in (first, second)):
            return True
        # "I lent Bob my drill": "my drill was lent to Bob"; "gave the key to Bob": "Bob was given the key"
        if (set(first) in _GIFTS and not first[0]) or (set(second) in _GIFTS and not second[1] and not low):
            return True
    return False


def _middle(one: Sequence[Unit], other: Sequence[Unit]) -> tuple[int, int]:
    """Where two sequences of the same words begin and cease to differ."""
    low, high = 0, len(one)
    while low < high and one[low].form == other[low].form:
        low += 1
    while high > low and one[high - 1].form == other[high - 1].form:
        high -= 1
    return low, high


def _turns(here: Sequence[Unit], there: Sequence[Unit]) -> Iterator[int]:
    """Where the one is cut in two, and the halves exchanged, to make the other."""
    forms = [unit.form for unit in there]
    turns = (at for at in range(1, len(here)) if here[at].form == forms[0])
    for cut in islice(turns, _MOST_TURNS):
        if [unit.form for unit in (*here[cut:], *here[:cut])] == forms:
            yield cut
