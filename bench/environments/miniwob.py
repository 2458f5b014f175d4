"""MiniWoB++: episodes played on web pages, and new pages of the same tasks; graded by recorded rewards.

Pages, utterances and rewards come from a real headless Chromium. Ours: the demonstrations, their wording, the
stream (some tasks are common, some rare, each has its time) and the agent that replays a returned episode.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.environments.contract import FIRST_SHARE, STAGES, Item, Model, Question, Size, World, cut
from bench.environments.miniwob_episode import Action, act, general, written
from bench.environments.miniwob_recording import Recorded, recording
from shared.errors import Code, InputError
from shared.memory.model import Kind

COMMON, RARE = "common", "rare"
_RARE_SHARE = 0.5
"""A task with less than this share of the mean number of entries before stage 1 is rare."""
_SIZES = {"quick": Size(1, 100, 60, 20), "full": Size(1, 200, 150, 40)}
_EARLY_SHARE = 0.7
"""Of the tasks; the others come in later stages only, and are never measured."""
_MEASURED_SHARE = 2 / 3
_PERIOD = 0.5
"""A task's episodes lie within this share of its part of the stream: work moves on to other tasks."""
_HOUR_S = 3600.0
_PREFIX = "miniwob-"
_ANSWER_TOKENS = 200
_PROMPT = """You act on web pages. These are episodes played before, as far as they are remembered:

{texts}

The page now:
{page}

Task: {utterance}
Reply with one JSON list and nothing else: a number clicks that element, a text is typed where the focus is. \
Example: [3, "words", 5]"""


