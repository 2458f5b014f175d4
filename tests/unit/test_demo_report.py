"""The report's schema, the aims and promises read from it, the closing text, and the picture."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crystalmem.demo import DemoOptions, figure, run_demo
from crystalmem.demo.aims import aims, broken_promises, link_totals, violations
from crystalmem.demo.arms import ARMS, REFERENCE, selected
from crystalmem.demo.lineup import over_schedule, provision_of
from crystalmem.demo.progress import Progress
from crystalmem.demo.results import (
    NOT_PROMISED,
    SCHEMA,
    ArmResult,
    Check,
    CycleResult,
    Report,
    StageRow,
    write_report,
)
from crystalmem.demo.tables import report_lines
from shared.errors import Code, InputError
from shared.memory.cycle import DEEP, DEFINITION_1, LoopPoint, deficit, hysteresis

FLAT = (60.0,) * 7
GOLDEN = (60.0, 58.0, 52.0, 44.0, 50.0, 54.0, 55.0)


def check(**changes: Any) -> Check:
    numbers = dict.fromkeys(
        ("lost", "changed", "duplicated", "unjournalled", "hub_lost", "hub_changed", "applied_twice"), 0
    )
    sizes = {"written": 10, "edge_live": 10, "edge_evicted": 0, "hub_entries": 0, "acked": 3}
    return Check(**{**numbers, **sizes, **changes})


def row(stage: int, b: float, capability: float, **changes: Any) -> StageRow:
    found = StageRow(
        stage=stage,
        b=b,
        budget_bytes=int(b * 1_000_000),
        packed_bytes=100_000,
        logical_bytes=90_000,
        disk_bytes=95_000,
        floor_bytes=1_000,
        C=capability,
        n=10,
        C_interval=(capability - 1, capability + 1),
        C_later=None,
        n_later=0,
        rungs={"full": 4, "packed": 6},
        evicted=0,
        lost_exact=0,
        promoted=0,
        rejected={},
        tokens=0,
        link_up_bytes=0,
        link_down_bytes=0,
        seconds=1.0,
        entries=10,
        served=5,
        ungraded=0,
        writes=2,
        disk_after_writes_bytes=96_000,
        logical_after_writes_bytes=91_000,
        violations=(),
    )
    return msgspec.structs.replace(found, **changes)


def arm(
    name: str, capabilities: tuple[float, ...], schedule: tuple[float, ...] = DEFINITION_1, **changes: Any
) -> ArmResult:
    kind = ARMS[name]
    rows = tuple(
        row(number, b, capability)
        for number, (b, capability) in enumerate(zip(schedule, capabilities, strict=True), start=1)
    )
    points = [LoopPoint(stage.b, stage.C, stage.n, stage.C_interval) for stage in rows]
    found = ArmResult(
        title=kind.title,
        policy=kind.policy,
        ladder=kind.ladder,
        archive=kind.archive,
        eviction=kind.eviction,
        budget_exempt=name == REFERENCE,
        H=hysteresis(points),
        D=deficit(points),
        identical=10,
        entries=10,
        byte_identical=True,
        empty_capability=0.0,
        empty_bytes=50_000,
        final_logical_bytes=900_000,
        final_disk_bytes=1_050_000,
        hub_kills=1 if kind.hub else 0,
        wall_s=2.0,
        check=check(),
        stages=rows,
    )
    return msgspec.structs.replace(found, **changes)


def cycle(**arms: ArmResult) -> dict[str, CycleResult]:
    return {"definition1": CycleResult(schedule=DEFINITION_1, arms=arms)}


def report(cycles: dict[str, CycleResult]) -> Report:
    return Report(
        schema=SCHEMA,
        seed=7,
        cycles=cycles,
        link=link_totals(cycles),
        aims=aims(cycles),
        violations=violations(cycles),
        broken=broken_promises(cycles),
        provision_bytes=1_000_000,
        provision_from="keep-all",
        statements=("no model endpoint was given",),
        not_promised=NOT_PROMISED,
        input={"name": "homes", "question_kinds": {"place": 3}},
        environment={"python": "3", "cores": 2},
        wall_s=10.0,
    )


def met(cycles: dict[str, CycleResult]) -> dict[str, bool]:
    return {aim.aim: aim.met for aim in aims(cycles)}


def test_the_report_holds_every_promised_field(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_report(report(cycle(keep_all=arm("keep_all", FLAT), lru=arm("lru", GOLDEN))), path)
    tree = json.loads(path.read_text("utf-8"))
    assert tree["schema"] == 1
    assert {"cycles", "link", "input", "environment", "not_promised"} <= set(tree)
    assert set(tree["link"]) == {"acked", "lost", "applied_twice", "hub_kills"}
    found = tree["cycles"]["definition1"]["arms"]["lru"]
    assert {"H", "D", "identical", "entries", "stages"} <= set(found)
    assert found["H"] == pytest.approx(0.0472222, abs=1e-6)
    assert found["D"] == 5.0
    promised = (
        "stage b budget_bytes packed_bytes logical_bytes disk_bytes floor_bytes C rungs evicted lost_exact "
        "promoted rejected tokens link_up_bytes link_down_bytes seconds"
    )
    assert set(promised.split()) <= set(found["stages"][0])
    assert len(found["stages"]) == 7
    assert not path.with_suffix(".partial").exists()


def test_what_is_not_promised_names_fields_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_report(report(cycle(keep_all=arm("keep_all", FLAT))), path)
    text = path.read_text("utf-8")
    assert all(f'"{name.rpartition(".")[2]}"' in text for name in NOT_PROMISED)


def test_aims_are_met_where_lru_loses_and_the_product_ladder_does_not() -> None:
    found = cycle(
        keep_all=arm("keep_all", FLAT),
        lru=arm("lru", GOLDEN),
        product=arm("product", FLAT),
        product_archive=arm("product_archive", FLAT),
    )
    assert all(met(found).values())
    assert len(met(found)) == 5


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("lru", arm("lru", (60.0,) * 6 + (55.1,))),
        ("product", arm("product", (60.0,) * 3 + (59.8,) + (60.0,) * 3)),
        ("product", arm("product", FLAT, identical=9, byte_identical=False)),
        ("product_archive", arm("product_archive", (60.0,) * 6 + (59.4,))),
    ],
)
def test_a_missed_aim_is_said_and_is_no_broken_promise(name: str, result: ArmResult) -> None:
    found = cycle(**{"keep_all": arm("keep_all", FLAT), name: result})
    assert list(met(found).values()).count(False) == 1
    assert any(line.startswith("  MISSED") for line in report_lines(report(found)))
    assert violations(found) == broken_promises(found) == ()


def test_model_tokens_in_the_exact_case_miss_their_aim() -> None:
    product = arm("product", FLAT)
    paid = msgspec.structs.replace(product, stages=(*product.stages[:6], row(7, 1.0, 60.0, tokens=1)))
    found = met(cycle(keep_all=arm("keep_all", FLAT), product=paid))
    assert not found["packed content fits: model tokens"]


def test_nothing_exact_is_claimed_where_packed_content_does_not_fit() -> None:
    product = arm("product", GOLDEN, identical=2, byte_identical=False)
    tight = tuple(msgspec.structs.replace(stage, packed_bytes=300_000) for stage in product.stages)
    found = cycle(keep_all=arm("keep_all", FLAT), product=msgspec.structs.replace(product, stages=tight))
    assert met(found) == {}


@pytest.mark.parametrize(
    "fault", ["lost", "changed", "duplicated", "unjournalled", "hub_lost", "hub_changed"]
)
def test_every_fault_breaks_the_promise(fault: str) -> None:
    found = cycle(keep_all=arm("keep_all", FLAT), lru=arm("lru", GOLDEN, check=check(**{fault: 1})))
    assert len(broken_promises(found)) == 1
    assert any(line.startswith("BROKEN: definition1/lru") for line in report_lines(report(found)))


def test_violations_carry_their_place() -> None:
    lru = arm("lru", GOLDEN)
    over = row(4, 0.25, 44.0, violations=("settled: logical 2 > budget 1",))
    found = cycle(
        keep_all=arm("keep_all", FLAT),
        lru=msgspec.structs.replace(lru, stages=(*lru.stages[:3], over, *lru.stages[4:])),
    )
    assert violations(found) == ("definition1/lru, stage 4, settled: logical 2 > budget 1",)


def test_the_link_counts_keep_all_once() -> None:
    one = CycleResult(schedule=DEFINITION_1, arms={"keep_all": arm("keep_all", FLAT)})
    both = {"definition1": one, "deep": msgspec.structs.replace(one, schedule=DEEP)}
    assert link_totals(both).acked == 3


def test_keep_all_is_read_along_another_schedule() -> None:
    moved = over_schedule(arm("keep_all", GOLDEN), DEEP)
    assert [stage.b for stage in moved.stages] == list(DEEP)
    assert [stage.C for stage in moved.stages] == list(GOLDEN)
    points = [LoopPoint(b, c, 10, (0.0, 0.0)) for b, c in zip(DEEP, GOLDEN, strict=True)]
    assert hysteresis(points) == moved.H


def test_the_provision_is_what_keep_all_takes_less_an_empty_store() -> None:
    assert provision_of(arm("keep_all", FLAT)) == 1_000_000


def test_the_model_arm_runs_only_with_an_endpoint() -> None:
    assert "paper_llm" not in {kind.name for kind in selected(with_model=False)}
    assert "paper_llm" in {kind.name for kind in selected(with_model=True)}


@pytest.mark.parametrize(
    "options",
    [
        DemoOptions(out=Path("nowhere"), cycles=("definition2",)),
        DemoOptions(out=Path("nowhere"), cycles=()),
        DemoOptions(out=Path("nowhere"), arms=("mru",)),
        DemoOptions(out=Path("nowhere"), arms=("paper_llm",)),
    ],
)
def test_a_wrong_choice_is_refused_before_anything_runs(options: DemoOptions) -> None:
    with pytest.raises(InputError) as caught:
        run_demo(options)
    assert caught.value.code is Code.BAD_REQUEST
    assert not options.out.exists()


def test_the_picture_is_a_png_of_two_panels(tmp_path: Path) -> None:
    arms = {"keep_all": arm("keep_all", FLAT), "lru": arm("lru", GOLDEN)}
    cycles = {
        "definition1": CycleResult(schedule=DEFINITION_1, arms=arms),
        "deep": CycleResult(
            schedule=DEEP, arms={name: over_schedule(found, DEEP) for name, found in arms.items()}
        ),
    }
    figure.draw(cycles, tmp_path / "loop.png")
    raw = (tmp_path / "loop.png").read_bytes()
    assert raw.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", raw[16:24])
    assert width > 1.8 * height


def test_the_summary_has_a_line_an_arm() -> None:
    cycles = cycle(keep_all=arm("keep_all", FLAT), lru=arm("lru", GOLDEN, identical=4, byte_identical=False))
    lines = list(report_lines(report(cycles)))
    found = next(line for line in lines if line.startswith("  lru "))
    assert found.split() == [
        "lru",
        "60.0",
        "58.0",
        "52.0",
        "44.0",
        "50.0",
        "54.0",
        "55.0",
        "0.0472",
        "+5.00",
        "4",
        "of",
        "10",
    ]


def test_progress_is_plain_lines_where_there_is_no_terminal() -> None:
    said = io.StringIO()
    progress = Progress(said, runs=2)
    progress.say("start")
    progress.stage("deep-lru", row(1, 1.0, 60.0))
    progress.finished("deep-lru", arm("lru", GOLDEN))
    assert said.getvalue().splitlines() == [
        "start",
        "[1/2] deep-lru                     C = 60.0 58.0 52.0 44.0 50.0 54.0 55.0   2.0 s",
    ]
    assert "\r" not in said.getvalue()
