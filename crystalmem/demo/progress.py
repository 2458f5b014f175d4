"""What the demo says while it runs: one line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
from typing import TextIO

from crystalmem.demo.results import ArmResult, StageRow


class Progress:
    """Called from the arms' threads."""

    def __init__(self, output: TextIO, runs: int) -> None:
        self._output = output
        self._live = output.isatty()
        self._runs = runs
        self._done = 0
        self._now: dict[str, str] = {}
        self._lock = threading.Lock()

    def say(self, line: str) -> None:
        """A line that stays."""
        with self._lock:
            self._clear()
            self._output.write(f"{line}\n")
            self._output.flush()

    def stage(self, run: str, row: StageRow) -> None:
        """A stage was measured."""
        with self._lock:
            self._now[run] = f"{run} stage {row.stage} b={row.b:g} C={row.C:.1f}"
            if self._live:
                self._clear()
                self._output.write(f"[{self._done}/{self._runs}] {' | '.join(self._now.values())}"[:118])
                self._output.flush()

    def finished(self, run: str, arm: ArmResult) -> None:
        """A run of an arm ended."""
        with self._lock:
            self._done += 1
            self._now.pop(run, None)
            path = " ".join(f"{row.C:.1f}" for row in arm.stages)
            self._clear()
            self._output.write(f"[{self._done}/{self._runs}] {run:<28} C = {path}   {arm.wall_s:.1f} s\n")
            self._output.flush()

    def _clear(self) -> None:
        if self._live:
            self._output.write("\r\033[K")
