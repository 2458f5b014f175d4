"""Recovery: the golden order, every cap, one rung at a time, nothing unpacked because bytes are free."""

from __future__ import annotations

import numpy as np
import pytest

from shared.memory.model import Promotion, Rung, Source
from shared.memory.recrystallize import RecoveryCaps, RecoveryColumns, plan
from tests.unit.columns import NOT_OFFERED, PAPER, PRODUCT, recovery_columns

ROW = [1000.0, 200.0, 120.0, 60.0, 20.0]
PAPER_ROW = [1000.0, 500.0, 250.0, 80.0]
FULL, PACKED, COMPRESSED, SKELETAL, TRACE, EVICTED = range(6)


def caps(headroom: float, *, tokens: float = 0.0, used: float = 0.0, archive: float = np.inf) -> RecoveryCaps:
    return RecoveryCaps(budget_bytes=used + headroom, used_bytes=used, tokens=tokens, archive_bytes=archive)


def steps(promotions: tuple[Promotion, ...]) -> list[tuple[int, Rung, Rung, Source]]:
    return [(p.number - 100, p.origin, p.to, p.source) for p in promotions]


# --- the golden order ----------------------------------------------------------------------------


def golden(hot: int = 9) -> RecoveryColumns:
    """b .25 -> .5: lossy and archived, lossy and not archived, packed and hot, evicted to a stub."""
    return recovery_columns(
        [ROW] * 5,
        [PACKED, TRACE, SKELETAL, SKELETAL, EVICTED],
        exact_source=[0, 0, 1, 0, 1],
        model_source=[0, 1, 1, 1, 0],
        value=[9.0, 0.2, 0.5, 0.9, 0.5],
        recalls_last_stage=[hot, 5, 0, 0, 0],
    )


def test_golden_recovery_order() -> None:
    promotions = plan(golden(), PRODUCT, caps(5_000, tokens=10_000))
    assert steps(promotions) == [
        (4, Rung.EVICTED, Rung.PACKED, Source.ARCHIVE),
        (2, Rung.SKELETAL, Rung.PACKED, Source.ARCHIVE),
        (3, Rung.SKELETAL, Rung.COMPRESSED, Source.MODEL),
        (1, Rung.TRACE, Rung.SKELETAL, Source.MODEL),
        (3, Rung.COMPRESSED, Rung.FULL, Source.MODEL),
        (1, Rung.SKELETAL, Rung.COMPRESSED, Source.MODEL),
        (1, Rung.COMPRESSED, Rung.FULL, Source.MODEL),
        (0, Rung.PACKED, Rung.FULL, Source.UNPACK),
    ]


def test_headroom_goes_to_restores_and_drafts_before_unpacking() -> None:
    # 320 bytes are just the two exact restores: nothing is left for the hot entry.
    promotions = plan(golden(), PRODUCT, caps(320, tokens=10_000, used=600))
    assert [p.source for p in promotions] == [Source.ARCHIVE] * 2
    # 120 more are a first draft for each; a whole unpacking would have needed 800.
    promotions = plan(golden(), PRODUCT, caps(500, tokens=200, used=600))
    assert [p.source for p in promotions] == [Source.ARCHIVE] * 2 + [Source.MODEL] * 2


def test_nothing_is_unpacked_because_bytes_are_free() -> None:
    promotions = plan(golden(hot=2), PRODUCT, caps(1e9))
    assert Source.UNPACK not in {p.source for p in promotions}


# --- exact restores ------------------------------------------------------------------------------


def test_restores_go_by_value_times_gain_per_byte_and_the_worthless_come_last() -> None:
    columns = recovery_columns(
        [ROW] * 4,
        [SKELETAL, TRACE, TRACE, EVICTED],
        exact_source=[1] * 4,
        value=[0.5, 0.5, 0.0, 0.4],
    )
    # Per byte: .5 x .35 / 140, .5 x .6 / 180, nothing, .4 x 1 / 180.
    assert [number for number, *_ in steps(plan(columns, PRODUCT, caps(1e6)))] == [3, 1, 0, 2]


