"""SF: fact consolidation after MemoryAgentBench's conflict resolution, built from MQuAKE's edited cases.

Facts are numbered, and of two that disagree the one with the higher number holds. A single-hop question asks
one fact. A multi-hop question needs the four facts of a case: the reader-free agent asks for one by one
with what it has read so far, and knows which relations to follow but no entity beyond the first.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.environments import answering, files, sampling, sf_facts
from bench.environments.contract import FIRST_SHARE, STAGES, Item, Model, Question, Size, World, cut
from bench.environments.gold import GoldBook
from bench.environments.sf_facts import Case, Edit
from shared.memory.model import Kind

_SIZES = {"quick": Size(2, 110, 40, 20), "full": Size(1, 600, 200, 60)}
_PATTERN = "sf/*.json"
_OWN = "sf_facts.json"
UPDATED, LATE = 0.2, 0.2
"""Shares of the facts that change, and that are first told, after stage 1 is measured."""
MULTI_HOP = 0.5
_INSTRUCTION = (
    "Answer from the numbered facts alone, with a name. Where facts disagree, the one with the larger number"
    " holds, even if you know better. Chain facts where the question needs it. If they do not tell it,"
    " answer: unknown."
)

Key = tuple[str, str]


@dataclass(frozen=True)
class _Gold:
    """How a question is read from texts (start and relations), what is right, and what is out of date."""

    start: str
    chain: tuple[str, ...]
    names: tuple[str, ...]
    stale: str


class Sf:
    """One world a seed: the facts of seeded cases, as many as fit."""

    name = "sf"
    hits = 6
    hit_bytes = 2048

    def __init__(self, data: Path | None = None) -> None:
        paths = files.present(data, _PATTERN)
        self._gold: GoldBook[_Gold] = GoldBook(self.name)
        self._cases: list[Case] = []
        self._edits: dict[Key, Edit] = {}
        for cases, edits in (
            [files.read(path, sf_facts.LAYOUT, sf_facts.cases) for path in paths]
            if paths
            else [files.own(_OWN, sf_facts.LAYOUT, sf_facts.cases)]
        ):
            self._cases += cases
            self._edits |= edits
        self._relations = tuple(sorted({edit.relation for edit in self._edits.values()}))
        told = f"{len(self._cases)} multi-hop cases, {len(self._edits)} facts that change"
        self.provenance = (
            f"MQuAKE cases from {_PATTERN}: {told}; numbered and ordered by us as MemoryAgentBench does"
            if paths
            else f"written by us (CC0), no {_PATTERN} given: {told}, all invented"
        )

    def size(self, preset: str) -> Size:
        """`quick` or `full`."""
        return sampling.preset(_SIZES, preset)

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """Each from cases of its own draw."""
        return tuple(self._world(seed, number, size) for number in range(size.worlds))

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """1 where the newest object (or an alias) is told, else 0: a stale object is wrong."""
        gold = self._gold.of(question)
        if model is not None:
            said = answering.ask(model, _INSTRUCTION, question, texts, 32)
        else:
            told = sf_facts.statements(texts)
            said = " ".join(sf_facts.walk(told, gold.start, gold.chain, self._relations))
        if answering.normalised(said) == answering.normalised(gold.stale):
            return 0.0
        return float(answering.contains_any(said, gold.names))

    def follow_up(self, question: Question, texts: Sequence[Sequence[str]], model: Model | None) -> str:
        """The next fact of a chain, asked by its relation and by what the walk has reached."""
        gold = self._gold.of(question)
        asked = len(texts) - 1
        if model is not None or len(gold.chain) == 1 or asked >= len(gold.chain):
            return ""
        told = sf_facts.statements(text for found in texts for text in found)
        at = sf_facts.walk(told, gold.start, gold.chain[:asked], self._relations)
        return gold.chain[asked].format(" ".join(at)) if at else ""

    def _world(self, seed: int, number: int, size: Size) -> World:
        name = f"{self.name}-{seed}-{size.items}-{number}"
        rng = sampling.generator(name)
        cases, keys = self._chosen(rng, size.items // 2)
        updated, late = _when(rng, cases, keys)
        order = _order(rng, keys, updated, late)
        items, newest = self._items(name, order)
        stages = cut(items)
        part_of = {item.id: part for part, stage in enumerate(stages) for item in stage}
        known = {key: part_of[newest[key]] for key in keys}
        settled = [case for case in cases if all(known[key] == 0 for key in case.chain)]
        single = [key for key in keys if known[key] == 0]
        singles, chains = self._split(rng, single, settled, size.measuring)
        measuring = [self._single(f"{name}-m.{at}", key, 0) for at, key in enumerate(singles)]
        measuring += [self._multi(f"{name}-mm.{at}", case, 0) for at, case in enumerate(chains)]
        return World(
            name,
            stages,
            tuple(measuring),
            tuple(self._served(rng, f"{name}-s{part}", cases, known, part, size) for part in range(STAGES)),
            tuple(self._later(rng, f"{name}-l{part}", known, part, size) for part in range(STAGES)),
        )

    def _chosen(self, rng: random.Random, count: int) -> tuple[list[Case], list[Key]]:
        """Cases until they have `count` facts, and the facts in the order in which they came up."""
        keys: dict[Key, None] = {}
        chosen: list[Case] = []
        for case in rng.sample(self._cases, len(self._cases)):
            grown = keys | dict.fromkeys(case.chain)
            if len(grown) > count and chosen:
                break
            keys = grown
            chosen.append(case)
        return chosen, list(keys)

    def _items(self, name: str, order: Sequence[tuple[Key, bool]]) -> tuple[list[Item], dict[Key, str]]:
        """Numbered entries, and the newest one of each fact. Links: what it replaces, and what shares an
        entity with it."""
        items: list[Item] = []
        newest: dict[Key, str] = {}
        about: dict[str, str] = {}
        for serial, (key, new) in enumerate(order):
            edit = self._edits[key]
            value = edit.new if new else edit.old
            near = (newest.get(key), about.get(edit.subject), about.get(value))
            links = tuple(dict.fromkeys(one for one in near if one is not None))
            entry = f"{name}-{serial}"
            items.append(Item(entry, edit.stated(serial, value), Kind.MEMORY, float(serial), links))
            newest[key] = about[edit.subject] = about[value] = entry
        return items, newest

    def _split(
        self, rng: random.Random, single: list[Key], settled: list[Case], count: int
    ) -> tuple[list[Key], list[Case]]:
        chains = rng.sample(settled, min(len(settled), round(MULTI_HOP * count)))
        return rng.sample(single, min(len(single), count - round(MULTI_HOP * count))), chains

    def _served(
        self,
        rng: random.Random,
        name: str,
        cases: Sequence[Case],
        known: dict[Key, int],
        part: int,
        size: Size,
    ) -> tuple[Question, ...]:
        """Traffic, half of it multi-hop, in other wordings than those that measure."""
        chains = [case for case in cases if len(case.questions) > 1 and self._current(case, known, part)]
        keys = [key for key, since in known.items() if since <= part]
        many = min(len(chains), round(MULTI_HOP * size.serving))
        asked = [
            self._multi(f"{name}m.{at}", case, 1 + rng.randrange(len(case.questions) - 1))
            for at, case in enumerate(rng.sample(chains, many))
        ]
        few = rng.sample(keys, min(len(keys), size.serving - many))
        asked += [self._single(f"{name}.{at}", key, 1) for at, key in enumerate(few)]
        return tuple(rng.sample(asked, len(asked)))

    @staticmethod
    def _current(case: Case, known: dict[Key, int], part: int) -> bool:
        return all(known[key] <= part for key in case.chain)

    def _later(
        self, rng: random.Random, name: str, known: dict[Key, int], part: int, size: Size
    ) -> tuple[Question, ...]:
        """Single-hop questions whose answer came after stage 1 was measured."""
        keys = [key for key, since in known.items() if 0 < since <= part]
        chosen = rng.sample(keys, min(len(keys), size.measuring // 4))
        return tuple(self._single(f"{name}.{at}", key, 0) for at, key in enumerate(chosen))

    def _single(self, name: str, key: Key, wording: int) -> Question:
        edit = self._edits[key]
        text = edit.question if wording == 0 else f"Complete: {edit.relation.format(edit.subject)} ..."
        gold = _Gold(edit.subject, (edit.relation,), edit.names, edit.old)
        return self._gold.put(Question(name, text, "single_hop"), gold)

    def _multi(self, name: str, case: Case, wording: int) -> Question:
        relations = tuple(relation for _, relation in case.chain)
        gold = _Gold(case.chain[0][0], relations, case.names, case.stale)
        return self._gold.put(Question(name, case.questions[wording], "multi_hop"), gold)


def _when(rng: random.Random, cases: Sequence[Case], keys: Sequence[Key]) -> tuple[set[Key], set[Key]]:
    """Facts that change after stage 1, and facts first told after it: those of the last cases, so that the
    chains of the others stay whole."""
    place = {key: at for at, case in reversed(list(enumerate(cases))) for key in case.chain}
    last = sorted(keys, key=lambda key: -place[key])[: round((UPDATED + LATE) * len(keys))]
    mixed = rng.sample(last, len(last))
    return set(mixed[: len(mixed) // 2]), set(mixed[len(mixed) // 2 :])


def _order(
    rng: random.Random, keys: Sequence[Key], updated: set[Key], late: set[Key]
) -> list[tuple[Key, bool]]:
    """(fact, whether new): every old object before the one that replaces it, else mixed."""
    timed: list[tuple[float, Key, bool]] = []
    for key in keys:
        old = rng.uniform(FIRST_SHARE, 1.0) if key in late else rng.uniform(0.0, FIRST_SHARE)
        new = (
            rng.uniform(max(old, FIRST_SHARE), 1.0)
            if key in updated | late
            else rng.uniform(old, FIRST_SHARE)
        )
        timed += [(old, key, False), (new, key, True)]
    return [(key, new) for _, key, new in sorted(timed)]
