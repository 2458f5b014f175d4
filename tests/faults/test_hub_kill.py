"""A real hub process, killed and stopped in the middle of a stream: lost 0, applied twice 0."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec
import pytest

from hub.counters import HubStatus
from tests.hub_process import HubProcess, free_port, link_to
from tests.link_harness import FAST, ListOutbox, digest, public_id, running_link, until

ENTRIES = 400
KILLS = 4


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubProcess]:
    process = HubProcess(tmp_path, free_port())
    process.start()
    yield process
    process.end()


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
