"""LoCoMo: long conversations between two people, after the benchmark of that name.

A world is a stretch of one conversation. Its questions are those whose evidence lies in the stretch.
Reader-free grades count the gold answer's words in the returned turns; a model's answer is graded as the
benchmark does.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.datasets import ADVERSARIAL, Conversation, Turn, conversations
from bench.datasets import Question as Asked
from bench.environments import answering, files, moments, sampling
from bench.environments.contract import FIRST_SHARE, STAGES, Item, Model, Question, Size, World, cut
from bench.environments.gold import GoldBook
from shared.errors import Code, InputError
from shared.memory.model import Kind

_SIZES = {"quick": Size(3, 140, 30, 8), "full": Size(3, 400, 80, 20)}
_PATTERN = "locomo/locomo*.json"
_SOURCE = "repository snap-research/LoCoMo, data/locomo10.json, CC BY-NC 4.0"
_LAYOUT = "LoCoMo (a list of conversations with sample_id, conversation and qa)"
_MULTI_HOP, _OPEN_DOMAIN = 1, 3
_DECLINE_SHARE = 5
"""One question that must be declined for so many places; asked of a model only."""
_INSTRUCTION = (
    "Answer from the remembered turns of a conversation, in a few words, with words of the turns where"
    " possible. Say dates as dates. If the turns do not tell it, answer: not mentioned."
)


@dataclass(frozen=True)
class _Gold:
    answer: str
    category: int


class Locomo:
    """Three conversations a seed; needs the data."""

    name = "locomo"
    hits = 10
    hit_bytes = 4096

    def __init__(self, data: Path | None = None) -> None:
        self._gold: GoldBook[_Gold] = GoldBook(self.name)
        told: dict[str, Conversation] = {}
        for path in files.matching(data, _PATTERN, _SOURCE):
            told |= {one.id: one for one in files.read(path, _LAYOUT, _talks) if one.turns}
        self._conversations = [told[name] for name in sorted(told)]
        if not self._conversations:
            raise InputError(Code.BAD_INPUT_FILE, "no conversation with turns", path=f"{data}/{_PATTERN}")
        turns = sum(len(one.turns) for one in self._conversations)
        self.provenance = (
            f"LoCoMo, {len(self._conversations)} conversations, {turns} turns (CC BY-NC 4.0); adversarial"
            " questions are asked of a model only"
        )

    def size(self, preset: str) -> Size:
        """`quick` or `full`."""
        return sampling.preset(_SIZES, preset)

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """Stretches of different conversations while there are enough."""
        rng = sampling.generator(self.name, seed, size.items)
        order = rng.sample(self._conversations, len(self._conversations))
        return tuple(
            self._world(order[number % len(order)], f"{self.name}-{seed}-{size.items}-{number}", size)
            for number in range(size.worlds)
        )

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """The share of the gold's words in the texts; with a model, its answer's F1 by category."""
        gold = self._gold.of(question)
        if model is not None:
            return _graded(gold, answering.ask(model, _INSTRUCTION, question, texts, 48))
        if gold.category == ADVERSARIAL:
            raise InputError(
                Code.BAD_REQUEST,
                "only a model can decline an adversarial question",
                question=question.id,
                hint="Leave out questions with needs_model.",
            )
        return answering.share_told(_wanted(gold), texts)

    def _world(self, talk: Conversation, name: str, size: Size) -> World:
        rng = sampling.generator(name, talk.id)
        turns = _stretch(rng, talk, size.items)
        stages = cut(_items(name, turns))
        part_of = {
            turn.id: part
            for turn, part in zip(
                turns, (part for part, stage in enumerate(stages) for _ in stage), strict=True
            )
        }
        since = {
            asked: max(part_of[turn] for turn in asked.evidence)
            for asked in {one.text: one for one in talk.questions}.values()
            if asked.evidence and all(turn in part_of for turn in asked.evidence)
        }
        known = [one for one in since if since[one] == 0 and one.category != ADVERSARIAL and one.answer]
        declined = [one for one in since if since[one] == 0 and one.category == ADVERSARIAL]
        few = min(len(declined), size.measuring // _DECLINE_SHARE)
        measuring, rest = sampling.split(rng, known, size.measuring - few)
        measuring += rng.sample(declined, few)
        later = [one for one in since if since[one] > 0 and one.category != ADVERSARIAL and one.answer]
        return World(
            name,
            stages,
            tuple(self._question(f"{name}-m.{at}", one) for at, one in enumerate(measuring)),
            tuple(
                tuple(self._question(f"{name}-s{part}.{at}", one) for at, one in enumerate(asked))
                for part, asked in enumerate(sampling.rounds(rng, rest, size.serving))
            ),
            tuple(
                tuple(
                    self._question(f"{name}-l{part}.{at}", one)
                    for at, one in enumerate(later)
                    if since[one] <= part
                )
                for part in range(STAGES)
            ),
        )

    def _question(self, name: str, asked: Asked) -> Question:
        needs_model = asked.category == ADVERSARIAL
        question = Question(name, asked.text, str(asked.category), needs_model=needs_model)
        return self._gold.put(question, _Gold(asked.answer, asked.category))


def _talks(records: Any) -> list[Conversation]:
    """Conversations whose turns and questions a store takes."""
    found = conversations(records)
    for talk in found:
        for text in (*(turn.said for turn in talk.turns), *(asked.text for asked in talk.questions)):
            files.text_of(text)
    return found


def _stretch(rng: random.Random, talk: Conversation, count: int) -> Sequence[Turn]:
    """`count` turns from the beginning of a session on; of the places to begin, one of the better half by the
    number of questions that the stretch's first part answers."""
    turns = talk.turns
    place = {turn.id: at for at, turn in enumerate(turns)}
    starts = [at for at in range(len(turns)) if at == 0 or turns[at].session != turns[at - 1].session]
    starts = [at for at in starts if at == 0 or at + count <= len(turns)]

    def answered(start: int) -> int:
        end = start + round(FIRST_SHARE * min(count, len(turns)))
        asked = (one for one in talk.questions if one.evidence and one.category != ADVERSARIAL)
        return sum(all(start <= place[turn] < end for turn in one.evidence) for one in asked)

    ranked = sorted(starts, key=lambda start: (-answered(start), start))
    start = rng.choice(ranked[: (len(ranked) + 1) // 2])
    return turns[start : start + count]


def _items(name: str, turns: Sequence[Turn]) -> list[Item]:
    """Entries; a turn cites the one before it in its session. Dates stand in the text: questions ask them."""
    times = moments.rising(moments.seconds(turn.date) for turn in turns)
    items: list[Item] = []
    for at, (turn, time) in enumerate(zip(turns, times, strict=True)):
        follows = at > 0 and turns[at - 1].session == turn.session
        dated = f"[{turn.date}] {turn.said}" if turn.date else turn.said
        items.append(Item(f"{name}-{turn.id}", dated, Kind.MESSAGE, time, (items[-1].id,) if follows else ()))
    return items


def _graded(gold: _Gold, said: str) -> float:
    """The benchmark's own scheme."""
    if gold.category == ADVERSARIAL:
        return float(answering.declines(said))
    if gold.category == _MULTI_HOP:
        answers, wanted = said.split(","), gold.answer.split(",")
        return sum(max(answering.token_f1(one, part) for one in answers) for part in wanted) / len(wanted)
    return answering.token_f1(said, _wanted(gold))


def _wanted(gold: _Gold) -> str:
    return gold.answer.split(";")[0] if gold.category == _OPEN_DOMAIN else gold.answer
