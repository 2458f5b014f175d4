"""Recalls, rungs, budget, stage and values are a function of the durable bytes: a restart changes nothing."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from crystalmem_client import Client, CrystalMemError

from tests import households
from tests.daemons import STILL, Edge, running_edge
from tests.soak.evidence import target_pending
from tests.tiny_embedder import make_embedder

ENTRIES = 60
# Of these: texts that pack badly, for which COMPRESSED is worth having.
CRATES = 20
PROVISION_BYTES = 96 * 1024
QUERIES = 25
# Shares of all text, small steps; the last one evicts.
STEPS = (0.65, 0.5, 0.4, 0.34, 0.3, 0.27, 0.24, 0.22, 0.2, 0.18, 0.16, 0.14, 0.12)
# With vectors an entry stays at COMPRESSED for a narrower range of budgets.
FINE_STEPS = (*(0.6 - 0.01 * step for step in range(45)), *STEPS[-2:])
REACHED = {
    "product": {"full", "packed", "compressed", "skeletal", "trace"},
    "paper": {"full", "compressed", "skeletal", "trace"},
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("ladder", "vectors"), [("product", False), ("paper", False), ("product", True)])
def test_the_same_recalls_before_and_after_a_restart_at_every_rung(
    tmp_path: Path, ladder: str, *, vectors: bool
) -> None:
    rows = households.rows(ENTRIES - CRATES)
    texts = [*(row["text"] for row in rows if row["type"] == "episode"), *_crates()]
    questions = [row["question"] for row in rows if row["type"] == "question"][:QUERIES]
    memory = {"provision_bytes": PROVISION_BYTES, "ladder": ladder, "eviction": "last_resort"}
    tables = {**STILL, "memory": memory}
    if vectors:
        make_embedder(tmp_path / "models" / "tiny")
        tables["embedder"] = {"model": "tiny", "models_dir": str(tmp_path / "models")}
    seen: set[str] = set()
    with running_edge(tmp_path, tables) as edge:
        with edge.client() as client:
            for number, text in enumerate(texts):
                client.remember(text, id=f"{number:032x}")
            _grade_some(client, questions)
            if vectors:
                assert client.settle()["state"] == "settled"
                assert client.status()["embedder"]["embedded"] == ENTRIES
            total = client.budget()["logical_bytes"]
        for fraction in FINE_STEPS if vectors else STEPS:
            with edge.client() as client:
                report = client.set_budget(bytes=round(fraction * total))
            if report["rungs"].keys() <= seen and fraction > STEPS[-1]:
                continue
            seen |= report["rungs"].keys()
            before = _observed(edge, questions)
            edge.stop_and_start()
            assert _observed(edge, questions) == before
        if vectors:
            with edge.client() as client:
                # Every rung above SKELETAL may still have them; none below does.
                assert client.status()["embedder"]["embedded"] < ENTRIES
    assert seen == REACHED[ladder]


def test_an_open_recall_can_be_graded_after_a_restart_and_a_graded_one_cannot(tmp_path: Path) -> None:
    with running_edge(tmp_path, STILL) as edge:
        with edge.client() as client:
            client.remember("mug 2 is in cabinet 3")
            kept, graded = (client.recall("mug 2").recall_id for _ in range(2))
            client.outcome(graded, 1.0)
        edge.kill_and_start()
        with edge.client() as client:
            assert client.outcome(kept, 0.5)["graded"] == 1
            for recall_id in (kept, graded):
                answer = edge.post(f"/v1/{edge.tenant}/outcome", {"recall_id": recall_id, "g": 1.0})
                assert answer.code in {"already_graded", "unknown_recall"}


def test_a_stop_in_the_middle_of_a_sweep_is_orderly_and_the_start_finishes_it(tmp_path: Path) -> None:
    tables = {**STILL, "memory": {"provision_bytes": PROVISION_BYTES}}
    with running_edge(tmp_path, tables) as edge:
        with edge.client() as client:
            for row in households.rows(ENTRIES):
                if row["type"] == "episode":
                    client.remember(row["text"])
            written = edge.held()

        def squeeze() -> None:
            with edge.client() as client, suppress(CrystalMemError):
                client.set_budget(bytes=PROVISION_BYTES // 12)

        caller = threading.Thread(target=squeeze)
        caller.start()
        while caller.is_alive() and not target_pending(edge):
            caller.join(0.001)
        edge.daemon.stop()  # fails unless the exit code is 0
        caller.join()
        edge.start()
        with edge.client() as client:
            account = client.budget()
        assert account["budget_bytes"] == PROVISION_BYTES // 12
        assert not account["over_budget"]
        assert account["logical_bytes"] <= account["budget_bytes"]
        assert edge.disk_bytes() <= account["budget_bytes"] + account["empty_bytes"]
        assert edge.held().items() <= written.items()


def _crates() -> Iterator[str]:
    rng = random.Random(5)
    for _ in range(CRATES):
        yield " ".join(
            f"Crate {rng.randbytes(4).hex()} went from dock {rng.randrange(90)} to {rng.randbytes(3).hex()}."
            for _ in range(18)
        )


def _grade_some(client: Client, questions: list[str]) -> None:
    for number, question in enumerate(questions[:10]):
        found = client.recall(question)
        assert found.recall_id is not None
        client.outcome(found.recall_id, number % 2, tokens=100)


def _observed(edge: Edge, questions: list[str]) -> dict[str, Any]:
    """Everything that a restart must not change."""
    live = sorted(edge.held())
    with edge.client() as client:
        status = client.status()
        recalls = [client.recall(question, record=False) for question in questions]
        shown = [client.get(entry) for entry in live]
        explained = [client.explain(entry) for entry in live]
    measured = {"disk_bytes", "packed_bytes"}  # the log comes and goes; the other is a fresh estimate
    account = {name: value for name, value in status["budget"].items() if name not in measured}
    values = [(entry["value"], entry["influence"], entry["grades"], entry["recalls"]) for entry in explained]
    facts = {name: status[name] for name in ("stage", "serving_tokens", "ladder", "damaged", "embedder")}
    return {"account": account, "recalls": recalls, "shown": shown, "values": values, "facts": facts}
