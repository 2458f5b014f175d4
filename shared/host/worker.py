"""One thread that owns what may not be shared (a SQLite connection) and runs jobs in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import anyio

from shared.host.service import Pulse

P = ParamSpec("P")
T = TypeVar("T")


class WorkerThread:
    """`await run(fn, *args)` from the loop; a job that was handed over always runs to its end."""

    def __init__(self, name: str, pulse: Pulse) -> None:
        self.pulse = pulse
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, job: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The job's result or its error. A cancelled caller waits for it too: no half-known commits."""

        def beating() -> T:
            with self.pulse.busy():
                return job(*args, **kwargs)

        future = asyncio.get_running_loop().run_in_executor(self._executor, beating)
        with anyio.CancelScope(shield=True):
            try:
                await asyncio.shield(future)
            except asyncio.CancelledError:
                # A native cancel (aiohttp, asyncio.wait_for) passes anyio's shield.
                await asyncio.wait([future])
                if not future.cancelled():
                    future.exception()  # seen here, or asyncio complains that nobody looked
                raise
        return future.result()

    async def aclose(self) -> None:
        """Finish the waiting jobs and end the thread."""
        await self.run(_nothing)
        self._executor.shutdown(wait=True)


def _nothing() -> None:
    """The last job: when it is done the queue is empty."""
