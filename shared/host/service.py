"""A daemon's life: sd_notify, a watchdog beat gated on progress, signals, supervised workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import sdnotify
from anyio.abc import TaskGroup, TaskStatus

from shared.errors import CrystalError, PermanentError
from shared.host.log import clean, get_logger
from shared.ports import Clock

# One systemd period may lose two beats before the process is killed.
BEATS_PER_WATCHDOG = 3
# Without systemd a stuck worker is still logged.
IDLE_BEAT_S = 10.0
# Longer than any one blocking step (busy time-out 5 s), shorter than the units' WatchdogSec of 30 s.
PROGRESS_LIMIT_S = 20.0
# systemd's queue holds a few hundred messages; a manager that does not read must not stop the loop.
NOTIFY_LIMIT_S = 0.5
# A stop that takes longer than this is cut off; systemd itself would wait 90 s.
STOP_GRACE_S = 15.0
_log = get_logger("service")


class Notifier:
    """What systemd is told; silent where there is no NOTIFY_SOCKET."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        # Made only when needed: the library leaks a socket when the variable is missing.
        self._notifier = sdnotify.SystemdNotifier() if environment.get("NOTIFY_SOCKET") else None
        if self._notifier is not None and self._notifier.socket is not None:
            self._notifier.socket.settimeout(NOTIFY_LIMIT_S)
        pid = environment.get("WATCHDOG_PID", "")
        mine = not pid or pid == str(os.getpid())
        usec = environment.get("WATCHDOG_USEC", "") if mine else ""
        self.watchdog_s = int(usec) / 1e6 if usec.isdecimal() and int(usec) > 0 else None

    def ready(self, status: str) -> None:
        """Start-up is over: recovery is done and the doors are open."""
        self._send(f"READY=1\nSTATUS={_ascii(status)}")

    def status(self, status: str) -> None:
        """One line for `systemctl status`."""
        self._send(f"STATUS={_ascii(status)}")

    def beat(self) -> None:
        """Every worker made progress."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """A stop was asked for and has begun."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Close the socket."""
        if self._notifier is not None and self._notifier.socket is not None:
            self._notifier.socket.close()
            self._notifier = None

    def _send(self, state: str) -> None:
        if self._notifier is not None:
            self._notifier.notify(state)


class Pulse:
    """Last progress of one worker. Waiting for the outside is idle; only work can be stuck."""

    def __init__(self, name: str, clock: Clock, limit_s: float = PROGRESS_LIMIT_S) -> None:
        self.name = name
        self._clock = clock
        self._limit_s = limit_s
        self._since_mono_ns: int | None = None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Between entering and leaving, the worker must touch() within its limit."""
        self.touch()
        try:
            yield
        finally:
            self._since_mono_ns = None

    def touch(self) -> None:
        """The worker got somewhere; long work calls it once a step."""
        self._since_mono_ns = self._clock.mono_ns()

    def age_s(self) -> float:
        """Seconds since the last progress; 0 while idle."""
        since = self._since_mono_ns
        return 0.0 if since is None else (self._clock.mono_ns() - since) / 1e9

    @property
    def stuck(self) -> bool:
        """True when the limit has passed: the watchdog is no longer fed."""
        return self.age_s() > self._limit_s


class Supervisor:
    """Runs a daemon's workers. A worker that ends before the stop ends the process with code 1."""

    def __init__(self, group: TaskGroup, clock: Clock, notifier: Notifier) -> None:
        self.stop = anyio.Event()
        self.notifier = notifier
        self.failed = False
        self._group = group
        self._clock = clock
        self._pulses: list[Pulse] = []

    def pulse(self, name: str, limit_s: float = PROGRESS_LIMIT_S) -> Pulse:
        """A new worker's pulse; from now on the watchdog depends on it."""
        pulse = Pulse(name, self._clock, limit_s)
        self._pulses.append(pulse)
        return pulse

    def start(self, name: str, work: Callable[..., Awaitable[Any]], *args: object) -> None:
        """Run `work(*args)` until the stop; it is cancelled once the daemon's own clean-up is done."""
        self._group.start_soon(self._guard, name, work, args, name=name)

    def ready(self, status: str) -> None:
        """Say READY and start feeding the watchdog."""
        self.notifier.ready(status)
        self._group.start_soon(self._guard, "watchdog", self._feed_watchdog, ())
        _log.info("ready", status=status)

    def beat(self) -> tuple[str, ...]:
        """Feed the watchdog unless a worker is stuck; the names of those that are."""
        stuck = tuple(pulse.name for pulse in self._pulses if pulse.stuck)
        if not stuck:
            self.notifier.beat()
        return stuck

    async def _feed_watchdog(self) -> None:
        watchdog_s = self.notifier.watchdog_s
        period_s = watchdog_s / BEATS_PER_WATCHDOG if watchdog_s else IDLE_BEAT_S
        before: tuple[str, ...] = ()
        while True:
            stuck = self.beat()
            if stuck and stuck != before:
                _log.error("workers are stuck, the watchdog is not fed", workers=stuck)
            before = stuck
            await self._clock.sleep(period_s)

    async def _guard(self, name: str, work: Callable[..., Awaitable[Any]], args: tuple[object, ...]) -> None:
        try:
            await work(*args)
        except Exception as error:  # noqa: BLE001 - the one place: any worker's death ends the process
            self.fail(name, error)
        else:
            if not self.stop.is_set():
                self.fail(name, RuntimeError("a worker returned before the stop"))

    def fail(self, name: str, error: Exception) -> None:
        """Log why the daemon cannot go on and begin the stop; the exit code will be 1."""
        cause = _cause(error)
        facts: dict[str, object] = {"code": cause.code.value} if isinstance(cause, CrystalError) else {}
        if not isinstance(cause, PermanentError):
            # A refusal says what to do; the others need the place.
            facts["exc_info"] = error
        _log.error("worker died", worker=name, error=clean(str(cause), 500), **facts)
        self.failed = True
        self.stop.set()


