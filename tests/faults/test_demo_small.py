"""The demo end to end at a small size: real daemons, a killed hub, the checker, the same twice."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crystalmem.demo import DemoOptions, run_demo
from crystalmem.demo.arms import ARMS
from crystalmem.demo.driver import ArmRun, Plan
from crystalmem.demo.episodes import load
from crystalmem.demo.packed import packed_sizes
from crystalmem.demo.processes import Fleet
from crystalmem.demo.results import ArmResult, StageRow
from crystalmem.demo.run import EXIT_BROKEN, EXIT_OK
from crystalmem.demo.site import HubSite
from crystalmem.demo.stream import cut
from shared.errors import Code, PermanentError
from shared.host.clock import SystemClock
from shared.memory.cycle import DEEP
from tests import households

EPISODES = 50
# Its trough, 5 %, holds a few entries at TRACE and evicts the others.
PROVISION_BYTES = 130_000
TROUGH = 1 + DEEP.index(min(DEEP))


def demo(
    out: Path, arms: tuple[str, ...], cycle: str, episodes: int = EPISODES
) -> tuple[int, dict[str, Any]]:
    source = households.write(out.with_suffix(".jsonl"), EPISODES)
    code = run_demo(DemoOptions(out=out, input_file=source, cycles=(cycle,), arms=arms))
    return code, json.loads((out / "report.json").read_text("utf-8"))


def test_lru_loses_what_crystalmem_brings_back_through_a_killed_hub(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As `make demo` calls it: a relative path, while keys are made from another working directory.
    monkeypatch.chdir(tmp_path)
    code, report = demo(Path("out"), ("lru", "product_archive"), "definition1")
    said = capsys.readouterr().out
    assert code == EXIT_OK, said
    arms = report["cycles"]["definition1"]["arms"]
    assert set(arms) == {"keep_all", "lru", "product_archive"}
    assert report["violations"] == report["broken"] == []
    assert report["link"] | {"acked": 0} == {"acked": 0, "lost": 0, "applied_twice": 0, "hub_kills": 1}
    assert report["link"]["acked"] >= EPISODES
    assert arms["product_archive"]["identical"] == EPISODES
    assert arms["product_archive"]["check"]["hub_entries"] == EPISODES
    assert arms["lru"]["identical"] < EPISODES
    assert arms["lru"]["check"]["edge_evicted"] == EPISODES - arms["lru"]["identical"]
    assert arms["lru"]["stages"][-1]["C"] < arms["keep_all"]["stages"][-1]["C"] - 5
    for arm in arms.values():
        assert arm["empty_capability"] == 0
        assert [stage["stage"] for stage in arm["stages"]] == list(range(1, 8))
    assert (tmp_path / "out" / "loop.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "out" / "work").exists()
    assert "no model endpoint was given" in said


def test_two_runs_of_a_seed_tell_the_same(tmp_path: Path) -> None:
    stream = cut(load(households.write(tmp_path / "in.jsonl", EPISODES)), seed=7)

    def run(name: str) -> ArmResult:
        (tmp_path / name).mkdir()
        plan = Plan(
            arm=ARMS["product_archive"],
            name=name,
            schedule=DEEP,
            stream=stream,
            packed_bytes=packed_sizes(stream),
            provision_bytes=PROVISION_BYTES,
            directory=tmp_path / name,
        )
        hub = HubSite(name, plan.directory, fleet, None)
        return ArmRun(plan, fleet, hub, SystemClock(), lambda row: None).run()

    # Side by side, so that they differ in pace.
    with Fleet(tmp_path) as fleet, ThreadPoolExecutor(2) as pool:
        one, two = pool.map(run, ("one", "two"))
    assert (one.H, one.D, one.identical) == (two.H, two.D, two.identical)
    # From the trough on there is room for the next batch or the next write, not both: which is first is
    # the hub's pace, and it dies once. What is kept and what it is worth does not hang on that.
    paced = {"rungs", "promoted", *(name for name in StageRow.__struct_fields__ if name.endswith("_bytes"))}
    for ours, theirs in zip(one.stages, two.stages, strict=True):
        for name in StageRow.__struct_fields__:
            if name == "seconds" or name.startswith("link_") or (ours.stage >= TROUGH and name in paced):
                continue
            assert getattr(ours, name) == getattr(theirs, name), (ours.stage, name)
    assert any(row.rungs.get("trace") for row in one.stages)
    assert any(row.promoted for row in one.stages)
    assert not one.check.broken
    assert one.hub_kills == two.hub_kills == 1


def test_a_daemon_that_cannot_start_ends_the_demo_with_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crystalmem.demo.processes.COMMAND", ("/bin/sh", "-c", "echo no such luck; exit 3"))
    source = households.write(tmp_path / "in.jsonl", EPISODES)
    assert run_demo(DemoOptions(out=tmp_path / "out", input_file=source, cycles=("deep",))) == EXIT_BROKEN
    said = capsys.readouterr().out
    assert "keep_all did not start" in said
    assert "no such luck" in said


def test_bad_input_starts_nothing(tmp_path: Path) -> None:
    source = households.write(tmp_path / "in.jsonl", EPISODES)
    source.write_bytes(source.read_bytes() + b'{"type": "episode", "id": "x", "text": ""}\n')
    with pytest.raises(PermanentError) as caught:
        run_demo(DemoOptions(out=tmp_path / "out", input_file=source))
    assert caught.value.code is Code.BAD_INPUT_FILE
    assert not (tmp_path / "out").exists()
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("crystalmem-*/reference-*"))
