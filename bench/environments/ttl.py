"""TTL: learning at test time after MemoryAgentBench: labelled utterances come in, others are to be labelled.

Labels are seeded numbers, so that nothing can be guessed from their names. Many examples share a label: a
store that keeps a few good ones of each loses little.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.environments import answering, files, sampling
from bench.environments.contract import FIRST_SHARE, STAGES, Item, Model, Question, Size, World, cut
from bench.environments.gold import GoldBook
from shared.memory.model import Kind

_SIZES = {"quick": Size(3, 100, 30, 12), "full": Size(3, 300, 100, 40)}
_PATTERN = "ttl/*.json"
_OWN = "ttl_intents.json"
_LAYOUT = "an intent set (train and test: lists of [utterance, label])"
EXAMPLES = 10
"""Examples a label."""
LATE = 0.2
"""Share of the labels that come after stage 1 is measured."""
_LABEL = re.compile(r"\blabel\s*:?\s*(\d+)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_INSTRUCTION = (
    "The memory holds utterances with their label numbers. Answer with the one label number that fits the"
    " question's utterance best, and nothing else."
)


@dataclass(frozen=True)
class IntentSet:
    """One data set: utterances by label name, those to learn from and those to ask."""

    name: str
    train: dict[str, tuple[str, ...]]
    test: dict[str, tuple[str, ...]]


class Ttl:
    """A world for each intent set in turn."""

    name = "ttl"
    hits = 10
    hit_bytes = 4096

    def __init__(self, data: Path | None = None) -> None:
        paths = files.present(data, _PATTERN)
        self._gold: GoldBook[str] = GoldBook(self.name)
        self._sets = (
            [_named(path.stem, files.read(path, _LAYOUT, _intents)) for path in paths]
            if paths
            else [_named("own", files.own(_OWN, _LAYOUT, _intents))]
        )
        told = ", ".join(f"{one.name} ({len(one.train)} labels)" for one in self._sets)
        self.provenance = (
            f"intent sets from {_PATTERN}: {told}; label numbers are seeded"
            if paths
            else f"written by us (CC0), no {_PATTERN} given: {len(self._sets[0].train)} invented intents"
        )

    def size(self, preset: str) -> Size:
        """`quick` or `full`."""
        return sampling.preset(_SIZES, preset)

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """Seeded labels and examples of each set."""
        return tuple(
            self._world(
                self._sets[number % len(self._sets)], f"{self.name}-{seed}-{size.items}-{number}", size
            )
            for number in range(size.worlds)
        )

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """1 for the right label. Reader-free: the vote of the texts' labels, each by one over its rank."""
        gold = self._gold.of(question)
        if model is None:
            return float(_vote(texts) == gold)
        said = _NUMBER.findall(answering.ask(model, _INSTRUCTION, question, texts, 8))
        return float(said[:1] == [gold])

    def _world(self, source: IntentSet, name: str, size: Size) -> World:
        rng = sampling.generator(name)
        labels = rng.sample(sorted(source.train), min(len(source.train), max(2, size.items // EXAMPLES)))
        late = set(labels[: round(LATE * len(labels))])
        numbers = dict(zip(labels, rng.sample(range(100, 1000), len(labels)), strict=True))
        examples = _ordered(rng, source, labels, late)
        stages = cut(_items(name, examples, numbers))
        since = _first_parts(examples, [len(stage) for stage in stages])
        known = [label for label in labels if label not in late]
        pool = [(text, label) for label in known for text in source.test[label]]
        measuring, rest = sampling.split(rng, pool, size.measuring)
        asked = {text for text, _ in measuring}

        def question(kind: str, at: int, row: tuple[str, str]) -> Question:
            text, label = row
            return self._gold.put(Question(f"{name}-{kind}.{at}", text, source.name), str(numbers[label]))

        def told(part: int) -> list[tuple[str, str]]:
            """Rows of the late labels that have come by this part."""
            come = [label for label in labels if label in late and since.get(label, STAGES) <= part]
            return [(text, label) for label in come for text in source.test[label] if text not in asked]

        return World(
            name,
            stages,
            tuple(question("m", at, row) for at, row in enumerate(measuring)),
            tuple(
                tuple(
                    question(f"s{part}", at, row) for at, row in enumerate(_sample(rng, rest, size.serving))
                )
                for part in range(STAGES)
            ),
            tuple(
                tuple(
                    question(f"l{part}", at, row)
                    for at, row in enumerate(_sample(rng, told(part), size.measuring // 4))
                )
                for part in range(STAGES)
            ),
        )


def _ordered(
    rng: random.Random, source: IntentSet, labels: Sequence[str], late: set[str]
) -> list[tuple[str, str]]:
    """(utterance, label): the known labels mixed, then the late ones mixed with the rest of the others."""
    early: list[tuple[str, str]] = []
    rest: list[tuple[str, str]] = []
    for label in labels:
        texts = rng.sample(source.train[label], min(EXAMPLES, len(source.train[label])))
        (rest if label in late else early).extend((text, label) for text in texts)
    early = rng.sample(early, len(early))
    first = round(FIRST_SHARE * (len(early) + len(rest)))
    # Every known label is met early.
    met = list({label: (text, label) for text, label in early}.values())
    early = rng.sample(met, len(met)) + [row for row in early if row not in set(met)]
    later = early[first:] + rest
    return rng.sample(early[:first], len(early[:first])) + rng.sample(later, len(later))


def _items(name: str, examples: Sequence[tuple[str, str]], numbers: dict[str, int]) -> list[Item]:
    """Entries; each cites the example of its label before it."""
    last: dict[str, str] = {}
    items = []
    for at, (text, label) in enumerate(examples):
        links = (last[label],) if label in last else ()
        last[label] = f"{name}-{at}"
        items.append(Item(last[label], f"Label {numbers[label]}: {text}", Kind.MEMORY, float(at), links))
    return items


def _first_parts(examples: Sequence[tuple[str, str]], lengths: Sequence[int]) -> dict[str, int]:
    """The part in which each label is first met."""
    parts = [part for part, length in enumerate(lengths) for _ in range(length)]
    first: dict[str, int] = {}
    for (_, label), part in zip(examples, parts, strict=True):
        first.setdefault(label, part)
    return first


def _sample(rng: random.Random, rows: Sequence[tuple[str, str]], count: int) -> list[tuple[str, str]]:
    return rng.sample(rows, min(count, len(rows)))


def _vote(texts: Sequence[str]) -> str:
    """The label with the most votes, the first met among equals; several labels share a text's vote."""
    votes: dict[str, float] = {}
    for rank, text in enumerate(texts, 1):
        found = dict.fromkeys(_LABEL.findall(text))
        for label in found:
            votes[label] = votes.get(label, 0.0) + 1 / (rank * len(found))
    return max(votes, key=lambda label: votes[label]) if votes else ""


def _intents(record: Any) -> IntentSet:
    """Rows by label. Left out: labels without test rows, and test rows that are examples too."""
    train, test = _rows(record["train"]), _rows(record["test"])
    seen = {text.casefold() for texts in train.values() for text in texts}
    asked: set[str] = set()
    kept: dict[str, tuple[str, ...]] = {}
    for label, texts in test.items():
        fresh = [text for text in texts if text.casefold() not in seen and text.casefold() not in asked]
        asked |= {text.casefold() for text in fresh}
        if fresh and label in train:
            kept[label] = tuple(fresh)
    if len(kept) < 2:
        raise ValueError("two labels with examples and test rows are needed")
    return IntentSet("", {label: train[label] for label in kept}, kept)


def _rows(rows: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for text, label in rows:
        found.setdefault(files.text_of(label), {})[" ".join(files.text_of(text).split())] = None
    return {label: tuple(texts) for label, texts in found.items()}


def _named(name: str, one: IntentSet) -> IntentSet:
    return IntentSet(name, one.train, one.test)
