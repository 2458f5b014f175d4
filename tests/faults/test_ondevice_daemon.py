"""The real daemon with a real model process beside it: whatever happens to the one, recalls go on."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from crystalmem_client import Client, CrystalMemError

from crystalmem.cli import main
from tests.daemons import TENANT, Edge, Tables, running_edge
from tests.ondevice import MODEL

pytest.importorskip("onnxruntime_genai", reason="the extra `ondevice` is not installed here")
pytestmark = pytest.mark.timeout(240)

ENTRIES = 30
WAIT_S = 60.0
QUESTION = "who keeps the lighthouse?"


def tables(**ondevice: str | float | bool) -> Tables:
    return {
        # Lossy rungs are the subject here: nothing is evicted while an entry can still be demoted.
        "memory": {"provision_bytes": 128 * 1024, "rho": 1.0, "eviction": "last_resort"},
        "idle": {"window_s": 0.05, "pace_s": 0.2},
        "ondevice": {"folder": str(MODEL), "max_prompt_tokens": 1800, **ondevice},
    }


def text(number: int) -> str:
    """Sentences that do not pack well."""
    rng = random.Random(number)

    def word() -> str:
        return "".join(rng.choices("bcdfghjklmnpqrstvwxz", k=6))

    told = ". ".join(
        f"{word().title()} gave {word()} {rng.randint(2, 900)} {word()} at {word()}" for _ in range(9)
    )
    return f"The keeper of lighthouse {number} is {word().title()}. {told}."


@contextmanager
def squeezed(directory: Path, **ondevice: str | float | bool) -> Iterator[Edge]:
    """A daemon without a hub, whose entries are lossy and whose stage has tokens to spend."""
    with running_edge(directory, tables(**ondevice)) as edge:
        with edge.client() as client:
            for number in range(ENTRIES):
                client.remember(text(number), kind="memory")
            total = client.budget()["logical_bytes"]
            # Down, and room to rise into.
            for share in (0.3, 0.9):
                client.set_budget(bytes=round(share * total))
            # A stage that served with tokens.
            recalled = client.recall(QUESTION, k=1)
            client.outcome(recalled.recall_id, 1.0, tokens=10**7)
            client.set_budget(bytes=round(0.9 * total))
        yield edge


def model_processes(edge: Edge) -> list[int]:
    """Process ids of the daemon's children."""
    try:
        told = Path(f"/proc/{edge.daemon.pid}/task/{edge.daemon.pid}/children").read_text().split()
        threads = Path(f"/proc/{edge.daemon.pid}/task").iterdir()
        for thread in threads:
            told += (thread / "children").read_text().split()
    except FileNotFoundError:
        return []
    return sorted(set(map(int, told)))


def board(client: Client) -> dict[str, Any]:
    return dict(client.status()["ondevice"])


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"no {what} in {WAIT_S} s"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@contextmanager
def settling(edge: Edge) -> Iterator[None]:
    """A settle that runs meanwhile; what becomes of it is not looked at."""

    def settle() -> None:
        with suppress(CrystalMemError), edge.client() as client:
            client.settle(timeout_s=30.0)

    thread = threading.Thread(target=settle)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_without_a_hub_the_board_drafts_under_the_gate_and_the_ledger(tmp_path: Path) -> None:
    with squeezed(tmp_path) as edge, edge.client() as client:
        assert client.status()["sources"]["model"].startswith("here, on the board")
        client.settle(timeout_s=60.0)

        def paid_for() -> bool:
            """While a call flies the ledger holds what it may cost at most."""
            told = client.status()
            return bool(told["ledger"]["tokens"] == told["ondevice"]["tokens"] > 0)

        wait_for(paid_for, "ledger that equals what was computed")
        status = client.status()
        assert (status["ondevice"]["model"], status["ondevice"]["calls"] > 0) == ("tiny-random", True)
        # Random words pass no gate, and are paid for.
        assert status["ledger"]["admitted"] == 0
        assert status["budget"]["overlays"] == 0
        assert client.recall(QUESTION).hits


