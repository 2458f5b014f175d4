"""The real daemons as systemd runs them: READY, beats, STOPPING, exit codes, one owner a directory."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("crystalmem")
START_LIMIT_S = 30.0
SETTINGS = {"edge": [], "hub": ["--set", "listen=tcp://127.0.0.1:*"]}


@dataclass
class Systemd:
    """A notify socket and the daemon that was told of it."""

    socket: socket.socket
    address: str
    heard: list[str] = field(default_factory=list)
    daemons: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, verb: str, data: Path, watchdog_usec: int = 30_000_000) -> subprocess.Popen[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(data.parent),
            "NOTIFY_SOCKET": self.address,
            "WATCHDOG_USEC": str(watchdog_usec),
        }
        daemon = subprocess.Popen(
            [COMMAND, verb, "run", "--data-dir", data, *SETTINGS[verb]],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.daemons.append(daemon)
        return daemon

    def wait_for(self, assignment: str) -> None:
        """Listen until a message brings `assignment`."""
        deadline = time.monotonic() + START_LIMIT_S
        while assignment not in {line for message in self.heard for line in message.split("\n")}:
            readable, _, _ = select.select([self.socket], [], [], deadline - time.monotonic())
            assert readable, f"{assignment} did not come; heard {self.heard}"
            self.heard.append(self.socket.recv(4_096).decode())


@pytest.fixture
def systemd() -> Iterator[Systemd]:
    # Not under tmp_path: a socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
            bound.bind(address)
            manager = Systemd(bound, address)
            yield manager
            for daemon in manager.daemons:
                daemon.kill()
                daemon.communicate()


@pytest.mark.parametrize("verb", ["edge", "hub"])
def test_a_daemon_tells_systemd_when_it_serves_lives_and_stops(
    systemd: Systemd, tmp_path: Path, verb: str
) -> None:
    daemon = systemd.start(verb, tmp_path / verb, watchdog_usec=300_000)
    systemd.wait_for("READY=1")
    assert systemd.heard[0].startswith("READY=1\nSTATUS=")  # no beat and no claim before that
    for _ in range(2):
        systemd.heard.clear()
        systemd.wait_for("WATCHDOG=1")
    daemon.send_signal(signal.SIGTERM)
    systemd.wait_for("STOPPING=1")
    _, log = daemon.communicate(timeout=START_LIMIT_S)
    assert daemon.returncode == 0, log
    assert "Traceback" not in log


@pytest.mark.parametrize("verb", ["edge", "hub"])
def test_a_second_daemon_on_the_same_directory_is_refused_and_the_first_goes_on(
    systemd: Systemd, tmp_path: Path, verb: str
) -> None:
    first = systemd.start(verb, tmp_path / verb)
    systemd.wait_for("READY=1")
    second = systemd.start(verb, tmp_path / verb)
    _, log = second.communicate(timeout=START_LIMIT_S)
    assert second.returncode == 1
    assert "store_locked" in log
    assert str(first.pid) in log
    assert first.poll() is None
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=START_LIMIT_S)
    assert first.returncode == 0


@pytest.mark.parametrize("verb", ["edge", "hub"])
def test_a_killed_daemon_starts_again(systemd: Systemd, tmp_path: Path, verb: str) -> None:
    for ending, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0)):
        systemd.heard.clear()
        daemon = systemd.start(verb, tmp_path / verb)
        systemd.wait_for("READY=1")
        daemon.send_signal(ending)
        _, log = daemon.communicate(timeout=START_LIMIT_S)
        assert daemon.returncode == code, log
