"""RecMem: what recurs is consolidated into episodes and facts; what does not stays raw.

Does: a write that is like an episode is merged into it, if one call agrees, and gives facts; else, if K raw
items are alike, one call writes episodes of them, one call writes facts, and the raw items go; else it is
kept raw, without any call.
Source: github.com/CaiusDai/RecMem (recmem/rec_mem.py, episodic_memory.py); arXiv 2605.16045. K = 5, merge and
gate at cosine .7, as in its published runs.
Ours: no byte knob upstream. Where the budget is below half of the largest one seen, K is one less a stage
(at least 3) and the gate runs once over the raw items; then raw items without a neighbour go, oldest first,
then the other raw ones, then facts and episodes by hits. K is restored when the budget rises. Read limits by
layer are upstream's own search; here all rows share one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.environments.contract import Item
from bench.policies import extractive
from bench.policies.asking import STRING, STRINGS, Asker, facts_of, schema
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row, evict_in_order, merge
from bench.policies.llm import Llm
from bench.policies.similarity import vector
from shared.memory.model import Kind

RECURRENCE, LEAST_RECURRENCE = 5, 3
MERGED_AT, GATE = 0.7, 0.7
KNOWN_FACTS = 10
TIGHT = 0.5
_EPISODE_SHARE = 0.6  # of the raw text, by the stand-in
_FACTS_OF_AN_EPISODE = 3
_LONGEST_EPISODE = 4000  # bytes: about what a model's answer holds
_MERGED = schema(should_merge={"type": "boolean"}, merged_memory=STRING)
_EPISODES = schema(episodes=STRINGS)
_FACTS = schema(facts=STRINGS)


def _merge(prompt: str, wanted: Mapping[str, Any]) -> str:
    """Into one text without saying anything twice; a long episode takes no more."""
    told = facts_of(prompt)
    known = frozenset(extractive.sentences(told["episode"]))
    new = [one for one in extractive.sentences(told["message"]) if one not in known]
    merged = " ".join((told["episode"], *new))
    return json.dumps({"should_merge": len(merged.encode()) <= _LONGEST_EPISODE, "merged_memory": merged})


def _episodes(prompt: str, wanted: Mapping[str, Any]) -> str:
    messages = facts_of(prompt)["messages"]
    cap = _EPISODE_SHARE * sum(len(message.encode()) for message in messages)
    return json.dumps({"episodes": [extractive.summarise(messages, cap)]})


def _facts(prompt: str, wanted: Mapping[str, Any]) -> str:
    """The most telling sentences that no known fact says."""
    told = facts_of(prompt)
    said = frozenset[str]().union(*(extractive.words(fact) for fact in told["known"]))
    new = [
        one
        for one in extractive.facts(" ".join(told["episodes"]), _FACTS_OF_AN_EPISODE)
        if extractive.words(one) - said or extractive.values(one) - extractive.values(" ".join(told["known"]))
    ]
    return json.dumps({"facts": new})


class RecMem:
    """Rows carry their layer: none = raw, `episode`, `fact`."""

    name = "recmem"
    budget_exempt = False
    traits = Traits(shortens=True, calls_per_write=3, calls_in_enforce=2, native_knob="derived", binary=True)
    origin = Origin(
        "RecMem",
        "arXiv 2605.16045; github.com/CaiusDai/RecMem",
        "yes",
        "order of eviction; K follows the budget",
    )

    def __init__(self, seed: int, llm: Llm | None) -> None:
        self._asker = Asker(llm, {"merge": _merge, "episodes": _episodes, "facts": _facts})
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in
        self.recurrence = RECURRENCE
        self._budget_bytes = math.inf
        self._largest_bytes = 0.0

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """Into an episode, or together with others into a new one, or raw."""
        report = Report()
        if self._into_episode(host, item, now, report):
            return report
        row = host.add(item, now)
        self._gate(host, row, now, report)
        return report

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """The rows hold the hits."""
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """At a tight stage the gate opens earlier, once; then deletion."""
        report = Report()
        if budget_bytes != self._budget_bytes:
            self._new_stage(host, budget_bytes, now, report)
        if host.bytes() > budget_bytes:
            merge(report, evict_in_order(host, _order(host), budget_bytes))
        return report

    def _new_stage(self, host: Host, budget_bytes: float, now: int, report: Report) -> None:
        rises = budget_bytes > self._budget_bytes
        self._budget_bytes = budget_bytes
        if math.isfinite(budget_bytes):
            self._largest_bytes = max(self._largest_bytes, budget_bytes)
        if rises:
            self.recurrence = RECURRENCE
        elif budget_bytes < TIGHT * self._largest_bytes:
            self.recurrence = max(LEAST_RECURRENCE, self.recurrence - 1)
            for row in _layer(host, ""):
                if row.number in host.rows:
                    self._gate(host, row, now, report)

    def _into_episode(self, host: Host, item: Item, now: int, report: Report) -> bool:
        found = _alike(host, item.text, "episode", 1, MERGED_AT)
        if not found:
            return False
        episode = found[0]
        answer = self._asker.ask(
            report,
            "merge",
            "Does the message belong to the episode? If so, give the episode that holds both.",
            _MERGED,
            episode=episode.text,
            message=item.text,
        )
        if answer is None or not answer["should_merge"] or not answer["merged_memory"].strip():
            return False
        episode.text, episode.time = answer["merged_memory"], item.time
        host.touched(episode.number)
        report.merged.append(item.id)
        self._extract(host, item, [episode.text], now, report)
        return True

    def _gate(self, host: Host, row: Row, now: int, report: Report) -> None:
        """Consolidates `row` with the raw items that are like it, where there are enough."""
        alike = _alike(host, row.text, "", 2 * self.recurrence, GATE, row.number)
        if len(alike) + 1 < self.recurrence:
            return
        raws = sorted((*alike, row), key=lambda one: (one.time, one.number))
        found = self._asker.ask(
            report,
            "episodes",
            "Write these messages, which are in the order of time, as one or more episodes.",
            _EPISODES,
            messages=[one.text for one in raws],
        )
        episodes = [text for text in found["episodes"] if text.strip()] if found else []
        if not episodes:
            return  # nothing is deleted for nothing
        first = Item(raws[0].item, "", row.kind, raws[-1].time)
        for one in raws:
            report.merged.append(host.remove(one.number).item)
        for text in episodes:
            _put(host, first, text, "episode", row.kind, now)
        self._extract(host, first, episodes, now, report)

    def _extract(self, host: Host, source: Item, episodes: Sequence[str], now: int, report: Report) -> None:
        known = _alike(host, " ".join(episodes), "fact", KNOWN_FACTS, 0.0)
        found = self._asker.ask(
            report,
            "facts",
            "Which lasting facts do the episodes hold that are not known yet?",
            _FACTS,
            episodes=list(episodes),
            known=[row.text for row in known],
        )
        for text in found["facts"] if found else ():
            if text.strip():
                _put(host, source, text, "fact", Kind.KNOWLEDGE, now)


def _put(host: Host, source: Item, text: str, layer: str, kind: Kind, now: int) -> None:
    row = host.add(Item(source.id, text, kind, source.time), now)
    row.metadata["layer"] = layer
    host.touched(row.number)


def _layer(host: Host, layer: str) -> list[Row]:
    return [row for row in host.by_age() if row.metadata.get("layer", "") == layer]


def _alike(host: Host, text: str, layer: str, most: int, least: float, without: int = 0) -> list[Row]:
    """Rows of a layer at `least` this cosine, best first."""
    found = [
        host.rows[number]
        for number, likeness in host.nearest(text, len(host.rows), without=frozenset({without}))
        if likeness >= least and host.rows[number].metadata.get("layer", "") == layer
    ]
    return found[:most]


def _order(host: Host) -> list[int]:
    raws = _layer(host, "")
    paired = _paired(raws)
    derived = [
        sorted(_layer(host, layer), key=lambda row: (row.hits, row.created, row.number))
        for layer in ("fact", "episode")
    ]
    ordered = (*sorted(raws, key=lambda row: row.number in paired), *derived[0], *derived[1])
    return [row.number for row in ordered]


def _paired(raws: Sequence[Row]) -> set[int]:
    """Raw items with another one at the gate's cosine."""
    if not raws:
        return set()
    vectors = np.stack([vector(row.text) for row in raws])
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    return {
        row.number for row, nearest in zip(raws, cosines.max(axis=1).tolist(), strict=True) if nearest >= GATE
    }
