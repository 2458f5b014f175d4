"""The whole demo: read, run every arm, check, report, draw."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from crystalmem_client import CrystalMemError

from crystalmem import __version__
from crystalmem.demo import figure
from crystalmem.demo.aims import aims, broken_promises, link_totals, violations
from crystalmem.demo.arms import ARMS, REFERENCE, Arm, selected
from crystalmem.demo.episodes import DATA_FILE, Dataset, load
from crystalmem.demo.lineup import Lineup, provision_of
from crystalmem.demo.packed import packed_sizes
from crystalmem.demo.processes import Fleet
from crystalmem.demo.progress import Progress
from crystalmem.demo.results import NOT_PROMISED, SCHEMA, CycleResult, Report, write_report
from crystalmem.demo.site import Model
from crystalmem.demo.stream import FIRST_SHARE, Stream, cut
from crystalmem.demo.tables import report_lines
from shared.errors import Code, CrystalError, InputError
from shared.host.clock import SystemClock
from shared.memory.cycle import SCHEDULES

EXIT_OK = 0
EXIT_BROKEN = 1


@dataclass(frozen=True)
class DemoOptions:
    """What `crystalmem demo` takes."""

    out: Path
    input_file: Path | None = None
    seed: int = 7
    cycles: tuple[str, ...] = ("definition1", "deep")
    llm_url: str = ""
    llm_model: str = ""
    arms: tuple[str, ...] = ()
    """Only these (keep-all runs always); empty = all that can run."""

    @property
    def model(self) -> Model | None:
        """The endpoint, where one was named."""
        return Model(self.llm_url, self.llm_model) if self.llm_url else None


def run_demo(options: DemoOptions) -> int:
    """0 when all of it ran and no hard promise broke. Bad input raises CrystalError before anything runs."""
    schedules = _schedules(options.cycles)
    arms = _arms(options)
    dataset = load(options.input_file or DATA_FILE)
    stream = cut(dataset, options.seed)
    # The daemons and commands have working directories of their own.
    work = _fresh_directory(options.out.resolve())
    progress = Progress(sys.stdout, 1 + (len(arms) - 1) * len(schedules))
    progress.say(_opening(dataset, stream, options))
    clock = SystemClock()
    started = clock.mono_ns()
    try:
        with _terminated_as_exit(), Fleet(work) as fleet:
            lineup = Lineup(stream, packed_sizes(stream), work, fleet, options.model, clock, progress)
            cycles = lineup.run(schedules, arms)
    except (CrystalError, CrystalMemError) as problem:
        progress.say(f"FAILED: {problem.message}; logs and stores are kept in {work}")
        progress.say(_help(problem))
        return EXIT_BROKEN
    report = _report(options, dataset, stream, cycles, (clock.mono_ns() - started) / 1e9)
    write_report(report, options.out / "report.json")
    figure.draw(report.cycles, options.out / "loop.png")
    for line in report_lines(report):
        progress.say(line)
    progress.say(
        f"\nwrote {options.out / 'report.json'} and {options.out / 'loop.png'} in {report.wall_s:.0f} s"
    )
    if report.violations or report.broken:
        progress.say(f"FAILED: a hard promise was broken; the stores are kept in {work}")
        return EXIT_BROKEN
    shutil.rmtree(work)
    return EXIT_OK


def _help(problem: CrystalError | CrystalMemError) -> str:
    """What to do next, or what the daemon said last."""
    code = getattr(problem.code, "value", problem.code)
    if code in {Code.ENTRY_OVER_BUDGET.value, Code.BUDGET_BELOW_FLOOR.value}:
        return "The input is too small for a cycle's trough: try --cycles definition1, or give more episodes"
    return str(problem.facts.get("log", problem.hint)).rstrip()


def _schedules(names: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
    unknown = [name for name in names if name not in SCHEDULES]
    if unknown or not names:
        raise InputError(Code.BAD_REQUEST, "no such cycle", given=",".join(names), known=",".join(SCHEDULES))
    return {name: SCHEDULES[name] for name in names}


def _arms(options: DemoOptions) -> tuple[Arm, ...]:
    able = selected(with_model=options.model is not None)
    unknown = [name for name in options.arms if name not in {arm.name for arm in able}]
    if unknown:
        raise InputError(Code.BAD_REQUEST, "no such arm here", given=unknown[0], known=",".join(ARMS))
    return tuple(arm for arm in able if not options.arms or arm.name in options.arms or arm.name == REFERENCE)


def _fresh_directory(out: Path) -> Path:
    """OUT/work, empty. Only what an earlier demo left there is removed."""
    work = out / "work"
    if work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True)
    return work


def _opening(dataset: Dataset, stream: Stream, options: DemoOptions) -> str:
    parts = "/".join(str(len(stage.writes)) for stage in stream.stages)
    return (
        f"{dataset.name}: {len(dataset.episodes)} episodes, {dataset.text_bytes / 1024:.0f} KiB of text; "
        f"{len(stream.before)} before stage 1, then {parts}; "
        f"{len(stream.fixed)} fixed measuring questions; seed {options.seed}"
    )


@contextmanager
def _terminated_as_exit() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind the stack like Ctrl-C, so that the daemons are killed."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(
    options: DemoOptions, dataset: Dataset, stream: Stream, cycles: dict[str, CycleResult], wall_s: float
) -> Report:
    reference = next(iter(cycles.values())).arms[REFERENCE]
    disk, empty = reference.final_disk_bytes, reference.empty_bytes
    return Report(
        schema=SCHEMA,
        seed=options.seed,
        cycles=cycles,
        link=link_totals(cycles),
        aims=aims(cycles),
        violations=violations(cycles),
        broken=broken_promises(cycles),
        provision_bytes=provision_of(reference),
        provision_from=f"keep-all: {reference.entries} entries, {disk} bytes, less {empty} of an empty store",
        statements=_statements(options),
        not_promised=NOT_PROMISED,
        input=_input(dataset, stream),
        environment={
            "crystalmem": __version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "machine": platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
        },
        wall_s=wall_s,
    )


def _statements(options: DemoOptions) -> tuple[str, ...]:
    said = [
        "capability is reader-free: the share of the gold's content tokens in at most 5 hits and 4096 bytes",
        "recall is lexical (BM25); no embedder ran",
        "keep-all ran once: no budget binds it, so the same run is read along every schedule",
        "packed: all content written so far in the store's block codec, without a trained dictionary",
    ]
    if options.model is None:
        said.append("no model endpoint was given (--llm URL --model NAME), so the paper_llm arm did not run")
    else:
        said.append(f"model drafts came from {options.llm_model} at {options.llm_url}")
    return tuple(said)


def _input(dataset: Dataset, stream: Stream) -> dict[str, str | int | float | dict[str, int]]:
    return {
        "name": dataset.name,
        "episodes": len(dataset.episodes),
        "text_bytes": dataset.text_bytes,
        "questions": len(dataset.questions),
        "question_kinds": dict(sorted(Counter(question.kind for question in dataset.questions).items())),
        "first_share": FIRST_SHARE,
        "before_stage_1": len(stream.before),
        "fixed_measuring_questions": len(stream.fixed),
        "later_measuring_questions": len(stream.later),
        "served_questions": sum(len(stage.served) for stage in stream.stages),
    }
