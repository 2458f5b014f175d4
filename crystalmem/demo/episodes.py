"""The demo's input: finished episodes and questions about them, one JSON object a line."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal

from crystalmem.demo.answerer import content_tokens
from shared.errors import Code, PermanentError
from shared.memory.model import Kind

DATA_FILE = Path(__file__).resolve().parent.parent / "data" / "alfworld_episodes.jsonl.xz"
# A line holds one text of at most 1 MiB; JSON escapes can make six bytes of one.
MAX_LINE_BYTES = 8 << 20
MAX_TEXT_BYTES = 1 << 20
# A small compressed file may unpack to anything; the demo holds the whole input in memory.
MAX_INPUT_BYTES = 256 << 20
MAX_ID_CHARS = 200
MIN_EPISODES = 10
SHOWN_PROBLEMS = 5
FORMAT_HINT = "The format is described in docs/data-format.md"

Split = Literal["serve", "measure"]
_KINDS = frozenset(kind.name.lower() for kind in Kind)


@dataclass(frozen=True)
class Episode:
    """One write of the stream, in file order."""

    id: str
    text: str
    kind: str
    time: str | None
    links: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """One question; `about` names the episodes that hold the answer."""

    id: str
    question: str
    gold: str
    split: Split
    about: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Dataset:
    """A whole input, checked: every link points back and every question is about episodes that exist."""

    name: str
    episodes: tuple[Episode, ...]
    questions: tuple[Question, ...]

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of all episodes."""
        return sum(len(episode.text.encode("utf-8")) for episode in self.episodes)


class _BadLine(Exception):  # noqa: N818 - never leaves this module
    """Why a line cannot be used."""


@dataclass
class _Reading:
    name: str = ""
    episodes: dict[str, Episode] = field(default_factory=dict)
    questions: dict[str, Question] = field(default_factory=dict)
    question_lines: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def load(path: Path) -> Dataset:
    """Read and check a .jsonl, .jsonl.gz or .jsonl.xz file; PermanentError names each bad line and why."""
    reading = _Reading(name=path.name)
    for number, raw in _lines(path):
        try:
            _take(reading, number, raw)
        except _BadLine as problem:
            reading.problems.append(f"line {number}: {problem}")
    for question in reading.questions.values():
        unknown = [episode for episode in question.about if episode not in reading.episodes]
        if unknown:
            line = reading.question_lines[question.id]
            reading.problems.append(f"line {line}: about unknown episode {_shown(unknown[0])}")
    _refuse(path, reading.problems)
    dataset = Dataset(reading.name, tuple(reading.episodes.values()), tuple(reading.questions.values()))
    _refuse(path, _lacking(dataset))
    return dataset


def _refuse(path: Path, problems: list[str]) -> None:
    if not problems:
        return
    further = len(problems) - SHOWN_PROBLEMS
    shown = "; ".join(problems[:SHOWN_PROBLEMS]) + (f"; and {further} more" if further > 0 else "")
    raise PermanentError(
        Code.BAD_INPUT_FILE, f"{path.name} cannot be used: {shown}", hint=FORMAT_HINT, problems=len(problems)
    )


def _lacking(dataset: Dataset) -> list[str]:
    problems = []
    if len(dataset.episodes) < MIN_EPISODES:
        problems.append(
            f"{len(dataset.episodes)} episodes, at least {MIN_EPISODES} are needed for seven stages"
        )
    asked = {question.split for question in dataset.questions}
    problems += [f'no question with split "{split}"' for split in ("serve", "measure") if split not in asked]
    return problems


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with _opened(path) as file:
            total, number = 0, 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                total += len(line)
                if len(line) > MAX_LINE_BYTES:
                    _refuse(path, [f"line {number}: longer than {MAX_LINE_BYTES} bytes"])
                if total > MAX_INPUT_BYTES:
                    _refuse(path, [f"line {number}: the unpacked file exceeds {MAX_INPUT_BYTES} bytes"])
                yield number, line
    except (lzma.LZMAError, EOFError, gzip.BadGzipFile) as problem:
        _refuse(path, [f"not a whole {path.suffix} file: {problem}"])
    except OSError as problem:
        _refuse(path, [f"it cannot be read: {problem.strerror or problem}"])


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    if path.suffix == ".xz":
        return lzma.open(path)
    if path.suffix == ".gz":
        return gzip.open(path)
    return path.open("rb")


