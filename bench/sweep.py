"""`python -m bench.sweep`: one Crystallize decision over a million entries, beside a heap, on one core.

Both are single-threaded and timed by their thread's CPU clock: what else runs on the machine stays out.
"""

from __future__ import annotations

import heapq
import os
import sys
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias

# Read by numpy's libraries when they load.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np

from bench.report import at_least, at_most, write
from shared.memory.crystallize import decide
from shared.memory.energy import Hull, hull
from shared.memory.model import LADDERS, EvictionMode, Kind, SweepColumns
from shared.memory.value import default_tau

ENTRIES = 1_000_000
RUNS = 7
SEED = 20_260_101
LADDER = LADDERS["product"]
BUDGETS = (0.5, 0.25, 0.1, 0.05)
"""Shares of the plain text."""

WHOLE_LADDER = 0.999
"""Of the bytes that rung moves can free: a budget that takes nearly every move there is."""

DECISION_AIM_S = 0.3
RATIO_AIM = 50.0


# price, tie rank, target position, row, bytes freed, the entry's next move
Offer: TypeAlias = "tuple[float, int, int, int, float, Offer | None]"


@dataclass(frozen=True)
class Row:
    """One budget: our decision (median) and the heap's, in seconds of one core; wall time beside."""

    budget: str
    moves: int
    decision_s: float
    wall_s: float
    heap_s: float
    identical: bool

    @property
    def ratio(self) -> float:
        """How often our decision fits into the heap's."""
        return self.heap_s / self.decision_s


def columns(entries: int, seed: int = SEED) -> SweepColumns:
    """Synthetic store, everything at FULL: texts of some 1 KB that pack to .12-.34, four moves each."""
    rng = np.random.default_rng(seed)
    full = np.ceil(rng.lognormal(6.9, 0.7, entries)).clip(100, 2**20)
    packed = full * rng.uniform(0.12, 0.34, entries)
    shares = [rng.uniform(low, high, entries) for low, high in ((0.5, 0.8), (0.25, 0.4), (0.08, 0.15))]
    sizes = np.stack([full, packed, *(packed * share for share in shares)])
    tokens = np.stack([np.full(entries, spec.regeneration_tokens) for spec in LADDER.rungs])
    tokens *= rng.uniform(0.5, 2.0, entries)
    return SweepColumns(
        number=np.arange(entries, dtype=np.int64),
        kind=np.full(entries, Kind.MESSAGE, np.uint8),
        position=np.zeros(entries, np.int8),
        size_bytes=sizes.astype(np.float32).T,
        tokens=tokens.astype(np.float32).T,
        value=rng.gamma(1.0, 0.2, entries).astype(np.float32),
        recalls_last_stage=rng.poisson(0.3, entries).astype(np.int32),
        last_recall=rng.integers(0, entries, entries),
        created=np.arange(entries, dtype=np.int64),
        id_rank=rng.permutation(entries),
        guarded=rng.random(entries) < 0.02,
        exempt=rng.random(entries) < 0.05,
        protected=np.zeros(entries, np.bool_),
        stub_bytes=np.zeros(entries, np.float32),
    )


class Heap:
    """Algorithm 1 as written: pop the cheapest move, demote its entry, offer the entry's next move.

    As lean as Python allows: the hulls, the tie ranks and every move's tuple are made before the clock
    starts, and a pop that has a next move is one `heapreplace`.
    """

    def __init__(self, store: SweepColumns, moves: Hull) -> None:
        rank = np.empty(store.value.size, np.int64)
        keys = (store.id_rank, store.created, store.last_recall, store.recalls_last_stage)
        rank[np.lexsort(keys)] = np.arange(rank.size)
        offer: list[Offer | None] = [None] * rank.size
        for target in range(len(moves.price), 0, -1):
            there = np.flatnonzero(np.isfinite(moves.price[target - 1]))
            price, freed = (
                moves.price[target - 1, there].tolist(),
                moves.freed_bytes[target - 1, there].tolist(),
            )
            for row, tie, cost, gain in zip(there.tolist(), rank[there].tolist(), price, freed, strict=True):
                offer[row] = (cost, tie, target, row, gain, offer[row])
        self._heap = [first for first in offer if first is not None]
        self.position = [0] * rank.size
        self._freed = 0.0
        self.pops = 0
        self.seconds = 0.0

    def run(self, need_bytes: float) -> None:
        """Go on popping until `need_bytes` are free in all; `seconds` and `pops` add up."""
        heap, position, freed, pops = self._heap, self.position, self._freed, self.pops
        begin = time.thread_time()
        if not pops:
            heapq.heapify(heap)
        while freed < need_bytes and heap:
            _, _, target, row, gain, after = heap[0]
            position[row] = target
            freed += gain
            pops += 1
            if after is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, after)
        self.seconds += time.thread_time() - begin
        self._freed, self.pops = freed, pops


