"""A real model in a real process for tests: 300 KB of random weights that know nothing."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from edge_agent.ondevice import OnDevice
from edge_agent.ondevice_process import ModelProcess
from edge_agent.ondevice_state import Answer, OnDeviceOptions, Prompt
from shared.units import GIB
from tests.fakes import FakeClock

MODEL = Path(__file__).parent / "fixtures" / "tiny_genai" / "model"
ASK = Prompt((("system", "You pick."), ("user", "1. One.\n2. Two.")), 12, pattern="[1-2](, [1-2]){0,1}")
# No answer of the tiny model's own ends: it goes on to the length that it is given.
ENDLESS = Prompt((("user", "Say it."),), 1500, pattern="[a-z]{3000}")


@asynccontextmanager
async def opened(
    clock: FakeClock,
    folder: Path = MODEL,
    start: Callable[[], Awaitable[ModelProcess]] = ModelProcess.start,
    available: Callable[[], int | None] = lambda: 8 * GIB,
    **options: float,
) -> AsyncIterator[OnDevice]:
    board = OnDevice(OnDeviceOptions(folder, **options), clock, start, available)
    try:
        yield board
    finally:
        await board.aclose()


async def until(condition: Callable[[], bool]) -> None:
    """The process really runs: wait for what it does, 20 s at most."""
    with anyio.fail_after(20):
        while not condition():
            await anyio.sleep(0.002)


def gone(pid: int) -> bool:
    """True once a process is dead and reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


class Flying:
    """A call that runs beside the test."""

    def __init__(self, board: OnDevice, prompt: Prompt = ENDLESS) -> None:
        self._board = board
        self._prompt = prompt
        self.answer: Answer | None = None

    @property
    def over(self) -> bool:
        return self.answer is not None

    async def run(self) -> None:
        self.answer = await self._board.generate(self._prompt)
