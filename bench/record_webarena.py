"""Record WebArena for the bench: tasks that score when played back, and the evaluator's verdicts on replays.

    python -m bench.record_webarena bench/environments/data/webarena.json.xz

Needs `webarena-verified` (extra `engines`). The tasks, what fulfils them and every verdict are the package's;
the workflow's wording and the replay agent are ours. No verdict is guessed: the evaluator is asked about each
action that the agent can produce from a whole or cut workflow of the task itself or of a sibling.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.environments.webarena_judge import Judge, tasks
from bench.environments.webarena_recording import Recording, actions, packed
from bench.environments.webarena_workflow import Action, Task, act, general, written

LICENCE = "Tasks and answers: WebArena-Verified, Apache-2.0 (see webarena.NOTICE.md). Selection: Apache-2.0."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    judge, described = Judge(), tasks()
    # Tasks whose expectation is a pattern have no request to replay.
    usable = [task for task in described if judge.score(task.id, own(task)) == 1.0]
    groups = siblings(usable)
    scores: dict[int, dict[str, float]] = {}
    for task in usable:
        played = replays(task, groups[task.id])
        scores[task.id] = {digest: judge.score(task.id, action) for digest, action in played.items()}
    source = f"webarena-verified {judge.version}: {len(usable)} tasks that score when played back"
    recorded = Recording(source, {task.id: task for task in usable}, scores)
    options.out.write_bytes(packed(source, LICENCE, recorded))
    verdicts = Counter(score for found in scores.values() for score in found.values())
    print(f"{source}; {sum(verdicts.values())} verdicts, {verdicts[1.0]} of them won")


def own(task: Task) -> Action:
    """What the replay agent does with the task's own workflow."""
    action = act(task.intent, task.slots, [written(task)])
    if action is None:
        raise RuntimeError(f"task {task.id}: its own workflow does not read back")
    return action


def siblings(usable: Sequence[Task]) -> dict[int, list[Task]]:
    """By task, the tasks whose workflows the agent would replay, itself among them."""
    forms = {task.id: general(task.intent, task.slots) for task in usable}
    intents = {task.id: general(task.intent, {}) for task in usable}
    return {
        task.id: [
            other
            for other in usable
            if forms[other.id] == forms[task.id]
            or intents[other.id] in (forms[task.id], intents[task.id])
            or other.template == task.template
        ]
        for task in usable
    }


def replays(task: Task, workflows: Iterable[Task]) -> dict[str, Action]:
    """Every action that may have to be graded."""
    found: dict[str, Action] = {}
    for workflow in workflows:
        found.update(actions(task, workflow))
    return found


if __name__ == "__main__":
    main()
