"""Real data that may not be shipped: where it is looked for, and how it is read.

LoCoMo (snap-research/LoCoMo, CC BY-NC 4.0, non-commercial): `locomo/locomo_*.json` below the data directory.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENVIRONMENT_NAME = "CRYSTALMEM_DATA"
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
ABSENT = (
    "the LoCoMo conversations are not here: give --data DIR or set CRYSTALMEM_DATA to a folder with"
    " locomo/locomo_*.json (repository snap-research/LoCoMo, data/locomo10.json, CC BY-NC 4.0)"
)
_TURN_ID = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")
ADVERSARIAL = 5


@dataclass(frozen=True)
class Turn:
    """One utterance; `text` is what was said, `caption` what a shared picture shows."""

    id: str
    session: int
    date: str
    """As in the data: "1:56 pm on 8 May, 2023"; empty where the session has none."""
    speaker: str
    text: str
    caption: str

    @property
    def said(self) -> str:
        """The turn as one memory: speaker, words, and the picture where there is one."""
        shown = f" [shares a picture: {self.caption}]" if self.caption else ""
        return f"{self.speaker}: {self.text}{shown}"


@dataclass(frozen=True)
class Question:
    """`evidence`: turn ids that resolve, in order, without repeats; may be empty.

    category: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial. answer: "" for none.
    """

    text: str
    answer: str
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Conversation:
    """Turns in order of session and place."""

    id: str
    speakers: tuple[str, str]
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def data_directory(option: str | Path | None = None) -> Path | None:
    """`option`, else $CRYSTALMEM_DATA, else ../shared/data beside the clone; None where that is no folder."""
    named = option or os.environ.get(ENVIRONMENT_NAME) or _BESIDE
    path = Path(named).expanduser()
    return path if path.is_dir() else None


def locomo(directory: Path) -> list[Conversation]:
    """Every conversation below `directory`, by id; empty where there are none."""
    found: dict[str, Conversation] = {}
    for path in sorted((directory / "locomo").glob("locomo*.json")):
        for conversation in conversations(json.loads(path.read_text(encoding="utf-8"))):
            found[conversation.id] = conversation
    return [found[name] for name in sorted(found)]


def conversations(records: Iterable[Mapping[str, Any]]) -> list[Conversation]:
    """What a LoCoMo file holds; KeyError, TypeError or ValueError where it is none."""
    return [_conversation(record) for record in records]


def _conversation(record: Mapping[str, Any]) -> Conversation:
    told = record["conversation"]
    # A date may stand there without its session.
    sessions = sorted(int(match[1]) for name in told if (match := _SESSION.fullmatch(name)))
    turns = tuple(
        _turn(turn, session, str(told.get(f"session_{session}_date_time", "")))
        for session in sessions
        for turn in told[f"session_{session}"] or ()
    )
    known = {turn.id for turn in turns}
    return Conversation(
        str(record["sample_id"]),
        (str(told["speaker_a"]), str(told["speaker_b"])),
        turns,
        tuple(_question(asked, known) for asked in record["qa"]),
    )


def _turn(turn: Mapping[str, Any], session: int, date: str) -> Turn:
    return Turn(
        id=str(turn["dia_id"]),
        session=session,
        date=date,
        speaker=str(turn["speaker"]),
        text=str(turn.get("text", "")),
        caption=str(turn.get("blip_caption") or ""),
    )


def _question(asked: Mapping[str, Any], known: Iterable[str]) -> Question:
    # Two ids in one string, `D`, and numbers past the end occur: what resolves is taken.
    named = [turn_id for text in asked.get("evidence", ()) for turn_id in _TURN_ID.findall(str(text))]
    answer = asked.get("answer")
    return Question(
        text=str(asked["question"]),
        # Some answers are integers.
        answer="" if answer is None else str(answer),
        category=int(asked["category"]),
        evidence=tuple(turn_id for turn_id in dict.fromkeys(named) if turn_id in known),
    )
