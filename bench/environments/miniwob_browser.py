"""MiniWoB++'s pages in a real headless Chromium: what a page shows, and whether it rewards some actions.

Needs the package `miniwob` (extra `engines`), a Chromium and its driver; the bench's grades are recorded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from bench.environments.miniwob_episode import Action, Element, Page

_TEXT_CHARS = 40
"""Longer texts are no names of anything that is clicked."""
_CONTROLS = ("input_", "button", "textarea", "select")


class Browser:
    """One task's browser, a context manager: starting one takes seconds. ImportError without the package."""

    def __init__(self, task: str) -> None:
        # Selenium would ask the network for a driver and tell it about itself.
        os.environ.setdefault("SE_OFFLINE", "true")
        os.environ.setdefault("SE_AVOID_STATS", "true")
        import gymnasium
        import miniwob

        gymnasium.register_envs(miniwob)
        self.task = task
        # Reloaded each time: some inputs remember where the last episode left them.
        self._engine: Any = gymnasium.make(f"miniwob/{task}-v1", disable_env_checker=True, refresh_freq=1)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()

    def page(self, seed: int) -> Page:
        """What the seed's page shows first."""
        seen, _ = self._engine.reset(seed=seed)
        slots = {str(name): str(value) for name, value in seen["fields"]}
        return Page(self.task, seed, str(seen["utterance"]), slots, _elements(seen["dom_elements"]))

    def rewarded(self, seed: int, actions: Sequence[Action]) -> bool:
        """Whether the seed's page gives a reward for exactly these actions."""
        from miniwob.action import ActionTypes

        self._engine.reset(seed=seed)
        create = self._engine.unwrapped.create_action
        for action in actions:
            if isinstance(action, str):
                step = create(ActionTypes.TYPE_TEXT, text=action)
            else:
                step = create(ActionTypes.CLICK_ELEMENT, ref=action)
            _, reward, ended, _, _ = self._engine.step(step)
            if ended:
                return bool(reward > 0)
        return False


def _elements(told: Sequence[Mapping[str, Any]]) -> tuple[Element, ...]:
    """Whatever has a text of its own, and every control."""
    parents = {int(each["ref"]): int(each["parent"]) for each in told}
    words = {int(each["ref"]): _words(each, told) for each in told}
    found: list[Element] = []
    for each in told:
        ref, tag = int(each["ref"]), str(each["tag"])
        if ref > 0 and (words[ref] or tag.startswith(_CONTROLS)):
            beside = "" if words[ref] else _beside(ref, parents, words)
            found.append(Element(ref, tag, words[ref], beside))
    return tuple(found)


def _words(element: Mapping[str, Any], told: Sequence[Mapping[str, Any]]) -> str:
    """An element's own text; a button's may stand in text nodes."""
    if str(element["tag"]) == "button" and not element["text"]:
        text = " ".join(str(each["text"]) for each in told if each["parent"] == element["ref"])
    else:
        text = str(element["text"])
    return " ".join(text.split())[:_TEXT_CHARS].strip()


def _beside(ref: int, parents: Mapping[int, int], words: Mapping[int, str]) -> str:
    """The text that shares the closest ancestor: the last one before the element, else the first after."""
    order = list(words)
    at, above = order.index(ref), parents[ref]
    while above in parents:
        near = [each for each in order if words[each] and above in _above(each, parents)]
        before = [each for each in near if order.index(each) < at]
        if near:
            return words[before[-1] if before else near[0]]
        above = parents[above]
    return ""


def _above(ref: int, parents: Mapping[int, int]) -> list[int]:
    found: list[int] = []
    while ref in parents:
        ref = parents[ref]
        found.append(ref)
    return found
