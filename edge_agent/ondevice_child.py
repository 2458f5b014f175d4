"""The model process: `python -m edge_agent.ondevice_child FD`. It may crash; the daemon does not.

It listens between tokens, ends when the daemon's end of the socket closes, and runs at low priority.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from edge_agent.ondevice_engine import Engine
from edge_agent.ondevice_wire import (
    FORMAT,
    HEAD_BYTES,
    Cancel,
    Generate,
    Load,
    Loaded,
    Refused,
    ToChild,
    ToParent,
    body_bytes,
    for_child,
    framed,
)
from shared.errors import Code, CrystalError, PermanentError
from shared.host.clock import SystemClock
from shared.host.memory import resident_bytes
from shared.host.model_folder import read_manifest, verify
from shared.ports import Clock
from shared.units import MIB

# Recalls come first, on one core too.
_NICE = 10
# Thread stacks and the interpreter are writable too, and hardly used: the watch over resident bytes is exact,
# this limit is the wall behind it.
_WALL_BYTES = 512 * MIB
_WALL_FACTOR = 1.5


class Channel:
    """The daemon's messages, waited for or looked for."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._cancelled = -1

    def send(self, message: ToParent) -> None:
        """Whole, or OSError where the daemon is gone."""
        self._sock.sendall(framed(message))

    def receive(self) -> ToChild | None:
        """The next message; None when the daemon is gone."""
        head = self._exactly(HEAD_BYTES)
        body = self._exactly(body_bytes(head)) if head is not None else None
        return None if body is None else for_child(body)

    def cancelled(self, job: int) -> bool:
        """Whether this job must end now: cancelled, or nobody is there to read its answer."""
        while self._cancelled < job and select.select([self._sock], [], [], 0)[0]:
            message = self.receive()
            if message is None:
                return True
            if isinstance(message, Cancel):
                self._cancelled = message.job
        return self._cancelled >= job

    def _exactly(self, size: int) -> bytes | None:
        got = b""
        while len(got) < size:
            piece = self._sock.recv(size - len(got))
            if not piece:
                return None
            got += piece
        return got


def main(descriptor: int) -> int:
    """Serve one daemon until it goes away; the exit code."""
    _step_back()
    with socket.socket(fileno=descriptor) as sock, suppress(BrokenPipeError, ConnectionResetError):
        channel = Channel(sock)
        load = channel.receive()
        if not isinstance(load, Load):
            return 1
        try:
            engine = _loaded(load, channel, SystemClock())
        except CrystalError as problem:
            channel.send(Refused(problem.code.value, str(problem)))
            return 1
        _serve(engine, channel, load.memory_bytes)
    return 0


def _serve(engine: Engine, channel: Channel, memory_bytes: int) -> None:
    while (message := channel.receive()) is not None:
        if isinstance(message, Generate):
            answer = engine.run(message, _gone(channel, message.job), channel.send)
            channel.send(answer)
            if resident_bytes() > memory_bytes:
                # What the runtime keeps for the next call is over the bound: a new process starts small.
                return


def _gone(channel: Channel, job: int) -> Callable[[], bool]:
    return lambda: channel.cancelled(job)


def _loaded(load: Load, channel: Channel, clock: Clock) -> Engine:
    """The model, inside its bounds; the daemon has been told."""
    started = clock.mono_ns()
    folder = Path(load.folder)
    manifest = read_manifest(folder, FORMAT)
    verify(folder, manifest)
    _wall(load.memory_bytes)
    engine = Engine(folder, load.threads, load.memory_bytes, clock)
    held = resident_bytes()
    if held > load.memory_bytes:
        raise PermanentError(
            Code.NOT_ENOUGH_MEMORY,
            "the loaded model holds more than it may",
            held_bytes=held,
            memory_bytes=load.memory_bytes,
        )
    channel.send(Loaded(manifest.model, held, (clock.mono_ns() - started) / 1e9))
    return engine


def _step_back() -> None:
    """Lowest claim on the cores, first to go when memory runs out."""
    # An interrupt at the terminal is the daemon's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _wall(memory_bytes: int) -> None:
    """A hard limit of the kernel's, above the bound that is watched."""
    wall = int(memory_bytes * _WALL_FACTOR) + _WALL_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        wall = min(wall, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (wall, wall))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
