"""A store at its budget, on a full disk, and with evicted entries: what it says is what it does."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from crystalmem_client import Client, CrystalMemError

from crystalmem.demo.journal import text_digest
from crystalmem.demo.processes import Fleet
from crystalmem.demo.site import TENANT, HubSite
from tests import households
from tests.daemons import STILL, Edge, running_edge
from tests.soak.evidence import target_pending

EPISODES = [row["text"] for row in households.rows(120) if row["type"] == "episode"]
BUDGET_BYTES = 40_000


def test_a_full_store_takes_a_write_by_demoting_and_gives_everything_back(tmp_path: Path) -> None:
    tables = {**STILL, "memory": {"provision_bytes": BUDGET_BYTES}}
    with running_edge(tmp_path, tables) as edge, edge.client() as client:
        written = {client.remember(text)["id"]: text for text in EPISODES}
        account = client.budget()
        assert account["entries"] == len(EPISODES)
        assert sum(map(len, EPISODES)) > 2 * BUDGET_BYTES
        assert account["rungs"].get("full", 0) < len(EPISODES)
        assert account["logical_bytes"] <= BUDGET_BYTES
        with pytest.raises(CrystalMemError) as refusal:
            client.remember("no squeeze can make room for this " * 2_000)
        assert refusal.value.code == "entry_over_budget"
        assert refusal.value.facts["entry_bytes"] > refusal.value.facts["budget_bytes"]
        exact = {entry for entry in written if client.get(entry)["rung"] in {"full", "packed"}}
        client.set_budget(bytes=20 * BUDGET_BYTES)
        client.settle()
        assert {entry for entry in exact if client.get(entry)["text"] != written[entry]} == set()


def test_bytes_shown_measured_and_enforced_are_the_same(tmp_path: Path) -> None:
    tables = {**STILL, "memory": {"provision_bytes": BUDGET_BYTES}}
    unicode = [f"наблюдение номер {number} 👩‍👩‍👧 東京" * (1 + number % 9) for number in range(60)]
    with running_edge(tmp_path, tables) as edge, edge.client() as client:
        for text in (*EPISODES, *unicode):
            client.remember(text)
        account = client.set_budget(bytes=BUDGET_BYTES)
        entries = sum(client.get(entry)["size_bytes"] for entry in edge.held())
        stubs = account["logical_bytes"] - account["shared_bytes"] - entries
        assert abs(stubs) <= len(edge.held())  # each size is rounded
        assert account["disk_bytes"] == edge.disk_bytes()
        assert edge.disk_bytes() <= BUDGET_BYTES + account["empty_bytes"]
        for limit in (1, 7, 200):
            found = client.recall("fridge cabinet 東京", k=20, max_bytes=limit, record=False)
            shown = sum(len(hit.text.encode()) for hit in found.hits)
            assert shown <= limit
            assert all(hit.truncated for hit in found.hits[-1:])


# --- evicted, with a hub ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Edge, dict[str, str]]]:
    """An edge whose hub holds every layer, squeezed until most entries are stubs."""
    directory = tmp_path_factory.mktemp("archived")
    with Fleet(directory) as fleet:
        hub = HubSite("full", directory, fleet, None)
        hub.start()
        # Long enough for any machine: what is evicted has been offered to the hub, and taken.
        archive = {"grace_s": 60.0}
        memory = {"provision_bytes": 400_000}
        tables = {**STILL, "link": hub.link_table(), "archive": archive, "memory": memory}
        edge = Edge(fleet, "edge", tables, TENANT).start()
        with edge.client() as client:
            written = {client.remember(text)["id"]: text for text in EPISODES}
            _await_archive(client)
            client.set_budget(bytes=10_000)
        yield edge, written


def test_evicted_entries_are_listed_whole_and_come_back_exact(archived: tuple[Edge, dict[str, str]]) -> None:
    edge, written = archived
    with edge.client() as client:
        listed = _all_evicted(client)
        live = edge.held()
        assert {row["id"] for row in listed} | live.keys() == written.keys()
        assert all(row["restorable"] and row["reason"] == "priced" for row in listed)
        client.set_budget(bytes=100_000)
        entry = listed[0]["id"]
        assert client.restore(entry)["rung"] == "packed"
        assert client.get(entry)["text"] == written[entry]
        with pytest.raises(CrystalMemError, match="not_restorable"):
            client.restore(entry)


def test_the_id_of_an_evicted_entry_is_taken(archived: tuple[Edge, dict[str, str]]) -> None:
    edge, written = archived
    with edge.client() as client:
        row = _all_evicted(client)[-1]
        with pytest.raises(CrystalMemError, match="duplicate_id") as refusal:
            client.remember("something else under the same name", id=row["id"])
        assert refusal.value.facts["number"] == row["number"]
        client.set_budget(bytes=100_000)
        client.restore(row["id"])
        assert client.get(row["id"])["text"] == written[row["id"]]


def test_everything_comes_back_after_a_kill(archived: tuple[Edge, dict[str, str]]) -> None:
    edge, written = archived
    edge.kill_and_start()
    with edge.client() as client:
        client.set_budget(bytes=400_000)
        client.settle()
        assert edge.held() == {entry: text_digest(text).hex() for entry, text in written.items()}
        assert {entry: client.get(entry)["text"] for entry in written} == written
        assert _all_evicted(client) == []


def test_a_crash_in_a_squeeze_costs_no_exactness_while_the_hub_is_there(
    archived: tuple[Edge, dict[str, str]],
) -> None:
    edge, _ = archived
    with edge.client() as client:
        client.set_budget(bytes=400_000)
        fresh = {client.remember(f"After the crash. {text}")["id"]: text for text in EPISODES[:60]}

    def squeeze() -> None:
        with edge.client() as client, suppress(CrystalMemError):
            client.set_budget(bytes=20_000)

    caller = threading.Thread(target=squeeze)
    caller.start()
    while caller.is_alive() and not target_pending(edge):
        caller.join(0.001)
    edge.kill_and_start()
    caller.join()
    with edge.client() as client:
        assert client.budget()["budget_bytes"] == 20_000
        client.set_budget(bytes=400_000)
        client.settle()
        for entry, text in fresh.items():
            assert client.get(entry)["text"] == f"After the crash. {text}"


# --- the disk ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mounted)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("mounting a small disk takes rights that this account has not")
    yield mounted
    subprocess.run(["umount", "--lazy", str(mounted)], check=True)


def test_a_full_disk_is_an_error_and_not_the_end(tmp_path: Path, small_disk: Path) -> None:
    with Fleet(tmp_path) as fleet:
        # Idle work runs: it must not die of the full disk either.
        edge = Edge(fleet, "edge", {"data_dir": str(small_disk / "edge"), "idle": {"window_s": 0.01}})
        edge.directory = small_disk / "edge"
        edge.start()
        with edge.client() as client:
            kept = _write_until_refused(client, "disk_full")
            _still_whole(edge, client, kept)
            edge.kill_and_start()
            _still_whole(edge, client, kept)


def test_a_file_that_may_not_grow_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    with running_edge(tmp_path, STILL) as edge, edge.client() as client:
        first = client.remember("before the limit")["id"]
        limit = os.stat(edge.memory / "store.db-wal").st_size + 64 * 1024
        resource.prlimit(edge.daemon.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        kept = _write_until_refused(client, "disk_error") | {first: "before the limit"}
        _still_whole(edge, client, kept)
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(edge.daemon.pid, resource.RLIMIT_FSIZE, unlimited)
        later = client.remember("after the limit")["id"]
        assert edge.held().keys() == {*kept, later}


def _write_until_refused(client: Client, code: str) -> dict[str, str]:
    kept: dict[str, str] = {}
    with pytest.raises(CrystalMemError) as refusal:  # noqa: PT012 - any of the writes may be the one
        for number in range(1_000):
            text = f"entry {number} " + os.urandom(4_000).hex()
            kept[client.remember(text)["id"]] = text
    assert refusal.value.code == code
    assert refusal.value.status >= 500
    return kept


def _still_whole(edge: Edge, client: Client, kept: dict[str, str]) -> None:
    """Reads go on, what was acknowledged is there, and nothing else."""
    assert client.status()["state"] == "serving"
    assert client.recall("entry 0").hits
    assert edge.held() == {entry: text_digest(text).hex() for entry, text in kept.items()}
    assert {entry: client.get(entry)["text"] for entry in kept} == kept


def _await_archive(client: Client) -> None:
    """Settle until the hub has acknowledged every layer."""
    for _ in range(20):
        if not client.settle(timeout_s=10.0)["archived"] and client.status()["link"]["waiting"] == 0:
            return
    pytest.fail(f"the archive did not settle: {client.status()['link']}")


def _all_evicted(client: Client) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor: int | None = 0
    while cursor is not None:
        page = client.list_evicted(limit=7, cursor=cursor)
        rows += page["evicted"]
        cursor = page["next_cursor"]
    assert len(rows) == page["total"]
    return rows
