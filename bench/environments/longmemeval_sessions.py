"""LongMemEval's files: sessions between a user and an assistant, and the questions about them.

Read are the official layout (one history a question) and the shared subset's (one history, many questions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.environments.files import text_of

LAYOUT = "LongMemEval (a list of records with question_id, haystack_sessions, haystack_dates and the like)"
PREFERENCE = "single-session-preference"
_ROLES = {"user": "User", "assistant": "Assistant"}
PIECE_BYTES = 4000
"""A longer turn is several entries; some hold whole documents."""


@dataclass(frozen=True)
class Session:
    """turns: (speaker, text) in order."""

    id: str
    date: str
    turns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Asked:
    """A question and the ids of the sessions that answer it; none where it must be declined."""

    id: str
    type: str
    text: str
    answer: str
    evidence: tuple[str, ...]
    abstention: bool


@dataclass
class History:
    """Everything that the files hold, each session once."""

    sessions: dict[str, Session] = field(default_factory=dict)
    questions: dict[str, Asked] = field(default_factory=dict)

    def add(self, other: History) -> None:
        """Later files add to earlier ones."""
        self.sessions = {**other.sessions, **self.sessions}
        self.questions = {**other.questions, **self.questions}


def history(records: Any) -> History:
    """What one file holds; KeyError, TypeError or ValueError where it is none."""
    if not isinstance(records, list) or not records:
        raise ValueError("a list of records was expected")
    found = History()
    for record in records:
        ids, dates = record["haystack_session_ids"], record["haystack_dates"]
        for name, date, turns in zip(ids, dates, record["haystack_sessions"], strict=True):
            told = _turns(turns)
            if told:
                found.sessions.setdefault(text_of(name), Session(name, text_of(date), told))
        for asked in record.get("questions", (record,)):
            question = _question(asked)
            found.questions.setdefault(question.id, question)
    return found


def pieces(text: str) -> list[str]:
    """A text in pieces of at most PIECE_BYTES, cut at blanks where there are any."""
    found: list[str] = []
    rest = text.strip()
    while len(rest.encode()) > PIECE_BYTES:
        head = rest.encode()[:PIECE_BYTES].decode(errors="ignore")
        blank = max(head.rfind(" "), head.rfind("\n"))
        head = head[:blank] if blank > 0 else head
        found.append(head.rstrip())
        rest = rest[len(head) :].lstrip()
    return [piece for piece in (*found, rest) if piece]


def _turns(turns: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Empty turns occur and say nothing."""
    return tuple(
        (_ROLES[turn["role"]], text_of(turn["content"]))
        for turn in turns
        if not isinstance(turn["content"], str) or turn["content"].strip()
    )


def _question(record: Mapping[str, Any]) -> Asked:
    name = text_of(record["question_id"])
    answer = record["answer"]
    evidence: Sequence[Any] = record.get("answer_session_ids", ())
    abstention = bool(record.get("is_abstention", name.endswith("_abs")))
    return Asked(
        id=name,
        type="abstention" if abstention else text_of(record["question_type"]),
        text=text_of(record["question"]),
        # One answer of the subset is an integer.
        answer=text_of(answer if isinstance(answer, str) else str(answer)),
        evidence=() if abstention else tuple(text_of(one) for one in evidence),
        abstention=abstention,
    )