def test_worthless_entries_are_restored_cheapest_gain_first() -> None:
    # .6 / 180 bytes before .35 / 140.
    columns = recovery_columns([ROW] * 2, [TRACE, SKELETAL], exact_source=[1, 1], value=[0.0, 0.0])
    assert [number for number, *_ in steps(plan(columns, PRODUCT, caps(1e6)))] == [0, 1]


def test_equal_rows_rise_in_the_reverse_of_the_order_in_which_they_sink() -> None:
    columns = recovery_columns(
        [ROW] * 4,
        [TRACE] * 4,
        exact_source=[1] * 4,
        recalls_last_stage=[0, 0, 2, 0],
        last_recall=[5, 9, 0, 9],
        created=[0, 1, 0, 0],
    )
    assert [number for number, *_ in steps(plan(columns, PRODUCT, caps(1e6)))] == [2, 1, 3, 0]


@pytest.mark.parametrize(
    ("headroom", "to"),
    [(180, Rung.PACKED), (179, Rung.COMPRESSED), (99, Rung.SKELETAL), (39, None)],
)
def test_a_restore_takes_the_highest_rung_that_fits(headroom: float, to: Rung | None) -> None:
    columns = recovery_columns([ROW], [TRACE], exact_source=[1])
    assert [p.to for p in plan(columns, PRODUCT, caps(headroom))] == ([] if to is None else [to])


def test_a_large_entry_does_not_block_the_smaller_ones_behind_it() -> None:
    big = [9000.0, 2000.0, 1500.0, 1200.0, 1100.0]
    columns = recovery_columns([big, ROW], [EVICTED, TRACE], exact_source=[1, 1], value=[50.0, 0.1])
    assert [(n, to) for n, _, to, _ in steps(plan(columns, PRODUCT, caps(200)))] == [(1, Rung.PACKED)]


def test_a_restore_skips_rungs_that_are_not_offered() -> None:
    columns = recovery_columns([[1000.0, 200.0, NOT_OFFERED, 60.0, 20.0]], [TRACE], exact_source=[1])
    assert [p.to for p in plan(columns, PRODUCT, caps(150))] == [Rung.SKELETAL]


def test_the_archive_cap_binds() -> None:
    columns = recovery_columns([ROW] * 3, [TRACE] * 3, exact_source=[1] * 3, archive_bytes=[30, 50, 15])
    promotions = plan(columns, PRODUCT, caps(1e6, archive=46))
    # In order 2, 1, 0 (created last rises first): 15, then 50 is too much, then 30.
    assert [number for number, *_ in steps(promotions)] == [2, 0]


def test_the_paper_ladder_restores_to_full() -> None:
    columns = recovery_columns([PAPER_ROW] * 2, [3, 4], exact_source=[1, 1])
    assert {p.to for p in plan(columns, PAPER, caps(1e6))} == {Rung.FULL}
    assert [p.to for p in plan(columns, PAPER, caps(500))] == [Rung.COMPRESSED]


def test_an_overlay_goes_when_its_base_is_as_good() -> None:
    columns = recovery_columns(
        [ROW] * 2,
        [TRACE, TRACE],
        exact_source=[1, 1],
        overlay_position=[FULL, COMPRESSED],
        overlay_bytes=[900, 110],
        value=[0.5, 0.5],
    )
    # The original at PACKED is as good as a generated FULL and frees bytes: such a restore comes first.
    made = plan(columns, PRODUCT, caps(1e6))
    assert [(p.number, p.to, p.growth_bytes) for p in made] == [
        (100, Rung.PACKED, 200 - 20 - 900),
        (101, Rung.PACKED, 200 - 20 - 110),
    ]


