"""Eviction: the last resort, or one more move with a price; what is spared and what a stub leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.memory.crystallize import decide, plan
from shared.memory.model import Kind, Ladder, Rung
from tests.unit.columns import PRODUCT, stores, sweep_columns
from tests.unit.sweeps import (
    LAST_RESORT,
    PRICED,
    ROW,
    TAU,
    between,
    ladders,
    shares,
    swept,
)


def test_last_resort_evicts_only_when_no_rung_move_is_left_by_value_per_byte() -> None:
    sizes = [[100.0, 40.0, 30.0, 20.0, last] for last in (10.0, 10.0, 5.0)]
    # Row 2 has the least value, row 1 the least a byte.
    columns = sweep_columns(sizes, value=[0.4, 0.2, 0.15])
    assert swept(columns, 25) == [4, 4, 4]
    assert swept(columns, 24) == [4, 5, 4]
    assert swept(columns, 14) == [4, 5, 5]
    assert swept(columns, 9) == [5, 5, 5]


def test_equal_value_per_byte_goes_by_the_same_ties() -> None:
    columns = sweep_columns([ROW] * 3, recalls_last_stage=[0, 1, 0], last_recall=[5, 0, 4])
    assert swept(columns, 25) == [4, 4, 5]
    assert swept(columns, 15) == [5, 4, 5]


def test_exempt_rows_go_last() -> None:
    columns = sweep_columns([ROW] * 3, exempt=[1, 0, 1], value=[0.0, 9.0, 0.1])
    assert swept(columns, 20) == [4, 5, 4]
    assert swept(columns, 19) == [5, 5, 4]


def test_a_stub_stays_where_all_layers_are_acked() -> None:
    columns = sweep_columns([ROW] * 2, stub_bytes=[6, 0], value=[0.1, 0.2])
    decision = decide(columns, PRODUCT, 16, LAST_RESORT, TAU)
    assert (decision.position.tolist(), decision.size_after_bytes) == ([5, 4], 16)
    decision = decide(columns, PRODUCT, 6, LAST_RESORT, TAU)
    assert (decision.position.tolist(), decision.size_after_bytes) == ([5, 5], 6)


def test_priced_eviction_competes_with_every_other_move() -> None:
    # Keeping the worthless long row at TRACE would cost the valuable one a rung.
    sizes = [[100.0, 90.0, 80.0, 70.0, 60.0], [100.0, 40.0, 30.0, 20.0, 10.0]]
    columns = sweep_columns(sizes, stub_bytes=[6, 6], value=[0.01, 2.0])
    assert swept(columns, 50, PRICED) == [5, 1]
    assert swept(columns, 70, LAST_RESORT) == [4, 4]
    nothing_left = replace(columns, stub_bytes=np.zeros(2, np.float32))
    assert swept(nothing_left, 40, PRICED) == [5, 1]


def test_a_short_fact_goes_before_others_lose_what_makes_them_useful() -> None:
    # Rows of 90 bytes around texts of 60: rungs free next to nothing, and nothing is left of a fact at TRACE.
    sizes = [[150.0, 125.0, 120.0, 110.0, 105.0]] * 3
    facts = sweep_columns(sizes, kind=[Kind.MEMORY] * 3, value=[0.1, 0.2, 0.3])
    assert swept(facts, 260, PRICED) == [5, 1, 1]


@settings(max_examples=60)
@given(st.data(), ladders, shares)
def test_protected_rows_go_only_when_no_other_is_left(
    data: st.DataObject, ladder: Ladder, share: float
) -> None:
    columns = data.draw(stores(ladder))
    columns = replace(columns, stub_bytes=np.zeros_like(columns.stub_bytes))
    position = decide(columns, ladder, between(columns, share), PRICED, TAU).position
    evicted = position == len(ladder.rungs)
    if evicted[columns.protected].any():
        assert evicted[~columns.protected & ~columns.exempt].all()


@settings(max_examples=60)
@given(st.data(), ladders, shares)
def test_exempt_rows_are_evicted_only_after_all_others(
    data: st.DataObject, ladder: Ladder, share: float
) -> None:
    columns = data.draw(stores(ladder))
    columns = replace(columns, stub_bytes=np.zeros_like(columns.stub_bytes))
    position = decide(columns, ladder, between(columns, share), LAST_RESORT, TAU).position
    evicted = position == len(ladder.rungs)
    if evicted[columns.exempt].any():
        assert evicted[~columns.exempt].all()


def test_evictions_follow_rung_moves_in_a_plan() -> None:
    columns = sweep_columns([ROW] * 2, value=[0.0, 4.0], tokens=[[0, 0, 64, 160, 320]] * 2)
    decided = plan(columns, PRODUCT, 10, LAST_RESORT, TAU)
    assert [(move.number, move.to) for move in decided.moves] == [(101, Rung.TRACE), (100, Rung.EVICTED)]
    # The price of an eviction is v / mu, not what the moves before it cost.
    assert decided.moves[1].price == 0.0
