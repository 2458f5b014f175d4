"""The bench's WebArena recording against WebArena-Verified's own evaluator."""

from __future__ import annotations

import random

import pytest

from bench.environments.webarena_judge import Judge, tasks
from bench.environments.webarena_recording import recording
from bench.environments.webarena_workflow import Action, written
from bench.record_webarena import left_of, replays, said

pytestmark = pytest.mark.engines
_SAMPLE = 80


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


def test_recorded_tasks_are_the_packages(judge: Judge) -> None:
    recorded = recording()
    assert judge.version in recorded.source
    described = {task.id: task for task in tasks()}
    assert {name: described[name] for name in recorded.tasks} == recorded.tasks


def test_recorded_verdicts_are_the_evaluators(judge: Judge) -> None:
    recorded = recording()
    everything = list(recorded.tasks.values())
    seen = {0.0: 0, 1.0: 0}
    for task in random.Random(11).sample(everything, _SAMPLE):
        for other in (each for each in everything if each.template == task.template):
            for action in replays(task, left_of(written(other))).values():
                score = judge.score(task.id, action)
                assert recorded.score(task.id, action) == score, (task.id, other.id, action)
                seen[score] += 1
    assert min(seen.values()) >= _SAMPLE


def test_answers_of_residues_lose_where_no_verdict_says_else(judge: Judge) -> None:
    recorded, rng = recording(), random.Random(12)
    answers = list(said(text for task in recorded.tasks.values() for text in left_of(written(task))).values())
    for task in rng.sample(list(recorded.tasks.values()), _SAMPLE):
        for action in rng.sample(answers, 30):
            assert recorded.score(task.id, action) == judge.score(task.id, action), (task.id, action)


@pytest.mark.parametrize(
    "request_",
    [
        {"url": ""},
        {"url": "http://[", "method": 5},
        {"url": "__MAP__/x", "headers": [1], "status": "200"},
        {"url": "\ud800", "post": {"a": "\ud800"}},
    ],
)
def test_a_request_that_is_none_scores_nothing_and_stops_nothing(
    judge: Judge, request_: dict[str, object]
) -> None:
    task = next(iter(recording().tasks))
    assert judge.score(task, Action({"status": "SUCCESS", "retrieved_data": [[[1e400]]]}, (request_,))) == 0.0
