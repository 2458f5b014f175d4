"""Mem0, third generation: extraction only adds; nothing is overwritten or deleted at write.

Does: one call extracts facts, shown the last ten messages and ten similar memories; a fact whose text is
there already (MD5) is dropped.
Source: github.com/mem0ai/mem0 (snapshot of August 2026).
Ours: no byte budget upstream; eviction by time of write. The last ten messages are the ten newest rows, so
that no raw log is kept. The entity store (merged at cosine .95) serves the native search alone, which the
shared retriever replaces; it is neither kept nor charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import md5

from bench.environments.contract import Item
from bench.policies.asking import Asker
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, evict_in_order
from bench.policies.llm import Llm
from bench.policies.mem0 import EXTRACTED
from bench.policies.mem0_facts import extract

_CONTEXT = 10
_EXTRACT = "List the short facts of the message that the similar memories do not hold yet."


class Mem0V3:
    """One call a write, none at a squeeze."""

    name = "mem0_v3"
    budget_exempt = False
    traits = Traits(shortens=True, calls_per_write=1, native_knob="derived")
    origin = Origin(
        "Mem0 v3",
        "github.com/mem0ai/mem0 (2026)",
        "yes",
        "order of eviction; recent rows as context; no entities",
    )

    def __init__(self, seed: int, llm: Llm | None) -> None:
        self._asker = Asker(llm, {"extract": extract})
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """Extract and add what is new."""
        report = Report()
        similar = [host.rows[number].text for number, _ in host.nearest(item.text, _CONTEXT)]
        recent = [host.rows[number].text for number in list(host.rows)[-_CONTEXT:]]
        found = self._asker.ask(
            report, "extract", _EXTRACT, EXTRACTED, message=item.text, similar=similar, recent=recent
        )
        facts = [item.text] if found is None else [fact for fact in found["facts"] if fact.strip()]
        known = {_digest(row.text) for row in host.rows.values()}
        for fact in facts:
            digest = _digest(fact)
            if digest in known:
                report.merged.append(item.id)
            else:
                known.add(digest)
                host.add(replace(item, text=fact), now)
        return report

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """Nothing."""
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Oldest first."""
        return evict_in_order(host, [row.number for row in host.by_age()], budget_bytes)


@lru_cache(maxsize=65_536)
def _digest(text: str) -> bytes:
    return md5(text.encode(), usedforsecurity=False).digest()
