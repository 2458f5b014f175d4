"""Record MiniWoB++ for the bench in a real headless Chromium: pages, rewarded episodes, verdicts on replays.

    python -m bench.record_miniwob bench/environments/data/miniwob.json.xz

Needs `miniwob` (extra `engines`), `chromium` and `chromium-driver`. Pages, utterances and rewards are the
engine's; the demonstrations (`bench.miniwob_demos`), the wording of episodes and the replay agent are ours.
Every replay that another recorded episode of the same form can lead to, whole or cut, is played.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

from bench.environments.miniwob_browser import Browser
from bench.environments.miniwob_episode import Action, Page, act, digest, general, written
from bench.environments.miniwob_recording import Recorded, packed
from bench.miniwob_demos import DEMOS

LICENCE = "MiniWoB++ pages: MIT (see miniwob.NOTICE.md). Episodes: Apache-2.0, as this repository."
PAGES = 36
"""Of each task; half of them can become entries, half questions."""
_ALL_CUTS_LINES = 3
Played = tuple[Page, tuple[Action, ...]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as pool:
        played = dict(zip(DEMOS, pool.map(demonstrate, DEMOS, itertools.repeat(options.pages)), strict=True))
        texts = by_form(episode for episodes in played.values() for episode in episodes)
        work = [[(page, replays(page, texts)) for page, _ in episodes] for episodes in played.values()]
        judged = list(pool.map(judge, work))
    pages = {
        task: [
            Recorded(page, actions, rewards) for (page, actions), rewards in zip(episodes, told, strict=True)
        ]
        for (task, episodes), told in zip(played.items(), judged, strict=True)
    }
    source = f"miniwob {version('miniwob')}: {len(pages)} tasks, {sum(map(len, pages.values()))} pages"
    options.out.write_bytes(packed(source, LICENCE, pages))
    rewards = [got for rows in pages.values() for each in rows for got in each.rewards.values()]
    print(f"{source}; {len(rewards)} replays, {sum(rewards)} rewarded")


def demonstrate(task: str, count: int) -> list[Played]:
    """The first `count` seeds whose demonstration was rewarded."""
    found: list[Played] = []
    with Browser(task) as browser:
        for seed in itertools.count():
            page = browser.page(seed)
            try:
                actions = tuple(DEMOS[task](page))
            except LookupError:
                continue
            if browser.rewarded(seed, actions):
                found.append((page, actions))
            if len(found) == count:
                break
    print(f"{task}: {len(found)} of {seed + 1} demonstrations rewarded", flush=True)
    return found


def by_form(episodes: Iterable[Played]) -> dict[str, list[str]]:
    """What may be left of the episodes, by the forms of utterance that they are replayed for."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for page, actions in episodes:
        texts = list(cuts(written(page, actions)))
        for form in {general(page.utterance, page.slots), page.utterance}:
            found[form] += texts
    return dict(found)


def replays(page: Page, texts: Mapping[str, Sequence[str]]) -> list[tuple[Action, ...]]:
    """Whatever the agent can do on the page, once each."""
    forms = {general(page.utterance, page.slots), page.utterance}
    played = (act(page, [text]) for form in sorted(forms) for text in texts[form])
    return list({digest(actions): actions for actions in played if actions is not None}.values())


def cuts(text: str) -> Iterator[str]:
    """The episode whole and with lines missing: any, or of many the last ones or a single one."""
    head, *rest = text.splitlines()
    rest = [line for line in rest if line.startswith(("slots: ", "do: "))]
    if len(rest) <= _ALL_CUTS_LINES:
        kept = [chosen for count in range(len(rest) + 1) for chosen in itertools.combinations(rest, count)]
    else:
        kept = [tuple(rest[:end]) for end in range(len(rest) + 1)]
        kept += [(*rest[:lost], *rest[lost + 1 :]) for lost in range(len(rest))]
    return ("\n".join([head, *lines]) for lines in kept)


def judge(pages: Sequence[tuple[Page, Sequence[tuple[Action, ...]]]]) -> list[dict[str, bool]]:
    """The browser's verdicts for the pages of one task."""
    with Browser(pages[0][0].task) as browser:
        told = [
            {digest(actions): browser.rewarded(page.seed, actions) for actions in played}
            for page, played in pages
        ]
    count = sum(len(each) for each in told)
    print(
        f"{pages[0][0].task}: {count} replays, {sum(sum(each.values()) for each in told)} rewarded",
        flush=True,
    )
    return told


if __name__ == "__main__":
    main()
