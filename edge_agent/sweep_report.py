"""What a sweep says of itself: its steps while it runs, its report when it is through."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from edge_agent.entries import Applied, EvictedEntry, Moved, Usage


class SweepPhase(str, Enum):
    """What a step has done."""

    PACK = "pack"
    DEMOTE = "demote"
    GRACE = "grace"
    """Nothing yet: these entries lack an archive; the caller may wait for acks before it goes on."""
    SHED = "shed"
    """Vectors went; texts are as they were."""
    EVICT = "evict"
    REWRITE = "rewrite"


@dataclass(frozen=True)
class SweepStep:
    """One durable chunk. changed: entries whose shown text may differ; gone: evicted ones. Re-index both."""

    phase: SweepPhase
    changed: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()


@dataclass
class SweepReport:
    """What a sweep has done so far; final once its steps are through."""

    budget_bytes: int
    moves: dict[int, Moved] = field(default_factory=dict)
    evicted: list[EvictedEntry] = field(default_factory=list)
    lost_exact: list[int] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    price: float = 0.0
    rounds: int = 0
    guard_yielded: int = 0
    stubs_dropped: int = 0
    shed: int = 0
    """Vectors that went so that entries need not."""
    usage: Usage | None = None

    def add(self, applied: Applied) -> None:
        """One more chunk; an entry's moves become one from where it stood first."""
        for move in applied.moved:
            first = self.moves.get(move.number, move)
            self.moves[move.number] = Moved(move.number, first.origin, move.to)
        self.lost_exact.extend(applied.lost_exact)
        self.damaged.extend(applied.damaged)
