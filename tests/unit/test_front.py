"""Selecting below a front gives exactly what a stable full sort gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.memory.front import advance, weighted_cut

NONE = float("inf")


def sorted_prefix(price: np.ndarray, freed: np.ndarray, need: float, ties: list[np.ndarray]) -> np.ndarray:
    """The slow way: sort every move, take from the front until enough is free."""
    moves = [
        (float(price[move, row]), *(int(key[row]) for key in ties), row, move)
        for move, row in zip(*np.nonzero(np.isfinite(price)), strict=True)
    ]
    taken = np.zeros(price.shape, np.bool_)
    gained = 0.0
    for *_, row, move in sorted(moves):
        if gained >= need:
            break
        taken[move, row] = True
        gained += float(freed[move, row])
    return taken


@st.composite
def fronts(draw: st.DrawFn) -> dict[str, Any]:
    rows, moves = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    some = st.lists(st.sampled_from([0.0, 0.0, 0.001, 0.5, 0.5, 3.0, 1e30]), min_size=moves, max_size=moves)
    price = np.float32([sorted(draw(some)) for _ in range(rows)]).T
    gaps = draw(st.lists(st.booleans(), min_size=rows * moves, max_size=rows * moves))
    price[np.array(gaps).reshape(moves, rows)] = NONE
    freed = np.float32(draw(st.lists(st.integers(1, 50), min_size=rows * moves, max_size=rows * moves)))
    freed = np.where(np.isfinite(price), freed.reshape(moves, rows), 0).astype(np.float32)
    keys = st.lists(st.sampled_from([-(2**62), -1, 0, 1, 2, 70_000, 2**62]), min_size=rows, max_size=rows)
    return {
        "price": price,
        "freed": freed,
        "need": draw(st.floats(0.5, max(1.0, float(freed.sum()) * 1.1))),
        "ties": [np.array(draw(keys), np.int64) for _ in range(draw(st.integers(0, 3)))],
    }


@settings(max_examples=100)
@given(fronts())
def test_the_taken_set_is_that_of_a_stable_sort(given_front: dict[str, Any]) -> None:
    price, freed, need, ties = given_front.values()
    front = advance(price, freed, need, ties)
    wanted = sorted_prefix(price, freed, need, ties)
    assert (front.taken == wanted).all()
    assert front.freed_bytes == freed[wanted].sum()
    assert front.level == (price[wanted].max() if wanted.any() else 0.0)


def test_many_rows_and_many_ties_agree_with_a_sort() -> None:
    rng = np.random.default_rng(7)
    rows = 4_000
    price = np.sort(rng.integers(0, 5, (3, rows)), axis=0).astype(np.float32)
    freed = rng.integers(1, 1_000, (3, rows)).astype(np.float32)
    ties = [rng.integers(0, 3, rows), rng.integers(-(2**40), 2**40, rows), rng.permutation(rows)]
    for share in (0.01, 0.2, 0.5, 0.99):
        need = share * float(freed.sum())
        assert (advance(price, freed, need, ties).taken == sorted_prefix(price, freed, need, ties)).all()


def test_the_tied_row_makes_only_the_moves_it_needs() -> None:
    price, freed = np.zeros((3, 2), np.float32), np.full((3, 2), 10, np.float32)
    front = advance(price, freed, 45, [np.array([1, 0])])
    assert front.taken.tolist() == [[True, True], [True, True], [False, True]]


def test_too_little_to_take_is_all_taken() -> None:
    price = np.float32([[1.0, 2.0], [NONE, 3.0]])
    freed = np.float32([[5, 5], [0, 5]])
    front = advance(price, freed, 16, [np.arange(2)])
    assert front.taken.tolist() == [[True, True], [False, True]]
    assert (front.level, front.freed_bytes) == (3.0, 15.0)


def test_nothing_to_take() -> None:
    front = advance(np.zeros((4, 0), np.float32), np.zeros((4, 0), np.float32), 1, [np.zeros(0, np.int64)])
    assert (front.taken.size, front.level, front.freed_bytes) == (0, 0.0, 0.0)
    front = advance(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), 1, [np.arange(3)])
    assert (front.taken.size, front.level, front.freed_bytes) == (0, 0.0, 0.0)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**64 - 1) | st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=30
    ),
    st.floats(0.01, 1.2),
)
def test_weighted_cut_is_the_key_where_the_running_weight_arrives(
    pairs: list[tuple[int, int]], share: float
) -> None:
    keys = np.array([key for key, _ in pairs], np.uint64)
    weight = np.float32([w for _, w in pairs])
    need = share * float(weight.sum())
    cut = weighted_cut(keys, weight, need)
    running = 0
    for key, w in sorted(pairs):
        running += w
        if running >= need:
            assert cut is not None
            assert (cut.key, cut.below) == (key, sum(w for k, w in pairs if k < key))
            return
    assert cut is None


def test_a_sum_that_rounds_lower_in_the_second_digit_still_finds_its_cut() -> None:
    # In order of rows the first digit sums to 2^53 + 2; in order of keys each 1 is lost beside 2^53.
    keys, weight = np.array([1, 2, 0, 70_000], np.uint64), np.float32([1, 1, 2**53, 1])
    cut = weighted_cut(keys, weight, 2.0**53 + 2)
    assert cut is not None
    assert cut.key == 2
