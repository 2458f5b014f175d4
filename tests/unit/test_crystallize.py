"""The sweep: every budget kept, the cheapest moves first, one span from the optimum, and the guard."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import PermanentError
from shared.memory.crystallize import (
    SLACK_ALONE,
    Decision,
    aim_bytes,
    decide,
    floor_bytes,
    plan,
    sweep_plan,
    trace_bytes,
)
from shared.memory.energy import energies, guard_limit
from shared.memory.model import LADDERS, EvictionMode, Ladder, Rung
from tests.unit.columns import NOT_OFFERED, PAPER, PRODUCT, bytes_at, stores, sweep_columns
from tests.unit.sweeps import (
    LAST_RESORT,
    PRICED,
    ROW,
    TAU,
    between,
    ladders,
    modes,
    move_order,
    shares,
    swept,
)

# --- budgets -------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(st.data(), ladders, modes, shares)
def test_any_budget_at_or_over_the_floor_is_kept(
    data: st.DataObject, ladder: Ladder, mode: EvictionMode, share: float
) -> None:
    columns = data.draw(stores(ladder))
    budget = between(columns, share)
    decision = decide(columns, ladder, budget, mode, TAU)
    assert decision.feasible
    assert decision.size_before_bytes == bytes_at(columns, columns.position)
    assert decision.size_after_bytes == bytes_at(columns, decision.position) <= budget
    assert (decision.position >= columns.position).all()


@settings(max_examples=60)
@given(st.data(), ladders, modes)
def test_a_budget_under_the_floor_is_infeasible_and_ends_at_the_floor(
    data: st.DataObject, ladder: Ladder, mode: EvictionMode
) -> None:
    columns = data.draw(stores(ladder))
    floor = floor_bytes(columns)
    decision = decide(columns, ladder, floor - 1, mode, TAU)
    assert not decision.feasible
    assert decision.size_after_bytes == bytes_at(columns, decision.position) == floor


def test_a_budget_that_holds_moves_nothing() -> None:
    columns = sweep_columns([ROW] * 3)
    decided = plan(columns, PRODUCT, 300, LAST_RESORT, TAU)
    assert (decided.moves, decided.water_level, decided.feasible) == ((), 0.0, True)


def test_an_empty_store_fits_any_budget_from_nothing_up() -> None:
    assert decide(sweep_columns([]), PRODUCT, 0, PRICED, TAU).feasible


def test_a_dry_run_changes_nothing() -> None:
    columns = sweep_columns([ROW] * 3, stub_bytes=[8] * 3)
    before = {name: column.copy() for name, column in vars(columns).items()}
    decide(columns, PRODUCT, 24, PRICED, TAU)
    assert all((before[name] == column).all() for name, column in vars(columns).items())


def test_a_row_whose_present_size_is_unknown_is_refused() -> None:
    with pytest.raises(PermanentError):
        decide(sweep_columns([[100, NOT_OFFERED, 30, 20, 10]], position=[1]), PRODUCT, 50, LAST_RESORT, TAU)


def test_floor_and_trace_bytes() -> None:
    columns = sweep_columns([ROW, ROW, ROW], stub_bytes=[0, 8, 24])
    # A stub larger than the trace is no saving.
    assert floor_bytes(columns) == 0 + 8 + 10
    assert trace_bytes(columns) == 30


@pytest.mark.parametrize(
    ("budget", "aim"),
    [(100 << 20, 99 << 20), (10 << 20, (10 << 20) - (256 << 10)), (1 << 20, 0.95 * (1 << 20))],
)
def test_the_aim_leaves_room_for_writes(budget: float, aim: float) -> None:
    assert aim_bytes(budget) == pytest.approx(aim)
    assert aim_bytes(budget, SLACK_ALONE) == pytest.approx(max(aim, 0.98 * budget))


# --- order and energy ----------------------------------------------------------------------------


@settings(max_examples=80)
@given(st.data(), ladders, shares)
def test_moves_are_taken_cheapest_first_and_no_more_than_needed(
    data: st.DataObject, ladder: Ladder, share: float
) -> None:
    columns = data.draw(stores(ladder))
    order = move_order(columns, ladder)
    bottom = columns.position.copy()
    for row, target in order:
        bottom[row] = target
    floor = bytes_at(columns, bottom)
    budget = floor + share * (bytes_at(columns, columns.position) - floor)
    expected = columns.position.copy()
    for row, target in order:
        if bytes_at(columns, expected) <= budget:
            break
        expected[row] = target
    assert decide(columns, ladder, budget, LAST_RESORT, TAU).position.tolist() == expected.tolist()


@settings(max_examples=80)
@given(st.data(), ladders, shares)
def test_energy_is_within_one_entrys_span_of_the_optimum(
    data: st.DataObject, ladder: Ladder, share: float
) -> None:
    columns = data.draw(stores(ladder, most=4, marks=False))
    trace = trace_bytes(columns)
    budget = trace + share * (bytes_at(columns, columns.position) - trace)
    eta = energies(columns, ladder, TAU).astype(float)
    decision = decide(columns, ladder, budget, LAST_RESORT, TAU)
    choices = [
        [k for k in range(int(at), len(ladder.rungs)) if np.isfinite(eta[k, row])]
        for row, at in enumerate(columns.position)
    ]
    best = min(
        sum(eta[k, row] for row, k in enumerate(choice))
        for choice in itertools.product(*choices)
        if bytes_at(columns, choice) <= budget
    )
    span = max(
        max(eta[k, row] for k in own) - eta[int(columns.position[row]), row]
        for row, own in enumerate(choices)
    )
    reached = sum(eta[k, row] for row, k in enumerate(decision.position))
    assert reached <= best + span + 1e-4


@settings(max_examples=50)
@given(st.data(), ladders, shares, shares)
def test_fronts_are_nested(data: st.DataObject, ladder: Ladder, one: float, other: float) -> None:
    columns = data.draw(stores(ladder, marks=False))
    trace = trace_bytes(columns)
    room = bytes_at(columns, columns.position) - trace
    wide, narrow = (
        decide(columns, ladder, trace + share * room, LAST_RESORT, TAU)
        for share in sorted((one, other), reverse=True)
    )
    assert (narrow.position >= wide.position).all()
    assert narrow.water_level >= wide.water_level


def test_valuable_entries_sink_last() -> None:
    columns = sweep_columns([ROW] * 3, position=[1] * 3, value=[0.9, 0.1, 0.5])
    assert swept(columns, 110) == [1, 2, 1]
    assert swept(columns, 100) == [1, 3, 1]
    assert swept(columns, 80) == [1, 4, 2]


def test_packing_comes_before_any_loss_and_the_cold_and_old_are_packed_first() -> None:
    columns = sweep_columns(
        [ROW] * 5,
        value=[0.0, 0.0, 0.9, 0.0, 0.0],
        tokens=[[0, 0, 1, 2, 3]] * 5,
        recalls_last_stage=[1, 0, 0, 0, 0],
        last_recall=[0, 7, 3, 3, 3],
        created=[0, 0, 1, 2, 1],
        id_rank=[0, 1, 4, 2, 3],
    )
    sank = [swept(columns, 500 - 60 * packed) for packed in range(1, 6)]
    first_packed = [
        next(row for row in range(5) if after[row] == 1 and before[row] == 0)
        for before, after in itertools.pairwise([[0] * 5, *sank])
    ]
    assert first_packed == [4, 2, 3, 1, 0]
    assert all(max(after) == 1 for after in sank)


def test_regeneration_costs_count() -> None:
    # Same value and bytes; the archive gives row 1 back for nothing.
    columns = sweep_columns([ROW] * 2, position=[1, 1], tokens=[[0, 0, 64, 160, 320], [0] * 5])
    assert swept(columns, 60) == [1, 3]


def test_moves_say_origin_final_rung_and_price_in_the_order_of_the_front() -> None:
    columns = sweep_columns([ROW] * 3, value=[0.5, 0.1, 0.9])
    decided = plan(columns, PRODUCT, 80, LAST_RESORT, TAU)
    # Row 1 falls to TRACE at .0025 a byte, which is less than row 0's first loss at .0075.
    assert [(move.number, move.origin, move.to) for move in decided.moves] == [
        (102, Rung.FULL, Rung.PACKED),
        (101, Rung.FULL, Rung.TRACE),
        (100, Rung.FULL, Rung.COMPRESSED),
    ]
    prices = [move.price for move in decided.moves]
    assert prices == sorted(prices)
    assert decided.water_level == prices[-1]
    assert (decided.size_before_bytes, decided.size_after_bytes) == (300, 80)


@settings(max_examples=60)
@given(st.data(), ladders, modes, shares)
def test_the_plan_is_the_decision(
    data: st.DataObject, ladder: Ladder, mode: EvictionMode, share: float
) -> None:
    columns = data.draw(stores(ladder))
    decision = decide(columns, ladder, between(columns, share), mode, TAU)
    rungs = [*(spec.rung for spec in ladder.rungs), Rung.EVICTED]
    moves = {move.number: move for move in sweep_plan(columns, ladder, decision).moves}
    for row, number in enumerate(columns.number.tolist()):
        before, after = rungs[columns.position[row]], rungs[decision.position[row]]
        assert (number in moves) == (before is not after)
        if number in moves:
            assert (moves[number].origin, moves[number].to) == (before, after)
            assert np.isfinite(moves[number].price)


@pytest.mark.parametrize("name", list(LADDERS))
def test_every_ladder_descends_to_its_last_rung(name: str) -> None:
    ladder = LADDERS[name]
    sizes = [100.0 / (k + 1) for k in range(len(ladder.rungs))]
    columns = sweep_columns([sizes] * 2, tokens=[[spec.regeneration_tokens for spec in ladder.rungs]] * 2)
    decided = plan(columns, ladder, trace_bytes(columns), LAST_RESORT, TAU)
    assert {move.to for move in decided.moves} == {ladder.rungs[-1].rung} - {Rung.FULL}
    decided = plan(columns, ladder, 0, LAST_RESORT, TAU)
    assert {move.to for move in decided.moves} == {Rung.EVICTED}


# --- the guard -----------------------------------------------------------------------------------


def test_a_guarded_entry_stays_at_skeletal_while_anything_else_fits() -> None:
    columns = sweep_columns([ROW] * 3, guarded=[1, 0, 0], value=[0.0, 9.0, 9.0])
    decision = decide(columns, PRODUCT, 20 + 10 + 10, LAST_RESORT, TAU)
    assert decision.position.tolist() == [3, 4, 4]
    # Rather than let the guard yield, an unguarded entry is evicted.
    decision = decide(columns, PRODUCT, 30, LAST_RESORT, TAU)
    assert (decision.position.tolist(), decision.guard_yielded) == ([3, 5, 4], 0)


def test_the_guard_yields_when_nothing_else_fits_and_is_counted() -> None:
    columns = sweep_columns([ROW] * 3, guarded=[1, 1, 0], exempt=[0, 0, 1], value=[0.1, 0.2, 9.0])
    decision = decide(columns, PRODUCT, 40, LAST_RESORT, TAU)
    assert (decision.position.tolist(), decision.guard_yielded) == ([4, 3, 4], 1)
    decision = decide(columns, PRODUCT, 20, LAST_RESORT, TAU)
    assert (decision.position.tolist(), decision.guard_yielded) == ([5, 4, 4], 2)


def test_an_entry_that_was_below_skeletal_before_it_was_guarded_does_not_count() -> None:
    columns = sweep_columns([ROW], guarded=[1], position=[4])
    decision = decide(columns, PRODUCT, 10, LAST_RESORT, TAU)
    assert (decision.position.tolist(), decision.guard_yielded) == ([4], 0)


@settings(max_examples=60)
@given(st.data(), ladders, shares)
def test_the_guard_yields_only_when_all_free_rows_are_gone(
    data: st.DataObject, ladder: Ladder, share: float
) -> None:
    columns = data.draw(stores(ladder))
    decision = decide(columns, ladder, between(columns, share), LAST_RESORT, TAU)
    limit = np.maximum(columns.position, guard_limit(ladder))
    yielded = columns.guarded & (decision.position > limit)
    assert decision.guard_yielded == yielded.sum()
    kept = ~columns.guarded & ~columns.exempt & (decision.position < len(ladder.rungs))
    for row in np.flatnonzero(kept & yielded.any()):
        # A free row is still there only where its stub would be no smaller.
        assert columns.stub_bytes[row] > 0
        assert columns.stub_bytes[row] >= columns.size_bytes[row, decision.position[row]]


# --- ladders ---------------------------------------------------------------------------------------


def test_binary_ladders_keep_whole_or_drop() -> None:
    columns = sweep_columns([[50.0]] * 4, value=[0.3, 0.1, 0.4, 0.2], tokens=[[0.0]] * 4)
    decision = decide(columns, LADDERS["verbatim"], 100, LAST_RESORT, TAU)
    assert decision.position.tolist() == [0, 1, 0, 1]


def test_the_paper_ladder_never_packs() -> None:
    columns = sweep_columns([[100.0, 50.0, 25.0, 8.0]] * 4)
    moves = plan(columns, PAPER, 120, LAST_RESORT, TAU).moves
    assert {move.to for move in moves} <= {Rung.COMPRESSED, Rung.SKELETAL, Rung.TRACE}


def test_a_decision_is_the_same_every_time() -> None:
    rng = np.random.default_rng(5)
    columns = sweep_columns(np.sort(rng.integers(1, 999, (500, 5)))[:, ::-1].tolist(), value=rng.random(500))
    one, two = (decide(columns, PRODUCT, 60_000, LAST_RESORT, TAU) for _ in range(2))
    assert isinstance(one, Decision)
    assert (one.position == two.position).all()
    assert one.size_after_bytes == two.size_after_bytes
