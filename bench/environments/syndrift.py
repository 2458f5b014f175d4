"""SynDrift: workshops whose facts retire and are stated again, after the paper's synthetic protocol.

Our generator, no outside data. What Proposition 3 needs is known exactly (`SynDrift.truth`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.environments import answering, sampling
from bench.environments.contract import STAGES, Model, Question, Size, World
from bench.environments.gold import GoldBook
from bench.environments.syndrift_stream import Key, Stated, Stream, stream
from bench.environments.syndrift_words import BADGE, CHAIN, ROLES, SLOTS
from shared.errors import Code, InputError

_SIZES = {"quick": Size(2, 110, 40, 15), "full": Size(2, 400, 100, 40)}
CHAINS = 0.2
"""Share of the questions that need two facts."""
_LATER = 4  # one question about later writes for so many that measure
# Some needs come up far more often than others: weight 1 / (rank + this).
_HEAD_RANKS = 3
_STATEMENT = re.compile(r"\bday\s+(\d+)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_INSTRUCTION = (
    "Answer from the memory entries alone, with one word or number. Where entries disagree, the one with the"
    " latest day holds. If they do not tell it, answer: unknown."
)


@dataclass(frozen=True)
class Truth:
    """What Proposition 3 needs, by id of an item in the world's first part.

    utility: u_e, the share of the measuring questions that are lost with the item; a question that needs two
    items gives half of its share to each, so that sums never claim too much. Items without any are left out.
    chance: p_e, the probability that the stream states the item again in the recovery phase (0 where absent).
    again: the items that it does state again in this world. Shares hold while the whole store answers every
    measuring question (C = 100).
    """

    utility: Mapping[str, float]
    chance: Mapping[str, float]
    again: frozenset[str]

    def floor(self, evicted: Sequence[str]) -> float:
        """The right side of Eq. 4 for the items evicted during the squeeze: a share, 0..1."""
        return sum(self.utility.get(e, 0.0) * (1 - self.chance.get(e, 0.0)) for e in set(evicted))


@dataclass(frozen=True)
class _Need:
    """Something that may be asked: a slot's value, or (chain) the badge of whoever has a role."""

    key: Key
    chain: bool = False


@dataclass(frozen=True)
class _Gold:
    """A need with its value at the time of the question, and values that are out of date."""

    need: _Need
    value: str
    stale: tuple[str, ...]


