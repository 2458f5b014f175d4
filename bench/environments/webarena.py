"""WebArena: workflows of tasks done before, asked for again and for siblings; graded by the real evaluator.

The tasks, what fulfils them and the verdicts are WebArena-Verified's. No site and no browser runs: a replay
agent sends a returned workflow's requests again, with the slots of the asked task, and the evaluator's
recorded verdict on exactly that action is the grade. Ours: the workflow's wording, the agent, the stream.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.environments.contract import STAGES, Item, Model, Question, Size, World, cut
from bench.environments.webarena_recording import recording
from bench.environments.webarena_workflow import Action, Task, act, written
from shared.errors import Code, InputError
from shared.memory.model import Kind

OWN, SIBLING = "own", "sibling"
_SIZES = {"quick": Size(1, 100, 60, 20), "full": Size(1, 280, 150, 40)}
_OWN_SHARE = 1 / 6
"""One task met before to five siblings: near the paper's 30 % for a store that keeps all."""
_HOURS_S = 6 * 3600.0
_PREFIX = "webarena-"
_ANSWER_KEYS = ("task_type", "status", "retrieved_data")
_ANSWER_TOKENS = 700
_PROMPT = """You do tasks on web sites. Workflows of tasks done before, as far as they are remembered:

{texts}

Do this task: {intent}
Reply with one JSON object and nothing else. task_type is RETRIEVE, NAVIGATE or MUTATE:
{{"requests": [{{"url": "...", "method": "...", "post": {{}}}}],
 "answer": {{"task_type": "...", "status": "SUCCESS", "retrieved_data": null}}}}"""


