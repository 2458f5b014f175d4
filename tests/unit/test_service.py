"""shared.host.service: what systemd hears, when the watchdog starves, and how a daemon ends."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest

from shared.errors import Code, IntegrityError, PermanentError
from shared.host import service
from shared.host.clock import SystemClock
from shared.host.service import Notifier, Pulse, Supervisor, run_service
from tests.fakes import FakeClock


class Systemd:
    """The other end of a real notify socket."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(path)

    def heard(self) -> list[str]:
        """Every message so far."""
        messages = []
        while True:
            try:
                messages.append(self.socket.recv(4_096).decode())
            except BlockingIOError:
                return messages


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Systemd]:
    # Not under tmp_path: a socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/notify"
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        manager = Systemd(path)
        yield manager
        manager.socket.close()


@pytest.fixture(autouse=True)
def _no_inherited_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)


async def forever() -> None:
    await anyio.sleep_forever()


def run(daemon: Callable[[Supervisor], Awaitable[None]], clock: FakeClock | None = None) -> int:
    return run_service(daemon, clock or FakeClock())


def test_systemd_hears_ready_the_first_beat_and_the_stop_in_this_order(systemd: Systemd) -> None:
    async def daemon(supervisor: Supervisor) -> None:
        supervisor.start("link", forever)
        assert systemd.heard() == []  # nothing before start-up is over
        supervisor.ready("serving default")
        await anyio.wait_all_tasks_blocked()
        os.kill(os.getpid(), signal.SIGTERM)
        await supervisor.stop.wait()
        await anyio.wait_all_tasks_blocked()
        supervisor.notifier.status("closing the store")

    assert run(daemon) == 0
    assert systemd.heard() == [
        "READY=1\nSTATUS=serving default",
        "WATCHDOG=1",
        "STOPPING=1",
        "STATUS=closing the store",
    ]


