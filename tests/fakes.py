"""Fakes of the ports: time that moves when told to, seeded randomness, counted ids."""

from __future__ import annotations

import random

import anyio
from anyio.lowlevel import checkpoint

SECOND_NS = 1_000_000_000


class FakeClock:
    """ports.Clock by hand: sleepers wake when `advance` passes their time."""

    def __init__(self, wall_ns: int = 1_800_000_000 * SECOND_NS) -> None:
        self._start_wall_ns = wall_ns
        self._now_ns = 0
        self._sleepers: list[tuple[int, anyio.Event]] = []

    def wall_ns(self) -> int:
        return self._start_wall_ns + self._now_ns

    def mono_ns(self) -> int:
        return self._now_ns

    @property
    def sleepers(self) -> int:
        """How many tasks wait for this clock."""
        return len(self._sleepers)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await checkpoint()
            return
        sleeper = (self._now_ns + round(seconds * SECOND_NS), anyio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    def tick(self, seconds: float) -> None:
        """Move time without letting anybody run; sleepers that are due wake at the next checkpoint."""
        self._now_ns += round(seconds * SECOND_NS)
        for due_ns, event in self._sleepers:
            if due_ns <= self._now_ns:
                event.set()

    async def advance(self, seconds: float) -> None:
        """Move time and let every task that this wakes run until it waits again."""
        self.tick(seconds)
        await anyio.wait_all_tasks_blocked()


class SeededRng:
    """ports.Rng, the same for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def random(self) -> float:
        return self._random.random()

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


class CountingIds:
    """ports.IdSource: 1, 2, 3 as 16 bytes."""

    def __init__(self) -> None:
        self._last = 0

    def new_id(self) -> bytes:
        self._last += 1
        return self._last.to_bytes(16, "big")
