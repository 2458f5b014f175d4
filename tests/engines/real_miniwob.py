"""The bench's MiniWoB++ recording against the pages in a real headless Chromium."""

from __future__ import annotations

import random
from importlib.metadata import version

import pytest

from bench.environments.miniwob_browser import Browser
from bench.environments.miniwob_episode import act, digest, general, written
from bench.environments.miniwob_recording import recording

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]
_PAGES = 2
"""Of each task."""


def test_the_recording_is_of_this_engine() -> None:
    assert f"miniwob {version('miniwob')}:" in recording().source


@pytest.mark.parametrize("task", sorted(recording().pages))
def test_recorded_pages_and_rewards_are_the_browsers(task: str) -> None:
    rng, pages = random.Random(7), [each for group in recording().pages.values() for each in group]
    with Browser(task) as browser:
        for each in rng.sample(recording().pages[task], _PAGES):
            assert browser.page(each.page.seed) == each.page
            assert browser.rewarded(each.page.seed, each.actions)
            form = general(each.page.utterance, each.page.slots)
            alike = [other for other in pages if general(other.page.utterance, other.page.slots) == form]
            replayed = [
                act(each.page, [written(other.page, other.actions[cut:])])
                for other in rng.sample(alike, min(4, len(alike)))
                for cut in (0, 1)
            ]
            told = {
                digest(one): one for one in replayed if one is not None and each.rewarded(one) is not None
            }
            assert told
            for one in told.values():
                assert browser.rewarded(each.page.seed, one) == each.rewarded(one), (each.page, one)
