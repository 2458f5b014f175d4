"""What the hub counts, and the snapshot that `status` shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from msgspec import Struct

from hub.calls import EndpointStatus
from shared import metrics
from shared.errors import Code
from shared.metrics import BatchResult


class HubStatus(Struct, frozen=True):
    """One moment of a hub. `refused`: messages and connections turned away, by reason."""

    endpoint: str
    archive: bool
    model: str
    """The generative source; empty = absent."""
    sessions: int
    refused: dict[str, int]
    batches: int
    deltas: int
    replayed: int
    skipped: int
    not_archived: int
    hellos: dict[str, int]
    fetches: int
    drafts: int
    unsent: int
    clones: int
    allow_list_failures: int
    endpoints: tuple[EndpointStatus, ...] = ()


@dataclass
class Counters:
    """Counted since start."""

    refused: Counter[Code] = field(default_factory=Counter)
    hellos: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    deltas: int = 0
    replayed: int = 0
    skipped: int = 0
    not_archived: int = 0
    fetches: int = 0
    drafts: int = 0
    unsent: int = 0
    clones: int = 0

    def refuse(self, code: Code) -> None:
        """Somebody or something was turned away."""
        self.refused[code] += 1
        metrics.LINK_REFUSALS.labels(code=code.value).inc()

    def batch(self, result: BatchResult) -> None:
        """What became of a batch, for the metrics."""
        metrics.BATCHES.labels(result=result.value).inc()
