"""Recall by words and meaning in real daemons: what it finds, what it says when it must do without."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from crystalmem.demo.processes import COMMAND, Value
from edge_agent.embedder_spec import Pooling
from shared.config import default_models_dir
from tests import households
from tests.daemons import STILL, Edge, Tables, running_edge
from tests.tiny_embedder import BROKEN, make_embedder

ROOT = Path(__file__).resolve().parents[2]
MINILM = Path(os.environ.get("CRYSTALMEM_MODELS") or default_models_dir()) / "minilm"
TEXTS = (
    "the red car is parked by the old house",
    "a cat sleeps near the river",
    "the doctor works in the blue house",
    "the baker sold bread",
)


def tables(tmp_path: Path, model: str = "tiny", **more: Value) -> Tables:
    return {**STILL, "embedder": {"model": model, "models_dir": str(tmp_path / "models"), **more}}


def remember(edge: Edge, texts: tuple[str, ...] = TEXTS) -> None:
    with edge.client() as client:
        for number, text in enumerate(texts):
            client.remember(text, id=f"{number:032x}")


def codes(edge: Edge) -> dict[int, bytes]:
    """The vectors on disk."""
    return codes_in(edge.memory)


def codes_in(memory: Path) -> dict[int, bytes]:
    with closing(sqlite3.connect(f"file:{memory / 'store.db'}?mode=ro", uri=True)) as database:
        return dict(database.execute("SELECT number, code FROM vector"))


@pytest.mark.parametrize("pooling", [Pooling.MEAN, Pooling.CLS])
def test_what_only_the_meaning_tells_is_found_once_the_vectors_are_there(
    tmp_path: Path, pooling: Pooling
) -> None:
    make_embedder(tmp_path / "models" / "tiny", pooling=pooling)
    with running_edge(tmp_path, tables(tmp_path)) as edge:
        remember(edge)
        with edge.client() as client:
            early = client.recall("automobile", k=1, record=False)
            assert (early.hits, early.degraded) == ((), ("vectors_pending",))
            assert client.status()["embedder"]["pending"] == 4
            assert client.settle()["state"] == "settled"
            for query, found in (("automobile", 0), ("feline", 1), ("physician", 2)):
                recalled = client.recall(query, k=1, record=False)
                assert recalled.hits[0].text == TEXTS[found]
                assert recalled.degraded == ()
            status = client.status()
            assert status["embedder"]["embedded"] == 4
            assert (status["degraded"], status["notes"]) == ([], [])
            held = client.budget()["logical_bytes"]
            client.recall("automobile", record=False)
            assert client.budget()["logical_bytes"] == held
            assert 'crystal_memory_vectors{state="embedded"} 4.0' in edge.get("/metrics").body.decode()
        edge.kill_and_start()
        with edge.client() as client:
            assert client.recall("automobile", k=1, record=False).hits[0].text == TEXTS[0]


@pytest.mark.skipif(not MINILM.is_dir(), reason=f"{MINILM} is not prepared: make test-models runs this")
def test_minilm_in_a_daemon(tmp_path: Path) -> None:
    table: Tables = {**STILL, "embedder": {"model": "minilm", "models_dir": str(MINILM.parent.resolve())}}
    with running_edge(tmp_path, table) as edge:
        remember(
            edge, ("Ann adopted a puppy last week.", "The invoice is due on Friday.", "Bob moved to Oslo.")
        )
        with edge.client() as client:
            assert client.settle()["state"] == "settled"
            assert client.recall("Who got a dog?", k=1).hits[0].text == "Ann adopted a puppy last week."
            assert client.recall("When must the bill be paid?", k=1).hits[0].text.startswith("The invoice")
            assert client.status()["embedder"]["width"] == 384


def test_without_the_model_it_works_by_words_and_says_how_to_get_it(tmp_path: Path) -> None:
    with running_edge(tmp_path, tables(tmp_path, "minilm")) as edge:
        remember(edge)
        with edge.client() as client:
            assert client.settle()["state"] == "settled"
            recalled = client.recall("who sold bread?", k=1)
            assert recalled.hits[0].text == TEXTS[3]
            assert recalled.degraded == ("no_embedder",)
            [note] = client.status()["notes"]
            assert f"crystalmem models prepare minilm --dir {tmp_path / 'models'}" in note
            assert client.status()["embedder"]["state"] == "absent"


def test_vectors_outlive_a_time_without_the_embedder(tmp_path: Path) -> None:
    make_embedder(tmp_path / "models" / "tiny")
    with running_edge(tmp_path, tables(tmp_path)) as edge:
        remember(edge)
        with edge.client() as client:
            client.settle()
        edge.daemon.stop()
        edge.tables = tables(tmp_path, "none")
        edge.start()
        with edge.client() as client:
            assert client.recall("automobile", k=1).degraded == ("no_embedder",)
            assert client.status()["embedder"]["embedded"] == 4
        edge.daemon.stop()
        edge.tables = tables(tmp_path)
        edge.start()
        with edge.client() as client:
            assert client.recall("automobile", k=1).hits[0].text == TEXTS[0]


def test_idle_windows_make_the_vectors_without_being_asked(tmp_path: Path) -> None:
    make_embedder(tmp_path / "models" / "tiny")
    busy = {**tables(tmp_path), "idle": {"window_s": 0.05, "pace_s": 0.05}}
    with running_edge(tmp_path, busy) as edge:
        remember(edge)
        deadline = time.monotonic() + 30
        with edge.client() as client:
            while client.status()["embedder"]["pending"] and time.monotonic() < deadline:
                time.sleep(0.05)
            assert client.status()["embedder"]["embedded"] == 4


def test_a_text_that_breaks_the_model_is_found_by_words(tmp_path: Path) -> None:
    make_embedder(tmp_path / "models" / "tiny")
    with running_edge(tmp_path, tables(tmp_path)) as edge:
        remember(edge, (*TEXTS, f"the {BROKEN} mug"))
        with edge.client() as client:
            assert client.settle()["state"] == "settled"
            held = client.status()["embedder"]
            assert (held["embedded"], held["pending"], held["failed"]) == (4, 1, 1)
            assert client.recall("mug", k=1).hits[0].text == f"the {BROKEN} mug"
            asked = client.recall(f"{BROKEN} bread", k=1)
            assert "embedder_failed" in asked.degraded
            assert asked.hits


def test_a_full_budget_holds_and_settles_with_vectors(tmp_path: Path) -> None:
    """Vectors fill what room there is, squeezes take it back: neither drives the other round."""
    make_embedder(tmp_path / "models" / "tiny", width=384)
    full = {**tables(tmp_path), "memory": {"provision_bytes": 256 * 1024}}
    episodes = [row["text"] for row in households.rows(400) if row["type"] == "episode"]
    with running_edge(tmp_path, full) as edge, edge.client() as client:
        for start in range(0, len(episodes), 100):
            for text in episodes[start : start + 100]:
                client.remember(text)
            assert client.settle(timeout_s=30)["state"] == "settled"
            _holds(edge)
        assert client.status()["embedder"]["embedded"] > 0
        for fraction in (0.3, 0.6, 0.15, 1.0):
            client.set_budget(fraction=fraction)
            _holds(edge)
            assert client.settle(timeout_s=30)["state"] == "settled"
            _holds(edge)
            again = client.settle(timeout_s=30)
            assert (again["state"], again["promoted"]) == ("settled", 0)
        held = client.status()["embedder"]
        assert held["embedded"] + held["pending"] + held["without"] == client.budget()["entries"]


def test_another_model_is_refused_by_both_names_and_reembed_changes_it(tmp_path: Path) -> None:
    make_embedder(tmp_path / "models" / "tiny")
    make_embedder(tmp_path / "models" / "wide", pooling=Pooling.CLS, width=128, name="wide")
    with running_edge(tmp_path, tables(tmp_path)) as edge:
        remember(edge)
        with edge.client() as client:
            client.settle()
        locked = _reembed(edge, tmp_path, "wide")
        assert locked.returncode == 2
        assert "store_locked" in locked.stderr
        edge.daemon.stop()
        refused = _run(["edge", "run", *_where(edge, tmp_path, "wide")])
        assert refused.returncode == 1
        for word in ("wrong_embedder", "tiny, 64 d, mean", "wide, 128 d, cls", "crystalmem reembed"):
            assert word in refused.stderr
        done = _reembed(edge, tmp_path, "wide")
        assert done.returncode == 0, done.stderr
        assert re.search(r"from tiny, 64 d, mean, weights [0-9a-f]{12}: 4 vectors go", done.stdout)
        assert "done: 4 vectors" in done.stdout
        assert {len(code) for code in codes(edge).values()} == {16}
        edge.tables = tables(tmp_path, "wide")
        edge.start()
        with edge.client() as client:
            assert client.recall("automobile", k=1).hits[0].text == TEXTS[0]


def test_reembed_needs_a_model_and_a_store(tmp_path: Path) -> None:
    make_embedder(tmp_path / "models" / "tiny")
    with running_edge(tmp_path, tables(tmp_path)) as edge:
        edge.daemon.stop()
        absent = _reembed(edge, tmp_path, "minilm")
        assert (absent.returncode, "model_absent" in absent.stderr) == (2, True)
        nowhere = _run(["reembed", "--data-dir", str(tmp_path / "empty"), *_model(tmp_path, "tiny")])
        assert (nowhere.returncode, "not_found" in nowhere.stderr) == (2, True)
        assert not (tmp_path / "empty").exists()


def test_reembed_survives_kill_9_and_ends_as_if_undisturbed(tmp_path: Path) -> None:
    make_embedder(tmp_path / "models" / "tiny")
    make_embedder(tmp_path / "models" / "wide", width=128, name="wide")
    # So long that two fill a step: forty commits in which to be killed.
    texts = tuple(f"{TEXTS[number % 4]} mug {number} " * 1200 for number in range(80))
    with running_edge(tmp_path, {**tables(tmp_path), "memory": {"provision_bytes": 2**25}}) as edge:
        remember(edge, texts)
        with edge.client() as client:
            client.settle()
        edge.daemon.stop()
        shutil.copytree(edge.memory, tmp_path / "undisturbed" / "memory")
        for _ in range(2):
            _kill_after_a_step(edge, tmp_path)
            held = codes(edge)
            assert {len(code) for code in held.values()} <= {16}
        half = codes(edge)
        assert 0 < len(half) < len(texts)
        done = _reembed(edge, tmp_path, "wide")
        assert done.returncode == 0, done.stderr
        resumed = codes(edge)
        assert len(resumed) == len(texts)
        assert half.items() <= resumed.items()
        copy = ["--data-dir", str(tmp_path / "undisturbed"), "--set", f"tenant={edge.tenant}"]
        assert _run(["reembed", *copy, *_model(tmp_path, "wide")]).returncode == 0
        assert codes_in(tmp_path / "undisturbed" / "memory") == resumed


def _holds(edge: Edge) -> None:
    with edge.client() as client:
        account = client.budget()
    assert account["logical_bytes"] <= account["budget_bytes"]
    assert edge.disk_bytes() - edge.log_bytes() <= account["budget_bytes"] + account["empty_bytes"]
    assert not account["over_budget"]


def _kill_after_a_step(edge: Edge, tmp_path: Path) -> None:
    command = [*COMMAND, "reembed", *_where(edge, tmp_path, "wide")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "to go" in line:
                process.kill()
                break


def _reembed(edge: Edge, tmp_path: Path, model: str) -> subprocess.CompletedProcess[str]:
    return _run(["reembed", *_where(edge, tmp_path, model)])


def _run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)


def _where(edge: Edge, tmp_path: Path, model: str) -> list[str]:
    return ["--data-dir", str(edge.directory), "--set", f"tenant={edge.tenant}", *_model(tmp_path, model)]


def _model(tmp_path: Path, model: str) -> list[str]:
    return ["--set", f"embedder.model={model}", "--set", f"embedder.models_dir={tmp_path / 'models'}"]