def run_service(
    daemon: Callable[[Supervisor], Awaitable[None]], clock: Clock, notifier: Notifier | None = None
) -> int:
    """Run `daemon` to its end and return the exit code.

    The daemon starts its workers, says ready(), waits for `supervisor.stop` and cleans up before it returns.
    SIGTERM, SIGINT and a worker's death all set `stop`; a second signal or STOP_GRACE_S cuts it off.
    """
    return anyio.run(_serve, daemon, clock, notifier or Notifier())


async def _serve(daemon: Callable[[Supervisor], Awaitable[None]], clock: Clock, notifier: Notifier) -> int:
    try:
        async with anyio.create_task_group() as group:
            supervisor = Supervisor(group, clock, notifier)
            with anyio.CancelScope() as main:
                await group.start(_watch_signals, supervisor, main)
                group.start_soon(_limit_stop, supervisor, main, clock)
                try:
                    await daemon(supervisor)
                except Exception as error:  # noqa: BLE001 - the daemon's own failure ends the process too
                    supervisor.fail("daemon", error)
            group.cancel_scope.cancel()
    finally:
        notifier.close()
    return 1 if supervisor.failed else 0


async def _watch_signals(
    supervisor: Supervisor, main: anyio.CancelScope, *, task_status: TaskStatus[None]
) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for number in signals:
            _log.info("signal", signal=signal.Signals(number).name, again=supervisor.stop.is_set())
            if supervisor.stop.is_set():
                supervisor.failed = True
                main.cancel()
            supervisor.stop.set()


async def _limit_stop(supervisor: Supervisor, main: anyio.CancelScope, clock: Clock) -> None:
    await supervisor.stop.wait()
    supervisor.notifier.stopping()
    await clock.sleep(STOP_GRACE_S)
    _log.error("the clean-up took too long and is cut off", grace_s=STOP_GRACE_S)
    supervisor.failed = True
    main.cancel()


def _cause(error: Exception) -> Exception:
    """The one error that task groups have wrapped; a group of several stays as it is."""
    inner: tuple[Exception, ...] = getattr(error, "exceptions", ())
    return _cause(inner[0]) if len(inner) == 1 else error


def _ascii(text: str) -> str:
    """The notify protocol is one assignment a line; the library drops what is not Latin-1."""
    return clean(text).encode("ascii", "replace").decode("ascii")
