"""Two processes of one edge, and the link at work on real sockets: pause, flush, fetch, fence, resync."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from edge_agent.link import Phase
from edge_agent.sync import LinkEndpoint, SyncLink
from hub.router import Router
from shared.errors import Code, PermanentError
from shared.host.clock import SystemRng
from shared.host.keys import new_pair
from shared.memory.model import Rung
from shared.wire import (
    Archived,
    HubMessage,
    Layer,
    Layers,
    Welcome,
)
from tests.link_harness import (
    CLOCK,
    EDGE,
    FAST,
    ListOutbox,
    link_to,
    public_id,
    running_hub,
    running_link,
    until,
)
from tests.raw_edge import raw_edge

# --- two of a kind ------------------------------------------------------------------------------------


async def test_the_newest_process_of_an_edge_wins_and_the_older_stops(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        pair = hub.admit()
        older = link_to(hub, ListOutbox(), pair, boot=b"1" * 16)
        newer = link_to(hub, ListOutbox(), pair, boot=b"2" * 16)
        async with running_link(older):
            await until(lambda: older.up)
            async with running_link(newer):
                await until(lambda: newer.up and older.status().phase == Phase.STOPPED.value)
                assert older.status().code == Code.FENCED.value
        assert hub.app.status().sessions == 1


async def test_a_cloned_disk_fences_both_and_is_counted(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        pair = hub.admit()
        first = link_to(hub, ListOutbox(epoch=b"1" * 16), pair, boot=b"1" * 16)
        clone = link_to(hub, ListOutbox(epoch=b"2" * 16), pair, boot=b"2" * 16)
        async with running_link(first):
            await until(lambda: first.up)
            async with running_link(clone):
                await until(lambda: clone.status().phase == Phase.STOPPED.value)
                await until(lambda: first.status().phase == Phase.STOPPED.value)
        assert hub.app.status().clones == 1


async def test_a_killed_edge_is_replaced_at_once(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        pair = hub.admit()
        async with raw_edge(hub, pair) as edge:
            assert isinstance(await edge.greet(boot=b"1" * 16), Welcome)
        async with raw_edge(hub, pair) as edge:
            reply = await edge.greet(boot=b"2" * 16, epoch=b"n" * 16)
            assert isinstance(reply, Welcome)
        assert hub.app.status().clones == 0


# --- the link at work -----------------------------------------------------------------------------------


async def test_the_link_sends_pauses_and_flushes(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        source = ListOutbox()
        link = link_to(hub, source, hub.admit())
        assert not await link.flush(0.01)
        async with running_link(link):
            await until(lambda: link.up)
            for number in range(1, 11):
                source.remember(number)
            assert await link.flush(5)
            assert (len(source.deltas), link.status().acked_seq, hub.app.status().deltas) == (0, 10, 10)
            link.pause()
            source.remember(11)
            link.wake()
            await anyio.sleep(0.05)
            assert not await link.flush(0.01)
            assert (source.sent, hub.app.status().deltas) == (None, 10)
            link.resume()
            assert await link.flush(5)
            assert hub.app.status().deltas == 11
            status = link.status()
            assert status.link_up_bytes > 500
            assert status.link_down_bytes > 100
        assert not link.up


async def test_the_archive_answers_over_the_link(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        source = ListOutbox()
        source.remember(1)
        source.put(lambda seq: Layers(seq, 1, 1, 3, (Layer(Rung.PACKED, b"p"), Layer(Rung.TRACE, b"t"))))
        link = link_to(hub, source, hub.admit())
        async with running_link(link):
            await until(lambda: link.up)
            assert await link.flush(5)
            entry = await link.fetch(1, 1)
            assert (entry.public_id, entry.levelling) == (public_id(1), 3)
            assert [(layer.rung_above, layer.payload) for layer in entry.layers] == [
                (Rung.PACKED, b"p"),
                (Rung.TRACE, b"t"),
            ]
            with pytest.raises(PermanentError) as caught:
                await link.fetch(2, 1)
            assert caught.value.code is Code.SOURCE_ABSENT
            assert not link.generates


async def test_an_old_copy_of_the_edge_is_fenced_and_comes_back_whole(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        pair, source = hub.admit(), ListOutbox()
        async with running_link(link_to(hub, source, pair)) as link:
            for number in range(1, 9):
                source.remember(number)
            await until(lambda: source.acked_seq == 8)
            assert link.status().fences == 0
        old = ListOutbox()
        old.remember(1)
        async with running_link(link_to(hub, old, pair, boot=b"o" * 16)) as link:
            await until(lambda: link.up and not old.deltas)
            assert (link.status().fences, old.fences) == (1, ["fenced"])


async def test_a_hub_that_lost_its_files_gets_everything_again(tmp_path: Path) -> None:
    source = ListOutbox()
    async with running_hub(tmp_path / "first") as hub:
        pair, keys, edges = hub.admit(), hub.keys, hub.edges
        async with running_link(link_to(hub, source, pair)):
            for number in range(1, 9):
                source.remember(number)
            await until(lambda: source.acked_seq == 8)
    async with running_hub(tmp_path / "second", keys=keys, edges=edges) as hub:
        async with running_link(link_to(hub, source, pair)) as link:
            await until(lambda: link.up and not source.deltas)
            assert (link.status().resyncs, source.fences) == (1, ["resync"])
        assert hub.app.status().deltas == 8
        assert source.generation == 2


async def test_differing_digests_stop_both_sides(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        pair, source = hub.admit(), ListOutbox()
        source.remember(1)
        async with running_link(link_to(hub, source, pair)):
            await until(lambda: source.acked_seq == 1)
        source.chain = b"?" * 32
        source.remember(2)
        async with running_link(link_to(hub, source, pair)) as link:
            await until(lambda: link.status().phase == Phase.ALARMED.value)
            assert link.status().code == Code.CHAIN_MISMATCH.value
        assert hub.app.status().deltas == 1
        assert EDGE in hub.edges


async def test_a_damaged_tenant_file_stops_that_tenant_only(tmp_path: Path) -> None:
    (tmp_path / "tenants").mkdir()
    (tmp_path / "tenants" / "tenant-1.db").write_bytes(b"no database" * 1000)
    async with running_hub(tmp_path) as hub:
        pair = hub.admit(tenants=("tenant-1", "tenant-2"))
        damaged, sound = ListOutbox(), ListOutbox(tenant="tenant-2")
        for source in (damaged, sound):
            source.remember(1)
        stopped, works = link_to(hub, damaged, pair), link_to(hub, sound, pair)
        async with running_link(stopped), running_link(works):
            await until(lambda: not sound.deltas and stopped.status().code == Code.CORRUPT.value)
        assert damaged.deltas
        assert (tmp_path / "tenants" / "tenant-1.db").read_bytes() == b"no database" * 1000


async def test_a_lost_answer_is_asked_for_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    send, lost = Router._send, list[HubMessage]()

    async def losing(self: Router, routing_id: bytes, message: HubMessage) -> bool:
        if isinstance(message, Archived) and not lost:
            lost.append(message)
            return True
        return await send(self, routing_id, message)

    monkeypatch.setattr(Router, "_send", losing)
    async with running_hub(tmp_path) as hub:
        source = ListOutbox()
        source.remember(1)
        source.put(lambda seq: Layers(seq, 1, 1, 3, (Layer(Rung.TRACE, b"t"),)))
        link = link_to(hub, source, hub.admit(), timings=replace(FAST, fetch_s=0.2))
        async with running_link(link):
            await until(lambda: not source.deltas)
            assert (await link.fetch(1, 1)).layers[0].payload == b"t"
        assert (len(lost), hub.app.status().fetches) == (1, 2)


async def test_whoever_waits_for_a_flush_hears_that_the_hub_went(tmp_path: Path) -> None:
    source = ListOutbox()
    async with running_hub(tmp_path) as hub:
        link = link_to(hub, source, hub.admit())
        async with running_link(link):
            await until(lambda: link.up)
            hub.stop.set()
            source.remember(1)
            assert not await link.flush(20)
            assert source.deltas


@pytest.mark.parametrize("address", ["nonsense", "tcp://", "smoke://hub:1"])
async def test_an_address_that_is_none_is_named(tmp_path: Path, address: str) -> None:
    pair = new_pair()
    link = SyncLink(ListOutbox(), LinkEndpoint(address, pair, pair.public), b"b" * 16, CLOCK, SystemRng())
    with pytest.raises(PermanentError) as caught:
        await link.run()
    assert (caught.value.code, caught.value.facts["endpoint"]) == (Code.BAD_CONFIG, address)
