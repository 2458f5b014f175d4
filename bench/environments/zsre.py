"""ZsRE: counterfactual facts among unrelated ones, after the streaming benchmark made of zsRE edits.

A fact is written as its question and object, and asked in another wording. Subjects with several records are
left out: which of their facts holds would be a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.environments import answering, files, sampling
from bench.environments.contract import STAGES, Item, Model, Question, Size, World, cut
from bench.environments.gold import GoldBook
from shared.errors import Code, InputError
from shared.memory.model import Kind

_SIZES = {"quick": Size(1, 150, 50, 15), "full": Size(1, 400, 120, 40)}
_PATTERN = "zsre/*.json"
_SOURCE = (
    "zsRE edits in MEND's layout, for example zsre_mend_eval.json; the subset comes from sci-m-wang/REPAIR"
)
_LAYOUT = (
    "zsRE edits (records with subject, question, paraphrase, edited_object, or MEND's src, rephrase, alt)"
)
FACTS = 0.7
"""Share of the entries that are facts; the others are unrelated questions with answers."""
_LEAD = re.compile(r"^\s*nq question:\s*", re.IGNORECASE)
_INSTRUCTION = (
    "Answer from the remembered facts alone, with a name or a date, even if you know better. If they do not"
    " tell it, answer: unknown."
)


@dataclass(frozen=True)
class Fact:
    """wordings: the question, its paraphrase, then those of other records of the same relation."""

    subject: str
    wordings: tuple[str, ...]
    value: str

    @property
    def stated(self) -> str:
        """As an entry."""
        return f"{_asked(self.wordings[0])} {self.value}."


@dataclass(frozen=True)
class _Record:
    subject: str
    question: str
    paraphrase: str
    value: str
    aside: str


class Zsre:
    """One world a seed; needs the data."""

    name = "zsre"
    hits = 3
    hit_bytes = 1024

    def __init__(self, data: Path | None = None) -> None:
        self._gold: GoldBook[Fact] = GoldBook(self.name)
        records = [
            record
            for path in files.matching(data, _PATTERN, _SOURCE)
            for record in files.read(path, _LAYOUT, _records)
        ]
        self._facts = facts(records)
        if len(self._facts) < 3:
            raise InputError(
                Code.BAD_INPUT_FILE,
                "fewer than three subjects with one record each",
                path=f"{data}/{_PATTERN}",
                hint=f"Take whole files ({_SOURCE}).",
            )
        self._asides = sorted({record.aside for record in records if record.aside})
        self.provenance = (
            f"zsRE edits, {len(self._facts)} counterfactual facts of subjects with one record, among"
            f" {len(self._asides)} unrelated questions with answers"
        )

    def size(self, preset: str) -> Size:
        """`quick` or `full`."""
        return sampling.preset(_SIZES, preset)

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """Seeded facts and asides."""
        return tuple(
            self._world(f"{self.name}-{seed}-{size.items}-{number}", size) for number in range(size.worlds)
        )

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """1 where the object stands in the best text that names the subject, or in a model's answer."""
        fact = self._gold.of(question)
        if model is not None:
            return float(
                answering.contains(answering.ask(model, _INSTRUCTION, question, texts, 24), fact.value)
            )
        named = next((text for text in texts if answering.contains(text, fact.subject)), "")
        return float(answering.contains(named, fact.value))

    def _world(self, name: str, size: Size) -> World:
        rng = sampling.generator(name)
        told = rng.sample(self._facts, min(len(self._facts), round(FACTS * size.items)))
        asides = rng.sample(self._asides, min(len(self._asides), size.items - len(told)))
        writes: list[Fact | str] = [*told, *asides]
        writes = rng.sample(writes, len(writes))
        items = [
            Item(f"{name}-{at}", one if isinstance(one, str) else one.stated, Kind.MEMORY, float(at))
            for at, one in enumerate(writes)
        ]
        stages = cut(items)
        parts = [part for part, stage in enumerate(stages) for _ in stage]
        since = {one: part for one, part in zip(writes, parts, strict=True) if isinstance(one, Fact)}
        known = [fact for fact, part in since.items() if part == 0]
        measured = rng.sample(known, min(len(known), size.measuring))

        def served(part: int) -> Iterable[tuple[Fact, str]]:
            come = [fact for fact, first in since.items() if first <= part]
            for fact in rng.sample(come, min(len(come), size.serving)):
                yield fact, rng.choice([one for one in fact.wordings if one != fact.wordings[1]])

        def later(part: int) -> list[Fact]:
            come = [fact for fact, first in since.items() if 0 < first <= part]
            return rng.sample(come, min(len(come), size.measuring // 4))

        return World(
            name,
            stages,
            tuple(
                self._question(f"{name}-m.{at}", fact, fact.wordings[1]) for at, fact in enumerate(measured)
            ),
            tuple(
                tuple(self._question(f"{name}-s{part}.{at}", *one) for at, one in enumerate(served(part)))
                for part in range(STAGES)
            ),
            tuple(
                tuple(
                    self._question(f"{name}-l{part}.{at}", fact, fact.wordings[1])
                    for at, fact in enumerate(later(part))
                )
                for part in range(STAGES)
            ),
        )

    def _question(self, name: str, fact: Fact, wording: str) -> Question:
        return self._gold.put(Question(name, _asked(wording), "fact"), fact)


def facts(records: Sequence[_Record]) -> list[Fact]:
    """Facts of subjects with one record, each with every wording that its relation is asked in."""
    count: dict[str, int] = {}
    for record in records:
        count[record.subject.casefold()] = count.get(record.subject.casefold(), 0) + 1
    group = _relations(records)
    slots: dict[str, dict[str, None]] = {}
    for record in records:
        for wording in (record.question, record.paraphrase):
            if slot := _slot(wording, record.subject):
                slots.setdefault(group[_slot(record.question, record.subject)], {})[slot] = None
    found = []
    for record in records:
        asked = (record.question, record.paraphrase)
        if count[record.subject.casefold()] > 1 or any(
            answering.contains(one, record.value) for one in asked
        ):
            continue
        others = slots[group[_slot(record.question, record.subject)]]
        more = (slot.replace("{}", record.subject) for slot in others)
        found.append(Fact(record.subject, tuple(dict.fromkeys((*asked, *more))), record.value))
    return found


def _relations(records: Sequence[_Record]) -> dict[str, str]:
    """Wordings without their subject to one that stands for all that ask the same."""
    root: dict[str, str] = {}

    def find(slot: str) -> str:
        root.setdefault(slot, slot)
        while root[slot] != slot:
            root[slot] = root[root[slot]]
            slot = root[slot]
        return slot

    for record in records:
        one, other = _slot(record.question, record.subject), _slot(record.paraphrase, record.subject)
        if other:
            root[find(other)] = find(one)
        find(one)
    return {slot: find(slot) for slot in root}


def _slot(wording: str, subject: str) -> str:
    """The wording with {} for its subject; "" where it does not name it once."""
    return wording.replace(subject, "{}") if wording.count(subject) == 1 and "{}" not in wording else ""


def _asked(wording: str) -> str:
    return wording if wording.endswith("?") else f"{wording.rstrip(' .')}?"


def _records(raw: Any) -> list[_Record]:
    if not isinstance(raw, list) or not raw:
        raise ValueError("a list of records was expected")
    found = [_record(record) for record in raw]
    # A question that does not name its subject cannot be answered from what it is asked with.
    return [record for record in found if record is not None and _slot(record.question, record.subject)]


def _record(record: Mapping[str, Any]) -> _Record | None:
    mend = "src" in record
    subject, question, paraphrase, value = (
        files.text_of(record[name])
        for name in (
            ("subject", "src", "rephrase", "alt")
            if mend
            else ("subject", "question", "paraphrase", "edited_object")
        )
    )
    asked, told = (
        str(record.get(name, ""))
        for name in (("loc", "loc_ans") if mend else ("unrelated_question", "unrelated_answer"))
    )
    aside = (
        f"{_asked(_LEAD.sub('', asked).strip())} {told.strip()}." if asked.strip() and told.strip() else ""
    )
    if aside:
        files.text_of(aside)
    return _Record(subject, question, paraphrase, value, aside) if question != paraphrase else None
