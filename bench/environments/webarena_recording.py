"""WebArena's tasks and the evaluator's verdicts as they were recorded (bench.record_webarena)."""

from __future__ import annotations

import itertools
import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from bench.environments.webarena_workflow import Action, Task, act, written

FILE = "webarena.json.xz"
SCHEMA = 1
_DIGEST_DIGITS = 16
_ALL_CUTS_LINES = 7
"""Of a workflow with more lines than so many, only the likelier cuts are played."""


@dataclass(frozen=True)
class Recording:
    """scores: by task, the evaluator's score of each action that was played."""

    source: str
    tasks: Mapping[int, Task]
    scores: Mapping[int, Mapping[str, float]]

    def score(self, task: int, action: Action) -> float | None:
        """None where the evaluator was not asked about this action."""
        return self.scores[task].get(action.digest)


@lru_cache(maxsize=1)
def recording() -> Recording:
    """The package's own."""
    packed = (files("bench.environments") / "data" / FILE).read_bytes()
    told = json.loads(lzma.decompress(packed))
    return Recording(
        told["source"],
        {record["id"]: _task(record) for record in told["tasks"]},
        {int(name): dict(_scores(*verdicts)) for name, verdicts in told["verdicts"].items()},
    )


def packed(source: str, licence: str, recorded: Recording) -> bytes:
    """The file's bytes; of each task's actions those that scored 1, then those that scored 0."""
    told = {
        "schema": SCHEMA,
        "licence": licence,
        "source": source,
        "tasks": [vars(task) for task in recorded.tasks.values()],
        "verdicts": {
            name: [
                "".join(sorted(digest for digest, score in scores.items() if score == won)) for won in (1, 0)
            ]
            for name, scores in recorded.scores.items()
        },
    }
    return lzma.compress(json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode(), preset=9)


def actions(task: Task, workflow: Task) -> dict[str, Action]:
    """By digest, whatever the replay agent can do in `task` from what may be left of another's workflow."""
    found = (act(task.intent, task.slots, [text]) for text in cuts(written(workflow)))
    return {action.digest: action for action in found if action is not None}


def cuts(text: str) -> Iterator[str]:
    """The workflow whole and with lines missing: any, or of many the last ones or a single one."""
    lines = text.splitlines()
    head, rest = lines[:2], lines[2:]
    if len(rest) <= _ALL_CUTS_LINES:
        chosen = itertools.chain.from_iterable(
            itertools.combinations(rest, count) for count in range(len(rest) + 1)
        )
        yield from ("\n".join([*head, *kept]) for kept in chosen)
        return
    yield from ("\n".join([*head, *rest[:end]]) for end in range(len(rest) + 1))
    yield from ("\n".join([*head, *rest[:lost], *rest[lost + 1 :]]) for lost in range(len(rest)))


def _task(record: Mapping[str, Any]) -> Task:
    told = dict(record)
    return Task(sites=tuple(told.pop("sites")), requests=tuple(told.pop("requests")), **told)


def _scores(won: str, lost: str) -> Iterator[tuple[str, float]]:
    for digests, score in ((won, 1.0), (lost, 0.0)):
        for at in range(0, len(digests), _DIGEST_DIGITS):
            yield digests[at : at + _DIGEST_DIGITS], score
