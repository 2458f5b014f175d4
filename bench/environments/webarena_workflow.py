"""A WebArena workflow as text, read back from whatever is left of it, and carried to another task.

A line each: site, intent, slots, every request, answer. A line that no longer parses counts as lost.
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
_OBJECTS = ("slots", "request", "answer")


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
    """What could be read of an entry; slots empty and answer None where their lines are lost."""

    intent: str
    slots: Mapping[str, Json] = field(default_factory=dict)
    requests: list[Mapping[str, Json]] = field(default_factory=list)
    answer: Mapping[str, Json] | None = None


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
    return "\n".join([*lines, f"answer: {_json(task.answer)}"])


def read(texts: Iterable[str]) -> list[Workflow]:
    """Every workflow in the texts, in order; one text may hold several."""
    found: list[Workflow] = []
    for text in texts:
        current: Workflow | None = None
        for line in text.splitlines():
            name, _, rest = line.strip().partition(": ")
            if name == "site":
                current = None
            elif name == "intent":
                current = Workflow(rest)
                found.append(current)
            elif current is not None and name in _OBJECTS:
                _put(current, name, rest)
    return found


def act(intent: str, slots: Mapping[str, Json], texts: Iterable[str]) -> Action | None:
    """Replay the workflow of the same intent, else the first of its template; None where there is neither."""
    workflows = read(texts)
    intent = _one_line(intent)
    same = next((flow for flow in workflows if flow.intent == intent), None)
    form = general(intent, slots)
    chosen = same or next((flow for flow in workflows if general(flow.intent, flow.slots) == form), None)
    return None if chosen is None else carried(chosen, slots)


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
    try:
        record = json.loads(rest)
    except (ValueError, RecursionError):
        return
    if not isinstance(record, dict):
        return
    if name == "slots":
        flow.slots = record
    elif name == "answer":
        flow.answer = record
    elif isinstance(record.get("url"), str):
        flow.requests.append(record)


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
