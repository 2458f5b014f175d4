"""LongMemEval: a user's sessions with an assistant, after the benchmark of that name.

A world merges the evidence sessions of some questions with filler sessions, as the benchmark itself was put
together: by date, the latest fillers last. Its real questions are few, so traffic, and what is missing to the
size asked for, are probes of ours: a user's own question again, graded by the rarest words of the reply
(category `asked_again`).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.distill_locomo import content
from bench.environments import answering, files, moments, sampling
from bench.environments.contract import FIRST_SHARE, STAGES, Item, Model, Question, Size, World, cut
from bench.environments.gold import GoldBook
from bench.environments.longmemeval_sessions import (
    LAYOUT,
    PREFERENCE,
    Asked,
    History,
    Session,
    history,
    pieces,
)
from shared.errors import Code, InputError
from shared.memory.model import Kind

_SIZES = {"quick": Size(3, 140, 20, 8), "full": Size(3, 360, 24, 16)}
_PATTERN = "longmemeval/*.json"
_SOURCE = "repository xiaowu0162/LongMemEval, longmemeval_s.json or longmemeval_oracle.json, MIT"
_OWN = "asked_again"
_ADDED = "added-by-redistributor"
_PROBE_WORDS = 5
_LONGEST_PROBE = 200
_DECLINED = 2
"""At most so many questions a world that a model must decline."""
_INSTRUCTION = (
    "Answer the user's question from the remembered turns of earlier sessions, in a few words. Where turns"
    " disagree, the latest holds. If they do not tell it, answer: not mentioned."
)
_WORD = re.compile(r"[A-Za-z0-9']+")
_QUESTION = re.compile(r"[^.!?\n]{12,}\?")


@dataclass(frozen=True)
class _Gold:
    answer: str
    abstention: bool


@dataclass(frozen=True)
class _Probe:
    """A user's question, the entry that answered it, and the reply's rarest words."""

    text: str
    item: str
    gold: str


class LongMemEval:
    """Two worlds a seed, with different questions; needs the data."""

    name = "longmemeval"
    hits = 5
    hit_bytes = 8192

    def __init__(self, data: Path | None = None) -> None:
        self._gold: GoldBook[_Gold] = GoldBook(self.name)
        self._history = History()
        for path in files.matching(data, _PATTERN, _SOURCE):
            self._history.add(files.read(path, LAYOUT, history))
        known = self._history.sessions
        asked = [one for one in self._history.questions.values() if one.type != PREFERENCE]
        self._declined = [one for one in asked if one.abstention]
        self._asked = [one for one in asked if one.evidence and all(name in known for name in one.evidence)]
        if not self._asked:
            raise InputError(
                Code.BAD_INPUT_FILE,
                "no question whose sessions are here",
                path=f"{data}/{_PATTERN}",
                hint=f"Take whole files ({_SOURCE}).",
            )
        added = sum(one.type == _ADDED for one in self._asked)
        self.provenance = (
            f"LongMemEval, {len(self._asked)} questions ({added} of them by a redistributor) and"
            f" {len(known)} sessions, evidence merged with fillers; category {_OWN} and serving traffic are"
            " probes of ours; preference rubrics are left out, abstention is asked of a model only"
        )

    def size(self, preset: str) -> Size:
        """`quick` or `full`."""
        return sampling.preset(_SIZES, preset)

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """The questions are dealt out: no two worlds of a seed share one."""
        rng = sampling.generator(self.name, seed, size.items)
        order = rng.sample(self._asked, len(self._asked))
        return tuple(
            self._world(order[number :: size.worlds], f"{self.name}-{seed}-{size.items}-{number}", size)
            for number in range(size.worlds)
        )

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """1 where a text (or a model's answer) holds the gold answer, else the share of its words."""
        gold = self._gold.of(question)
        if model is not None:
            said = answering.ask(model, _INSTRUCTION, question, texts, 64)
            return float(answering.declines(said)) if gold.abstention else _told(gold.answer, [said])
        if gold.abstention:
            raise InputError(
                Code.BAD_REQUEST,
                "only a model can decline a question",
                question=question.id,
                hint="Leave out questions with needs_model.",
            )
        return _told(gold.answer, texts)

    def _world(self, order: Sequence[Asked], name: str, size: Size) -> World:
        rng = sampling.generator(name)
        asked, sessions = self._chosen(rng, order, size.items)
        items, of_session, probes = _items(name, sessions)
        stages = cut(items)
        part_of = {item.id: part for part, stage in enumerate(stages) for item in stage}
        ends = {session: part_of[ids[-1]] for session, ids in of_session.items()}
        since = {one: max(ends[session] for session in one.evidence) for one in asked}
        real = [one for one in asked if since[one] == 0][: size.measuring]
        declined = rng.sample(self._declined, min(_DECLINED, len(self._declined), size.measuring - len(real)))
        real_texts = {one.text for one in (*asked, *declined)}
        mixed = [probe for probe in rng.sample(probes, len(probes)) if probe.text not in real_texts]
        known = [probe for probe in mixed if part_of[probe.item] == 0]
        missing = min(size.measuring - len(real) - len(declined), len(known) // 2)
        measuring = [self._question(f"{name}-m.{at}", one) for at, one in enumerate([*real, *declined])]
        measuring += [self._probe(f"{name}-a.{at}", probe) for at, probe in enumerate(known[:missing])]
        new = [(at, one) for at, one in enumerate(asked) if since[one] > 0]
        late = list(enumerate([probe for probe in mixed if part_of[probe.item] > 0][: size.serving]))
        return World(
            name,
            stages,
            tuple(measuring),
            tuple(
                tuple(self._probe(f"{name}-s{part}.{at}", probe) for at, probe in enumerate(round_))
                for part, round_ in enumerate(sampling.rounds(rng, known[missing:], size.serving))
            ),
            tuple(
                (
                    *(self._question(f"{name}-l{part}.{at}", one) for at, one in new if since[one] <= part),
                    *(
                        self._probe(f"{name}-la{part}.{at}", one)
                        for at, one in late
                        if part_of[one.item] <= part
                    ),
                )
                for part in range(STAGES)
            ),
        )

    def _chosen(
        self, rng: random.Random, order: Sequence[Asked], count: int
    ) -> tuple[list[Asked], list[Session]]:
        """Questions while their sessions fit into the first part; fillers before, among and behind them."""
        known = self._history.sessions
        chosen: dict[str, Session] = {}
        asked: list[Asked] = []
        for one in order:
            grown = chosen | {name: known[name] for name in one.evidence}
            if _length(grown.values()) <= FIRST_SHARE * count or not asked:
                chosen = grown
                asked.append(one)
        evidence = {name for one in self._asked for name in one.evidence}
        others = [session for name, session in known.items() if name not in evidence]
        fillers: list[Session] = []
        for session in rng.sample(others, len(others)):
            room = count - _length([*chosen.values(), *fillers])
            if room <= 0:
                break
            fillers.append(_shortened(session, room))
        fillers.sort(key=_when)
        late = 0
        total = _length([*chosen.values(), *fillers])
        while late < len(fillers) and _length(fillers[len(fillers) - late :]) < (1 - FIRST_SHARE) * total:
            late += 1
        early = fillers[: len(fillers) - late]
        return asked, [*sorted([*chosen.values(), *early], key=_when), *fillers[len(early) :]]

    def _question(self, name: str, asked: Asked) -> Question:
        question = Question(name, asked.text, asked.type, needs_model=asked.abstention)
        return self._gold.put(question, _Gold(asked.answer, asked.abstention))

    def _probe(self, name: str, probe: _Probe) -> Question:
        return self._gold.put(Question(name, probe.text, _OWN), _Gold(probe.gold, abstention=False))


def _when(session: Session) -> float:
    return moments.seconds(session.date) or 0.0


def _length(sessions: Iterable[Session]) -> int:
    """Entries that the sessions become."""
    return sum(len(pieces(text)) for session in sessions for _, text in session.turns)


def _shortened(session: Session, room: int) -> Session:
    """The first turns, as many as become at most `room` entries (one turn at least)."""
    turns = session.turns
    while len(turns) > 1 and sum(len(pieces(text)) for _, text in turns) > room:
        turns = turns[:-1]
    return Session(session.id, session.date, turns)


def _items(name: str, sessions: Sequence[Session]) -> tuple[list[Item], dict[str, list[str]], list[_Probe]]:
    """Entries (a turn, or a piece of a long one, cites the one before), their ids by session, and probes."""
    frequency = Counter(
        word for session in sessions for _, text in session.turns for word in set(content(text))
    )
    rows = [
        (session, turn, number, piece)
        for session in sessions
        for turn, (_, text) in enumerate(session.turns)
        for number, piece in enumerate(pieces(text))
    ]
    times = moments.rising(moments.seconds(session.date) for session, _, _, _ in rows)
    items: list[Item] = []
    ids: dict[str, list[str]] = {}
    probes: dict[str, _Probe] = {}
    for (session, turn, number, piece), time in zip(rows, times, strict=True):
        speaker = session.turns[turn][0]
        before = ids.setdefault(session.id, [])
        entry = f"{name}-{len(items)}"
        text = f"[{session.date}] {speaker}: {piece}"
        items.append(Item(entry, text, Kind.MESSAGE, time, tuple(before[-1:])))
        before.append(entry)
        if number == 0 and turn and (session.turns[turn - 1][0], speaker) == ("User", "Assistant"):
            probe = _probe(session.turns[turn - 1][1], piece, entry, frequency)
            if probe is not None:
                probes.setdefault(probe.text, probe)
    return items, ids, list(probes.values())


def _probe(asked: str, reply: str, item: str, frequency: Counter[str]) -> _Probe | None:
    """The last question of a user's turn; None where it has none or the reply adds too little."""
    questions = [one.strip() for one in _QUESTION.findall(asked) if len(one.strip()) <= _LONGEST_PROBE]
    if not questions:
        return None
    known = set(content(asked))
    told: dict[str, str] = {}
    for word in _WORD.findall(reply):
        for stem in content(word)[:1]:
            if stem not in known:
                told.setdefault(stem, word)
    rarest = sorted(told, key=lambda stem: (frequency[stem], stem))[:_PROBE_WORDS]
    if len(rarest) < _PROBE_WORDS:
        return None
    return _Probe(questions[-1], item, " ".join(told[stem] for stem in rarest))


def _told(gold: str, texts: Sequence[str]) -> float:
    if any(answering.contains(text, gold) for text in texts):
        return 1.0
    return answering.share_told(gold, texts)
