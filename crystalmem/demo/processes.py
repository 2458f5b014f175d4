"""The demo's daemons: separate processes in their own sessions, none of which outlives the demo."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from crystalmem.demo.results import Check
from shared.errors import Code, PermanentError, TransientError

# The entry point by import, so that it is this interpreter's and this tree's, whatever PATH says.
COMMAND = (sys.executable, "-c", "from crystalmem.cli import main; main()")
# A start finishes a pending sweep before READY; on two busy cores importing alone takes seconds.
READY_S = 60.0
STOP_S = 20.0
_POLL_S = 0.2
_LOG_TAIL = 800

Value = str | int | float | bool


class Daemon:
    """One running `crystalmem edge run` or `crystalmem hub run`."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """Process id, which is also its session's and group's."""
        return self._process.pid

    def running(self) -> bool:
        """True while the process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL the whole session, now; harmless when it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM, and an error when the daemon does not end well by itself."""
        self._process.terminate()
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TransientError(
                Code.TIMED_OUT, f"{self.name} did not stop within {STOP_S:g} s", log=self.log_tail()
            ) from None
        if code != 0:
            raise PermanentError(Code.INTERNAL, f"{self.name} ended with status {code}", log=self.log_tail())

    def log_tail(self) -> str:
        """The end of what it said."""
        return self._log.read_text("utf-8", "replace")[-_LOG_TAIL:]


class Fleet:
    """Starts daemons and, when the block ends however it ends, kills those that still run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._daemons: list[Daemon] = []
        self._lock = threading.Lock()
        self._ending = threading.Event()
        # A unix socket's path has at most 107 bytes; the output directory's may be any length.
        self._sockets = Path(tempfile.mkdtemp(prefix="crystalmem-"))

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self._sockets, ignore_errors=True)

    def pause(self, seconds: float) -> None:
        """Wait, or go on at once when the demo is ending."""
        self._ending.wait(seconds)

    def kill(self) -> None:
        """SIGKILL every daemon that still runs; nothing can be started after that."""
        with self._lock:
            self._ending.set()
            for daemon in self._daemons:
                daemon.kill()

    def socket_path(self, name: str) -> Path:
        """Where a daemon may put its door."""
        return self._sockets / f"{name}.sock"

    def start(self, name: str, arguments: Sequence[str]) -> Daemon:
        """Start a daemon and return when it says READY; an error carries the end of its log."""
        ready = self._sockets / f"{name}.ready"
        ready.unlink(missing_ok=True)
        log = self.directory / f"{name}.log"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener, log.open("ab") as output:
            listener.bind(str(ready))
            environment = {**os.environ, "NOTIFY_SOCKET": str(ready)}
            environment.pop("WATCHDOG_USEC", None)
            with self._lock:
                if self._ending.is_set():
                    raise TransientError(
                        Code.INTERNAL, "the demo is ending; no daemon is started", daemon=name
                    )
                process = subprocess.Popen(
                    [*COMMAND, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
                daemon = Daemon(name, process, log)
                self._daemons.append(daemon)
            _await_ready(daemon, listener)
        return daemon


def _await_ready(daemon: Daemon, listener: socket.socket) -> None:
    waits = int(READY_S / _POLL_S)
    for _ in range(waits):
        if select.select([listener], [], [], _POLL_S)[0] and b"READY=1" in listener.recv(4096):
            return
        if not daemon.running():
            raise PermanentError(Code.INTERNAL, f"{daemon.name} did not start", log=daemon.log_tail())
    daemon.kill()
    raise TransientError(
        Code.TIMED_OUT, f"{daemon.name} was not ready within {READY_S:g} s", log=daemon.log_tail()
    )


def run_command(arguments: Sequence[str], cwd: Path) -> str:
    """Run one `crystalmem` command to its end; its standard output, or an error with what it said."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=READY_S,
    )
    if done.returncode != 0:
        raise PermanentError(
            Code.INTERNAL,
            f"`crystalmem {' '.join(arguments)}` failed",
            status=done.returncode,
            said=done.stderr[-_LOG_TAIL:],
        )
    return done.stdout


def run_checker(journal: Path, edge: Path, hub: Path | None) -> Check:
    """`python -m crystalmem.demo.checker`: its findings."""
    command = [
        sys.executable,
        "-m",
        "crystalmem.demo.checker",
        "--journal",
        str(journal),
        "--edge",
        str(edge),
    ]
    if hub is not None:
        command += ["--hub", str(hub)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=READY_S
    )
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace")[-_LOG_TAIL:]
        raise PermanentError(Code.INTERNAL, "the checker failed", said=said)
    return msgspec.json.decode(done.stdout, type=Check)


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_config(path: Path, tables: Mapping[str, Value | Mapping[str, Value]]) -> None:
    """A TOML file of plain keys and one level of tables."""
    # TOML reads JSON's strings, numbers and booleans as they are.
    lines = [
        f"{key} = {json.dumps(value)}" for key, value in tables.items() if not isinstance(value, Mapping)
    ]
    for name, table in tables.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    path.write_text("\n".join(lines) + "\n", "utf-8")
