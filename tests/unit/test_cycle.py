"""Schedules, loop points, H (Eq. 3) and D: the golden values of the design."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InputError
from shared.memory.cycle import DEEP, DEFINITION_1, LoopPoint, deficit, hysteresis, loop_point

capabilities = st.floats(1.0, 100.0)


def loop(capability: list[float], schedule: tuple[float, ...] = DEFINITION_1) -> list[LoopPoint]:
    return [LoopPoint(b, c, 10, (0.0, 100.0)) for b, c in zip(schedule, capability, strict=True)]


def test_schedules() -> None:
    assert DEFINITION_1 == (1, 0.75, 0.5, 0.25, 0.5, 0.75, 1)
    assert DEEP == (1, 0.5, 0.2, 0.05, 0.2, 0.5, 1)


def test_golden_open_loop() -> None:
    points = loop([60, 58, 52, 44, 50, 54, 55])
    assert hysteresis(points) == pytest.approx(2.125 / 45, rel=1e-12)
    assert deficit(points) == 5


def test_golden_closed_loop() -> None:
    points = loop([60, 58, 52, 44, 52, 58, 60])
    assert hysteresis(points) == 0
    assert deficit(points) == 0


@given(st.lists(capabilities, min_size=4, max_size=4), st.sampled_from([DEFINITION_1, DEEP]))
def test_a_loop_that_retraces_itself_has_no_area(down: list[float], schedule: tuple[float, ...]) -> None:
    assert hysteresis(loop([*down, *down[-2::-1]], schedule)) == pytest.approx(0, abs=1e-12)


@given(st.lists(capabilities, min_size=7, max_size=7), st.floats(0.01, 1.0))
def test_area_is_normalised_by_the_first_capability(capability: list[float], factor: float) -> None:
    scaled = [factor * c for c in capability]
    assert hysteresis(loop(scaled)) == pytest.approx(hysteresis(loop(capability)), abs=1e-9)


def test_span_is_that_of_the_budgets() -> None:
    # A rectangle: 10 points high over the whole span, so the area over C1 x span is 10 / 60.
    points = [LoopPoint(b, c, 1, (0, 100)) for b, c in ((1, 60), (0.25, 60), (0.25, 50), (1, 50))]
    assert hysteresis(points) == pytest.approx(10 / 60)


@pytest.mark.parametrize(
    "points",
    [
        [],
        [LoopPoint(1, 60, 1, (0, 100))],
        [LoopPoint(1, 60, 1, (0, 100)), LoopPoint(1, 50, 1, (0, 100))],
        [LoopPoint(1, 0, 1, (0, 100)), LoopPoint(0.5, 50, 1, (0, 100))],
    ],
)
def test_an_undefined_area_is_refused(points: list[LoopPoint]) -> None:
    with pytest.raises(InputError):
        hysteresis(points)


def test_a_deficit_needs_points() -> None:
    with pytest.raises(InputError):
        deficit([])


def test_loop_point_is_the_mean_outcome_in_points() -> None:
    point = loop_point(0.5, [0.0, 1.0, 1.0, 1.0])
    assert (point.b, point.capability, point.n) == (0.5, 75.0, 4)
    # Sample deviation .5, so the half width is 1.96 x .5 / 2.
    assert point.interval == (pytest.approx(75 - 48.9991, abs=1e-3), 100.0)


def test_loop_point_of_one_outcome_says_that_it_knows_nothing() -> None:
    assert loop_point(1.0, [0.5]) == LoopPoint(1.0, 50.0, 1, (0.0, 100.0))


def test_loop_point_needs_an_outcome() -> None:
    with pytest.raises(InputError):
        loop_point(1.0, [])
