"""shared.host.model_folder: a folder that is not whole is never loaded; shared.host.memory: what is free."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_agent.ondevice_wire import End
from shared.host.memory import available_bytes
from shared.host.model_folder import seal
from shared.units import MIB
from tests.fakes import FakeClock
from tests.ondevice import ASK, MODEL, opened

pytest.importorskip("onnxruntime_genai", reason="the extra `ondevice` is not installed here")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def _without_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def _cut(folder: Path) -> None:
    data = (folder / "model.onnx.data").read_bytes()
    (folder / "model.onnx.data").write_bytes(data[:-1])


def _flipped(folder: Path) -> None:
    data = bytearray((folder / "model.onnx.data").read_bytes())
    data[100] ^= 1
    (folder / "model.onnx.data").write_bytes(bytes(data))


def _missing_file(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _changed(folder: Path, **fields: object) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **fields}))


BREAKAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "not there"),
    "half built": (_without_manifest, "not built to its end"),
    "a file cut": (_cut, "model.onnx.data"),
    "a bit flipped": (_flipped, "another SHA-256"),
    "a file missing": (_missing_file, "tokenizer.json"),
    "manifest is no JSON": (
        lambda folder: (folder / "manifest.json").write_bytes(b"\xff{"),
        "cannot be read",
    ),
    "another format": (lambda folder: _changed(folder, format="hf-bf16"), "another format"),
    "a path for a name": (
        lambda folder: _changed(folder, files={"../x": {"size_bytes": 1, "sha256": "0"}}),
        "../x",
    ),
    "an unknown key": (lambda folder: _changed(folder, more=1), "cannot be read"),
}


@pytest.mark.parametrize(("broken", "told"), BREAKAGES.values(), ids=BREAKAGES)
async def test_a_folder_that_is_not_whole_is_refused(
    tmp_path: Path, clock: FakeClock, broken: Callable[[Path], object], told: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(MODEL, folder)
    broken(folder)
    async with opened(clock, folder) as board:
        assert (await board.generate(ASK)).end is End.UNAVAILABLE
        assert told in board.problem
        assert board.counts.deaths == 0
        # Made whole later, it is found without a restart.
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(MODEL, folder)
        clock.tick(60.0)
        assert (await board.generate(ASK)).end is End.STOP


async def test_a_whole_folder_that_the_runtime_cannot_read_is_refused(
    tmp_path: Path, clock: FakeClock
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(MODEL, folder)
    (folder / "model.onnx").write_bytes(b"no graph")
    seal(folder, model="broken", kind="onnx-int4", source="a test", licence="none", built_with="nothing")
    async with opened(clock, folder) as board:
        assert (await board.generate(ASK)).end is End.UNAVAILABLE
        assert "the runtime refuses the model" in board.problem
        assert board.counts.deaths == 0


def test_the_smaller_of_machine_and_group_counts(tmp_path: Path) -> None:
    meminfo, group = tmp_path / "meminfo", tmp_path / "group"
    group.mkdir()
    assert available_bytes(meminfo, group) is None
    meminfo.write_text("MemTotal:  9 kB\nMemAvailable:    2048 kB\n")
    assert available_bytes(meminfo, group) == 2 * MIB
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("5\n")
    assert available_bytes(meminfo, group) == 2 * MIB
    (group / "memory.max").write_text(f"{MIB}\n")
    assert available_bytes(meminfo, group) == MIB - 5
    (group / "memory.current").write_text(f"{2 * MIB}\n")
    assert available_bytes(meminfo, group) == 0
    meminfo.write_text("MemAvailable: lots\n")
    assert available_bytes(meminfo, group) == 0