def _take(reading: _Reading, number: int, raw: bytes) -> None:
    row = _object(raw)
    if row is None:
        return
    kind = row.get("type")
    if kind == "header":
        if reading.episodes or reading.questions:
            raise _BadLine("a header must come before every episode and question")
        reading.name = str(row.get("name") or reading.name)
    elif kind == "episode":
        episode = _episode(row, reading.episodes)
        reading.episodes[episode.id] = episode
    elif kind == "question":
        question = _question(row, reading.questions)
        reading.questions[question.id] = question
        reading.question_lines[question.id] = number
    elif kind is None:
        raise _BadLine('the field "type" is missing')
    else:
        raise _BadLine(f"unknown type {_shown(kind)}; known: header, episode, question")


def _object(raw: bytes) -> dict[str, Any] | None:
    """The line's object; None for a blank line."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise _BadLine(f"not UTF-8 at byte {problem.start}") from None
    if not text.strip():
        return None
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _BadLine(f"not JSON: {problem}") from None
    if not isinstance(row, dict):
        raise _BadLine("not a JSON object")
    return row


def _episode(row: dict[str, Any], known: dict[str, Episode]) -> Episode:
    episode_id = _id(row, known)
    text = _text(row, "text")
    kind = row.get("kind", "episode")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _BadLine(f"unknown kind {_shown(kind)}; known: {', '.join(sorted(_KINDS))}")
    links = _ids(row, "links")
    for link in links:
        if link not in known:
            raise _BadLine(f"link to unknown or later episode {_shown(link)}")
    return Episode(episode_id, text, kind, _time(row), links)


def _question(row: dict[str, Any], known: dict[str, Question]) -> Question:
    question_id = _id(row, known)
    gold = _text(row, "gold")
    if not content_tokens(gold):
        raise _BadLine("gold has no content word to look for")
    split = row.get("split")
    if split not in ("serve", "measure"):
        raise _BadLine(f'split must be "serve" or "measure", not {_shown(split)}')
    about = _ids(row, "about")
    if not about:
        raise _BadLine("about names no episode")
    return Question(question_id, _text(row, "question"), gold, split, about, str(row.get("kind", "")))


def _id(row: dict[str, Any], known: dict[str, Any]) -> str:
    value = row.get("id")
    if (
        not isinstance(value, str)
        or not value.strip()
        or len(value) > MAX_ID_CHARS
        or not value.isprintable()
    ):
        raise _BadLine(f"id must be 1 to {MAX_ID_CHARS} printable characters, not {_shown(value)}")
    if value in known:
        raise _BadLine(f"duplicate id {_shown(value)}")
    return value


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        raise _BadLine(f'the field "{name}" is missing')
    if not isinstance(value, str):
        raise _BadLine(f'"{name}" is not a string')
    if not value.strip():
        raise _BadLine(f'"{name}" is empty')
    if "\0" in value:
        raise _BadLine(f'"{name}" holds a NUL character')
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise _BadLine(f'"{name}" holds a lone surrogate') from None
    if size > MAX_TEXT_BYTES:
        raise _BadLine(f'"{name}" is {size} bytes, at most {MAX_TEXT_BYTES} are allowed')
    return value


def _ids(row: dict[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _BadLine(f'"{name}" is not a list of ids')
    return tuple(dict.fromkeys(value))


def _time(row: dict[str, Any]) -> str | None:
    value = row.get("time")
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except (ValueError, AttributeError):
        raise _BadLine(f"time {_shown(value)} is not an RFC 3339 time") from None
    if moment.tzinfo is None:
        raise _BadLine(f"time {_shown(value)} has no time zone")
    return moment.isoformat()


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