class WebArena:
    """bench.environments.contract.Environment; needs no data directory."""

    name = "webarena"
    hits = 5
    hit_bytes = 4096

    def __init__(self, data: Path | None = None) -> None:
        self._recorded = recording()
        self._tasks = {f"{_PREFIX}{number}": task for number, task in self._recorded.tasks.items()}
        self._graded = self._unrecorded = 0

    @property
    def provenance(self) -> str:
        """With what was not recorded among this process's grades."""
        told = (
            f"{self._recorded.source} (Apache-2.0), replayed without a site and graded by recorded verdicts"
            " of its own evaluator; wording, replay agent and stream are ours"
        )
        if not self._unrecorded:
            return told
        asked = "the evaluator was asked" if _evaluator() else "graded 0, as the evaluator is not installed"
        return f"{told}; {self._unrecorded} of {self._graded} grades were not recorded: {asked}"

    @property
    def unrecorded(self) -> tuple[int, int]:
        """(grades without a recorded verdict, grades)."""
        return self._unrecorded, self._graded

    def size(self, preset: str) -> Size:
        """InputError(BAD_REQUEST) for another preset."""
        if preset not in _SIZES:
            raise InputError(Code.BAD_REQUEST, "no such preset", preset=preset, hint="quick or full")
        return _SIZES[preset]

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """InputError(BAD_REQUEST) where the tasks do not suffice."""
        return tuple(self._world(f"{seed}.{number}", size) for number in range(size.worlds))

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """The evaluator's score of what the agent does; 0 where it finds nothing to replay."""
        task = self._task(question)
        action = act(task.intent, task.slots, texts) if model is None else _asked(model, question, texts)
        if action is None:
            return 0.0
        self._graded += 1
        score = self._recorded.score(task.id, action)
        if score is not None:
            return score
        self._unrecorded += 1
        evaluate = _evaluator()
        return evaluate(task.id, action) if evaluate else 0.0

    def _task(self, question: Question) -> Task:
        if question.id not in self._tasks:
            raise InputError(Code.BAD_REQUEST, "not a question of webarena", question=question.id)
        return self._tasks[question.id]

    def _world(self, name: str, size: Size) -> World:
        rng = random.Random(f"webarena/{name}")
        kept, held = _halves(self._recorded.tasks.values(), rng)
        templates = list(kept)
        rng.shuffle(templates)
        tasks = [task for template in templates for task in kept[template]]
        if not 1 <= size.items <= len(tasks):
            raise InputError(
                Code.BAD_REQUEST, "webarena has not so many workflows", items=size.items, most=len(tasks)
            )
        # Templates stay together: what is written later is no sibling of what is measured.
        early, *late_stages = cut(tasks[: size.items])
        late = [task for stage in late_stages for task in stage]
        order = [*rng.sample(early, len(early)), *rng.sample(late, len(late))]
        stages = cut(order)
        whole = {task.template for task in early} - {task.template for task in late}
        own_count = round(_OWN_SHARE * size.measuring)
        own, own_left = _parted(rng.sample(early, len(early)), own_count)
        siblings, siblings_left = _measured(
            {template: held[template] for template in templates if template in whole},
            size.measuring - own_count,
            rng,
        )
        if len(own) + len(siblings) < size.measuring or size.measuring < 0 or size.serving < 0:
            raise InputError(
                Code.BAD_REQUEST,
                "webarena has not so many questions",
                measuring=size.measuring,
                most=len(own) + len(siblings),
                items=size.items,
            )
        return World(
            f"webarena-{name}",
            _items(stages),
            (*_questions(own, OWN), *_questions(siblings, SIBLING)),
            tuple(_served(own_left, siblings_left, size.serving, rng) for _ in range(STAGES)),
            _later(stages, late, size.serving // 2, rng),
        )


def _halves(tasks: Iterable[Task], rng: random.Random) -> tuple[dict[int, list[Task]], dict[int, list[Task]]]:
    """By template: tasks for the stream, and at least as many that are only asked (none of a lonely one)."""
    kept: dict[int, list[Task]] = {}
    held: dict[int, list[Task]] = {}
    groups: defaultdict[int, list[Task]] = defaultdict(list)
    for task in tasks:
        groups[task.template].append(task)
    for template, group in sorted(groups.items()):
        mixed = rng.sample(group, len(group))
        count = max(1, len(group) // 2)
        kept[template], held[template] = mixed[:count], mixed[count:]
    return kept, held


def _measured(
    held: Mapping[int, Sequence[Task]], count: int, rng: random.Random
) -> tuple[list[Task], list[Task]]:
    """(measuring, serving): of each template two thirds may measure, the rest is traffic."""
    can: list[Task] = []
    left: list[Task] = []
    for group in held.values():
        # One left alone goes either way.
        most = (2 * len(group) + rng.randrange(3)) // 3
        can += group[:most]
        left += group[most:]
    chosen, rest = _parted(rng.sample(can, len(can)), max(0, count))
    return chosen, [*left, *rest]


def _parted(tasks: Sequence[Task], count: int) -> tuple[list[Task], list[Task]]:
    return list(tasks[:count]), list(tasks[count:])


def _served(
    own: Sequence[Task], siblings: Sequence[Task], count: int, rng: random.Random
) -> tuple[Question, ...]:
    """The measuring mix again, of other tasks."""
    of_own = min(len(own), round(_OWN_SHARE * count))
    chosen = [*_questions(rng.sample(own, of_own), OWN)]
    chosen += _questions(rng.sample(siblings, min(len(siblings), count - of_own)), SIBLING)
    return tuple(rng.sample(chosen, len(chosen)))


def _later(
    stages: Sequence[Sequence[Task]], late: Sequence[Task], count: int, rng: random.Random
) -> tuple[tuple[Question, ...], ...]:
    """Tasks met in stages 1..s, asked again from then on."""
    chosen = {task.id for task in rng.sample(late, min(len(late), count))}
    met: list[Task] = []
    asked: list[tuple[Question, ...]] = [()]
    for stage in stages[1:]:
        met += [task for task in stage if task.id in chosen]
        asked.append(_questions(met, OWN))
    return tuple(asked)


def _items(stages: Sequence[Sequence[Task]]) -> tuple[tuple[Item, ...], ...]:
    """Each cites the latest workflow of its template: that is what its agent had before it."""
    latest: dict[int, str] = {}
    out: list[tuple[Item, ...]] = []
    number = 0
    for stage in stages:
        made: list[Item] = []
        for task in stage:
            name = f"workflow-{task.id}"
            links = (latest[task.template],) if task.template in latest else ()
            made.append(Item(name, written(task), Kind.WORKFLOW, number * _HOURS_S, links))
            latest[task.template] = name
            number += 1
        out.append(tuple(made))
    return tuple(out)


def _questions(tasks: Iterable[Task], category: str) -> tuple[Question, ...]:
    return tuple(Question(f"{_PREFIX}{task.id}", task.intent, category) for task in tasks)


def _asked(model: Model, question: Question, texts: Sequence[str]) -> Action | None:
    """The model's own action; None where its reply holds none."""
    reply = model.complete(
        _PROMPT.format(texts="\n\n".join(texts) or "(none)", intent=question.text), _ANSWER_TOKENS
    )
    try:
        told, _ = json.JSONDecoder().raw_decode(reply[reply.index("{") :])
    except (ValueError, RecursionError):
        return None
    requests, answer = told.get("requests"), told.get("answer")
    if not isinstance(answer, dict):
        return None
    sent: list[Mapping[str, Any]] = [
        request
        for request in (requests if isinstance(requests, list) else [])
        if isinstance(request, dict) and isinstance(request.get("url"), str)
    ]
    said = {name: answer[name] for name in _ANSWER_KEYS if answer.get(name) is not None}
    return Action(said, tuple(sent))


@lru_cache(maxsize=1)
def _evaluator() -> Callable[[int, Action], float] | None:
    """The real one where its package is installed."""
    try:
        from bench.environments.webarena_judge import Judge

        return Judge().score
    except ImportError:
        return None