def test_a_restore_that_would_show_nothing_new_is_not_made() -> None:
    columns = recovery_columns(
        [ROW], [TRACE], exact_source=[1], overlay_position=[COMPRESSED], overlay_bytes=[110.0]
    )
    assert [p.to for p in plan(columns, PRODUCT, caps(70))] == [Rung.PACKED]
    assert [p.to for p in plan(columns, PRODUCT, caps(-10))] == [Rung.COMPRESSED]
    small = recovery_columns(
        [[1000.0, 400.0, 300.0, 60.0, 20.0]],
        [TRACE],
        exact_source=[1],
        overlay_position=[COMPRESSED],
        overlay_bytes=[110.0],
    )
    assert plan(small, PRODUCT, caps(100)) == ()


def test_room_that_a_replaced_overlay_gives_back_is_used() -> None:
    # Row 0 is worth most but does not fit until worthless row 1 drops its overlay.
    columns = recovery_columns(
        [ROW] * 2,
        [TRACE, TRACE],
        exact_source=[1, 1],
        overlay_position=[-1, SKELETAL],
        overlay_bytes=[0, 500],
        value=[0.9, 0.0],
    )
    made = plan(columns, PRODUCT, caps(0.0))
    assert [(number, to) for number, _, to, _ in steps(made)] == [(1, Rung.PACKED), (0, Rung.PACKED)]


# --- drafts --------------------------------------------------------------------------------------


def test_drafts_go_by_value_times_gain_per_token_one_rung_a_round() -> None:
    columns = recovery_columns(
        [ROW] * 3,
        [TRACE] * 3,
        model_source=[1] * 3,
        value=[0.5, 0.5, 0.9],
        draft_tokens=[
            [400, NOT_OFFERED, 200, 100, 0],
            [400, NOT_OFFERED, 200, 50, 0],
            [400, NOT_OFFERED, 200, 200, 0],
        ],
    )
    made = plan(columns, PRODUCT, caps(1e6, tokens=550))
    assert [(n, to) for n, _, to, _ in steps(made)] == [
        (1, Rung.SKELETAL),
        (0, Rung.SKELETAL),
        (2, Rung.SKELETAL),
        (2, Rung.COMPRESSED),
    ]
    assert sum(p.tokens for p in made) == 550


def test_each_round_of_drafts_grows_by_what_its_overlay_adds_to_the_last() -> None:
    columns = recovery_columns([ROW], [TRACE], model_source=[1])
    growth = [p.growth_bytes for p in plan(columns, PRODUCT, caps(1e6, tokens=1e6))]
    assert growth == [60, 120 - 60, 1000 - 120]


def test_bytes_bind_over_all_rounds_of_drafts_and_over_unpacking() -> None:
    columns = recovery_columns(
        [ROW, [200.0, 100.0, 60.0, 30.0, 10.0]],
        [TRACE, PACKED],
        model_source=[1, 0],
        recalls_last_stage=[0, 9],
    )
    # 60 for SKELETAL leave 40, which is neither the next 60 nor the 100 of unpacking the hot entry.
    made = plan(columns, PRODUCT, caps(100, tokens=1e6))
    assert [p.to for p in made] == [Rung.SKELETAL]


def test_a_draft_is_never_packed_and_replaces_the_overlay_below() -> None:
    columns = recovery_columns(
        [ROW], [COMPRESSED], model_source=[1], overlay_position=[-1], overlay_bytes=[0]
    )
    assert [(p.to, p.growth_bytes) for p in plan(columns, PRODUCT, caps(1e6, tokens=1e6))] == [
        (Rung.FULL, 1000)
    ]
    columns = recovery_columns(
        [ROW], [TRACE], model_source=[1], overlay_position=[SKELETAL], overlay_bytes=[70]
    )
    made = plan(columns, PRODUCT, caps(60, tokens=1e6))
    assert [(p.origin, p.to, p.growth_bytes) for p in made] == [(Rung.SKELETAL, Rung.COMPRESSED, 50)]


