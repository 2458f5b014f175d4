"""One model process, seen from the daemon's loop: start, talk, end. What it says is checked here."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

import anyio

from edge_agent.ondevice_wire import HEAD_BYTES, End, ToChild, ToParent, body_bytes, for_parent, framed

COMMAND = (sys.executable, "-m", "edge_agent.ondevice_child")


class ModelProcess:
    """Owns the process and the daemon's end of the socket; `end` is safe at any time and more than once."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, command: Sequence[str] = COMMAND) -> ModelProcess:
        """A process that waits for its Load; OSError where none can be started."""
        ours, process = await anyio.to_thread.run_sync(_spawn, command)
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            ours.close()
            process.kill()
            process.wait()
            raise
        return cls(process, reader, writer)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def dead(self) -> bool:
        """True once the process has ended, however."""
        return self._process.poll() is not None

    def send(self, message: ToChild) -> bool:
        """Hand a message over without waiting; a process that is gone hears nothing.

        False where the message cannot be one (too long, no Unicode): nothing was sent.
        """
        try:
            frame = framed(message)
        except ValueError:
            return False
        with suppress(OSError, RuntimeError):
            self._writer.write(frame)
        return True

    async def receive(self) -> ToParent | End:
        """The next message, or how the process was lost (CRASHED, GARBAGE). Cancelling loses nothing."""
        try:
            head = await self._reader.readexactly(HEAD_BYTES)
            return for_parent(await self._reader.readexactly(body_bytes(head)))
        except (asyncio.IncompleteReadError, OSError):
            return End.CRASHED
        except ValueError:
            return End.GARBAGE

    async def end(self) -> int:
        """Kill it, wait for it, close the socket; its exit code (negative: the signal)."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._writer.close()
        with anyio.CancelScope(shield=True), suppress(OSError):
            await anyio.to_thread.run_sync(self._process.wait)
            await self._writer.wait_closed()
        return self._process.wait()


def _spawn(command: Sequence[str]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - our own module, with our own interpreter
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        except BaseException:
            ours.close()
            raise
    ours.setblocking(False)
    return ours, process
