"""The JSON every benchmark leaves behind: figures, aims, where it ran and at which commit."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Aim:
    """A bound on one figure, as people read it ("<= 0.3 s"), and whether the run kept it."""

    aim: str
    met: bool


def at_most(figure: float, bound: float, unit: str = "") -> Aim:
    """The figure should not lie above the bound."""
    return Aim(f"<= {bound:g} {unit}".rstrip(), figure <= bound)


def at_least(figure: float, bound: float, unit: str = "") -> Aim:
    """The figure should not lie below the bound."""
    return Aim(f">= {bound:g} {unit}".rstrip(), figure >= bound)


def write(path: Path, figures: Mapping[str, float], aims: Mapping[str, Aim]) -> None:
    """One report; an aim that was missed is written down like any other."""
    report = {
        "figures": dict(figures),
        "aims": {name: {"aim": aim.aim, "met": aim.met} for name, aim in aims.items()},
        "environment": environment(),
        "commit": commit(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def environment() -> dict[str, str | int]:
    """What a reader needs to compare two runs."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
    }


def commit() -> str:
    """The commit that ran, `-dirty` where the tree differs from it; "unknown" outside a clone."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    asked = subprocess.run(
        [git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "unknown"


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    # Arm boards have no "model name" line.
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
