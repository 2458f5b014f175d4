"""Mem0 (first generation, the paper's row): facts are extracted at write and merged into a flat memory.

Does: one call extracts short facts; one call decides ADD, UPDATE, DELETE or NONE for each against the five
nearest memories of each fact, which it knows by small integers.
Source: github.com/mem0ai/mem0 (mem0/memory/main.py, mem0/configs/prompts.py before 2026); arXiv 2504.19413.
Ours: Mem0 has no byte budget. Eviction: superseded memories first, then by time of update. The history table
is off, so nothing of it is charged. A DELETE counts only with an ADD of the same answer, else the memory
stays and is marked superseded: upstream loses facts there (mem0ai/mem0#4536, #1674).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.environments.contract import Item
from bench.policies.asking import INTEGER, STRING, STRINGS, Asker, offered, schema
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row, evict_in_order
from bench.policies.llm import Llm
from bench.policies.mem0_facts import decide, extract

NEIGHBOURS = 5
EXTRACTED = schema(facts=STRINGS)
_ACTION = schema(event=STRING, id=INTEGER, text=STRING)
DECIDED = schema(actions={"type": "array", "items": _ACTION})
_EXTRACT = "List the short, self-contained facts of the message."
_DECIDE = (
    "Compare each new fact with the numbered memories. For each give ADD (id 0), UPDATE (id of the memory and"
    " its new text), DELETE (id of a contradicted memory, beside the ADD of what replaces it) or NONE."
)


class Mem0:
    """Two calls a write, none at a squeeze."""

    name = "mem0"
    budget_exempt = False
    traits = Traits(shortens=True, calls_per_write=2, native_knob="derived")
    origin = Origin(
        "Mem0",
        "arXiv 2504.19413; github.com/mem0ai/mem0",
        "yes",
        "order of eviction; no history table; paired DELETE",
    )

    def __init__(self, seed: int, llm: Llm | None) -> None:
        self._asker = Asker(llm, {"extract": extract, "decide": decide})
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """Extract, decide, apply in order."""
        report = Report()
        found = self._asker.ask(report, "extract", _EXTRACT, EXTRACTED, message=item.text)
        if found is None:
            host.add(item, now)
            return report
        facts = [fact for fact in found["facts"] if fact.strip()]
        if not facts:
            return report
        shown = _neighbours(host, facts)
        memories = [host.rows[number].text for number in shown]
        decided = self._asker.ask(report, "decide", _DECIDE, DECIDED, facts=facts, memories=memories)
        if decided is None:
            host.add(item, now)
            return report
        _apply(host, item, now, decided["actions"], shown, report)
        return report

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """Nothing: Mem0 does not learn from reads."""
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Superseded memories first, then the longest without an update."""
        return evict_in_order(
            host, [row.number for row in sorted(host.rows.values(), key=_order)], budget_bytes
        )


def _neighbours(host: Host, facts: Sequence[str]) -> list[int]:
    """The nearest memories of each fact, each once."""
    found = [number for fact in facts for number, _ in host.nearest(fact, NEIGHBOURS)]
    return list(dict.fromkeys(found))


def _apply(
    host: Host,
    item: Item,
    now: int,
    actions: Sequence[Mapping[str, Any]],
    shown: Sequence[int],
    report: Report,
) -> None:
    adds = any(action["event"] == "ADD" and action["text"].strip() for action in actions)
    for action in actions:
        target = next((n for n in offered([action["id"]], shown) if n in host.rows), None)
        text = action["text"]
        if action["event"] == "ADD" and text.strip():
            host.add(replace(item, text=text), now)
        elif action["event"] == "UPDATE" and target is not None and text.strip():
            _update(host, host.rows[target], text, item, now)
            report.merged.append(item.id)
        elif action["event"] == "DELETE" and target is not None:
            if adds:
                report.evicted.append(host.remove(target).item)
            else:
                host.rows[target].metadata["superseded"] = "1"
                host.touched(target)


def _update(host: Host, row: Row, text: str, item: Item, now: int) -> None:
    row.text, row.time = text, item.time
    row.metadata.pop("superseded", None)
    row.metadata["updated"] = str(now)
    host.touched(row.number)


def _order(row: Row) -> tuple[bool, int, int, int]:
    updated = int(row.metadata.get("updated", row.created))
    return "superseded" not in row.metadata, updated, row.created, row.number
