"""A WebArena workflow as text, read back from whatever is left of it, and carried to another task.

A line each: site, intent, slots, every request, answer, every value of the answer. A request is lost with any
of its bytes; of a text without its labels, as compression leaves it, the answer can still be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

Json = Any
"""What JSON holds; requests and answers are WebArena's own records."""
MUTATE, NAVIGATE, RETRIEVE = "MUTATE", "NAVIGATE", "RETRIEVE"
_DIGEST_BYTES = 8
_STATUS = "SUCCESS|(?:NOT_FOUND|ACTION_NOT_ALLOWED|PERMISSION_DENIED|DATA_VALIDATION|UNKNOWN)_ERROR"
_ANSWER = re.compile(rf"(?:answer:? )?({MUTATE}|{NAVIGATE}|{RETRIEVE})(?: ({_STATUS}))?")
_VALUE = re.compile(r"value:? ?")
_LABELS = frozenset(("site", "intent", "slots", "request"))
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Task:
    """One task with what fulfils it. template: WebArena's number of the intent's template."""

    id: int
    template: int
    sites: tuple[str, ...]
    intent: str
    slots: Mapping[str, Json]
    requests: tuple[Mapping[str, Json], ...]
    answer: Mapping[str, Json]


@dataclass
class Workflow:
    """What could be read of an entry; slots empty and answer None where their lines are lost.

    intent: None in a residue, a text without labels; words: what stands before its answer.
    """

    intent: str | None
    words: frozenset[str] = frozenset()
    slots: Mapping[str, Json] = field(default_factory=dict)
    requests: list[Mapping[str, Json]] = field(default_factory=list)
    answer: dict[str, Json] | None = None


