"""shared.host.model_folder: a folder that is not whole is never loaded; shared.host.memory: what is free."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_agent.ondevice_wire import End
from shared.host.memory import Kernel, available_bytes, resident_bytes
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


def kernel(tmp_path: Path, **files: str) -> Kernel:
    """A kernel that tells what these files hold; `/` in their names is `__`."""
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Kernel(tmp_path / "meminfo", tmp_path / "node", tmp_path / "group", tmp_path / "own")


MEMINFO = "MemTotal:  9 kB\nMemAvailable:    2048 kB\n"
OWN = "3:cpu:/x\n0::/a.slice/b.service\n"
SERVICE = "group__a.slice__b.service__"


def test_the_machine_says_what_is_available(tmp_path: Path) -> None:
    assert available_bytes(kernel(tmp_path)) is None
    assert available_bytes(kernel(tmp_path, meminfo="MemAvailable: lots\n\xff")) is None
    assert available_bytes(kernel(tmp_path, meminfo=MEMINFO)) == 2 * MIB


def test_where_meminfo_is_hidden_the_nodes_say_it(tmp_path: Path) -> None:
    fields = {"MemFree": 1000, "Active(file)": 300, "Inactive(file)": 200, "SReclaimable": 500, "Shmem": 77}
    node = "".join(f"Node 0 {name}:   {size} kB\n" for name, size in fields.items())
    hidden = kernel(tmp_path, node__node0__meminfo=node, node__node1__meminfo=node)
    assert available_bytes(hidden) == int(0.9 * 2 * 2000 * 1024)


def test_every_group_up_to_the_root_is_a_bound(tmp_path: Path) -> None:
    files = {"meminfo": MEMINFO, "own": OWN}
    files |= {f"{SERVICE}memory.max": "max\n", f"{SERVICE}memory.current": "5\n"}
    assert available_bytes(kernel(tmp_path, **files)) == 2 * MIB
    slice_files = {"group__a.slice__memory.max": f"{MIB}\n", "group__a.slice__memory.current": "1000\n"}
    assert available_bytes(kernel(tmp_path, **files, **slice_files)) == MIB - 1000
    stat = {"group__a.slice__memory.stat": "anon 1\ninactive_file 400\n"}
    assert available_bytes(kernel(tmp_path, **stat)) == MIB - 600
    tight = {f"{SERVICE}memory.max": "10\n", f"{SERVICE}memory.current": "50\n"}
    assert available_bytes(kernel(tmp_path, **tight)) == 0


def test_the_older_groups_are_a_bound_too(tmp_path: Path) -> None:
    files = {
        "own": "4:memory:/jobs/1\n",
        "group__memory__jobs__1__memory.limit_in_bytes": "9000\n",
        "group__memory__jobs__1__memory.usage_in_bytes": "4000\n",
        "group__memory__jobs__1__memory.stat": "total_inactive_file 1000\n",
    }
    assert available_bytes(kernel(tmp_path, **files)) == 6000


def test_this_machine_says_something() -> None:
    assert (available_bytes() or 0) > MIB
    assert resident_bytes() > MIB