class SynDrift:
    """Two worlds a seed; every question has one answer, the newest value."""

    name = "syndrift"
    hits = 8
    hit_bytes = 2048

    def __init__(self, data: Path | None = None) -> None:
        self._gold: GoldBook[_Gold] = GoldBook(self.name)
        self._truths: dict[World, Truth] = {}

    @property
    def provenance(self) -> str:
        """Ours throughout."""
        return (
            "generated: workshops whose facts retire and are stated again; vocabulary and sentences are ours"
        )

    def size(self, preset: str) -> Size:
        """`quick` or `full`."""
        return sampling.preset(_SIZES, preset)

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """Each from a schedule of its own."""
        return tuple(self._world(seed, number, size) for number in range(size.worlds))

    def truth(self, world: World) -> Truth:
        """u_e and p_e of a world of this environment; InputError for any other."""
        if world not in self._truths:
            raise InputError(
                Code.BAD_REQUEST,
                "not a world of this environment",
                environment=self.name,
                world=world.id,
                hint="Ask the environment whose worlds() made it.",
            )
        return self._truths[world]

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """1 where the newest value is told, else 0: a stale value is wrong."""
        gold = self._gold.of(question)
        if model is None:
            return float(_answer(gold.need, texts) == gold.value.casefold())
        said = answering.ask(model, _INSTRUCTION, question, texts, 16)
        return float(answering.contains(said, gold.value) and not answering.contains_any(said, gold.stale))

    def _world(self, seed: int, number: int, size: Size) -> World:
        name = f"{self.name}-{seed}-{size.items}-{number}"
        rng = sampling.generator(name)
        made = stream(rng, name, size.items)
        needs = _ranked(rng, made)
        asked = _drawn(rng, [need for need in needs if _settled(made, need)], needs, size.measuring)
        measuring = tuple(
            self._question(made, f"{name}-m{at}", need, 0, STAGES - 1) for at, need in enumerate(asked)
        )
        serving = tuple(
            tuple(
                self._question(made, f"{name}-s{part}.{at}", need, 1 + rng.randrange(2), part)
                for at, need in enumerate(_repeated(rng, _known(made, needs, part), size.serving))
            )
            for part in range(STAGES)
        )
        later = tuple(
            tuple(
                self._question(made, f"{name}-l{part}.{at}", need, 0, part)
                for at, need in enumerate(_fresh(rng, made, part, size.measuring // _LATER))
            )
            for part in range(STAGES)
        )
        world = World(name, made.parts, measuring, serving, later)
        self._truths[world] = _truth(made, asked)
        return world

    def _question(self, made: Stream, name: str, need: _Need, wording: int, part: int) -> Question:
        group, slot, person = need.key
        wordings = CHAIN if need.chain else SLOTS[slot].asked
        text = wordings[wording].format(g=group, p=person, r=slot)
        told = _statements(made, need, part)
        stale = tuple({one.value for one in made.history[_last_key(made, need, part)]} - {told[-1].value})
        return self._gold.put(
            Question(name, text, "chain" if need.chain else slot), _Gold(need, told[-1].value, stale)
        )


# --- what is asked ----------------------------------------------------------------------------------------


def _statements(made: Stream, need: _Need, part: int) -> list[Stated]:
    """The statements that answer a need once a part is written, in order of use; empty if one is missing."""
    first = made.at(need.key, part)
    if first is None:
        return []
    if not need.chain:
        return [first]
    badge = made.at((need.key[0], BADGE.name, first.value), part)
    return [first, badge] if badge is not None else []


def _last_key(made: Stream, need: _Need, part: int) -> Key:
    told = _statements(made, need, part)
    return (need.key[0], BADGE.name, told[0].value) if need.chain else need.key


def _ranked(rng: random.Random, made: Stream) -> list[_Need]:
    """Everything that may be asked, the most wanted first."""
    keys = sorted(made.history)
    roles = {role.name for role in ROLES}
    needs = [_Need(key) for key in keys] + [_Need(key, chain=True) for key in keys if key[1] in roles]
    return rng.sample(needs, len(needs))


def _settled(made: Stream, need: _Need) -> bool:
    """Answered by the first part, and the same ever after."""
    told = _statements(made, need, STAGES - 1)
    return bool(told) and all(one.part == 0 for one in told)


def _known(made: Stream, needs: Sequence[_Need], part: int) -> list[_Need]:
    return [need for need in needs if _statements(made, need, part)]


def _drawn(rng: random.Random, pool: Sequence[_Need], ranked: Sequence[_Need], count: int) -> list[_Need]:
    """Distinct needs by weight, a fifth of them chains."""
    weight = {need: 1 / (rank + _HEAD_RANKS) for rank, need in enumerate(ranked)}
    chosen: list[_Need] = []
    for chain, wanted in ((True, round(CHAINS * count)), (False, count - round(CHAINS * count))):
        # The largest u ** (1 / weight) are a weighted sample without replacement.
        keyed = [
            (rng.random() ** (1 / weight[need]), at) for at, need in enumerate(pool) if need.chain == chain
        ]
        chosen += [pool[at] for _, at in sorted(keyed, reverse=True)[:wanted]]
    return chosen


def _repeated(rng: random.Random, pool: Sequence[_Need], count: int) -> list[_Need]:
    """By weight, with replacement: what is wanted comes again."""
    return rng.choices(pool, [1 / (rank + _HEAD_RANKS) for rank in range(len(pool))], k=count)


def _fresh(rng: random.Random, made: Stream, part: int, count: int) -> list[_Need]:
    """Needs whose answer later parts have brought or changed."""
    keys = [key for key in sorted(made.history) if (told := made.at(key, part)) is not None and told.part > 0]
    return [_Need(key) for key in rng.sample(keys, min(count, len(keys)))]


def _truth(made: Stream, asked: Sequence[_Need]) -> Truth:
    utility: dict[str, float] = {}
    for need in asked:
        told = _statements(made, need, STAGES - 1)
        for one in told:
            utility[one.item] = utility.get(one.item, 0.0) + 1 / (len(told) * len(asked))
    return Truth(utility, dict(made.chance), made.again)


# --- the reader -------------------------------------------------------------------------------------------


def _answer(need: _Need, texts: Sequence[str]) -> str:
    """What the texts tell of a need, folded; "" where they do not."""
    told = [statement for text in texts for statement in _read(text)]
    group, slot, person = need.key
    value = _newest(told, group, slot, person)
    return (
        _newest(told, group, BADGE.name, value) if need.chain and value else value if not need.chain else ""
    )


def _read(text: str) -> list[tuple[int, list[str]]]:
    """(day, words) of each dated statement; what no day stands before cannot be placed and is not read."""
    marks = list(_STATEMENT.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)] * bool(marks)
    return [
        (int(mark[1]), _WORD.findall(text[mark.end() : end].casefold()))
        for mark, end in zip(marks, ends, strict=True)
    ]


def _newest(told: Sequence[tuple[int, list[str]]], group: str, slot: str, person: str) -> str:
    wanted = {group.casefold(), SLOTS[slot].cue} | ({person.casefold()} if person else set())
    best, value = -1, ""
    for day, words in told:
        found = [word for word in words if word in _VALUES[slot]]
        if found and day > best and wanted <= set(words):
            best, value = day, found[0]
    return value


_VALUES = {name: frozenset(value.casefold() for value in slot.values) for name, slot in SLOTS.items()}
