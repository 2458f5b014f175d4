"""The contract of every retention policy (shared by all binary arms), over the whole registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.policies.curator import Curator
from bench.policies.expiry import Expiry
from bench.policies.keep_all import KeepAll
from bench.policies.lru import Lru
from bench.policies.random_drop import RandomDrop
from shared.memory.model import Kind
from shared.ports import RetainedEntry, Retention


def random_drop() -> RandomDrop:
    return RandomDrop(7)


Make = Callable[[], Retention]
REGISTRY: tuple[Make, ...] = (KeepAll, Lru, Expiry, random_drop, Curator)
BOUNDED = tuple(policy for policy in REGISTRY if not policy().budget_exempt)


class Store:
    """One meter: the rows' sizes. `last_access` is set at a write and on every hit, as at the edge."""

    def __init__(self, policy: Retention) -> None:
        self.policy = policy
        self.rows: dict[int, RetainedEntry] = {}
        self.now = 0

    @property
    def bytes(self) -> float:
        return sum(row.size_bytes for row in self.rows.values())

    def write(self, number: int, size_bytes: float) -> None:
        self.now += 1
        row = RetainedEntry(number, Kind.EPISODE, self.now, self.now, size_bytes, 0.0)
        self.rows[number] = row
        self.policy.on_write(row, self.now)

    def read(self, *hits: int) -> None:
        self.now += 1
        for number in hits:
            row = self.rows[number]
            self.rows[number] = RetainedEntry(
                number, row.kind, row.created, self.now, row.size_bytes, row.value
            )
        self.policy.on_read("query", hits, self.now)

    def enforce(self, budget_bytes: float, order: Sequence[RetainedEntry] | None = None) -> tuple[int, ...]:
        rows = list(self.rows.values()) if order is None else order
        report = self.policy.enforce(rows, self.bytes - budget_bytes, self.now)
        assert report.demoted == report.promoted == report.merged == ()
        assert report.model_calls == report.model_tokens == 0
        assert len(set(report.evicted)) == len(report.evicted)
        for number in report.evicted:
            del self.rows[number]
        return report.evicted


def filled(policy: Make, sizes: Sequence[float]) -> Store:
    store = Store(policy())
    for number, size in enumerate(sizes, start=1):
        store.write(number, size)
    return store


sizes = st.lists(st.floats(1, 1e6), max_size=30)


@pytest.mark.parametrize("policy", BOUNDED)
@given(sizes=sizes, share=st.sampled_from([0.0, 0.01, 0.5, 0.9, 1.0, 2.0]))
@settings(max_examples=100)
def test_the_budget_holds_after_enforce(policy: Make, sizes: list[float], share: float) -> None:
    store = filled(policy, sizes)
    budget = store.bytes * share
    store.enforce(budget)
    assert store.bytes <= budget * (1 + 1e-12)
    assert store.enforce(budget) == ()  # twice is once


@pytest.mark.parametrize("policy", BOUNDED)
def test_ten_thousand_entries_down_to_one_byte(policy: Make) -> None:
    store = filled(policy, [100.0] * 10_000)
    store.enforce(1.0)
    assert store.bytes == 0


@pytest.mark.parametrize("policy", REGISTRY)
def test_a_rising_budget_brings_nothing_back(policy: Make) -> None:
    store = filled(policy, [10.0] * 8)
    total = store.bytes
    for share in (1, 0.75, 0.5, 0.25, 0.5, 0.75, 1):
        before = set(store.rows)
        store.enforce(total * share)
        assert set(store.rows) <= before
    expected = 8 if policy().budget_exempt else 2
    assert len(store.rows) == expected


@pytest.mark.parametrize("policy", REGISTRY)
@given(sizes=sizes, data=st.data())
@settings(max_examples=50)
def test_the_order_of_the_rows_does_not_matter(policy: Make, sizes: list[float], data: st.DataObject) -> None:
    one, other = filled(policy, sizes), filled(policy, sizes)
    budget = one.bytes / 2
    shuffled = data.draw(st.permutations(list(other.rows.values())))
    assert one.enforce(budget) == other.enforce(budget, shuffled)


@pytest.mark.parametrize("policy", BOUNDED)
@given(sizes=sizes, low=st.floats(0, 1), high=st.floats(0, 1))
@settings(max_examples=50)
def test_who_survives_a_small_budget_survives_a_larger_one(
    policy: Make, sizes: list[float], low: float, high: float
) -> None:
    small, large = filled(policy, sizes), filled(policy, sizes)
    total = small.bytes
    small.enforce(total * min(low, high))
    large.enforce(total * max(low, high))
    assert set(small.rows) <= set(large.rows)


def test_keep_all_says_that_no_budget_binds_it() -> None:
    store = filled(KeepAll, [10.0] * 3)
    assert store.policy.budget_exempt
    assert store.enforce(0.0) == ()


def test_lru_evicts_in_the_order_of_the_last_access() -> None:
    store = filled(Lru, [10.0] * 5)
    store.read(1, 4)
    store.read(2)
    # Last accesses now: 3 and 5 at their writes, then 1 and 4 together (1 is older), then 2.
    assert store.enforce(0.0) == (3, 5, 1, 4, 2)


def test_expiry_evicts_in_the_order_of_creation_whatever_is_read() -> None:
    store = filled(Expiry, [10.0] * 4)
    store.read(1, 2)
    assert store.enforce(10.0) == (1, 2, 3)


def test_random_drop_draws_every_entry_as_often() -> None:
    drawn = Counter[int]()
    sizes = [1.0, 1000.0, 30.0, 1.0]
    for seed in range(400):
        rows = [RetainedEntry(n, Kind.EPISODE, n, n, size, 0.0) for n, size in enumerate(sizes)]
        drawn[RandomDrop(seed).enforce(rows, 0.5, 9).evicted[0]] += 1
    assert all(70 <= drawn[number] <= 130 for number in range(4)), drawn


def test_random_drop_forgets_no_draw_over_a_squeeze() -> None:
    """Survivors of a draw are no safer in the next one than what came since."""
    later = Counter[bool]()
    for seed in range(200):
        store = filled(partial(RandomDrop, seed), [10.0] * 8)
        store.enforce(40.0)
        for number in range(9, 13):
            store.write(number, 10.0)
        later.update(number > 8 for number in store.enforce(40.0))
    assert 0.45 <= later[True] / later.total() <= 0.55


def test_lru_deletes_strictly_in_order_even_where_a_later_row_would_do() -> None:
    store = filled(Lru, [1.0, 100.0, 1.0])
    assert store.enforce(100.0) == (1, 2)


def test_lru_stops_as_soon_as_the_excess_is_covered() -> None:
    store = filled(Lru, [10.0] * 4)
    assert store.enforce(20.0) == (1, 2)
    assert store.enforce(20.0) == ()
