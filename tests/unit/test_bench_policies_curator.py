"""CURATOR: likelihood of retrieval, worth for answers, trust; by the byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.policies.curator import EPSILON, WINDOW, Curator
from bench.policies.host import HostArm
from bench.policies.retention import RetentionPolicy, SourcedEntry
from shared.memory.model import Kind

from .bench_policy_checks import item


def _entry(
    number: int, *, size: float = 10.0, kind: Kind = Kind.EPISODE, source: str = "own"
) -> SourcedEntry:
    return SourcedEntry(number, kind, number, number, size, 0.0, source)


def _curator(*entries: SourcedEntry) -> Curator:
    curator = Curator()
    for entry in entries:
        curator.on_write(entry, entry.number)
    return curator


def test_the_order_is_value_less_harm_a_byte() -> None:
    entries = [
        _entry(1),
        _entry(2),
        _entry(3, size=40.0),
        _entry(4, kind=Kind.SKILL),
        _entry(5, source="peer"),
        _entry(6, source="tool"),
        _entry(7),
    ]
    curator = _curator(*entries)
    for now in range(8):
        curator.on_read("q", [2], now)
        curator.on_outcome([2], 1.0, now)
        curator.on_read("q", [1], now)
        curator.on_outcome([1], 0.0, now)
    # A tool's and a peer's text may harm; 3 is long; 7 is plain, 4 an abstraction; 1 is read; 2 answers.
    evicted = curator.enforce(entries, 1e9, 9).evicted
    assert evicted == (6, 5, 3, 7, 4, 1, 2)


def test_propensity_is_the_smoothed_share_of_queries() -> None:
    curator = _curator(_entry(1), _entry(2))
    assert curator.propensity(1, 2) == pytest.approx(1 / 2)
    curator.on_read("q", [1], 1)
    assert curator.propensity(1, 2) == pytest.approx(2 / 3)
    assert curator.propensity(2, 2) == pytest.approx(1 / 3)


def test_the_sketch_forgets_old_queries() -> None:
    curator = _curator(_entry(1), _entry(2))
    curator.on_read("q", [1], 1)
    for now in range(20 * WINDOW):
        curator.on_read("q", [2], now)
    assert curator.propensity(1, 2) == pytest.approx(1 / (WINDOW + 2), rel=1e-3)
    assert curator.propensity(2, 2) == pytest.approx((WINDOW + 1) / (WINDOW + 2), rel=1e-3)


def test_a_new_entry_is_judged_by_its_own_life() -> None:
    curator = _curator(_entry(1))
    for now in range(WINDOW):
        curator.on_read("q", [], now)
    curator.on_write(_entry(2), WINDOW)
    assert curator.propensity(2, 2) == pytest.approx(1 / 2)
    assert curator.enforce([_entry(1), _entry(2)], 5.0, WINDOW).evicted == (1,)


def test_utility_is_the_difference_that_an_entry_makes() -> None:
    curator = _curator(_entry(1), _entry(2))
    assert curator.utility(1) == 0.0
    curator.on_outcome([1], 1.0, 1)
    assert curator.utility(1) == 0.0, "nothing without it to compare with"
    for _ in range(9):
        curator.on_outcome([1], 1.0, 1)
        curator.on_outcome([2], 0.0, 1)
    assert curator.utility(1) == pytest.approx(10 / 11)
    assert curator.utility(2) == pytest.approx(-9 / 10)


def test_harmful_use_never_makes_an_entry_worth_less_than_an_unused_one() -> None:
    curator = _curator(_entry(1), _entry(2))
    for now in range(10):
        curator.on_read("q", [1], now)
        curator.on_outcome([1], 0.0, now)
        curator.on_outcome([2], 1.0, now)
    assert curator.score(_entry(1), 2) == pytest.approx(curator.propensity(1, 2) * EPSILON / 10)


def test_what_is_evicted_is_forgotten() -> None:
    curator = _curator(_entry(1), _entry(2))
    curator.on_read("q", [1], 1)
    assert curator.enforce([_entry(1), _entry(2)], 15.0, 2).evicted == (2, 1)
    assert curator.propensity(1, 2) == pytest.approx(1 / 2)


def test_grades_reach_it_through_an_arm() -> None:
    arm = HostArm(RetentionPolicy(Curator()))
    for name, text in (("good", "the red kayak"), ("bad", "the blue tent")):
        arm.write(item(name, text))
    for query, g in (("kayak", 1.0), ("tent", 0.0)) * 5:
        arm.outcome(arm.recall(query, 1, 1000, record=True).ticket, g, 10)
    report = arm.set_budget(arm.held().total - 1)
    assert report.evicted == ["bad"]


def test_who_an_entry_is_from_reaches_it_through_an_arm() -> None:
    arm = HostArm(RetentionPolicy(Curator()))
    arm.write(item("own", "the red kayak"))
    arm.write(replace(item("tool", "a red kayak"), source="tool"))
    assert arm.set_budget(arm.held().total - 1).evicted == ["tool"]
