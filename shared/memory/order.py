"""Same words, same order: what strict mode asks last. Only moves known to keep the meaning may change it.

Those are: a prepositional or time phrase to or from an end of the clause; a gift beside who gets it;
active and passive; names of an and-list; a condition with its conjunction; whole sentences that lean on none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from shared.memory.direction import SAME_PREPOSITION, pronoun
from shared.memory.grammar import CONDITION, FINITE, PREPOSITION, PRONOUN
from shared.memory.moves import Unit, keeps
from shared.memory.residue import Residue
from shared.memory.statements import SEQUENCE, Statements, contentful
from shared.memory.tokens import Clause
from shared.memory.words import Token

_POSSESSIVES = frozenset(("my", "your", "his", "her", "our", "their", "its"))
_ASKING_WORDS = "who what where when why how which whose is are was were do does did can could will would"
_ASKING = frozenset(_ASKING_WORDS.split())
_LEANING_WORDS = (
    "yes no yeah ok okay so therefore thus hence first second last it he she they him her them his its their "
    "this that these those mine both"
)
_LEANING = SEQUENCE | frozenset(_LEANING_WORDS.split())
_MOST_STARTS = 8
Places = Mapping[int, Sequence[int]]
"""Of each statement of the draft, the residue's statements that it says."""


def changed(draft: Sequence[Clause], residue: Residue, places: Places) -> str:
    """What the draft says in an order that may mean something else; empty where nothing."""
    for said, there in _groups(places):
        if len(there) == len(said) == 1 and _verbatim(draft[said[0]], residue.clauses[there[0]]):
            continue
        if _spoken(draft[said[0]], residue.clauses[there[0]]):
            return " ".join(token.surface for token in draft[said[0]].tokens)
        meant = [unit for place in there for unit in _units(residue.clauses[place], place)]
        spoken = [unit for at in said for unit in _units(draft[at], at)]
        if residue.loose and len(said) > 1 and _pieces(meant, _renamed(spoken, meant, residue)):
            continue
        meant, spoken = _shared(meant, _renamed(spoken, meant, residue))
        if [unit.form for unit in meant] == [unit.form for unit in spoken]:
            continue
        one = (residue.clauses[there[0]], draft[said[0]]) if len(there) == len(said) == 1 else None
        if not keeps(meant, spoken, one, loose=residue.loose):
            return " ".join(unit.token.surface for unit in spoken)
    moved = _moved(draft, residue, places)
    return "" if moved < 0 else " ".join(token.surface for token in draft[moved].tokens)


def _verbatim(one: Clause, other: Clause) -> bool:
    return [token.surface for token in one.tokens] == [token.surface for token in other.tokens]


def _pieces(meant: Sequence[Unit], spoken: Sequence[Unit]) -> bool:
    """True where each statement is one piece of a line in which a lossy residue has several."""
    known = {unit.form for unit in spoken}
    forms = [unit.form for unit in meant if unit.form in known]
    firsts: dict[str, list[int]] = {}
    for at, form in enumerate(forms):
        firsts.setdefault(form, []).append(at)
    for _, some in groupby(spoken, key=lambda unit: unit.clause):
        piece = [unit.form for unit in some if unit.form in firsts]
        starts = firsts[piece[0]][:_MOST_STARTS] if piece else [0]
        if not any(forms[at : at + len(piece)] == piece for at in starts):
            return False
    return True


def _spoken(one: Clause, other: Clause) -> bool:
    """True where another one says it."""
    here = {token.form for token in one.tokens[: one.label]}
    there = {token.form for token in other.tokens[: other.label]}
    return bool(here and there) and here.isdisjoint(there)


def _groups(places: Places) -> Iterator[tuple[list[int], list[int]]]:
    """Statements of the draft that share one of the residue's, together."""
    home: dict[int, int] = {}
    groups: list[tuple[list[int], set[int]]] = []
    for at, some in sorted(places.items()):
        known = next((home[place] for place in some if place in home), None)
        if known is None:
            known = len(groups)
            groups.append(([], set()))
        groups[known][0].append(at)
        groups[known][1].update(some)
        for place in some:
            home.setdefault(place, known)
    for said, there in groups:
        yield said, sorted(there)


