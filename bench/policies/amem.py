"""A-MEM: notes with attributes and links, which evolve as new notes arrive.

Does: one call gives a note its keywords, context and tags; one call, shown the five nearest notes, links the
new one to some of them (strengthen) and rewrites context and tags of others (update_neighbor).
Source: github.com/agiresearch/A-mem (agentic_memory/memory_system.py); github.com/WujiangXu/A-mem;
arXiv 2502.12110.
Ours: no byte knob and no eviction upstream. Keep score = .5 retrieval count + .3 links + .2 recency, deleted
ascending, links to a deleted note with it; notes are kept whole. Attributes are charged. The neighbours that
the model names are ranks in what it was shown, mapped to notes here. Upstream rebuilds its index after 100
evolutions; this host's index is always current.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from bench.environments.contract import Item
from bench.policies import extractive
from bench.policies.asking import INTEGER, INTEGERS, STRING, STRINGS, Asker, facts_of, offered, schema
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row, evict_in_order
from bench.policies.llm import Llm
from bench.policies.similarity import cosine

NEIGHBOURS = 5
USED, LINKED, RECENT = 0.5, 0.3, 0.2
HALF_LIFE = 200.0  # events
_LINKED_AT = 0.35  # cosine, by the stand-in
_REWRITTEN_AT = 0.6
_KEYWORDS, _TAGS, _CONTEXT_BYTES = 5, 3, 100
_ANALYSED = schema(keywords=STRINGS, context=STRING, tags=STRINGS)
_NEIGHBOUR = schema(neighbour=INTEGER, context=STRING, tags=STRINGS)
_EVOLVED = schema(links=INTEGERS, tags=STRINGS, updates={"type": "array", "items": _NEIGHBOUR})


def _analyse(prompt: str, wanted: Mapping[str, Any]) -> str:
    text = facts_of(prompt)["content"]
    found = extractive.keywords(text, _KEYWORDS)
    context = extractive.summarise([text], _CONTEXT_BYTES)
    return json.dumps({"keywords": found, "context": context, "tags": found[:_TAGS]})


def _evolve(prompt: str, wanted: Mapping[str, Any]) -> str:
    """Links to what is like it; the closest get its first tag beside their own."""
    told = facts_of(prompt)
    links: list[int] = []
    updates: list[dict[str, Any]] = []
    for rank, note in enumerate(told["neighbours"], 1):
        likeness = cosine(told["content"], note["content"])
        if likeness >= _LINKED_AT:
            links.append(rank)
        new = [tag for tag in told["tags"] if tag not in note["tags"]]
        if likeness >= _REWRITTEN_AT and new:
            tags = [*note["tags"][: _TAGS - 1], new[0]]
            updates.append({"neighbour": rank, "context": note["context"], "tags": tags})
    return json.dumps({"links": links, "tags": told["tags"], "updates": updates})


class AMem:
    """Two calls a write, none at a squeeze."""

    name = "amem"
    budget_exempt = False
    traits = Traits(links=True, calls_per_write=2, native_knob="derived")
    origin = Origin(
        "A-MEM", "arXiv 2502.12110; github.com/agiresearch/A-mem", "yes", "keep score and eviction"
    )

    def __init__(self, seed: int, llm: Llm | None) -> None:
        self._asker = Asker(llm, {"analyse": _analyse, "evolve": _evolve})
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """Analyse, then evolve with the neighbourhood; without a readable answer the note is bare."""
        report = Report()
        found = self._asker.ask(
            report,
            "analyse",
            "Keywords, a sentence of context and tags of it.",
            _ANALYSED,
            content=item.text,
        )
        near = [number for number, _ in host.nearest(item.text, NEIGHBOURS)]
        row = host.add(item, now)
        if found is not None:
            row.metadata["keywords"] = ", ".join(found["keywords"])
            _describe(row, found["context"], found["tags"])
        if near:
            self._evolve(host, row, near, report)
        host.touched(row.number)
        return report

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """The rows hold retrieval counts; linked notes are the native search's, not the shared one's."""
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Whole notes, lowest keep score first."""
        if host.bytes() <= budget_bytes:
            return Report()
        return evict_in_order(host, _by_keep_score(host, now), budget_bytes)

    def _evolve(self, host: Host, row: Row, near: Sequence[int], report: Report) -> None:
        found = self._asker.ask(
            report,
            "evolve",
            "Which neighbours (by number, from 1) does the new note link to, what are its tags now, and which"
            " neighbours get a new context and tags?",
            _EVOLVED,
            content=row.text,
            tags=_tags(row),
            neighbours=[_shown(host.rows[number]) for number in near],
        )
        if found is None:
            return
        row.links = list(dict.fromkeys([*row.links, *offered(found["links"], near)]))
        if found["tags"]:
            row.metadata["tags"] = ", ".join(found["tags"])
        for update in found["updates"]:
            for number in offered([update["neighbour"]], near):
                _describe(host.rows[number], update["context"], update["tags"])
                host.touched(number)


def _describe(row: Row, context: str, tags: Sequence[str]) -> None:
    row.metadata["context"] = context
    row.metadata["tags"] = ", ".join(tags)


def _tags(row: Row) -> list[str]:
    told = row.metadata.get("tags", "")
    return told.split(", ") if told else []


def _shown(row: Row) -> dict[str, Any]:
    return {"content": row.text, "context": row.metadata.get("context", ""), "tags": _tags(row)}


def _by_keep_score(host: Host, now: int) -> list[int]:
    degree = dict.fromkeys(host.rows, 0)
    for row in host.rows.values():
        for link in row.links:
            degree[row.number] += 1
            degree[link] += 1
    most_used = max((math.log1p(row.hits) for row in host.rows.values()), default=0.0) or 1.0
    most_linked = max(degree.values(), default=0) or 1

    def order(number: int) -> tuple[float, int, int]:
        row = host.rows[number]
        recency = 0.5 ** ((now - row.last_access) / HALF_LIFE)
        used, linked = math.log1p(row.hits) / most_used, degree[number] / most_linked
        return USED * used + LINKED * linked + RECENT * recency, row.created, number

    return sorted(host.rows, key=order)
