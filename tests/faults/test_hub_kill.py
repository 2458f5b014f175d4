"""A real hub process, killed and stopped in the middle of a stream: lost 0, applied twice 0."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import msgspec
import pytest

from edge_agent.sync import LinkEndpoint, SyncLink
from hub.auth import Edge, new_keys, render_allow_list
from hub.counters import HubStatus
from shared.host.clock import SystemRng
from shared.host.keys import KeyPair, load_pair, new_pair
from shared.scope import EdgeName, TenantName
from tests.link_harness import CLOCK, EDGE, FAST, TENANT, ListOutbox, digest, public_id, running_link, until

ENTRIES = 400
KILLS = 4
RUN = "import sys; from crystalmem.run_hub import run_hub_command; sys.exit(run_hub_command(None, {}))"


class HubProcess:
    """`crystalmem hub run` over one directory and one port; the port is kept from one life to the next."""

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.endpoint = f"tcp://127.0.0.1:{port}"
        self.keys = load_pair(new_keys(directory / "keys", "hub").secret_file)
        self.edge_keys = new_pair()
        edge = Edge(EdgeName(EDGE), (self.edge_keys.public,), (TenantName(TENANT),))
        (directory / "edges.toml").write_text(render_allow_list([edge]), encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        overrides = {"data_dir": str(self.directory), "listen": self.endpoint}
        code = RUN.replace("{}", repr(overrides))
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        assert self._process is not None
        return self._process.wait(20)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Read with plain sqlite3: not our own reading of our own writing."""
        path = self.directory / "tenants" / f"{TENANT}.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()


def free_port() -> int:
    """A port that nobody listens on just now."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubProcess]:
    process = HubProcess(tmp_path, free_port())
    process.start()
    yield process
    if process._process is not None and process._process.poll() is None:
        process.signal(signal.SIGCONT)
        process.kill()


def link_to(hub: HubProcess, source: ListOutbox, pair: KeyPair) -> SyncLink:
    endpoint = LinkEndpoint(hub.endpoint, pair, hub.keys.public)
    return SyncLink(source, endpoint, b"b" * 16, CLOCK, SystemRng(), FAST)


async def test_a_hub_that_is_killed_again_and_again_loses_and_repeats_nothing(hub: HubProcess) -> None:
    source = ListOutbox(batch_deltas=2)
    link = link_to(hub, source, hub.edge_keys)
    async with running_link(link):
        await until(lambda: link.up, 30)
        for life in range(1, KILLS + 1):
            for number in range(len(source.entries), len(source.entries) + ENTRIES // (KILLS + 1)):
                source.remember(number)
            link.wake()
            goal = source.acked_seq + 20
            await until(lambda goal=goal: source.acked_seq >= goal, 30)  # type: ignore[misc]
            assert source.deltas, f"life {life}: nothing was in flight at the kill"
            await anyio.to_thread.run_sync(hub.kill)
            hub.start()
        for number in range(len(source.entries), ENTRIES):
            source.remember(number)
        link.wake()
        await until(lambda: not source.deltas, 60)
        assert link.status().fences == link.status().resyncs == 0
    assert await anyio.to_thread.run_sync(hub.stop) == 0

    held = hub.rows("SELECT number, public_id, digest, creations FROM entry ORDER BY number")
    assert held == [(number, public_id(number), digest(str(number)), 1) for number in range(ENTRIES)]
    assert hub.rows("SELECT seq FROM cursor") == [(source.acked_seq,)]
    assert hub.rows("PRAGMA integrity_check") == [("ok",)]


async def test_a_frozen_hub_is_noticed_and_found_again(hub: HubProcess) -> None:
    source = ListOutbox()
    link = link_to(hub, source, hub.edge_keys)
    async with running_link(link):
        await until(lambda: link.up, 30)
        hub.signal(signal.SIGSTOP)
        await until(lambda: not link.up, 3 * FAST.silent_s)
        source.remember(1)
        link.wake()
        hub.signal(signal.SIGCONT)
        await until(lambda: not source.deltas, 10)
    assert await anyio.to_thread.run_sync(hub.stop) == 0
    assert hub.rows("SELECT creations FROM entry") == [(1,)]


async def test_a_hub_says_how_it_is_in_two_files(hub: HubProcess) -> None:
    source = ListOutbox()
    source.remember(1)
    status, metrics = hub.directory / "status.json", hub.directory / "metrics.prom"
    async with running_link(link_to(hub, source, hub.edge_keys)):
        await until(lambda: not source.deltas, 30)
        async with running_link(link_to(hub, ListOutbox(tenant="tenant-2"), hub.edge_keys)):
            await until(lambda: all(_tells(path, b'"foreign_tenant"') for path in (status, metrics)), 20)
    told = msgspec.json.decode(status.read_bytes(), type=HubStatus)
    assert (told.deltas, told.archive, told.model) == (1, True, "")
    assert told.refused["foreign_tenant"] >= 1
    assert told.endpoint == hub.endpoint
    text = metrics.read_text("utf-8")
    assert 'crystal_link_batches_total{result="applied"} 1.0' in text
    assert 'crystal_link_refusals_total{code="foreign_tenant"}' in text
    assert await anyio.to_thread.run_sync(hub.stop) == 0


def _tells(path: Path, word: bytes) -> bool:
    return path.exists() and word in path.read_bytes()
