"""MemGPT: a message queue under pressure, a recursive summary in front of it, recall and archival behind.

Does: when the queue overflows, its oldest messages (.75 of its bytes, never the last three) are summarised
together with the earlier summary in one call; the raw messages go to recall storage.
Source: github.com/cpacker/MemGPT (memgpt/agent.py, constants.py); github.com/letta-ai/letta (summarizer);
arXiv 2310.08560.
Ours: recall and archival are unbounded upstream. Queue and summary get 25 % of the budget; at most 10 % of
the flushed bytes remain as summary; eviction takes recall, archival, the summary (first shortened by one
call), then the queue, oldest first. The agent's tool calls are replaced by one "save to archival?" call a
flush; the core block, which only the agent edits, stays empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.environments.contract import Item
from bench.policies import extractive
from bench.policies.asking import INTEGERS, STRING, Asker, facts_of, offered, schema
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row, evict_in_order, merge
from bench.policies.llm import Llm
from edge_agent.retrieval import cut
from shared.memory.model import Kind

QUEUE_SHARE = 0.25
FLUSHED_SHARE = 0.75
SUMMARY_SHARE = 0.10
KEPT_MESSAGES = 3
_ARCHIVED_SHARE = 0.25  # of a flush, by the stand-in
_SUMMARY = schema(summary=STRING)
_SAVE = schema(save=INTEGERS)


def _summarise(prompt: str, wanted: Mapping[str, Any]) -> str:
    told = facts_of(prompt)
    texts = [told["earlier"], *told["messages"]]
    return json.dumps({"summary": extractive.summarise(texts, told["limit_bytes"])})


def _save(prompt: str, wanted: Mapping[str, Any]) -> str:
    texts = facts_of(prompt)["messages"]
    ranked = sorted(range(len(texts)), key=lambda at: (-extractive.worth(texts[at]), at))
    return json.dumps({"save": sorted(at + 1 for at in ranked[: round(_ARCHIVED_SHARE * len(texts))])})


class MemGpt:
    """Rows carry their tier; the queue's have none."""

    name = "memgpt"
    budget_exempt = False
    traits = Traits(shortens=True, calls_in_enforce=2, native_knob="context size")
    origin = Origin(
        "MemGPT",
        "arXiv 2310.08560; github.com/cpacker/MemGPT",
        "yes",
        "shares of the budget; order of eviction",
    )

    def __init__(self, seed: int, llm: Llm | None) -> None:
        self._asker = Asker(llm, {"summarise": _summarise, "save": _save})
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """To the end of the queue."""
        host.add(item, now)
        return Report()

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """Nothing moves: what is in recall stays there."""
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Flush the queue to its share, then fit the rest."""
        report = Report()
        while _front_bytes(host) > QUEUE_SHARE * budget_bytes and len(_tier(host, "")) > KEPT_MESSAGES:
            self._flush(host, now, report)
        for tier in ("recall", "archival"):
            merge(report, evict_in_order(host, [row.number for row in _tier(host, tier)], budget_bytes))
        if host.bytes() > budget_bytes:
            self._shorten(host, budget_bytes, report)
        rest = [*_tier(host, "summary"), *_tier(host, "")]
        merge(report, evict_in_order(host, [row.number for row in rest], budget_bytes))
        return report

    def _flush(self, host: Host, now: int, report: Report) -> None:
        going = _oldest(host, _tier(host, ""))
        messages = [row.text for row in going]
        earlier = _tier(host, "summary")
        limit = int(SUMMARY_SHARE * sum(row.text_bytes() for row in going))
        found = self._asker.ask(
            report,
            "summarise",
            "Summarise the earlier summary and the messages, within limit_bytes.",
            _SUMMARY,
            earlier=earlier[0].text if earlier else "",
            messages=messages,
            limit_bytes=limit,
        )
        saved = self._asker.ask(
            report,
            "save",
            "Which messages (by number, from 1) hold facts worth archiving?",
            _SAVE,
            messages=messages,
        )
        archived = set(offered(saved["save"], [row.number for row in going])) if saved else set()
        for row in going:
            row.metadata["tier"] = "archival" if row.number in archived else "recall"
            host.touched(row.number)
            report.demoted.append((row.item, "queue", row.metadata["tier"]))
        text = cut(found["summary"], limit) if found else ""
        if text.strip():
            _put_summary(host, earlier[0] if earlier else None, going[0], text, now)

    def _shorten(self, host: Host, budget_bytes: float, report: Report) -> None:
        for row in _tier(host, "summary"):
            limit = int(row.text_bytes() - (host.bytes() - budget_bytes))
            if limit <= 0:
                return
            found = self._asker.ask(
                report,
                "summarise",
                "Shorten the summary to limit_bytes.",
                _SUMMARY,
                earlier=row.text,
                messages=[],
                limit_bytes=limit,
            )
            if found and found["summary"].strip():
                row.text = cut(found["summary"], limit)
                host.touched(row.number)


def _put_summary(host: Host, earlier: Row | None, first: Row, text: str, now: int) -> None:
    if earlier is not None:
        earlier.text = text
        host.touched(earlier.number)
        return
    row = host.add(Item(first.item, text, Kind.KNOWLEDGE, first.time), now)
    row.metadata["tier"] = "summary"
    host.touched(row.number)


def _oldest(host: Host, queue: Sequence[Row]) -> list[Row]:
    """The oldest messages holding `FLUSHED_SHARE` of the queue's bytes, without the last; at least one."""
    total = sum(host.size_bytes(row.number) for row in queue)
    taken: list[Row] = []
    held = 0
    for row in queue[:-KEPT_MESSAGES]:
        if held >= FLUSHED_SHARE * total:
            break
        taken.append(row)
        held += host.size_bytes(row.number)
    return taken


def _tier(host: Host, tier: str) -> list[Row]:
    return [row for row in host.by_age() if row.metadata.get("tier", "") == tier]


def _front_bytes(host: Host) -> int:
    return sum(host.size_bytes(row.number) for tier in ("", "summary") for row in _tier(host, tier))
