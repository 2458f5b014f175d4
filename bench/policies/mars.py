"""MaRS: typed memory nodes; what matters least is reflected on, and then removed by density.

Does: nodes are episodic, semantic, social or task; importance weighs type, recency and frequency; related
episodes are replaced by one reflection (a semantic node), and what has the least importance a byte goes.
Source: arXiv 2512.12856 (abstract and public notes; no code found).
Ours: weights of type, the grouping (cosine >= .6, three to eight, oldest first, within the lowest third) and
the byte budget in place of tokens. A reflection is never reflected on again. The paper's FIFO, priority decay
and hybrid removals are there as orders (`fifo`, `priority_decay`, `hybrid`); the row uses `density`. Nothing
in the streams is flagged private, so the privacy term is zero.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bench.environments.contract import Item
from bench.policies import extractive
from bench.policies.asking import STRING, Asker, facts_of, schema
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row, evict_in_order, merge
from bench.policies.llm import Llm
from bench.policies.similarity import vector
from edge_agent.retrieval import cut
from shared.memory.model import Kind

Order = Callable[[Host, int], list[int]]
"""Host numbers, the first to go first."""

ALPHA, BETA, GAMMA = 0.4, 0.3, 0.3
TYPE_WEIGHTS = {"task": 1.0, "semantic": 0.8, "social": 0.6, "episodic": 0.4}
HALF_LIFE = 200.0  # events
_EXPIRY = 2000  # events without an access, by the hybrid order
ALIKE, SMALLEST, LARGEST = 0.6, 3, 8
REFLECTED_SHARE = 0.25
_LOWEST = 1 / 3
_TYPES = {
    Kind.SKILL: "task",
    Kind.WORKFLOW: "task",
    Kind.MOTION: "task",
    Kind.KNOWLEDGE: "semantic",
    Kind.ASSET: "semantic",
}
_REFLECTION = schema(reflection=STRING)


def node_type(row: Row) -> str:
    """A reflection is semantic; what others said is social; what was lived is episodic."""
    return _TYPES.get(row.kind, "social" if row.source == "peer" else "episodic")


def importance(host: Host, now: int) -> dict[int, float]:
    """By host number, in [0, 1]."""
    most = max((math.log1p(row.hits) for row in host.rows.values()), default=0.0) or 1.0
    return {
        row.number: ALPHA * TYPE_WEIGHTS[node_type(row)]
        + BETA * math.exp(-(now - row.last_access) / HALF_LIFE)
        + GAMMA * math.log1p(row.hits) / most
        for row in host.rows.values()
    }


def density(host: Host, now: int) -> list[int]:
    """Importance a byte, ascending."""
    worth = importance(host, now)
    return sorted(
        host.rows, key=lambda n: (worth[n] / host.size_bytes(n), host.rows[n].created, host.rows[n].number)
    )


def fifo(host: Host, now: int) -> list[int]:
    """Oldest first."""
    return [row.number for row in host.by_age()]


def priority_decay(host: Host, now: int) -> list[int]:
    """Importance ascending, whatever the size."""
    worth = importance(host, now)
    return sorted(host.rows, key=lambda n: (worth[n], host.rows[n].created, n))


def hybrid(host: Host, now: int) -> list[int]:
    """The expired first, then by density."""
    ranked = density(host, now)
    return sorted(ranked, key=lambda n: now - host.rows[n].last_access <= _EXPIRY)


def _reflect(prompt: str, wanted: Mapping[str, Any]) -> str:
    told = facts_of(prompt)
    return json.dumps({"reflection": extractive.summarise(told["episodes"], told["limit_bytes"])})


class Mars:
    """Reflection, then removal."""

    name = "mars"
    budget_exempt = False
    traits = Traits(shortens=True, calls_in_enforce=1, native_knob="token budget")
    origin = Origin("MaRS", "arXiv 2512.12856", "not found", "weights, grouping, bytes in place of tokens")

    def __init__(self, seed: int, llm: Llm | None, removal: Order = density) -> None:
        self._asker = Asker(llm, {"reflect": _reflect})
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in
        self._removal = removal

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """A node as it comes; its type follows from kind and source."""
        host.add(item, now)
        return Report()

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """The rows hold recency and frequency."""
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Reflect on groups of the least important episodes until none is left, then delete."""
        report = Report()
        while host.bytes() > budget_bytes:
            groups = _groups(host, now)
            if not groups:
                break
            for group in groups:
                if host.bytes() <= budget_bytes:
                    break
                self._replace(host, group, now, report)
        if host.bytes() > budget_bytes:
            merge(report, evict_in_order(host, self._removal(host, now), budget_bytes))
        return report

    def _replace(self, host: Host, group: Sequence[Row], now: int, report: Report) -> None:
        limit = int(REFLECTED_SHARE * sum(row.text_bytes() for row in group))
        episodes = [row.text for row in group]
        found = self._asker.ask(
            report,
            "reflect",
            "One reflection that holds what these episodes share and what is particular, in limit_bytes.",
            _REFLECTION,
            episodes=episodes,
            limit_bytes=limit,
        )
        text = cut(found["reflection"], limit) if found else ""
        if not text.strip():
            # Kept verbatim, and not asked about again: removal by density decides.
            for row in group:
                row.metadata["reflected"] = "-"
                host.touched(row.number)
            return
        first = group[0]
        for row in group:
            report.merged.append(host.remove(row.number).item)
        host.add(Item(first.item, text, Kind.KNOWLEDGE, first.time), now)


def _groups(host: Host, now: int) -> list[list[Row]]:
    """Nearest neighbours among the least important third of the episodes, oldest first; no row twice."""
    worth = importance(host, now)
    episodes = [row for row in host.by_age() if node_type(row) == "episodic"]
    ranked = sorted(episodes, key=lambda row: (worth[row.number], row.created, row.number))
    lowest = {row.number for row in ranked[: math.ceil(_LOWEST * len(ranked))]}
    rows = [row for row in episodes if row.number in lowest and "reflected" not in row.metadata]
    if len(rows) < SMALLEST:
        return []
    vectors = np.stack([vector(row.text) for row in rows])
    cosines = vectors @ vectors.T
    free = set(range(len(rows)))
    groups: list[list[Row]] = []
    for seed in range(len(rows)):
        if seed not in free:
            continue
        near = [at for at in np.argsort(-cosines[seed], kind="stable").tolist() if at in free and at != seed]
        members = [seed, *(at for at in near[: LARGEST - 1] if cosines[seed, at] >= ALIKE)]
        if len(members) >= SMALLEST:
            free -= set(members)
            groups.append([rows[at] for at in sorted(members)])
    return groups
