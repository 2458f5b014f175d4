"""What the tree must and must not hold."""

from __future__ import annotations

import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Folders of one machine: a path like these in the tree works nowhere else.
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:home|root|Users|work|farm|mnt|tmp|build)/[\w.-]+")
REGISTRY = re.compile(r"--(?:extra-)?index-url|--find-links|--trusted-host|https?://")
SQL = re.compile(r"\b(?:SELECT .+ FROM|INSERT (?:OR \w+ )?INTO|DELETE FROM|UPDATE \w+ SET)\b")
HEAVY = re.compile(r"^(?:torch|tensorflow|jax|transformers|nvidia-|pandas)", re.MULTILINE)
# Fine in an extra, not in what every board installs.
OPTIONAL = re.compile(r"^(?:onnx|tokenizers|scipy|duckdb|matplotlib|ray\b)")


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git work tree")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("folder", ["systemd", "deploy"])
def test_folders_that_shadow_a_module_are_no_packages(folder: str) -> None:
    assert (ROOT / folder).is_dir()
    assert not list((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", ["hardware", "bench", "deploy", "client"])
def test_a_folder_says_what_lives_in_it(folder: str) -> None:
    assert len((ROOT / folder / "README.md").read_text("utf-8").strip()) > 40


def test_no_file_names_a_folder_of_one_machine() -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


def test_the_lock_names_no_registry_and_pins_every_package_by_hash() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert not REGISTRY.search(lock)
    packages = re.split(r"^(?=\w)", lock, flags=re.MULTILINE)[1:]
    assert len(packages) > 50
    for package in packages:
        assert re.match(r"[\w.-]+==[\w.]+ ", package), package[:80]
        assert "--hash=sha256:" in package, package[:80]


def test_no_heavy_package_is_installed() -> None:
    assert not HEAVY.search((ROOT / "requirements.lock").read_text("utf-8"))


def test_the_core_needs_no_model_runtime() -> None:
    required = metadata.requires("crystalmem") or []
    core = [line for line in required if "extra ==" not in line]
    assert len(core) > 10
    assert [line for line in core if OPTIONAL.match(line) or HEAVY.match(line)] == []


def test_no_module_is_longer_than_the_ceiling() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {lines}"
        for path in tracked()
        if path.suffix == ".py" and (lines := len(path.read_text("utf-8").splitlines())) > 400
    ]
    assert long == []


def test_sql_stands_only_where_stores_live() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("shared", "hardware", "crystalmem", "client", "bench")
        for path in (ROOT / folder).rglob("*.py")
        if SQL.search(path.read_text("utf-8"))
    }
    # The checker opens both files itself, read-only, so that it does not trust the stores' own code;
    # a run's rows are read through DuckDB.
    assert found == {"crystalmem/demo/checker.py", "bench/results/cycles.py"}
