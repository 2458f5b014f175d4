"""The same drafts under three gates: how many come in, what they bring back, and what pollution."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.regen.cases import Case, stems
from bench.regen.drafts import Made
from shared.memory import gate
from shared.memory.layers import decode_record
from shared.memory.model import Rung
from shared.memory.spans import render
from shared.replies import unfit

MODES = ("strict", "paper", "none")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
# A draft whose words are for this share not the original's tells another story.
_FOREIGN_SHARE = 0.25


@dataclass
class Tally:
    """Counts of one origin rung (or all) under one mode."""

    drafts: int = 0
    admitted: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    worded: int = 0
    """Admitted drafts with a word that the residue does not have; the rest differ in marks alone."""
    gained: int = 0
    """Gold answers that stand in an admitted draft and not in its residue."""
    lost: int = 0
    """Gold answers that stand in the residue and not in the admitted draft that covers it."""
    gainable: int = 0
    """Gold answers that stand in the original and not in the residue, over all drafts."""
    foreign_numbers: int = 0
    foreign_names: int = 0
    polluted: int = 0
    """Admitted drafts with a number or name of nowhere, or a quarter of their words not the original's."""
    tokens: int = 0
    seconds: float = 0.0


def tallies(cases: Sequence[Case], made: Mapping[str, Made], mode: str) -> dict[Rung | None, Tally]:
    """By origin rung; None = all together."""
    found: dict[Rung | None, Tally] = {None: Tally()}
    for case in cases:
        draft = made.get(case.key)
        if draft is None:
            continue
        for rung in (None, case.origin):
            _count(found.setdefault(rung, Tally()), case, draft, mode)
    return found


def verdict(case: Case, draft: Made, mode: str) -> str:
    """Why a draft is not admitted; empty when it is. `none` lets in whatever the engine finished."""
    if draft.failure or mode == "none":
        return draft.failure
    base = decode_record(bytes.fromhex(draft.record))
    if reason := unfit(render(base), draft.text):
        return reason
    return gate.judge(base, draft.text, case.entry.neighbours, strict=mode == "strict").reason


def _count(tally: Tally, case: Case, draft: Made, mode: str) -> None:
    tally.drafts += 1
    tally.tokens += draft.tokens
    tally.seconds += draft.seconds
    # The distiller may have changed since: the base is the one that the model was asked about.
    residue = stems(render(decode_record(bytes.fromhex(draft.record))))
    tally.gainable += sum(not gold <= residue for gold in case.entry.answers)
    reason = verdict(case, draft, mode)
    if reason:
        tally.reasons[reason] += 1
        return
    tally.admitted += 1
    told, original = stems(draft.text), stems(case.entry.text)
    tally.worded += bool(told - residue)
    tally.gained += sum(gold <= told and not gold <= residue for gold in case.entry.answers)
    tally.lost += sum(gold <= residue and not gold <= told for gold in case.entry.answers)
    numbers = set(_NUMBER.findall(draft.text)) - set(_NUMBER.findall(case.entry.text))
    numbers = {number for number in numbers if number not in original}
    names = {name for name in _NAME.findall(draft.text) if name.lower() not in case.entry.text.lower()}
    tally.foreign_numbers += bool(numbers)
    tally.foreign_names += bool(names)
    foreign = len(told - original) / len(told) if told else 0.0
    tally.polluted += bool(numbers or names or foreign >= _FOREIGN_SHARE)
