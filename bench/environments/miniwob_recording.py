"""MiniWoB++'s pages, episodes played on them and what they rewarded, as recorded (bench.record_miniwob)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from bench.environments.miniwob_episode import Action, Element, Page, digest

FILE = "miniwob.json.xz"
SCHEMA = 1
_DIGEST_DIGITS = 16


@dataclass(frozen=True)
class Recorded:
    """A page, the actions of its demonstration, which it rewarded, and what else was played on it."""

    page: Page
    actions: tuple[Action, ...]
    rewards: Mapping[str, bool]
    """By digest of the actions."""

    def rewarded(self, actions: Sequence[Action]) -> bool | None:
        """None where these were not played in the browser."""
        return self.rewards.get(digest(actions))


@dataclass(frozen=True)
class Recording:
    """source: what played it. pages: by task, in order of their seeds."""

    source: str
    pages: Mapping[str, tuple[Recorded, ...]]


@lru_cache(maxsize=1)
def recording() -> Recording:
    """The package's own."""
    packed = (files("bench.environments") / "data" / FILE).read_bytes()
    told = json.loads(lzma.decompress(packed))
    return Recording(
        told["source"],
        {task: tuple(_recorded(task, *row) for row in rows) for task, rows in told["tasks"].items()},
    )


def packed(source: str, licence: str, pages: Mapping[str, Sequence[Recorded]]) -> bytes:
    """The file's bytes."""
    tasks = {task: [_row(each) for each in rows] for task, rows in pages.items()}
    told = {"schema": SCHEMA, "licence": licence, "source": source, "tasks": tasks}
    return lzma.compress(json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode(), preset=9)


def _row(each: Recorded) -> list[Any]:
    won, lost = (
        "".join(sorted(name for name, got in each.rewards.items() if got is good)) for good in (True, False)
    )
    elements = [[element.ref, element.tag, element.text, element.beside] for element in each.page.elements]
    return [each.page.seed, each.page.utterance, each.page.slots, elements, each.actions, won, lost]


def _recorded(
    task: str,
    seed: int,
    utterance: str,
    slots: Mapping[str, str],
    elements: Sequence[Sequence[Any]],
    actions: Sequence[Action],
    won: str,
    lost: str,
) -> Recorded:
    page = Page(task, seed, utterance, slots, tuple(Element(*told) for told in elements))
    rewards = dict.fromkeys(_digests(lost), False) | dict.fromkeys(_digests(won), True)
    return Recorded(page, tuple(actions), rewards)


def _digests(told: str) -> Iterator[str]:
    return (told[at : at + _DIGEST_DIGITS] for at in range(0, len(told), _DIGEST_DIGITS))
