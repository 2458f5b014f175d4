"""The distribution `crystalmem`: what its wheel holds, and what its metadata promise."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("crystalmem", "edge_agent", "hub", "hardware", "shared", "bench", "client")
SHIPPED = FOLDERS[:-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built offline, from a copy: a build writes beside its sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in FOLDERS:
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pip",
                "wheel",
                "--quiet",
                "--no-index",
                "--no-deps",
                "--no-build-isolation",
            ),
            *("--disable-pip-version-check", "--wheel-dir", str(folder), str(source)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = folder.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def test_every_module_and_every_data_file_ships(wheel: zipfile.ZipFile) -> None:
    wanted = {
        path.relative_to(ROOT).as_posix()
        for name in SHIPPED
        for path in (ROOT / name).rglob("*")
        if path.suffix in {".py", ".sql"} and "__pycache__" not in path.parts
    }
    wanted |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "crystalmem" / "data").glob("*")}
    wanted |= {f"edge_agent/data/minilm/{name}" for name in ("tokenizer.json", "LICENSE.txt")}
    wanted |= {
        f"crystalmem_client/{path.name}" for path in (ROOT / "client" / "crystalmem_client").glob("*.py")
    }
    shipped = set(wheel.namelist())
    assert wanted - shipped == set()
    assert {name.split("/")[0] for name in shipped if ".dist-info/" not in name} == {
        *SHIPPED,
        "crystalmem_client",
    }


def test_the_command_is_installed(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    assert "crystalmem = crystalmem.cli:main" in wheel.read(name).decode()


def test_licence_and_floor(metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"


def test_copyleft_packages_are_optional(metadata: Message) -> None:
    required = metadata.get_all("Requires-Dist") or []
    for name, extra in (("jetson-stats", "jetson"), ("alfworld", "record")):
        [line] = [line for line in required if line.startswith(name)]
        assert f'extra == "{extra}"' in line


def test_every_dependency_says_why_it_is_there() -> None:
    lines = (ROOT / "pyproject.toml").read_text("utf-8").splitlines()
    start, end = lines.index("dependencies = ["), lines.index("[project.scripts]")
    explained = False
    for line in lines[start + 1 : end]:
        text = line.strip()
        if text.startswith("#"):
            explained = True
        elif text.startswith('"'):
            assert explained, f"no reason stands above {text}"
        elif text.endswith(("[", "]")):
            explained = False
