"""Cells on this machine's cores: each in a worker process, so that a crash of one does not take the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from multiprocessing import get_context
from typing import Any, Protocol

from pebble import ProcessExpired, ProcessPool

from bench.runner.cell import Cell

CELL_TIMEOUT_S = 3600.0
Rows = list[dict[str, Any]]
Work = Callable[[Cell], Rows]


class Engine(Protocol):
    """Runs cells somewhere; yields each as it ends, with its rows or the reason why there are none."""

    def run(self, work: Work, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Rows | None, str]]: ...


class LocalPool:
    """`workers` processes; a worker that dies is replaced, its cell is reported and the others go on."""

    def __init__(self, workers: int, timeout_s: float = CELL_TIMEOUT_S) -> None:
        self._workers = workers
        self._timeout_s = timeout_s

    def run(self, work: Work, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Rows | None, str]]:
        # A forked worker would share the parent's SQLite and ZeroMQ state.
        with ProcessPool(max_workers=self._workers, context=get_context("spawn")) as pool:
            waiting: dict[Future[Rows], Cell] = {}
            for cell in cells:
                waiting[pool.schedule(work, args=[cell], timeout=self._timeout_s)] = cell
            try:
                while waiting:
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield _ended(waiting.pop(future), future)
            except BaseException:
                pool.stop()  # type: ignore[no-untyped-call]
                raise


def _ended(cell: Cell, future: Future[Rows]) -> tuple[Cell, Rows | None, str]:
    try:
        return cell, future.result(), ""
    except ProcessExpired as problem:
        return cell, None, f"the worker process died (exit code {problem.exitcode})"
    except TimeoutError:
        return cell, None, "the cell took too long and was stopped"
    except Exception as problem:  # noqa: BLE001 - whatever a cell raises, the others go on
        return cell, None, f"{type(problem).__name__}: {problem}"