@pytest.mark.parametrize(
    "columns",
    [
        recovery_columns([ROW], [TRACE], model_source=[0]),
        recovery_columns([ROW], [EVICTED], model_source=[1]),
        recovery_columns([ROW], [PACKED], model_source=[1]),
        recovery_columns([ROW], [FULL], model_source=[1]),
        recovery_columns([ROW], [TRACE], model_source=[1], value=[0.0]),
        recovery_columns([ROW], [TRACE], model_source=[1], value=[np.nan]),
        recovery_columns([ROW], [TRACE], model_source=[1], overlay_position=[FULL], overlay_bytes=[900]),
    ],
)
def test_what_is_not_drafted(columns: RecoveryColumns) -> None:
    assert plan(columns, PRODUCT, caps(1e6, tokens=1e6)) == ()


def test_no_tokens_are_spent_where_the_archive_has_the_original() -> None:
    columns = recovery_columns([ROW] * 2, [TRACE] * 2, model_source=[1, 1], exact_source=[1, 0])
    made = plan(columns, PRODUCT, caps(1e6, tokens=1e6, archive=0))
    assert {number for number, *_ in steps(made)} == {1}


def test_tokens_bind_and_a_cheaper_draft_may_still_fit() -> None:
    columns = recovery_columns(
        [ROW] * 2,
        [SKELETAL] * 2,
        model_source=[1, 1],
        value=[0.9, 0.1],
        draft_tokens=[[900, 0, 500, 0, 0], [900, 0, 80, 0, 0]],
    )
    assert [n for n, *_ in steps(plan(columns, PRODUCT, caps(1e6, tokens=499)))] == [1]


# --- unpacking -----------------------------------------------------------------------------------


def test_unpacking_stops_at_four_fifths_of_the_budget() -> None:
    columns = recovery_columns([ROW] * 3, [PACKED] * 3, recalls_last_stage=[3, 5, 4])
    made = plan(columns, PRODUCT, RecoveryCaps(budget_bytes=3000, used_bytes=800, tokens=0))
    assert steps(made) == [
        (1, Rung.PACKED, Rung.FULL, Source.UNPACK),
        (2, Rung.PACKED, Rung.FULL, Source.UNPACK),
    ]
    made = plan(columns, PRODUCT, RecoveryCaps(budget_bytes=3000, used_bytes=801, tokens=0))
    assert len(made) == 1


def test_only_what_was_recalled_three_times_is_unpacked() -> None:
    columns = recovery_columns([ROW] * 3, [PACKED] * 3, recalls_last_stage=[2, 3, 0], value=[9, 0, 9])
    assert [n for n, *_ in steps(plan(columns, PRODUCT, caps(1e6)))] == [1]


def test_a_ladder_without_a_packed_rung_unpacks_nothing() -> None:
    columns = recovery_columns([PAPER_ROW] * 2, [0, 1], recalls_last_stage=[9, 9])
    assert plan(columns, PAPER, caps(1e6)) == ()


# --- whole stores ----------------------------------------------------------------------------------


def test_an_empty_store_has_nothing_to_recover() -> None:
    assert plan(recovery_columns([], []), PRODUCT, caps(1e6, tokens=1e6)) == ()


def test_many_rows_are_planned_as_one_by_one() -> None:
    rng = np.random.default_rng(11)
    n = 3_000
    sizes = np.sort(rng.integers(10, 999, (n, 5)), axis=1)[:, ::-1].astype(float)
    columns = recovery_columns(
        sizes.tolist(),
        [TRACE] * n,
        exact_source=[1] * n,
        value=rng.random(n),
        archive_bytes=rng.integers(1, 99, n),
    )
    headroom, link = 90_000.0, 9_000.0
    expected = {}
    density = columns.value * 0.6 / (sizes[:, 1] - sizes[:, 4])
    for row in np.argsort(-density, kind="stable"):
        for k in (PACKED, COMPRESSED, SKELETAL):
            growth = sizes[row, k] - sizes[row, TRACE]
            if growth <= headroom and columns.archive_bytes[row] <= link:
                expected[int(row)] = PRODUCT.rungs[k].rung
                headroom, link = headroom - growth, link - float(columns.archive_bytes[row])
                break
    made = plan(columns, PRODUCT, caps(90_000.0, archive=9_000.0))
    assert {number: to for number, _, to, _ in steps(made)} == expected
