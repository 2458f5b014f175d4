"""CrystalMem's arms of the bench: the real passes over a real store, one table of configurations."""

from __future__ import annotations

from contextlib import closing

import pytest

from bench.environments.contract import Item, Size
from bench.policies.edge import EdgeArm, edge_arm
from bench.policies.edge_arms import spec
from bench.policies.registry import ABLATIONS, ORDER
from shared.errors import InputError
from shared.memory.model import Kind
from tests.unit.bench_worlds import Drawers

OURS = tuple(name for name in ORDER if name.startswith(("crystalmem", "paper", "product")))
STORY = "The red toolbox stands on shelf {n} in room {n}a. It was moved there on day {n}. Nobody minds. " * 4


def items(count: int = 40) -> list[Item]:
    return [
        Item(f"i{n}", f"Story {n}. " + STORY.format(n=n), Kind.MEMORY, float(n), (f"i{n - 1}",) if n else ())
        for n in range(count)
    ]


def told(arm: EdgeArm, count: int = 40) -> float:
    """Write everything under a budget that holds it; the bytes held."""
    arm.set_budget(10**6)
    for item in items(count):
        arm.write(item)
    arm.settle()
    return arm.held().total


@pytest.mark.parametrize("name", OURS)
def test_every_arm_keeps_every_budget_and_shows_what_it_holds(name: str) -> None:
    with closing(edge_arm(name, 1)) as arm:
        whole = told(arm)
        for b in (0.5, 0.1, 0.5, 1.0):
            arm.set_budget(b * whole)
            assert arm.held().total <= b * whole
            held = arm.held()
            assert min(held.text, held.metadata, held.residue, held.shared) >= 0
            assert held.disk > 0
        found = arm.recall("Where is the toolbox of story 7?", 5, 2000, record=False)
        assert {hit.item for hit in found.hits} <= {item.id for item in items()}


def test_the_same_seed_lives_the_same_life() -> None:
    def life() -> list[object]:
        with closing(edge_arm("ablate:hallucinating", 3)) as arm:
            whole = told(arm)
            seen: list[object] = []
            for b in (0.3, 0.1, 0.6):
                report = arm.set_budget(b * whole)
                found = arm.recall("toolbox shelf room", 3, 500, record=True)
                if found.ticket:
                    arm.outcome(found.ticket, 1.0, 4000)
                seen += [report, found.hits, arm.values()]
            return seen

    assert life() == life()


def test_an_archive_brings_back_what_a_store_alone_has_lost() -> None:
    exact = {}
    for name in ("product", "product_archive"):
        with closing(edge_arm(name, 0)) as arm:
            whole = told(arm)
            arm.settle()
            arm.set_budget(0.12 * whole)
            arm.set_budget(1.5 * whole)
            rungs = arm.rungs()
            exact[name] = rungs.get("full", 0) + rungs.get("packed", 0)
    assert exact["product"] < 40
    assert exact["product_archive"] == 40


def test_the_gate_stands_between_an_inventing_model_and_the_store() -> None:
    refused, risen = {}, {}
    for name in ("ablate:hallucinating", "ablate:no_gate"):
        with closing(edge_arm(name, 0)) as arm:
            whole = told(arm)
            arm.set_budget(0.3 * whole)
            for _ in range(20):
                found = arm.recall("toolbox shelf room", 5, 2000, record=True)
                arm.outcome(found.ticket, 1.0, 4000)
            report = arm.set_budget(whole)
            refused[name], risen[name] = sum(report.rejected.values()), len(report.promoted)
            assert arm.stand_in
    assert refused["ablate:no_gate"] == 0 < refused["ablate:hallucinating"]
    assert risen["ablate:no_gate"] > risen["ablate:hallucinating"]


def test_reading_without_a_record_changes_nothing() -> None:
    with closing(edge_arm("product", 0)) as arm:
        told(arm, 10)
        before = arm.held(), arm.values(), arm.rungs()
        for n in range(10):
            arm.recall(f"story {n}", 5, 2000, record=False)
        assert (arm.held(), arm.values(), arm.rungs()) == before


def test_an_entry_that_can_never_fit_is_refused_and_told() -> None:
    with closing(edge_arm("product", 0)) as arm:
        arm.set_budget(3000)
        noise = "".join(chr(0x4E00 + (n * 7919) % 20000) for n in range(3000))
        assert arm.write(Item("huge", noise, Kind.MEMORY, 0.0)).evicted == ["huge"]
        assert arm.write(Item("small", "The key is under the mat.", Kind.MEMORY, 1.0)).evicted == []


def test_an_outcome_of_a_recall_that_became_void_teaches_nothing() -> None:
    with closing(edge_arm("product", 0)) as arm:
        told(arm, 10)
        ticket = arm.recall("toolbox", 5, 2000, record=True).ticket
        arm.set_budget(900)
        arm.outcome(ticket, 1.0, 10)


@pytest.mark.parametrize("name", ABLATIONS)
def test_every_ablation_differs_from_its_base_in_what_its_name_says(name: str) -> None:
    bases = (spec("crystalmem", 0), spec("product", 0), spec("ablate:hallucinating", 0))
    found = spec(name, 0)
    fields = found.__dataclass_fields__
    differing = min(sum(getattr(found, field) != getattr(base, field) for field in fields) for base in bases)
    # The oracle needs tokens enough to rebuild everything.
    assert differing == {"ablate:hallucinating": 0, "ablate:exact": 2}.get(name, 1), found


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="no such policy"):
        edge_arm("ablate:everything", 0)


def test_worlds_of_the_bench_run_on_it() -> None:
    world = Drawers().worlds(0, Size(1, 30, 10, 3))[0]
    with closing(edge_arm("product", 0)) as arm:
        arm.set_budget(10**5)
        for item in world.stages[0]:
            arm.write(item)
        question = world.measuring[0]
        found = arm.recall(question.text, 3, 1000, record=False)
        assert Drawers().g(question, [hit.text for hit in found.hits], None) == 1.0