def test_the_board_levels_what_sinks_next(tmp_path: Path) -> None:
    with running_edge(tmp_path, tables(regenerate=False, relevel=True)) as edge, edge.client() as client:
        for number in range(ENTRIES):
            client.remember(text(number), kind="memory")
        recalled = client.recall(QUESTION)
        client.outcome(recalled.recall_id, 1.0, tokens=10**7)
        client.set_budget(bytes=client.budget()["logical_bytes"] + 8192)
        client.settle(timeout_s=60.0)
        asked = board(client)["relevelled"]
        assert asked.get("kept", 0) > 0
        # The budget is tight: room for a choice, or the entry itself, may be gone by the time of the answer.
        assert set(asked) <= {"kept", "no_change", "cancelled", "no_room", "levels_frozen"}
        client.set_budget(fraction=0.12)
        before = [client.recall(QUESTION, k=20, record=False).hits]
        edge.kill_and_start()
        with edge.client() as again:
            assert [again.recall(QUESTION, k=20, record=False).hits] == before


def test_a_model_process_that_is_killed_takes_nobody_with_it(tmp_path: Path) -> None:
    with squeezed(tmp_path) as edge, edge.client() as client, settling(edge):
        wait_for(lambda: board(client)["calls"], "call of the model")
        wait_for(lambda: model_processes(edge), "model process")
        for pid in model_processes(edge):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: board(client)["deaths"] == 1, "death in the status")
        assert client.recall(QUESTION, record=False).hits
        wait_for(lambda: board(client)["restarts"] == 1, "restart")
        assert edge.daemon.running()


def test_a_stop_while_it_generates_ends_both(tmp_path: Path) -> None:
    with squeezed(tmp_path) as edge, settling(edge), edge.client() as client:
        wait_for(lambda: board(client)["state"] == "busy", "call in flight")
        processes = model_processes(edge)
        edge.daemon.stop()
        assert processes
        assert all(gone(pid) for pid in processes)


def test_a_daemon_that_is_killed_leaves_no_model_process(tmp_path: Path) -> None:
    with squeezed(tmp_path) as edge, settling(edge), edge.client() as client:
        wait_for(lambda: board(client)["state"] == "busy", "call in flight")
        processes = model_processes(edge)
        os.kill(edge.daemon.pid, signal.SIGKILL)
        wait_for(lambda: all(gone(pid) for pid in processes), "end of the model process")


def test_recalls_are_served_while_it_generates_and_cancel_it(tmp_path: Path) -> None:
    with squeezed(tmp_path) as edge, settling(edge), edge.client() as client:
        for _ in range(40):
            with suppress(CrystalMemError):
                wait_for(lambda: board(client)["state"] == "busy", "call in flight")
            assert client.recall(QUESTION).hits
            if board(client)["cancelled"]:
                break
            time.sleep(0.1)
        assert board(client)["cancelled"] >= 1


@pytest.mark.parametrize(
    ("ondevice", "told"),
    [
        ({"folder": ""}, "not configured: crystalmem models prepare smollm2"),
        ({"folder": "nowhere"}, "not there"),
    ],
)
def test_without_a_model_everything_works_and_says_why(
    tmp_path: Path, ondevice: dict[str, str], told: str
) -> None:
    with squeezed(tmp_path, **ondevice) as edge, edge.client() as client:
        assert client.recall(QUESTION).hits
        client.settle(timeout_s=30.0)
        held = board(client)
        assert told in held["problem"]
        assert (held["model"], held["calls"] - held["relevelled"].get("model_unavailable", 0) <= 1) == (
            "",
            True,
        )
        assert not model_processes(edge)
        shown = CliRunner().invoke(main, ["status", "--socket", str(edge.socket), "--tenant", TENANT])
        assert f"on-device model: {held['state']}: {held['problem']}" in shown.output
