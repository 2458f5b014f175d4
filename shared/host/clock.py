"""The real clock, randomness and ids. Nothing else in the tree may reach for them (ruff TID251)."""

from __future__ import annotations

import os
import time
import uuid
from random import SystemRandom

import anyio


class SystemClock:
    """ports.Clock on this machine."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970, for people; it may jump."""
        return time.time_ns()

    def mono_ns(self) -> int:
        """Nanoseconds since some start, for decisions; it never goes back."""
        return time.monotonic_ns()

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for `seconds`."""
        await anyio.sleep(seconds)


class SystemRng:
    """ports.Rng from the operating system."""

    def __init__(self) -> None:
        self._random = SystemRandom()

    def random(self) -> float:
        """Uniform in [0, 1)."""
        return self._random.random()

    def bytes(self, count: int) -> bytes:
        """`count` random bytes, fit for keys."""
        return os.urandom(count)


class RandomIds:
    """ports.IdSource: version 4 UUIDs as 16 bytes."""

    def new_id(self) -> bytes:
        """An id that nobody has given before."""
        return uuid.uuid4().bytes