@dataclass(frozen=True)
class Action:
    """What is graded: the agent's answer and its requests, in order."""

    answer: Mapping[str, Json]
    requests: tuple[Mapping[str, Json], ...]

    @property
    def digest(self) -> str:
        """The recording's key beside the task."""
        told = json.dumps([self.answer, self.requests], sort_keys=True, separators=(",", ":"))
        return blake2b(told.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def written(task: Task) -> str:
    """The entry of a fulfilled task."""
    lines = [
        f"site: {', '.join(task.sites)}",
        f"intent: {_one_line(task.intent)}",
        f"slots: {_json(task.slots)}",
    ]
    lines += [f"request: {_json(request)}" for request in task.requests]
    lines.append(f"answer: {task.answer['task_type']} {task.answer['status']}")
    lines += [f"value: {_plain(value)}" for value in task.answer.get("retrieved_data", ())]
    return "\n".join(lines)


def read(texts: Iterable[str]) -> list[Workflow]:
    """Every workflow in the texts, in order; one text may hold several."""
    return [flow for text in texts for flow in _read(text.splitlines())]


def _read(lines: Iterable[str]) -> list[Workflow]:
    found: list[Workflow] = []
    current: Workflow | None = None
    before: list[str] = []
    for line in map(str.strip, lines):
        name, _, rest = line.partition(": ")
        if name == "site":
            current, before = None, []
        elif name == "intent":
            current = Workflow(rest)
            found.append(current)
        elif told := _ANSWER.fullmatch(line):
            if current is None:
                current = Workflow(None, words_of(" ".join(before)) - _LABELS)
                found.append(current)
            current.answer = {"task_type": told[1], "status": told[2] or "SUCCESS"}
        elif current is None:
            before.append(line)
        elif name in ("slots", "request"):
            _put(current, name, rest)
        elif current.answer is not None and (current.intent is None or _VALUE.match(line)):
            _add_value(current.answer, _VALUE.sub("", line, count=1))
    return found


def act(intent: str, slots: Mapping[str, Json], texts: Iterable[str]) -> Action | None:
    """Replay the workflow of the same intent, else the first of its template, else what a residue says.

    None where there is none of these.
    """
    flows = read(texts)
    intent = _one_line(intent)
    form = general(intent, slots)
    told = [(flow, flow.intent) for flow in flows if flow.intent is not None]
    same = next((flow for flow, name in told if name == intent), None)
    chosen = same or next((flow for flow, name in told if general(name, flow.slots) == form), None)
    chosen = chosen or _nearest(intent, [flow for flow in flows if flow.intent is None])
    return None if chosen is None else carried(chosen, slots)


def _nearest(intent: str, residues: Iterable[Workflow]) -> Workflow | None:
    """Of the residues that say an answer, and at least half of whose words are the intent's, the one that
    shares most words with it; the first of equals.
    """
    asked = words_of(intent)
    near = [
        flow
        for flow in residues
        if flow.answer
        and flow.answer["task_type"] == RETRIEVE
        and 2 * len(flow.words & asked) >= len(flow.words)
    ]
    return max(near, key=lambda flow: len(flow.words & asked), default=None)


def words_of(text: str) -> frozenset[str]:
    """Lower-case words and numbers."""
    return frozenset(_WORD.findall(text.lower()))


def general(intent: str, slots: Mapping[str, Json]) -> str:
    """An intent with its slots' values replaced by their names: alike for all tasks of a template."""
    return _replaced(_one_line(intent), {value: f"{{{name}}}" for name, value in reversed(_values(slots))})


def carried(flow: Workflow, slots: Mapping[str, Json]) -> Action:
    """The workflow with its slot values replaced by `slots`', in values and never in JSON keys."""
    wanted = dict(_values(slots))
    swaps: dict[str, str] = {}
    for name, value in _values(flow.slots):
        if name in wanted and wanted[name] != value:
            for blank in (" ", "%20", "+"):
                swaps.setdefault(value.replace(" ", blank), wanted[name].replace(" ", blank))
    requests = tuple(_walked(request, swaps) for request in flow.requests)
    answer = _walked(flow.answer, swaps) if flow.answer is not None else _said_of(requests)
    return Action(answer, requests)


def _said_of(requests: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """The answer of an agent that knows only what it sent."""
    if not requests:
        return {"task_type": RETRIEVE, "status": "SUCCESS"}
    reads = all(request.get("method", "GET") == "GET" for request in requests)
    return {"task_type": NAVIGATE if reads else MUTATE, "status": "SUCCESS"}


def _put(flow: Workflow, name: str, rest: str) -> None:
    record = _parsed(rest)
    if not isinstance(record, dict):
        return
    if name == "slots":
        flow.slots = record
    elif isinstance(record.get("url"), str):
        flow.requests.append(record)


def _add_value(answer: dict[str, Json], text: str) -> None:
    if answer["task_type"] != RETRIEVE:
        return
    value = _parsed(text)
    answer.setdefault("retrieved_data", []).append(text if value is None else value)


def _plain(value: Json) -> str:
    """A text as it stands, unless it would be read as something else."""
    if isinstance(value, str) and value == _one_line(value) and value and _parsed(value) is None:
        return value
    return _json(value)


def _parsed(text: str) -> Json:
    """What JSON says; None where it is none, or too deep."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _values(slots: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Slots whose value is a plain word or number; some of WebArena's are empty or lists."""
    told = [(name, _one_line(str(value))) for name, value in slots.items() if isinstance(value, (str, int))]
    return [(name, value) for name, value in told if value]


def _walked(value: Json, swaps: Mapping[str, str]) -> Json:
    if isinstance(value, dict):
        return {name: _walked(held, swaps) for name, held in value.items()}
    if isinstance(value, list):
        return [_walked(held, swaps) for held in value]
    return _replaced(value, swaps) if isinstance(value, str) else value


def _replaced(text: str, swaps: Mapping[str, str]) -> str:
    """All at once, longest first, so nothing that was put in is replaced again."""
    if not swaps:
        return text
    return re.sub(
        "|".join(_found(value) for value in sorted(swaps, key=len, reverse=True)), lambda m: swaps[m[0]], text
    )


def _found(value: str) -> str:
    # A number inside another number or word is another thing: order 1 is not order 187.
    return rf"(?<![0-9A-Za-z]){value}(?![0-9A-Za-z])" if value.isdecimal() else re.escape(value)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