def _units(clause: Clause, number: int) -> Iterator[Unit]:
    lead = ""
    tokens = clause.tokens
    for at, token in enumerate(tokens):
        if token.tag & (PREPOSITION | CONDITION) and not token.numeric:
            lead = SAME_PREPOSITION.get(token.norm, token.norm)
        elif token.tag & PRONOUN or token.norm in _POSSESSIVES:
            yield Unit(pronoun(token.norm), lead, at, token, number)
            lead = ""
        elif contentful(token) or token.numeric or _letter(tokens, at):
            yield Unit(token.form, lead, at, token, number)
            lead = ""
        elif token.tag & FINITE:
            lead = ""


def _letter(tokens: Sequence[Token], at: int) -> bool:
    """ "forklift A", "C:/a/b": no article."""
    surface = tokens[at].surface
    if len(surface) != 1 or not surface.isalpha() or surface == "I":
        return False
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    if behind is None or len(behind.surface) == 1 or behind.tag & (PREPOSITION | FINITE):
        return True
    return at > 0 and surface.isupper()


def _renamed(spoken: Sequence[Unit], meant: Sequence[Unit], residue: Residue) -> list[Unit]:
    """The residue's words in the place of their synonyms."""
    known = {unit.form for unit in meant}
    out = []
    for unit in spoken:
        form = unit.form
        if form not in known:
            form = next((other for other in residue.meanings(form) if other in known), form)
        out.append(unit if form == unit.form else unit._replace(form=form))
    return out


def _shared(meant: Sequence[Unit], spoken: Sequence[Unit]) -> tuple[list[Unit], list[Unit]]:
    """Without words that do not stand as often in both: whether they may, others have asked."""
    here, there = Counter(unit.form for unit in meant), Counter(unit.form for unit in spoken)
    return (
        [unit for unit in meant if here[unit.form] == there[unit.form]],
        [unit for unit in spoken if here[unit.form] == there[unit.form]],
    )


# --- between statements -----------------------------------------------------------------------------


def _moved(draft: Sequence[Clause], residue: Residue, places: Places) -> int:
    """A clause of the draft that stands where it may not; -1 where there is none."""
    order = [(place, at) for at, some in sorted(places.items()) for place in some]
    # Of a lossy residue many lines are alike: which one is meant is a guess.
    if residue.loose or all(one[0] <= other[0] for one, other in pairwise(order)):
        return -1
    read = Statements(draft)
    for at, ((place, said), (before, behind)) in enumerate(list(pairwise(order))):
        if place == before + 1 and order[at] == (place, said):
            there = residue.statements[place].condition, residue.statements[before].condition
            here = read[said].condition, read[behind].condition
            if bool(there[0]) != bool(there[1]) and there == here:
                order[at], order[at + 1] = order[at + 1], order[at]
    number, starts = _sentences(residue)
    spoken = next((at for at, clause in enumerate(residue.clauses) if clause.label), len(number))
    mentioned = sorted({number[place] for place, _ in order})
    ahead = dict(zip(mentioned, [-1, *mentioned], strict=False))
    done: set[int] = set()
    last, current = -1, -1
    for place, at in order:
        sentence = number[place]
        if sentence == current:
            if place < last:
                return at
        elif sentence in done or (current != ahead[sentence] and _leans(residue, starts[sentence], spoken)):
            return at
        done.add(sentence)
        last, current = place, sentence
    return -1


def _sentences(residue: Residue) -> tuple[list[int], list[int]]:
    """The number of each statement's sentence, and where each sentence starts."""
    numbers: list[int] = []
    starts: list[int] = []
    for at, clause in enumerate(residue.clauses):
        if not at or not clause.joint:
            starts.append(at)
        numbers.append(len(starts) - 1)
    return numbers, starts


def _leans(residue: Residue, start: int, spoken: int) -> bool:
    """An answer, or what goes on about the sentence before; `spoken`: where the first speaker is named."""
    clause = residue.clauses[start]
    if not _LEANING.isdisjoint(token.norm for token in clause.tokens[clause.label :][:4]):
        return True
    if not start:
        return False
    before = residue.clauses[start - 1]
    if len(before.tokens) > 2 and before.tokens[min(before.label, len(before.tokens) - 1)].norm in _ASKING:
        return True
    return not clause.label and spoken < start
