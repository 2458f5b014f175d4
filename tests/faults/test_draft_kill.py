"""A hub killed around a draft: charged stays charged, admitted is answered, nothing is made twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from edge_agent.sync import SyncLink
from hub.app import LEDGER_NAME
from hub.counters import HubStatus
from shared.errors import TransientError
from shared.ports import Draft
from shared.prompt import estimate_tokens
from shared.scope import tombstone_hash
from shared.wire import Forgotten
from tests.faults.test_regeneration import TEXT, request
from tests.hub_process import HubProcess, free_port, link_to
from tests.link_harness import TENANT, ListOutbox, public_id, running_link, until
from tests.scripted_openai import TOKENS, Script, ScriptedOpenAI, scripted_openai_thread


@contextmanager
def hub_with_model(directory: Path, *script: Script) -> Iterator[tuple[HubProcess, ScriptedOpenAI]]:
    with scripted_openai_thread(*script, text=TEXT) as endpoint:
        settings = {"model.url": endpoint.url, "model.name": "model-1", "gate": "paper", "rho": 1.0}
        hub = HubProcess(directory, free_port(), settings)
        hub.start()
        try:
            yield hub, endpoint
        finally:
            hub.end()


def spending(directory: Path) -> list[tuple[object, ...]]:
    """Tokens, settled, admitted, reason of every attempt, read with plain sqlite3."""
    with closing(sqlite3.connect(directory / LEDGER_NAME)) as connection:
        return connection.execute("SELECT tokens, settled, admitted, reason FROM spending").fetchall()


async def again(hub: HubProcess, link: SyncLink) -> Draft:
    """The same ask of the hub's next life."""
    await until(lambda: not link.up, 30)
    hub.start()
    await until(lambda: link.up and link.generates, 30)
    return await link.draft(request())


async def test_killed_while_the_engine_works_the_reservation_stays_and_nothing_is_asked_again(
    tmp_path: Path,
) -> None:
    with hub_with_model(tmp_path, Script.SILENT) as (hub, endpoint):
        link = link_to(hub, ListOutbox(), hub.edge_keys)
        async with running_link(link):
            await until(lambda: link.generates, 30)
            async with anyio.create_task_group() as tasks:

                async def ask() -> None:
                    with pytest.raises(TransientError):
                        await link.draft(request())

                tasks.start_soon(ask)
                await until(lambda: len(endpoint.requests) == 1, 30)
                await anyio.to_thread.run_sync(hub.kill)
            assert await again(hub, link) == Draft("", "", 0, "already_charged")
        assert await anyio.to_thread.run_sync(hub.stop) == 0
    assert len(endpoint.requests) == 1
    assert spending(tmp_path) == [(estimate_tokens(request()), 0, 0, "unsettled")]


async def test_an_admitted_draft_outlives_the_hub_and_goes_with_its_entry(tmp_path: Path) -> None:
    with hub_with_model(tmp_path) as (hub, endpoint):
        source = ListOutbox()
        source.remember(7)
        link = link_to(hub, source, hub.edge_keys)
        async with running_link(link):
            await until(lambda: link.generates and not source.deltas, 30)
            admitted = Draft(TEXT, "model-1", TOKENS)
            assert await link.draft(request()) == admitted
            # As if the reply had been lost: the hub dies, and is asked for the same again.
            await anyio.to_thread.run_sync(hub.kill)
            assert await again(hub, link) == admitted
            assert len(endpoint.requests) == 1
            source.put(lambda seq: Forgotten(seq, 7, 1, tombstone_hash(TENANT, public_id(7))))
            link.wake()
            await until(lambda: not source.deltas, 30)
        assert await anyio.to_thread.run_sync(hub.stop) == 0
    assert spending(tmp_path) == [(TOKENS, 1, 1, "")]
    assert hub.rows("SELECT count(*) FROM draft") == [(0,)]
    assert TEXT.encode() not in b"".join(path.read_bytes() for path in (tmp_path / "tenants").iterdir())


async def test_the_hub_tells_how_its_endpoints_are(tmp_path: Path) -> None:
    with hub_with_model(tmp_path, Script.ERROR_404) as (hub, _):
        link = link_to(hub, ListOutbox(), hub.edge_keys)
        async with running_link(link):
            await until(lambda: link.generates, 30)
            assert (await link.draft(request())).failure == "http_error"
            status = hub.directory / "status.json"
            await until(lambda: status.exists() and b'"sick"' in status.read_bytes(), 20)
            told = msgspec.json.decode(status.read_bytes(), type=HubStatus)
        assert await anyio.to_thread.run_sync(hub.stop) == 0
    assert [endpoint.health for endpoint in told.endpoints] == ["sick"]
