"""Entries to regenerate: real turns of dialogue with the questions they answer, or shipped episodes."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.datasets import ADVERSARIAL, Conversation, locomo
from crystalmem.demo.episodes import DATA_FILE, load
from edge_agent.distill import PlainDistiller
from shared.memory.model import LADDERS, Rung
from shared.memory.text_codec import TextCodec

SEED = 7
# Between one sentence and a small paragraph: what a CPU drafts in seconds.
_BYTES = range(100, 401)
_BEFORE = 2
_WORDS = re.compile(r"[a-z0-9']+")
_NUMBERS = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7"}
_NUMBERS |= {"eight": "8", "nine": "9", "ten": "10"}
# Words that no answer hangs on.
_STOP_WORDS = """
a an the and or but if of to in on at for with by from as is are was were be been am i me my we us
our you your he him his she her it its they them their this that these those so just really very too
also do does did have has had will would can could should not no yes oh hey hi what who when where
why how which there here than then about into out up down over some any all more most
"""
_STOP = frozenset(_STOP_WORDS.split())
_ENDINGS = ("'s", "ing", "ies", "ed", "es", "s", "ly")


@dataclass(frozen=True)
class Entry:
    """One original; `answers`: content stems of each gold answer that it holds whole."""

    id: str
    text: str
    neighbours: tuple[str, ...]
    answers: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Case:
    """An entry at one lossy rung, as its edge would ask for it."""

    entry: Entry
    origin: Rung
    target: Rung
    record: bytes
    residue: str
    invariants: tuple[str, ...]

    @property
    def key(self) -> str:
        """Names the case in the file of drafts."""
        return f"{self.entry.id}/{self.origin.name.lower()}"


def dialogue(directory: Path, count: int) -> list[Entry]:
    """Turns that alone hold a gold answer; the same `count` for the same data."""
    found = [entry for conversation in locomo(directory) for entry in _evidence(conversation)]
    random.Random(SEED).shuffle(found)
    return found[:count]


def episodes(count: int) -> list[Entry]:
    """Shipped ALFWorld episodes; their neighbours are the two before."""
    texts = [episode.text for episode in load(DATA_FILE).episodes]
    chosen = sorted(random.Random(SEED).sample(range(len(texts)), min(count, len(texts))))
    return [
        Entry(f"alfworld-{number}", texts[number], tuple(texts[max(number - _BEFORE, 0) : number]), ())
        for number in chosen
    ]


def cases(entries: Sequence[Entry]) -> list[Case]:
    """Every lossy rung of every entry, one rung up as the target: TRACE to SKELETAL, and so on."""
    codec, ladder = TextCodec(PlainDistiller()), LADDERS["product"]
    made = []
    for entry in entries:
        for spec in ladder.lossy:
            above = ladder.rungs[ladder.index(spec.rung) - 1].rung
            record = codec.drop(entry.text, ladder, spec.rung).record
            residue = codec.render(record)
            target = Rung.FULL if above is Rung.PACKED else above
            made.append(Case(entry, spec.rung, target, record, residue, codec.invariants(record)))
    return made


def stems(text: str) -> frozenset[str]:
    """Content words without their endings, numbers as digits."""
    words = _WORDS.findall(text.lower().replace("’", "'"))
    return frozenset(_stem(word) for word in words if word not in _STOP)


def _stem(word: str) -> str:
    word = _NUMBERS.get(word, word)
    for ending in _ENDINGS:
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word[: -len(ending)]
    return word


def _evidence(conversation: Conversation) -> list[Entry]:
    place = {turn.id: number for number, turn in enumerate(conversation.turns)}
    answers: dict[str, list[frozenset[str]]] = {}
    for question in conversation.questions:
        if question.category == ADVERSARIAL or len(question.evidence) != 1:
            continue
        gold = stems(question.answer)
        turn = conversation.turns[place[question.evidence[0]]]
        if gold and gold <= stems(turn.said) and len(turn.said.encode()) in _BYTES:
            answers.setdefault(turn.id, []).append(gold)
    return [
        Entry(
            f"{conversation.id}-{name}",
            conversation.turns[place[name]].said,
            tuple(turn.said for turn in conversation.turns[max(place[name] - _BEFORE, 0) : place[name]]),
            tuple(golds),
        )
        for name, golds in answers.items()
    ]
