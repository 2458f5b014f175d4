"""edge_agent.state: one record a sweep, an event an eviction, loop points, the ledger, and the size cap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_agent.entries import EvictedEntry, EvictionReason, Moved, StageTally
from edge_agent.state import FILE_NAME, Eviction, State, graded_point
from edge_agent.sweep import Sweep
from edge_agent.sweep_report import SweepReport
from shared.host.files import directory_bytes
from shared.memory.model import Kind, MemoryClass, Rung
from shared.ports import LedgerRow
from shared.units import KIB
from tests.planes import fill, flat_pricing, open_store


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with closing(State.open(tmp_path / "state")) as opened:
        yield opened


def report(moves: int, *, first: int = 1) -> SweepReport:
    held = SweepReport(budget_bytes=1000, price=0.5)
    held.moves = {n: Moved(n, Rung.FULL, Rung.TRACE) for n in range(first, first + moves)}
    held.lost_exact = [first, first + moves - 1]
    return held


def evicted(number: int, reason: EvictionReason = EvictionReason.BUDGET) -> EvictedEntry:
    return EvictedEntry(
        number, number.to_bytes(16, "big"), Kind.MEMORY, MemoryClass.EVENT, 0.25, reason, stub=False
    )


def ledger_row(tenant: str, stage: int, tokens: int, *, admitted: bool = True) -> LedgerRow:
    return LedgerRow(
        tenant,
        stage,
        7,
        1,
        Rung.TRACE,
        Rung.SKELETAL,
        "model",
        tokens,
        90,
        admitted,
        "" if admitted else "echo",
        5,
    )


def test_a_sweep_is_one_record_and_an_idle_one_none(state: State) -> None:
    state.record_sweep(SweepReport(1000), stage=1, wall_ns=5)
    state.record_sweep(report(300), stage=2, wall_ns=6)
    rows = state._db.query("SELECT stage, price, length(moves), lost FROM sweep")
    assert [row[:3] for row in rows] == [(2, 0.5, 300 * 6)]
    assert state.lost_exact() == (1, 300)


def test_evictions_are_events_by_number(state: State) -> None:
    state.record_evictions([evicted(9), evicted(4, EvictionReason.POLICY)], stage=1, wall_ns=5)
    state.record_evictions([evicted(6)], stage=2, wall_ns=6)
    first = Eviction(4, (4).to_bytes(16, "big"), Kind.MEMORY, MemoryClass.EVENT, 0.25, EvictionReason.POLICY)
    assert state.evictions(0, 1) == (first,)
    assert [gone.number for gone in state.evictions(4, 10)] == [6, 9]
    assert state.evicted_number((9).to_bytes(16, "big")) == 9
    assert state.evicted_number(b"x" * 16) is None


def test_loop_points_are_of_graded_stages(state: State) -> None:
    state.end_stage(StageTally(1, 4, 2.0, 100), 1.0, None, 5)
    state.end_stage(StageTally(2, 0, 0.0, 50), 0.5, 44.0, 6)
    state.end_stage(StageTally(3, 2, 2.0, 10), 0.25, None, 7)
    points = state.loop_points()
    assert [(point.b, point.capability, point.n) for point in points] == [(1.0, 50.0, 4), (0.25, 100.0, 2)]
    low, high = points[0].interval
    assert 0 < low < 50 < high < 100
    assert points[1].interval[1] == 100
    assert (state.serving_tokens(2), state.serving_tokens(9)) == (50, 0)


def test_the_interval_is_wilsons() -> None:
    point = graded_point(StageTally(1, 10, 8.0, 0), 0.5)
    assert point is not None
    assert point.interval == pytest.approx((49.02, 94.33), abs=0.01)
    assert graded_point(StageTally(1, 0, 0.0, 0), 0.5) is None


def test_the_ledger_adds_up_per_tenant_and_stage(state: State) -> None:
    for row in (
        ledger_row("home", 1, 100),
        ledger_row("home", 1, 60, admitted=False),
        ledger_row("home", 2, 5),
        ledger_row("work", 1, 1000),
    ):
        state.record(row)
    assert state.totals("home") == {"attempts": 3, "admitted": 2, "tokens": 165, "link_bytes": 270}
    assert (state.tokens_spent("home", 1), state.tokens_spent("home", 3)) == (160, 0)
    assert state.totals("nobody")["attempts"] == 0


def test_over_the_cap_the_oldest_audit_goes_and_never_the_ledger(tmp_path: Path) -> None:
    cap = 200 * KIB
    with closing(State.open(tmp_path / "state", cap)) as state:
        state.record(ledger_row("home", 1, 77))
        state.end_stage(StageTally(1, 1, 1.0, 9), 1.0, None, 1)
        for step in range(60):
            state.record_evictions([evicted(1000 * step + n) for n in range(20)], step, wall_ns=step)
            state.record_sweep(report(1000, first=1000 * step + 1), step, wall_ns=step)
        assert directory_bytes(tmp_path / "state") <= cap
        left = [stage for (stage,) in state._db.query("SELECT stage FROM sweep ORDER BY row")]
        assert left == list(range(left[0], 60))
        assert left[0] > 10
        assert state.evictions(0, 1)[0].number >= 1000
        assert state.totals("home")["tokens"] == 77
        assert len(state.loop_points()) == 1


def test_the_books_hold_no_memory_content(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory")) as store, closing(State.open(tmp_path / "state")) as state:
        texts = fill(store, 200, 300)
        store.witness_evictions(lambda gone: state.record_evictions(gone, 1, 5))
        store.set_budget(20_000)
        sweep = Sweep(store, lambda: flat_pricing(store))
        sweep.run()
        state.record_sweep(sweep.report, 1, 5)
        assert {gone.number for gone in state.evictions(0, 1000)} == {e.number for e in sweep.report.evicted}
        state._db.shrink()
        books = (tmp_path / "state" / FILE_NAME).read_bytes()
        assert not any(text[:24].encode() in books for text in texts.values())
