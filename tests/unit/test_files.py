"""shared.host.files: one owner a directory, and what a directory weighs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.errors import Code, PermanentError
from shared.host.files import directory_bytes, lock_directory

HOLDER = """
import sys
from pathlib import Path
from shared.host.files import lock_directory
lock = lock_directory(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_owner_is_refused_with_the_first_one_s_pid(tmp_path: Path) -> None:
    with lock_directory(tmp_path), pytest.raises(PermanentError) as refused:
        lock_directory(tmp_path)
    assert refused.value.code is Code.STORE_LOCKED
    assert refused.value.facts["pid"] == str(os.getpid())
    assert str(os.getpid()) in refused.value.hint


def test_a_released_directory_can_be_owned_again(tmp_path: Path) -> None:
    first = lock_directory(tmp_path / "new")
    first.release()
    first.release()
    with lock_directory(tmp_path / "new"):
        pass


def test_a_killed_owner_leaves_no_lock(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(PermanentError) as refused:
            lock_directory(tmp_path)
        assert refused.value.facts["pid"] == str(holder.pid)
        holder.kill()
        holder.wait()
    with lock_directory(tmp_path):
        pass


def test_a_directory_weighs_the_sum_of_its_files(tmp_path: Path) -> None:
    assert directory_bytes(tmp_path / "absent") == 0
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "a").write_bytes(b"x" * 10)
    (tmp_path / "deep" / "er" / "b").write_bytes(b"x" * 32)
    assert directory_bytes(tmp_path) == 42


def test_a_file_that_vanishes_between_listing_and_stat_weighs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stays").write_bytes(b"x" * 10)
    listing: list[tuple[str, list[str], list[str]]] = [(str(tmp_path), [], ["stays", "gone-wal"])]
    monkeypatch.setattr("os.walk", lambda _: iter(listing))
    assert directory_bytes(tmp_path) == 10
