"""Eq. 8 and 9, the store's scale, the prior: the golden values and every clause of the rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.memory.value import (
    Edges,
    ValueColumns,
    ValueMode,
    advantage,
    coupled,
    coupled_values,
    decay,
    default_tau,
    influence,
    prior,
    scale,
    values,
    weights,
)

NO_EDGES = np.zeros(0)
outcomes = st.floats(0.0, 1.0)


def no_edges(n: int) -> Edges:
    return Edges.symmetric(n, NO_EDGES, NO_EDGES, NO_EDGES)


def value_columns(raw: list[float], **given_columns: Any) -> ValueColumns:
    n = len(raw)
    columns: dict[str, Any] = {
        "idle_stages": np.zeros(n, np.int32),
        "grades": np.full(n, 9, np.int32),
        "recalls": np.zeros(n, np.int32),
        "age_stages": np.zeros(n),
        "edges": no_edges(n),
        "idle_turns": np.zeros(n),
        "text_bytes": np.full(n, 100.0),
    }
    columns |= {k: v if k == "edges" else np.asarray(v) for k, v in given_columns.items()}
    return ValueColumns(influence=np.asarray(raw, float), **columns)


# --- Eq. 8 ---------------------------------------------------------------------------------------


def test_golden_influence() -> None:
    assert influence(0.2, 0.5, 1.0, [0, 0, 1, 1]) == pytest.approx(0.95 * 0.2 + 0.05 * 0.5 * 1, abs=1e-12)


@pytest.mark.parametrize("window", [[0.7], [], [0.1] * 10, [0.1 + 0.2, 0.3], [float(np.float16(0.3)), 0.3]])
def test_no_spread_no_advantage(window: list[float]) -> None:
    assert advantage(window[-1] if window else 1.0, window) == 0.0


def test_two_outcomes_are_a_spread() -> None:
    assert advantage(1.0, [0.0, 1.0]) == 1.0


def test_only_the_last_hundred_outcomes_count() -> None:
    recent = [0.0, 1.0] * 50
    assert advantage(1.0, [1.0] * 500 + recent) == advantage(1.0, recent) == pytest.approx(1.0)


@given(st.lists(outcomes, min_size=1, max_size=120))
def test_advantage_is_bounded_by_the_window(window: list[float]) -> None:
    # The present outcome is one of n, so it is at most sqrt(n - 1) deviations from their mean.
    n = min(len(window), 100)
    assert abs(advantage(window[-1], window)) <= math.sqrt(max(n - 1, 0)) + 1e-6


def test_decay_is_gamma_per_stage() -> None:
    assert decay([1.0, 1.0, -1.0], [0, 2, 1]) == pytest.approx([1.0, 0.9025, -0.95])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.sampled_from(ValueMode))
def test_weights_are_shares(scores: list[float], mode: ValueMode) -> None:
    share = weights(scores, mode)
    assert (share >= 0).all()
    assert share.sum() == pytest.approx(1.0)
    assert share[np.argmax(scores)] == share.max()


def test_weights_of_the_paper_are_the_scores_proportions() -> None:
    assert weights([3.0, 1.0], ValueMode.PAPER) == pytest.approx([0.75, 0.25])
    assert weights([2.0, -1.0, 0.0], ValueMode.PAPER) == pytest.approx([1.0, 0.0, 0.0])
    assert weights([-1.0, 0.0, math.nan, -3.0], ValueMode.PAPER) == pytest.approx([0.25] * 4)


def test_weights_are_by_what_would_come_in_an_entrys_place() -> None:
    # 3 and 1 above the weakest: 9 to 1.
    assert weights([5.0, 3.0, 2.0]) == pytest.approx([0.9, 0.1, 0.0])
    assert weights([7.0]) == pytest.approx([1.0])
    assert weights([2.0, 2.0]) == pytest.approx([0.5, 0.5])
    assert weights([]).size == 0


# --- Eq. 9 ---------------------------------------------------------------------------------------


def test_golden_coupling() -> None:
    edges = Edges.symmetric(3, [0, 0], [1, 2], [3, 1])
    assert coupled([0.1, 0.4, -0.2], edges)[0] == pytest.approx(0.175, abs=1e-12)


def test_edges_add_up_both_ways_and_drop_loops() -> None:
    edges = Edges.symmetric(4, [0, 1, 2, 3, 1], [1, 0, 2, 1, 3], [2, 1, 5, 1, 0])
    assert edges.indptr.tolist() == [0, 1, 3, 3, 4]
    assert edges.neighbour.tolist() == [1, 0, 3, 1]
    assert edges.count.tolist() == [3, 3, 1, 1]


def test_without_edges_full_and_lite_agree() -> None:
    raw = [0.1, -0.3, 0.0]
    assert coupled(raw, no_edges(3), 0.3) == pytest.approx(raw)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8), st.integers(1, 9))
def test_coupling_moves_at_most_lambda_times_the_strongest_neighbour(raw: list[float], count: int) -> None:
    chain = Edges.symmetric(len(raw), range(len(raw) - 1), range(1, len(raw)), [count] * (len(raw) - 1))
    moved = np.abs(coupled(raw, chain) - raw)
    assert moved.max() <= 0.3 * max(map(abs, raw)) + 1e-12


# --- scale ---------------------------------------------------------------------------------------


def test_scale_puts_the_ninetieth_percentile_at_one_half() -> None:
    tilde = np.concatenate([np.linspace(0.001, 0.02, 50), np.full(30, -5.0)])
    s = scale(tilde)
    assert np.percentile(s * tilde[tilde > 0], 90) == pytest.approx(0.5)


def test_scale_waits_for_twenty_positive_values() -> None:
    assert scale([0.01] * 19 + [-1.0] * 50) == 1.0
    assert scale([0.01] * 20) == pytest.approx(50.0)


def test_values_that_have_all_but_faded_do_not_blow_up_the_scale() -> None:
    assert scale([1e-310] * 40) == 1.0
    assert values(value_columns([1e-310] * 40 + [0.0], grades=[9] * 40 + [0]))[-1] == pytest.approx(0.05)


def test_a_stage_keeps_the_factor_of_its_start() -> None:
    assert values(value_columns([0.01] * 30), factor=2.0) == pytest.approx([0.04] * 30)


# --- v of Eq. 6: the paper's -----------------------------------------------------------------------


def papers(raw: list[float], **given_columns: Any) -> Any:
    return values(value_columns(raw, **given_columns), ValueMode.PAPER)


def test_paper_mode_does_not_scale() -> None:
    assert papers([0.01] * 30) == pytest.approx([0.01] * 30)


def test_graded_entries_have_their_coupled_value_and_never_less_than_nothing() -> None:
    edges = Edges.symmetric(3, [1], [2], [1])
    # Row 1 is pulled below 0 by its neighbour, row 2 is itself negative with enough grades.
    assert papers([0.2, 0.0, -0.9], edges=edges) == pytest.approx([0.2, 0.0, 0.0])


def test_idle_stages_decay_before_anything_else() -> None:
    columns = value_columns([0.2, 0.2], idle_stages=[0, 3])
    assert values(columns, ValueMode.PAPER) == pytest.approx([0.2, 0.2 * 0.95**3])
    assert coupled_values(columns) == pytest.approx([0.2, 0.2 * 0.95**3])


def test_a_never_graded_entry_starts_at_the_median_and_fades() -> None:
    found = papers([0.1, 0.3, 0.8, 0.0, 0.0, 0.0], grades=[9, 9, 9, 0, 0, 0], age_stages=[0, 0, 0, 0, 7, 70])
    assert found[3:] == pytest.approx([0.3, 0.3 * math.exp(-1), 0.03])


def test_recalls_raise_the_papers_prior_to_at_most_twice() -> None:
    assert prior([1.0], [0, 5, 10_000], [0, 0, 0]) == pytest.approx([1.0, 1.5, 2.0], rel=1e-3)


def test_the_prior_is_five_hundredths_while_nothing_is_positive() -> None:
    assert papers([-0.1, 0.0], grades=[9, 0]) == pytest.approx([0.0, 0.05])


def test_a_disproven_entry_is_worth_nothing_to_the_paper_whatever_its_neighbours_are() -> None:
    edges = Edges.symmetric(2, [0], [1], [1])
    columns = value_columns([0.9, -0.1], edges=edges)
    assert coupled_values(columns)[1] > 0
    assert values(columns, ValueMode.PAPER)[1] == 0


def test_few_bad_grades_are_not_believed_and_five_are() -> None:
    assert papers([0.4, -0.1, -0.1], grades=[9, 4, 5]) == pytest.approx([0.4, 0.4, 0.0])
    assert papers([0.4, 0.0, 0.0], grades=[9, 4, 5]) == pytest.approx([0.4, 0.4, 0.0])


# --- v of Eq. 6: ours --------------------------------------------------------------------------------


def test_what_was_served_comes_on_top_of_what_may_be_expected() -> None:
    # The median of what is positive is .3: expected of each, and .1, .3 and .8 have been seen.
    found = values(value_columns([0.1, 0.3, 0.8, 0.0], grades=[9, 9, 9, 0]))
    assert found == pytest.approx([0.4, 0.6, 1.1, 0.3])


def test_what_did_badly_is_expected_less_of_the_more_often_it_did() -> None:
    found = values(value_columns([0.4, -0.1, -0.1, -0.1], grades=[9, 0, 5, 45]))
    assert found[1:] == pytest.approx([0.4, 0.2, 0.04])


def test_an_entry_is_expected_to_serve_as_often_as_it_was_recalled() -> None:
    found = values(value_columns([0.4, 0.0, 0.0], grades=[9, 0, 0], recalls=[0, 0, 3]))
    assert found[2] == pytest.approx(4 * found[1])


def test_an_untouched_entry_fades_by_the_turns_of_its_store_not_by_stages() -> None:
    columns = value_columns(
        [0.0] * 4, grades=[0] * 4, idle_turns=[0, 1 / 0.3, 2 / 0.3, 1e9], age_stages=[70] * 4
    )
    assert values(columns) == pytest.approx([0.05, 0.025, 0.0125, 0.05 / 2**8])


def test_equal_expectations_cost_the_same_a_byte() -> None:
    found = values(value_columns([0.0] * 3, grades=[0] * 3, text_bytes=[50, 100, 400]))
    assert found == pytest.approx([0.025, 0.05, 0.2])


def test_expectations_are_scaled_like_the_rest() -> None:
    columns = value_columns([0.01] * 30 + [0.0], grades=[9] * 30 + [0])
    assert values(columns)[-1] == pytest.approx(0.5)


@given(
    st.lists(
        st.tuples(
            st.floats(-2, 2),
            st.integers(0, 9),
            st.integers(0, 50),
            st.floats(0, 99),
            st.integers(0, 40),
            st.integers(0, 10**6),
        ),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from(ValueMode),
)
def test_values_are_finite_and_not_negative(rows: list[tuple[Any, ...]], mode: ValueMode) -> None:
    raw, grades, recalls, age, idle, size = (list(column) for column in zip(*rows, strict=True))
    pairs = np.arange(len(rows) - 1)
    columns = value_columns(
        raw,
        grades=grades,
        recalls=recalls,
        age_stages=age,
        idle_stages=idle,
        idle_turns=age,
        text_bytes=size,
        edges=Edges.symmetric(len(rows), pairs, pairs + 1, np.ones(len(pairs))),
    )
    worth = values(columns, mode)
    assert worth.dtype == np.float32
    assert np.isfinite(worth).all()
    assert (worth >= 0).all()
    never = np.asarray(grades) == 0
    assert (worth[never] > 0).all()


# --- tau -----------------------------------------------------------------------------------------


def test_default_tau_makes_tokens_weigh_as_much_as_loss_at_the_median_entry() -> None:
    tau = default_tau([0.1, 0.4, 0.9])
    assert tau * 160 == pytest.approx(0.4 * (1 - 0.65))


def test_tau_of_an_empty_store_and_of_the_paper() -> None:
    assert default_tau([]) == pytest.approx(0.35 * 0.05 / 160)
    assert default_tau([0.4], ValueMode.PAPER) == 0.001