class MiniWob:
    """bench.environments.contract.Environment; needs no data directory."""

    name = "miniwob"
    hits = 5
    hit_bytes = 4096

    def __init__(self, data: Path | None = None) -> None:
        self._recorded = recording()
        self._pages = {_name(each): each for pages in self._recorded.pages.values() for each in pages}
        self._graded = self._unrecorded = 0

    @property
    def provenance(self) -> str:
        """With what was not recorded among this process's grades."""
        told = (
            f"{self._recorded.source} (MIT), played in a real headless Chromium; demonstrations, wording,"
            " replay agent and stream are ours"
        )
        if not self._unrecorded:
            return told
        return f"{told}; {self._unrecorded} of {self._graded} grades were not recorded and count as 0"

    @property
    def unrecorded(self) -> tuple[int, int]:
        """(grades without a recorded reward, grades)."""
        return self._unrecorded, self._graded

    def size(self, preset: str) -> Size:
        """InputError(BAD_REQUEST) for another preset."""
        if preset not in _SIZES:
            raise InputError(Code.BAD_REQUEST, "no such preset", preset=preset, hint="quick or full")
        return _SIZES[preset]

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """InputError(BAD_REQUEST) where the recorded pages do not suffice."""
        return tuple(self._world(f"{seed}.{number}", size) for number in range(size.worlds))

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """1 where the page rewarded exactly what the agent does; 0 where it finds nothing to replay."""
        if question.id not in self._pages:
            raise InputError(Code.BAD_REQUEST, "not a question of miniwob", question=question.id)
        asked = self._pages[question.id]
        actions = act(asked.page, texts) if model is None else _asked(model, asked, texts)
        if actions is None:
            return 0.0
        self._graded += 1
        rewarded = asked.rewarded(actions)
        self._unrecorded += rewarded is None
        return float(bool(rewarded))

    def _world(self, name: str, size: Size) -> World:
        rng = random.Random(f"miniwob/{name}")
        tasks = rng.sample(sorted(self._recorded.pages), len(self._recorded.pages))
        early, late = _parted(tasks, round(_EARLY_SHARE * len(tasks)))
        mixed = {
            task: rng.sample(self._recorded.pages[task], len(self._recorded.pages[task])) for task in tasks
        }
        kept = {task: pages[: len(pages) // 2] for task, pages in mixed.items()}
        asked = {task: pages[len(pages) // 2 :] for task, pages in mixed.items()}
        measured = {task: pages[: int(_MEASURED_SHARE * len(pages))] for task, pages in asked.items()}
        served = {task: pages[int(_MEASURED_SHARE * len(pages)) :] for task, pages in asked.items()}
        first = max(1, round(FIRST_SHARE * size.items))
        _check(
            size,
            first <= sum(len(kept[task]) for task in early)
            and 0 <= size.items - first <= sum(len(kept[task]) for task in late)
            and 0 <= size.measuring <= sum(len(measured[task]) for task in early[:first]),
        )
        played = _played([kept[task] for task in early], first, rng)
        played += _played([kept[task] for task in late], size.items - first, rng)
        stages = cut(played)
        times = Counter(each.page.task for each in stages[0])
        chosen = _in_turn([measured[task] for task in early if times[task]], size.measuring)
        met = [{each.page.task for stage in stages[: at + 1] for each in stage} for at in range(STAGES)]
        return World(
            f"miniwob-{name}",
            _items(stages),
            _questions(chosen, times),
            tuple(_served(served, tasks, size.serving, times, rng) for tasks in met),
            tuple(_questions([measured[task][0] for task in late if task in tasks], times) for tasks in met),
        )


def _check(size: Size, enough: bool) -> None:
    if not enough or size.items < 1 or size.serving < 0:
        raise InputError(
            Code.BAD_REQUEST,
            "miniwob has not so many pages",
            items=size.items,
            measuring=size.measuring,
            serving=size.serving,
            hint="the presets quick and full fit",
        )


def _played(groups: Sequence[Sequence[Recorded]], count: int, rng: random.Random) -> list[Recorded]:
    """`count` episodes in order of time: of each task by its rank, in its own period."""
    chosen: list[tuple[float, Recorded]] = []
    for group, size in zip(groups, _shares([len(group) for group in groups], count), strict=True):
        begin = (1 - _PERIOD) * rng.random()
        chosen += [(begin + _PERIOD * rng.random(), each) for each in group[:size]]
    return [each for _, each in sorted(chosen, key=lambda timed: timed[0])]


def _shares(most: Sequence[int], count: int) -> list[int]:
    """`count` in parts that fall as one over the rank; each at least one where that is possible."""
    parts = [0] * len(most)
    while sum(parts) < min(count, sum(most)):
        # The part that lags most behind its share.
        open_ = [rank for rank, part in enumerate(parts) if part < most[rank]]
        at = min(open_, key=lambda rank: (parts[rank] > 0, parts[rank] * (rank + 1), rank))
        parts[at] += 1
    return parts


def _in_turn(groups: Sequence[Sequence[Recorded]], count: int) -> list[Recorded]:
    """`count` of them, as evenly as the groups allow."""
    rounds = max((len(group) for group in groups), default=0)
    return [group[at] for at in range(rounds) for group in groups if at < len(group)][:count]


def _served(
    served: dict[str, list[Recorded]], tasks: set[str], count: int, times: Counter[str], rng: random.Random
) -> tuple[Question, ...]:
    """Pages of the tasks met so far, all alike often."""
    pool = [each for task in sorted(tasks) for each in served[task]]
    return _questions(rng.sample(pool, min(count, len(pool))), times)


def _items(stages: Sequence[Sequence[Recorded]]) -> tuple[tuple[Item, ...], ...]:
    """Each cites the latest episode of its form: that is what its agent had before it."""
    latest: dict[str, str] = {}
    out: list[tuple[Item, ...]] = []
    number = 0
    for stage in stages:
        made: list[Item] = []
        for each in stage:
            form, text = general(each.page.utterance, each.page.slots), written(each.page, each.actions)
            links = (latest[form],) if form in latest else ()
            latest[form] = f"episode-{each.page.task}-{each.page.seed}"
            made.append(Item(latest[form], text, Kind.EPISODE, number * _HOUR_S, links))
            number += 1
        out.append(tuple(made))
    return tuple(out)


def _questions(pages: Iterable[Recorded], times: Counter[str]) -> tuple[Question, ...]:
    least = _RARE_SHARE * sum(times.values()) / len(times)
    return tuple(
        Question(_name(each), each.page.utterance, RARE if times[each.page.task] < least else COMMON)
        for each in pages
    )


def _name(each: Recorded) -> str:
    return f"{_PREFIX}{each.page.task}-{each.page.seed}"


def _parted(tasks: Sequence[str], count: int) -> tuple[list[str], list[str]]:
    return list(tasks[:count]), list(tasks[count:])


def _asked(model: Model, asked: Recorded, texts: Sequence[str]) -> tuple[Action, ...] | None:
    """The model's own actions; None where its reply holds none."""
    page = "\n".join(
        f"{each.ref}: {each.tag} {json.dumps(each.text or each.beside, ensure_ascii=False)}"
        for each in asked.page.elements
    )
    told = _PROMPT.format(texts="\n\n".join(texts) or "(none)", page=page, utterance=asked.page.utterance)
    reply = model.complete(told, _ANSWER_TOKENS)
    try:
        actions, _ = json.JSONDecoder().raw_decode(reply[reply.index("[") :])
    except (ValueError, RecursionError):
        return None
    clean = all(isinstance(action, (int, str)) and not isinstance(action, bool) for action in actions)
    return tuple(actions) if actions and clean else None
