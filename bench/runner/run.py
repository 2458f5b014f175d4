"""`crystalmem bench run`: plans cells, leaves out the finished ones, runs the rest, keeps every row."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from tqdm import tqdm

from bench import report
from bench.environments import registry as environments
from bench.environments.contract import Environment, Model, World
from bench.policies import registry as policies
from bench.runner import paths
from bench.runner.answerer import READER_FREE, EndpointModel
from bench.runner.cell import Cell, run_cell
from bench.runner.pool import Engine, LocalPool, Rows
from bench.runner.ray_engine import RayEngine
from bench.runner.rows import RowStore, code_fingerprint
from shared.errors import Code, InputError

PRESETS = ("quick", "full")


@dataclass(frozen=True)
class RunOptions:
    """What to run. data None = where `bench.datasets` finds it; model_url "" = reader-free."""

    out: Path
    environments: tuple[str, ...]
    policies: tuple[str, ...]
    seeds: int
    paths: tuple[str, ...]
    preset: str = "quick"
    data: Path | None = None
    model_url: str = ""
    model_name: str = ""
    workers: int = 2
    engine: str = "local"
    ray_address: str = ""


@dataclass(frozen=True)
class RunResult:
    """Counts of cells, and wall seconds."""

    ran: int
    reused: int
    failed: int
    seconds: float


def run(options: RunOptions, say: Callable[[str], None] = print) -> RunResult:
    """Run every cell that this code has not finished; one that fails is told and left for next time."""
    started = time.perf_counter()
    store = RowStore(options.out)
    code = code_fingerprint()
    cells = plan(options)
    left = [cell for cell in cells if not store.done(cell, code)]
    say(f"{len(cells)} cells, {len(cells) - len(left)} of them done before by this code, {len(left)} to run")
    stamp = {"code": code, "commit": report.commit(), **_environment()}
    work = partial(work_cell, data=options.data, url=options.model_url, model=options.model_name)
    failed = 0
    with tqdm(total=len(left), unit="cell", file=sys.stderr, mininterval=1.0, smoothing=0.05) as bar:
        for cell, rows, problem in _engine(options).run(work, left):
            bar.update()
            if rows is None:
                failed += 1
                store.failed(cell, problem)
                tqdm.write(f"{cell.id}: {problem}", file=sys.stderr)
            else:
                store.put(cell, [{**row, **stamp} for row in rows])
    seconds = time.perf_counter() - started
    return RunResult(len(left) - failed, len(cells) - len(left), failed, seconds)


def plan(options: RunOptions) -> list[Cell]:
    """Every cell in a fixed order: those that share a seed's worlds lie together."""
    _known("environment", options.environments, environments.NAMES)
    _known("policy", options.policies, policies.NAMES)
    _known("preset", (options.preset,), PRESETS)
    if options.seeds < 1 or options.workers < 1:
        raise InputError(
            Code.BAD_REQUEST, "seeds and workers are at least 1", seeds=options.seeds, workers=options.workers
        )
    answerer = f"model:{options.model_name}" if options.model_url else READER_FREE
    return [
        Cell(environment, policy, seed, path, options.preset, answerer)
        for environment in options.environments
        for seed in range(options.seeds)
        for path in options.paths
        for policy in options.policies
    ]


def work_cell(cell: Cell, data: Path | None, url: str, model: str) -> Rows:
    """In the worker: build (or reuse) the worlds and live one cell."""
    environment, worlds = _worlds(cell.environment, cell.seed, cell.preset, data)
    answering: Model | None = EndpointModel(url, model) if url else None
    rows = run_cell(cell, paths.path(cell.path), environment, worlds, policies.make, answering)
    items = sum(len(world.items) for world in worlds)
    text = sum(len(item.text.encode()) for world in worlds for item in world.items)
    told = {"worlds": len(worlds), "items": items, "text_bytes": text, "provenance": environment.provenance}
    return [{**row, **told} for row in rows]


@lru_cache(maxsize=4)
def _worlds(name: str, seed: int, preset: str, data: Path | None) -> tuple[Environment, tuple[World, ...]]:
    environment = environments.make(name, data)
    return environment, environment.worlds(seed, environment.size(preset))


def _engine(options: RunOptions) -> Engine:
    if options.engine == "ray":
        return RayEngine(options.workers, options.ray_address)
    return LocalPool(options.workers)


def _environment() -> dict[str, str | int]:
    return {f"machine_{name}": value for name, value in report.environment().items()}


def _known(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known and not name.startswith("ablate:"):
            raise InputError(
                Code.BAD_REQUEST, f"no such {what}", name=name, hint=f"One of: {', '.join(known)}"
            )
