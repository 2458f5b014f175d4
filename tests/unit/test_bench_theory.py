"""The paper's propositions on small runs of the real passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.environments.contract import Size, World
from bench.policies.edge_arms import spec
from bench.policies.host import HostArm
from bench.theory import factorisation, proposition_6
from bench.theory.proposition_5 import gap, instance
from shared.memory.cycle import deficit, hysteresis
from shared.memory.model import LADDERS
from shared.memory.schedules import rung_by_rung
from tests.unit.bench_worlds import Drawers, Everything

STORY = " It stood there for a long while, next to the window of the old house, and nobody asked." * 4


@pytest.fixture
def world() -> World:
    """Entries long enough to be shortened."""
    found = Drawers().worlds(0, Size(1, 60, 30, 6))[0]
    stages = tuple(tuple(replace(item, text=item.text + STORY) for item in part) for part in found.stages)
    return replace(found, stages=stages)


def whole_bytes(world: World) -> float:
    arm = HostArm(Everything(), 0)
    for item in world.stages[0]:
        arm.write(item)
    return arm.held().total


@pytest.mark.parametrize("ladder", ["product", "paper", "k6"])
@pytest.mark.parametrize("seed", range(3))
def test_proposition_5_the_sweep_is_within_one_span_of_the_optimum(ladder: str, seed: int) -> None:
    columns, budget_bytes = instance(seed, 60, LADDERS[ladder])
    for moves in (None, rung_by_rung):
        found = gap(columns, LADDERS[ladder], budget_bytes, 0.001, *(() if moves is None else (moves,)))
        assert -1e-6 <= found.spans <= 1


def test_proposition_6_an_exact_regenerator_closes_the_loop(world: World) -> None:
    points, evicted = proposition_6.cycle(Drawers(), world, whole_bytes(world), trough=0.5)
    assert evicted == 0
    assert points[0].capability > 0
    assert deficit(points) == 0
    assert hysteresis(points) == 0


def test_the_transition_factorises_given_the_level(world: World) -> None:
    """Eq. 5, with values that differ."""
    rng = np.random.default_rng(1)
    seen = 0
    for plan in factorisation.logged(spec("product", 0), world, whole_bytes(world)):
        columns, *rest = plan
        valued = replace(columns, value=rng.random(len(columns.value), np.float32))
        told = factorisation.transition(valued, *rest)
        seen += told.right
        assert told.wrong == 0
        # Lossless moves all cost nothing; of the others one may be the boundary.
        assert told.ties <= 1 or told.level == 0
    assert seen > 20