def measure(entries: int, runs: int = RUNS) -> list[Row]:
    """Both at every budget, from the widest to the whole ladder; the heap goes on where it stood."""
    store = columns(entries)
    tau = default_tau(store.value)
    full_bytes = float(store.size_bytes[:, 0].sum(dtype=np.float64))
    budgets = {f"{share:.0%} of the text": share * full_bytes for share in BUDGETS}
    moves = hull(store, LADDER, tau, guarded=store.guarded)
    budgets["whole ladder"] = full_bytes - WHOLE_LADDER * float(moves.freed_bytes.sum(dtype=np.float64))
    heap = Heap(store, moves)
    rows = []
    for name, budget_bytes in budgets.items():
        wall, cpu = [], []
        for _ in range(runs):
            begin, begin_cpu = time.perf_counter(), time.thread_time()
            decision = decide(store, LADDER, budget_bytes, EvictionMode.LAST_RESORT, tau)
            wall.append(time.perf_counter() - begin)
            cpu.append(time.thread_time() - begin_cpu)
        heap.run(full_bytes - budget_bytes)
        identical = decision.position.tolist() == heap.position
        rows.append(Row(name, heap.pops, median(cpu), median(wall), heap.seconds, identical))
    return rows


def peak_bytes(entries: int) -> int:
    """Most memory one decision holds beside its input."""
    store = columns(entries)
    tau = default_tau(store.value)
    tracemalloc.start()
    decide(store, LADDER, BUDGETS[-1] * float(store.size_bytes[:, 0].sum()), EvictionMode.LAST_RESORT, tau)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def table(rows: list[Row]) -> str:
    """The rows for people."""
    head = f"{'budget':<18}{'moves':>11}{'decision':>12}{'wall':>11}{'heap':>11}{'ratio':>8}  moved set"
    lines = [
        f"{row.budget:<18}{row.moves:>11,}{row.decision_s * 1e3:>9.0f} ms{row.wall_s * 1e3:>8.0f} ms"
        f"{row.heap_s * 1e3:>8.0f} ms{row.ratio:>7.0f}x  {'identical' if row.identical else 'DIFFERENT'}"
        for row in rows
    ]
    return "\n".join([head, *lines])


def main(out: Path = Path("out/bench/sweep.json"), entries: int = ENTRIES) -> int:
    """Print the table and write the report; a missed aim is reported, not an error."""
    rows = measure(entries)
    slowest = max(row.decision_s for row in rows)
    figures = {
        "entries": float(entries),
        "runs": float(RUNS),
        "decision_s": slowest,
        "decision_wall_s": max(row.wall_s for row in rows),
        "heap_s": rows[-1].heap_s,
        "ratio": rows[-1].ratio,
        "moves": float(rows[-1].moves),
        "identical": float(all(row.identical for row in rows)),
        "peak_bytes": float(peak_bytes(entries)),
    }
    for row in rows:
        name = row.budget.split()[0].rstrip("%")
        figures |= {f"decision_{name}_s": row.decision_s, f"heap_{name}_s": row.heap_s}
    aims = {
        "decision_s": at_most(slowest, DECISION_AIM_S, "s of one core"),
        "ratio": at_least(rows[-1].ratio, RATIO_AIM, "x, whole ladder"),
        "identical": at_least(figures["identical"], 1.0, "(same moved set at every budget)"),
    }
    write(out, figures, aims)
    print(f"{entries:,} entries x 4 moves, product ladder, seconds of one core, median of {RUNS}\n")
    print(f"{table(rows)}\n")
    for name, aim in aims.items():
        print(f"{name:<12}{figures[name]:>10.3f}   aim {aim.aim:<45}{'met' if aim.met else 'MISSED'}")
    print(f"peak memory {figures['peak_bytes'] / 2**20:.0f} MiB beside the columns; written to {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
