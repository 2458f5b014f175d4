"""The folders are the architecture: import-linter keeps it, and is itself proved to catch a breach."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("shared", "edge_agent", "hub", "hardware", "bench", "crystalmem")
LINT = Path(sys.executable).with_name("lint-imports")


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(LINT), "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        cwd=tree,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{tree}:{tree / 'client'}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of our source that a test may spoil."""
    copy = tmp_path_factory.mktemp("tree")
    for name in (*PACKAGES, "client"):
        shutil.copytree(
            ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "data")
        )
    return copy


def test_our_imports_keep_every_contract(tree: Path) -> None:
    result = lint(tree)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("shared/units.py", "import edge_agent.api", "shared imports nothing of ours"),
        ("shared/host/db.py", "import crystalmem.cli", "shared imports nothing of ours"),
        ("shared/memory/value.py", "import sqlite3", "the memory plane is pure"),
        ("shared/memory/gate.py", "from shared.host import clock", "the memory plane is pure"),
        ("edge_agent/search.py", "import hub.store", "edge, hub and hardware never import each other"),
        ("hub/store.py", "import edge_agent.table", "edge, hub and hardware never import each other"),
        ("hub/store.py", "import bench.policies", "edge, hub and hardware import only shared"),
        ("edge_agent/search.py", "import crystalmem.cli", "edge, hub and hardware import only shared"),
        ("client/crystalmem_client/client.py", "import shared.units", "the client is standard library only"),
        ("client/crystalmem_client/client.py", "import msgspec", "the client is standard library only"),
    ],
)
def test_a_forbidden_import_is_caught(tree: Path, module: str, line: str, contract: str) -> None:
    path = tree / module
    source = path.read_text("utf-8")
    path.write_text(f"{source}\n\ndef _breach() -> None:\n    {line}\n", "utf-8")
    try:
        result = lint(tree)
    finally:
        path.write_text(source, "utf-8")
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract} BROKEN" in result.stdout
