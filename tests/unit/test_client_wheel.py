"""The client's own wheel: built, installed into a bare environment, and nothing but itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parents[2] / "client"


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built offline, from a copy: a build writes beside its sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "client"
    shutil.copytree(CLIENT, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"),
        *("--disable-pip-version-check", "--wheel-dir", folder, source),
        cwd=folder,
    )
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The Python of an environment that holds the client and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index"),
        *("--disable-pip-version-check", wheel),
        cwd=folder,
    )
    return python


def test_the_wheel_installs_one_top_level_name(bare: Path) -> None:
    [site] = (bare.parent.parent / "lib").glob("python3.*/site-packages")
    names = {item.name for item in site.iterdir() if not item.name.endswith(".dist-info")}
    assert names == {"crystalmem_client"}


def test_the_wheel_carries_its_types_and_no_requirement(wheel: Path) -> None:
    assert wheel.name.startswith("crystalmem_client-")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert "crystalmem_client/py.typed" in packed.namelist()
        [metadata] = [name for name in packed.namelist() if name.endswith("/METADATA")]
        assert "Requires-Dist" not in packed.read(metadata).decode()


def test_the_client_imports_the_standard_library_only(bare: Path, tmp_path: Path) -> None:
    code = (
        "import sys, crystalmem_client\n"
        "tops = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(tops - set(sys.stdlib_module_names) - {'__main__', 'crystalmem_client'}))\n"
        "print(crystalmem_client.Client.__name__)"
    )
    assert run(bare, "-I", "-c", code, cwd=tmp_path) == "[]\nClient\n"
