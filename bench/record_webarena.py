"""Record WebArena for the bench: tasks that score when played back, and the evaluator's verdicts on replays.

    python -m bench.record_webarena bench/environments/data/webarena.json.xz

Needs `webarena-verified` (extra `engines`). The tasks, what fulfils them and every verdict are the package's;
the workflow's wording and the replay agent are ours. No verdict is guessed: the evaluator is asked about each
action that the agent can produce from a workflow of the task itself or of a sibling, whole, cut, or as any
lossy rung shows it.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.environments.webarena_judge import Judge, tasks
from bench.environments.webarena_recording import Recording, packed
from bench.environments.webarena_workflow import (
    RETRIEVE,
    Action,
    Task,
    act,
    carried,
    general,
    read,
    written,
)
from edge_agent.distill import PlainDistiller
from shared.memory import spans
from shared.memory.model import LADDERS

LICENCE = "Tasks and answers: WebArena-Verified, Apache-2.0 (see webarena.NOTICE.md). Selection: Apache-2.0."
ALL_CUTS_LINES = 7
"""Of a workflow with more lines than so many, only the likelier cuts are played."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    judge, described = Judge(), tasks()
    # Tasks whose expectation is a pattern have no request to replay.
    usable = [task for task in described if judge.score(task.id, own(task)) == 1.0]
    groups, left = siblings(usable), {task.id: left_of(written(task)) for task in usable}
    answers = said(text for texts in left.values() for text in texts)
    scores: dict[int, dict[str, float]] = {}
    for task in usable:
        played = replays(task, (text for other in groups[task.id] for text in left[other.id]))
        scores[task.id] = {
            digest: judge.score(task.id, action) for digest, action in played.items() if digest not in answers
        }
        asked = {digest: judge.score(task.id, action) for digest, action in answers.items()}
        scores[task.id] |= {digest: score for digest, score in asked.items() if score}
    source = f"webarena-verified {judge.version}: {len(usable)} tasks that score when played back"
    recorded = Recording(source, {task.id: task for task in usable}, scores, frozenset(answers))
    options.out.write_bytes(packed(source, LICENCE, recorded))
    verdicts = Counter(score for found in scores.values() for score in found.values())
    told = f"{verdicts[1.0]} actions win, {verdicts[0.0]} lose"
    print(f"{source}; {told}; {len(answers)} answers of residues lose in all other tasks")


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


def replays(task: Task, texts: Iterable[str]) -> dict[str, Action]:
    """By digest, what the agent does in the task with each of the texts alone."""
    played = (act(task.intent, task.slots, [text]) for text in texts)
    return {action.digest: action for action in played if action is not None}


def said(texts: Iterable[str]) -> dict[str, Action]:
    """By digest, the answers of residues: they are given alike in any task."""
    found = (carried(flow, {}) for flow in read(texts) if flow.intent is None)
    return {action.digest: action for action in found if action.answer["task_type"] == RETRIEVE}


def left_of(text: str) -> tuple[str, ...]:
    """The entry whole, with lines missing, and as residue at every rung of every ladder."""
    return tuple(dict.fromkeys((*cuts(text), *residues(text))))


def cuts(text: str) -> Iterator[str]:
    """The workflow whole and with lines missing: any, or of many the last ones or a single one."""
    lines = text.splitlines()
    head, rest = lines[:2], lines[2:]
    if len(rest) <= ALL_CUTS_LINES:
        chosen = itertools.chain.from_iterable(
            itertools.combinations(rest, count) for count in range(len(rest) + 1)
        )
        yield from ("\n".join([*head, *kept]) for kept in chosen)
        return
    yield from ("\n".join([*head, *rest[:end]]) for end in range(len(rest) + 1))
    yield from ("\n".join([*head, *rest[:lost], *rest[lost + 1 :]]) for lost in range(len(rest)))


def residues(text: str) -> Iterator[str]:
    """What the edge's distiller leaves of it."""
    for ladder in LADDERS.values():
        base = spans.whole(PlainDistiller().distil(text, ladder), 1)
        for spec in ladder.lossy:
            base = spans.lower(base, spec.rung)
            yield spans.render(base)


if __name__ == "__main__":
    main()
