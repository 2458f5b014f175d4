"""WebArena's tasks and the evaluator's verdicts as they were recorded (bench.record_webarena)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from bench.environments.webarena_workflow import Action, Task

FILE = "webarena.json.xz"
SCHEMA = 1
_DIGEST_DIGITS = 16


@dataclass(frozen=True)
class Recording:
    """scores: by task, the evaluator's score of each action that was played.

    answers: digests of what residues say; they were played in every task and lost where no score says else.
    """

    source: str
    tasks: Mapping[int, Task]
    scores: Mapping[int, Mapping[str, float]]
    answers: frozenset[str]

    def score(self, task: int, action: Action) -> float | None:
        """None where the evaluator was not asked about this action."""
        digest = action.digest
        return self.scores[task].get(digest, 0.0 if digest in self.answers else None)


@lru_cache(maxsize=1)
def recording() -> Recording:
    """The package's own."""
    packed = (files("bench.environments") / "data" / FILE).read_bytes()
    told = json.loads(lzma.decompress(packed))
    return Recording(
        told["source"],
        {record["id"]: _task(record) for record in told["tasks"]},
        {int(name): dict(_scores(*verdicts)) for name, verdicts in told["verdicts"].items()},
        frozenset(_digests(told["answers"])),
    )


def packed(source: str, licence: str, recorded: Recording) -> bytes:
    """The file's bytes; of each task's actions those that scored 1, then those that scored 0."""
    told = {
        "schema": SCHEMA,
        "licence": licence,
        "source": source,
        "tasks": [vars(task) for task in recorded.tasks.values()],
        "answers": "".join(sorted(recorded.answers)),
        "verdicts": {
            name: [
                "".join(sorted(digest for digest, score in scores.items() if score == won)) for won in (1, 0)
            ]
            for name, scores in recorded.scores.items()
        },
    }
    return lzma.compress(json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode(), preset=9)


def _task(record: Mapping[str, Any]) -> Task:
    told = dict(record)
    return Task(sites=tuple(told.pop("sites")), requests=tuple(told.pop("requests")), **told)


def _scores(won: str, lost: str) -> Iterator[tuple[str, float]]:
    yield from ((digest, 1.0) for digest in _digests(won))
    yield from ((digest, 0.0) for digest in _digests(lost))


def _digests(told: str) -> Iterator[str]:
    return (told[at : at + _DIGEST_DIGITS] for at in range(0, len(told), _DIGEST_DIGITS))