def test_a_beat_comes_three_times_a_watchdog_period(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    clock = FakeClock()

    async def daemon(supervisor: Supervisor) -> None:
        supervisor.ready("up")
        await anyio.wait_all_tasks_blocked()
        systemd.heard()
        for _ in range(3):
            await clock.advance(9.9)
            assert systemd.heard() == []
            await clock.advance(0.1)
            assert systemd.heard() == ["WATCHDOG=1"]

    assert run(daemon, clock) == 0


def test_a_stuck_worker_starves_the_watchdog_until_it_moves_again(systemd: Systemd) -> None:
    clock = FakeClock()

    async def daemon(supervisor: Supervisor) -> None:
        store = supervisor.pulse("store", limit_s=20.0)
        supervisor.pulse("link", limit_s=20.0)
        assert supervisor.beat() == ()
        with store.busy():
            clock.tick(20.1)
            assert supervisor.beat() == ("store",)
            store.touch()
            assert supervisor.beat() == ()
            clock.tick(20.1)
        assert supervisor.beat() == ()  # idle is not stuck

    assert run(daemon, clock) == 0
    assert systemd.heard() == ["WATCHDOG=1"] * 3


def test_the_watchdog_task_itself_stays_silent_while_a_worker_is_stuck(systemd: Systemd) -> None:
    clock = FakeClock()

    async def daemon(supervisor: Supervisor) -> None:
        pulse = supervisor.pulse("store", limit_s=5.0)
        with pulse.busy():
            supervisor.ready("up")
            await anyio.wait_all_tasks_blocked()
            systemd.heard()
            for _ in range(3):
                await clock.advance(service.IDLE_BEAT_S)
        assert systemd.heard() == []
        await clock.advance(service.IDLE_BEAT_S)

    assert run(daemon, clock) == 0
    assert systemd.heard() == ["WATCHDOG=1"]


def test_without_systemd_everything_is_silent() -> None:
    notifier = Notifier({})
    notifier.ready("up")
    notifier.beat()
    notifier.stopping()
    notifier.close()
    assert notifier.watchdog_s is None


@pytest.mark.parametrize(
    ("environment", "period_s"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_period_is_ours_only(environment: dict[str, str], period_s: float | None) -> None:
    assert Notifier(environment).watchdog_s == period_s


def test_a_status_cannot_smuggle_in_another_assignment(systemd: Systemd) -> None:
    notifier = Notifier()
    notifier.status("peer said\nMAINPID=1 \u2603")
    notifier.close()
    assert systemd.heard() == ["STATUS=peer said\\nMAINPID=1 ?"]


def test_a_manager_that_does_not_read_cannot_stop_the_loop(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "NOTIFY_LIMIT_S", 0.001)
    more_than_the_queue = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text("ascii")) + 10
    notifier = Notifier()
    for _ in range(more_than_the_queue):
        notifier.beat()
    notifier.close()
    assert 0 < len(systemd.heard()) < more_than_the_queue


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_daemon_after_its_own_clean_up(number: signal.Signals) -> None:
    order: list[str] = []

    async def worker() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            order.append("worker cancelled")

    async def daemon(supervisor: Supervisor) -> None:
        supervisor.start("link", worker)
        await anyio.wait_all_tasks_blocked()
        os.kill(os.getpid(), number)
        await supervisor.stop.wait()
        order.append("cleaned up")

    assert run(daemon) == 0
    assert order == ["cleaned up", "worker cancelled"]


def test_a_worker_that_dies_ends_the_process_with_its_error_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[tuple[str, dict[str, object]]] = []

    class Log:
        def error(self, event: str, **facts: object) -> None:
            logged.append((event, facts))

    monkeypatch.setattr(service, "_log", Log())
    order: list[str] = []

    async def damaged() -> None:
        raise IntegrityError(Code.CORRUPT, "the store is damaged")

    async def wrapped() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(damaged)

    async def daemon(supervisor: Supervisor) -> None:
        supervisor.start("store", wrapped)
        await supervisor.stop.wait()
        order.append("cleaned up")

    assert run(daemon) == 1
    assert order == ["cleaned up"]
    [(event, facts)] = logged
    assert event == "worker died"
    assert facts["worker"] == "store"
    assert facts["code"] == "corrupt"
    assert facts["error"] == "the store is damaged"
    assert facts["exc_info"]


def test_a_refusal_is_logged_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    async def daemon(supervisor: Supervisor) -> None:
        raise PermanentError(Code.WRONG_LADDER, "the store holds 'paper'", hint="Configure paper")

    assert run(daemon) == 1
    said = "".join(capsys.readouterr())
    assert "Configure paper" in said
    assert "Traceback" not in said


def test_a_worker_that_just_returns_is_a_failure_too() -> None:
    async def ends() -> None:
        pass

    async def daemon(supervisor: Supervisor) -> None:
        supervisor.start("link", ends)
        await supervisor.stop.wait()

    assert run(daemon) == 1


def test_a_worker_may_return_once_the_stop_has_begun() -> None:
    async def daemon(supervisor: Supervisor) -> None:
        supervisor.start("link", supervisor.stop.wait)
        supervisor.stop.set()
        await anyio.wait_all_tasks_blocked()

    assert run(daemon) == 0


def test_the_daemon_s_own_error_is_the_exit_code() -> None:
    async def daemon(supervisor: Supervisor) -> None:
        raise OSError("the door cannot be opened")

    assert run(daemon) == 1


def test_a_second_signal_cuts_the_clean_up_off() -> None:
    order: list[str] = []

    async def daemon(supervisor: Supervisor) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await supervisor.stop.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await anyio.sleep_forever()
        order.append("never")

    assert run(daemon) == 1
    assert order == []


def test_a_clean_up_that_takes_too_long_is_cut_off() -> None:
    clock = FakeClock()
    order: list[str] = []

    async def time_passes(supervisor: Supervisor) -> None:
        await supervisor.stop.wait()
        await anyio.wait_all_tasks_blocked()
        await clock.advance(service.STOP_GRACE_S - 0.1)
        order.append("still cleaning up")
        await clock.advance(0.1)
        order.append("never")

    async def daemon(supervisor: Supervisor) -> None:
        supervisor.start("time", time_passes, supervisor)
        supervisor.stop.set()
        await anyio.sleep_forever()

    assert run(daemon, clock) == 1
    assert order == ["still cleaning up"]


def test_the_real_clock_serves_too(tmp_path: Path) -> None:
    async def daemon(supervisor: Supervisor) -> None:
        supervisor.ready("up")
        await SystemClock().sleep(0)

    assert run_service(daemon, SystemClock()) == 0


def test_a_pulse_measures_work_and_not_waiting() -> None:
    clock = FakeClock()
    pulse = Pulse("store", clock, limit_s=10.0)
    clock.tick(1_000.0)
    assert pulse.age_s() == 0.0
    with pulse.busy():
        clock.tick(10.0)
        assert pulse.age_s() == 10.0
        assert not pulse.stuck
        clock.tick(0.001)
        assert pulse.age_s() > 10.0
        assert pulse.stuck
