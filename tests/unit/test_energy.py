"""Eq. 6 and the hulls: golden value, what is on a hull and what is not, every ladder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.memory.energy import CHUNK, barrier, energies, energy, guard_limit, hull, offered_sizes
from shared.memory.model import LADDERS, Ladder, Rung, SweepColumns
from tests.unit.columns import NOT_OFFERED, PAPER, PRODUCT, stores, sweep_columns

TAU = 0.25
ladders = st.sampled_from(list(LADDERS.values()))


def moves_of(
    columns: SweepColumns, ladder: Ladder, row: int = 0, **marks: np.ndarray
) -> list[tuple[int, float, float]]:
    """(target, price, freed) of one row."""
    found = hull(columns, ladder, TAU, **marks)
    return [
        (move + 1, float(price), float(freed))
        for move, (price, freed) in enumerate(
            zip(found.price[:, row], found.freed_bytes[:, row], strict=True)
        )
        if np.isfinite(price)
    ]


def test_golden_energy() -> None:
    value, tokens = np.float32([0.5]), np.float32([160])
    assert energy(value, 0.65, 0.001, tokens) == pytest.approx([0.335])


def test_energies_of_a_ladder() -> None:
    columns = sweep_columns([[100, 30, 20, 10, NOT_OFFERED]], tokens=[[0, 0, 64, 160, 320]], value=[0.5])
    eta = energies(columns, PRODUCT, 0.001)
    assert eta[:4, 0] == pytest.approx([0, 0, 0.5 * 0.15 + 0.064, 0.335])
    assert np.isinf(eta[4, 0])


def test_negative_and_missing_values_are_worth_nothing() -> None:
    columns = sweep_columns([[100, 30, 20, 10, 5]] * 2, value=[-3.0, np.nan])
    assert (energies(columns, PRODUCT, TAU) == 0).all()


def test_packing_is_free() -> None:
    columns = sweep_columns([[100, 30, 20, 10, 5]], value=[9.0])
    assert moves_of(columns, PRODUCT)[0] == (1, 0.0, 70.0)


def test_a_point_above_a_chord_is_skipped() -> None:
    # eta 0, 0, 16, 20, 24 quarter tokens: COMPRESSED lies above the chord from PACKED to SKELETAL.
    columns = sweep_columns([[100, 80, 70, 40, 39]], tokens=[[0, 0, 16, 20, 24]], value=[0.0])
    assert moves_of(columns, PRODUCT) == [(1, 0.0, 20.0), (3, 5 / 40, 40.0), (4, 1.0, 1.0)]


def test_collinear_points_are_kept() -> None:
    columns = sweep_columns([[100, 80, 60, 40, 20]], tokens=[[0, 0, 16, 32, 48]], value=[0.0])
    prices = (0.0, 0.2, 0.2, 0.2)
    assert moves_of(columns, PRODUCT) == [(k, pytest.approx(p), 20.0) for k, p in enumerate(prices, 1)]


def test_moves_start_at_the_present_rung() -> None:
    columns = sweep_columns([[100, 80, 60, 40, 20]], position=[3], tokens=[[0, 0, 16, 32, 48]], value=[0.0])
    assert moves_of(columns, PRODUCT) == [(4, pytest.approx(0.2), 20.0)]


def test_a_rung_that_saves_nothing_or_is_not_offered_is_no_move() -> None:
    columns = sweep_columns([[100, 120, NOT_OFFERED, 100, 60]])
    assert [target for target, _, _ in moves_of(columns, PRODUCT)] == [4]


def test_a_rung_as_large_as_the_one_above_hides_neither() -> None:
    columns = sweep_columns([[100, 40, 40, 20, 10]], value=[0.0])
    assert [(target, freed) for target, _, freed in moves_of(columns, PRODUCT)] == [(1, 60), (3, 20), (4, 10)]


def test_parts_of_a_byte_count_as_one() -> None:
    columns = sweep_columns([[99.5, 29.25, 29.1, 10.0, 5.0]])
    assert [(target, freed) for target, _, freed in moves_of(columns, PRODUCT)] == [(1, 70), (3, 20), (4, 5)]


@pytest.mark.parametrize(
    ("name", "deepest"),
    [
        ("product", Rung.SKELETAL),
        ("paper", Rung.SKELETAL),
        ("k6", Rung.SKELETAL),
        ("k3", Rung.COMPRESSED),
        ("k2", Rung.FULL),
        ("packed", Rung.PACKED),
    ],
)
def test_the_guard_ends_at_skeletal_or_the_last_rung_above_it(name: str, deepest: Rung) -> None:
    ladder = LADDERS[name]
    assert ladder.rungs[guard_limit(ladder)].rung is deepest
    sizes = [[float(100 - 10 * k) for k in range(len(ladder.rungs))]] * 2
    guarded = np.array([True, False])
    columns = sweep_columns(sizes)
    assert max((t for t, _, _ in moves_of(columns, ladder, 0, guarded=guarded)), default=0) == guard_limit(
        ladder
    )
    assert max(t for t, _, _ in moves_of(columns, ladder, 1, guarded=guarded)) == len(ladder.rungs) - 1


def test_eviction_is_one_more_point_for_the_rows_that_may_go() -> None:
    columns = sweep_columns([[100, 80, 60, 40, 30]] * 2, value=[0.5] * 2, stub_bytes=[24, 24])
    evictable = np.array([True, False])
    target, price, freed = moves_of(columns, PRODUCT, 0, evictable=evictable)[-1]
    # r = 0 and c = 0: from TRACE it costs the last .4 of the value.
    assert (target, freed) == (5, 6.0)
    assert price == pytest.approx(0.5 * 0.4 / 6, rel=1e-5)
    assert moves_of(columns, PRODUCT, 1, evictable=evictable)[-1][0] == 4


def test_tokens_that_fall_down_the_ladder_never_make_a_negative_price() -> None:
    columns = sweep_columns([[100, 80, 60, 40, 30]], tokens=[[0, 0, 320, 160, 0]], value=[0.0])
    assert all(price >= 0 for _, price, _ in moves_of(columns, PRODUCT))


@settings(max_examples=150)
@given(st.data(), ladders)
def test_hulls_are_the_lower_convex_hulls(data: st.DataObject, ladder: Ladder) -> None:
    columns = data.draw(stores(ladder, most=4))
    eta = energies(columns, ladder, TAU).astype(float)
    for row in range(columns.value.size):
        start = int(columns.position[row])
        points = [
            (float(columns.size_bytes[row, k]), eta[k, row], k)
            for k in range(start, len(ladder.rungs))
            if columns.size_bytes[row, k] < np.inf
        ]
        vertices = [points[0]]
        prices = []
        for target, price, freed in moves_of(columns, ladder, row):
            vertex = next(point for point in points if point[2] == target)
            assert freed == vertices[-1][0] - vertex[0] > 0
            assert price == pytest.approx((vertex[1] - vertices[-1][1]) / freed, rel=1e-4, abs=1e-6)
            vertices.append(vertex)
            prices.append(price)
        assert prices == sorted(prices)
        assert not np.isnan(hull(columns, ladder, TAU).price).any()
        assert vertices[-1][0] == min(size for size, _, _ in points)
        sizes, heights = zip(*((size, height) for size, height, _ in reversed(vertices)), strict=True)
        for size, height, target in points:
            if size <= vertices[0][0]:
                lowest = np.interp(size, sizes, heights)
                assert height >= lowest - 1e-4
                if target not in {k for _, _, k in vertices}:
                    assert height > lowest - 1e-4


def test_rows_do_not_depend_on_their_chunk() -> None:
    small = sweep_columns(
        [[100, 80, 70, 40, 39], [50, 20, NOT_OFFERED, 10, 5], [90, 40, 30, 20, 10]], position=[0, 1, 2]
    )
    times = CHUNK // 3 + 2
    big = SweepColumns(
        **{
            name: np.tile(column, (times, 1) if column.ndim == 2 else times)
            for name, column in vars(small).items()
        }
    )
    few, many = hull(small, PRODUCT, TAU), hull(big, PRODUCT, TAU)
    assert (many.price == np.tile(few.price, times)).all()
    assert (many.freed_bytes == np.tile(few.freed_bytes, times)).all()


def test_layout_in_memory_does_not_matter() -> None:
    rows = sweep_columns([[100, 80, 70, 40, 39], [50, 20, 15, 10, 5]])
    turned = SweepColumns(**vars(rows) | {"size_bytes": np.asfortranarray(rows.size_bytes)})
    assert (hull(rows, PRODUCT, TAU).price == hull(turned, PRODUCT, TAU).price).all()


def test_an_empty_store_has_no_moves() -> None:
    assert hull(sweep_columns([]), PRODUCT, TAU).price.shape == (4, 0)


def test_a_lossy_rung_is_offered_where_it_saves_fifteen_percent() -> None:
    sizes = offered_sizes(np.float32([[400, 100, 86, 85, np.nan]]), PRODUCT)
    assert sizes.tolist() == [[400, 100, NOT_OFFERED, 85, NOT_OFFERED]]


def test_the_present_rung_stays_offered() -> None:
    sizes = offered_sizes(np.float32([[400, 100, 99, 98, 97]]), PRODUCT, np.int8([3]))
    assert sizes.tolist() == [[400, 100, NOT_OFFERED, 98, NOT_OFFERED]]


def test_the_paper_ladder_offers_every_rung() -> None:
    assert offered_sizes(np.float32([[400, 399, 398, 397]]), PAPER).tolist() == [[400, 399, 398, 397]]


def test_barrier_is_infinite_where_set() -> None:
    assert barrier(np.array([True, False])).tolist() == [np.inf, 0.0]
