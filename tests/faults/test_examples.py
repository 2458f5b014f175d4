"""What a stranger does first: an edge without configuration, the commands it prints, and the example."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from crystalmem.demo.processes import Daemon, Fleet

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "hello.py"
BIN = Path(sys.executable).parent
RED_VALVE = "Mug 2 is in cabinet 3. The red valve opens counter-clockwise."


@dataclass(frozen=True)
class Home:
    """A user's account with a daemon in it that was told nothing."""

    daemon: Daemon
    log: Path
    environment: dict[str, str]

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    directory = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, Fleet(directory) as fleet:
        # Short: the socket's path is made from it, and has at most 107 bytes.
        patch.setenv("HOME", str(fleet.socket_path("home").parent))
        patch.delenv("XDG_DATA_HOME", raising=False)
        patch.delenv("CRYSTALMEM_SOCKET", raising=False)
        patch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
        daemon = fleet.start("edge", ["edge", "run"])
        yield Home(daemon, directory / "edge.log", dict(os.environ))


def test_the_printed_commands_run_as_they_are(home: Home) -> None:
    printed = re.findall(r"^ +(crystalmem .+)$", home.log.read_text("utf-8"), re.MULTILINE)
    assert len(printed) == 3
    answers = [home.run(*shlex.split(line)) for line in printed]
    assert [answer.returncode for answer in answers] == [0, 0, 0], [answer.stderr for answer in answers]
    remembered, recalled, status = (answer.stdout for answer in answers)
    assert re.fullmatch(r"[0-9a-f]{32}\n", remembered)
    assert "Mug 2 is in cabinet 3." in recalled
    assert "1 full" in status


def test_hello_squeezes_recalls_and_restores(home: Home) -> None:
    answer = home.run(sys.executable, EXAMPLE)
    assert answer.returncode == 0, answer.stderr
    now, trough, back, restored = answer.stdout.strip().split("\n")
    assert now.startswith("budget now")
    assert "packed" in now
    assert re.match(r"at the trough: \w+ \| .*red valve", trough)
    assert back.startswith("budget back")
    assert restored == f"restored: {RED_VALVE}"


def test_hello_is_as_short_as_promised_and_the_readme_shows_it() -> None:
    code = EXAMPLE.read_text("utf-8")
    lines = [line for line in code.split("\n") if line and not line.startswith('"""')]
    assert len(lines) <= 15
    assert code.strip() in (ROOT / "README.md").read_text("utf-8")
