"""Cells on a Ray cluster (extra `ray`): the grid is embarrassingly parallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.runner.cell import Cell
from bench.runner.pool import Rows, Work
from shared.errors import Code, PermanentError


class RayEngine:
    """address "" = a local cluster of `workers` processes, else the address of a running one.

    Every node needs this package and the data at the same paths.
    """

    def __init__(self, workers: int, address: str = "") -> None:
        self._workers = workers
        self._address = address

    def run(self, work: Work, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Rows | None, str]]:
        """As they end; a cell whose worker is lost is tried once more, then reported."""
        try:
            import ray
        except ImportError:
            raise PermanentError(
                Code.BAD_CONFIG,
                "Ray is not installed",
                hint="pip install 'crystalmem[ray]', or --engine local",
            ) from None
        if self._address:
            ray.init(address=self._address, log_to_driver=False)
        else:
            ray.init(num_cpus=self._workers, include_dashboard=False, log_to_driver=False)
        try:
            remote = ray.remote(num_cpus=1, max_retries=1)(work)
            waiting = {remote.remote(cell): cell for cell in cells}
            while waiting:
                done, _ = ray.wait(list(waiting), num_returns=1)
                for reference in done:
                    cell = waiting.pop(reference)
                    try:
                        yield cell, ray.get(reference), ""
                    except ray.exceptions.RayError as problem:
                        yield cell, None, f"{type(problem).__name__}: {str(problem).splitlines()[-1]}"
        finally:
            ray.shutdown()
