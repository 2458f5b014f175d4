"""Strangers, liars, broken frames against a real hub on real sockets: refused, counted; the hub goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
import zmq
import zmq.asyncio

from edge_agent.link import Phase
from hub import auth
from hub.auth import AllowListFile, Edge, ZapHandler, prove_strangers_stay_out
from hub.counters import Counters
from shared.errors import Code, PermanentError, SecurityError
from shared.host import sockets
from shared.host.keys import KeyPair, new_pair
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Rung
from shared.scope import EdgeName, TenantName
from shared.wire import (
    MAX_MESSAGE_BYTES,
    NO_CHAIN,
    Ack,
    Batch,
    BatchMessage,
    EdgeMessage,
    Fetch,
    Hello,
    HubMessage,
    Layer,
    Layers,
    Ping,
    Pong,
    Refused,
    Welcome,
    batch_message,
    decode_from_hub,
    encode,
    encode_batch,
)
from tests.link_harness import (
    CLOCK,
    EDGE,
    TENANT,
    Hub,
    ListOutbox,
    created,
    link_to,
    make_hub,
    public_id,
    running_hub,
    running_link,
    until,
)

EPOCH = b"e" * 16


class RawEdge:
    """A listed key with a free hand over its frames."""

    def __init__(self, hub: Hub, pair: KeyPair, context: zmq.asyncio.Context) -> None:
        self.socket = sockets.dealer(context, hub.app.endpoint, pair, hub.keys.public)

    async def ask(self, *frames: bytes) -> HubMessage:
        with anyio.fail_after(5):
            await self.socket.send_multipart(list(frames))
            return decode_from_hub((await self.socket.recv_multipart())[0])

    async def say(self, message: EdgeMessage) -> HubMessage:
        return await self.ask(encode(message))

    async def greet(self, boot: bytes = b"b" * 16, **change: object) -> HubMessage:
        hello = Hello(1, 1, b"s" * 16, TENANT, boot, EPOCH, 0, 0, NO_CHAIN, 0)
        return await self.say(msgspec.structs.replace(hello, **change))

    async def works(self) -> bool:
        return await self.say(Ping(TENANT)) == Pong()


@asynccontextmanager
async def raw_edge(hub: Hub, pair: KeyPair) -> AsyncIterator[RawEdge]:
    context = zmq.asyncio.Context()
    edge = RawEdge(hub, pair, context)
    try:
        yield edge
    finally:
        edge.socket.close()
        context.term()


def batch(first: int, count: int, *, prev: int | None = None) -> bytes:
    deltas = tuple(created(seq, seq) for seq in range(first, first + count))
    return encode_batch(Batch(EPOCH, first - 1 if prev is None else prev, first + count - 1, deltas))


def refused(hub: Hub, code: Code) -> int:
    return hub.app.status().refused.get(code.value, 0)


def code_of(reply: HubMessage) -> str:
    assert isinstance(reply, Refused)
    return reply.code


# --- who may come in --------------------------------------------------------------------------------


async def test_an_unlisted_key_never_gets_a_message_in(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        listed = hub.admit()
        stranger = link_to(hub, ListOutbox(), new_pair())
        async with running_link(stranger):
            await until(lambda: refused(hub, Code.UNKNOWN_KEY) > 0)
            assert not stranger.up
            async with raw_edge(hub, listed) as edge:
                assert isinstance(await edge.greet(), Welcome)
                assert await edge.works()
        assert hub.app.status().sessions == 1


async def test_a_plain_socket_is_refused_and_counted(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        context = zmq.asyncio.Context()
        plain = sockets.stranger(context, None)
        plain.connect(hub.app.endpoint)
        plain.send(encode(Ping(TENANT)))
        await until(lambda: refused(hub, Code.NOT_ENCRYPTED) > 0)
        plain.close()
        context.term()
        async with raw_edge(hub, hub.admit()) as edge:
            assert isinstance(await edge.greet(), Welcome)


async def test_a_tenant_that_is_not_the_edges_is_refused(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        foreign = link_to(hub, ListOutbox(tenant="tenant-2"), hub.admit())
        async with running_link(foreign):
            await until(lambda: foreign.status().code == Code.FOREIGN_TENANT.value)
        assert refused(hub, Code.FOREIGN_TENANT) > 0
        assert not list((tmp_path / "tenants").glob("tenant-2*"))


async def test_a_revoked_key_is_out_within_a_second_live_sessions_too(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, raw_edge(hub, hub.admit()) as edge:
        assert isinstance(await edge.greet(), Welcome)
        assert isinstance(await edge.say(batch_message(TENANT, batch(1, 1))), Ack)
        hub.edges.clear()
        hub.write_edges()
        with anyio.fail_after(1):
            while await edge.works():
                await anyio.sleep(0.02)
        assert code_of(await edge.say(batch_message(TENANT, batch(2, 1)))) == Code.REVOKED_KEY.value
        assert hub.app.status().deltas == 1
        assert refused(hub, Code.REVOKED_KEY) >= 2


async def test_two_keys_of_an_edge_serve_during_a_rotation(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        old, new = hub.admit(), hub.admit()
        for pair in (old, new):
            async with raw_edge(hub, pair) as edge:
                assert isinstance(await edge.greet(), Welcome)


async def test_a_damaged_allow_list_leaves_the_last_good_one(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, raw_edge(hub, hub.admit()) as edge:
        assert isinstance(await edge.greet(), Welcome)
        (tmp_path / "edges.toml").write_text("[edges", encoding="utf-8")
        await until(lambda: hub.app.status().allow_list_failures > 0)
        assert await edge.works()


async def test_a_peer_may_not_choose_its_routing_id(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        pair = hub.admit()
        context = zmq.asyncio.Context()
        edge = RawEdge.__new__(RawEdge)
        edge.socket = sockets.stranger(context, hub.keys.public)
        edge.socket.setsockopt(zmq.CURVE_PUBLICKEY, pair.public)
        edge.socket.setsockopt(zmq.CURVE_SECRETKEY, pair.secret)
        edge.socket.setsockopt(zmq.ROUTING_ID, b"victim")
        edge.socket.connect(hub.app.endpoint)
        assert code_of(await edge.greet()) == Code.BAD_ID.value
        edge.socket.close()
        context.term()


# --- the self-test ----------------------------------------------------------------------------------


@asynccontextmanager
async def open_door(
    tmp_path: Path, zap: Callable[[zmq.asyncio.Context], ZapHandler | None]
) -> AsyncIterator[None]:
    """A router whose strangers the self-test must notice."""
    context = zmq.asyncio.Context()
    pair = new_pair()
    handler = zap(context)
    router = sockets.router(context, "tcp://127.0.0.1:*", pair)
    try:
        async with anyio.create_task_group() as tasks:
            if handler is not None:
                tasks.start_soon(handler.run)
            with pytest.raises(SecurityError) as caught:
                await prove_strangers_stay_out(context, sockets.bound_endpoint(router), pair.public)
            assert caught.value.code is Code.UNKNOWN_KEY
            yield
            tasks.cancel_scope.cancel()
    finally:
        router.close()
        if handler is not None:
            handler.close()
        context.term()


async def test_the_self_test_fails_when_nobody_answers_zap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_KNOCK_LIMIT_S", 0.3)
    async with open_door(tmp_path, lambda _: None):
        pass


async def test_the_self_test_fails_when_zap_lets_everybody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = AllowListFile(tmp_path / "edges.toml")
    anybody = Edge(EdgeName("anybody"), (), (TenantName(TENANT),))
    monkeypatch.setattr(type(allowed.current), "edge_of", lambda *_: anybody)
    async with open_door(tmp_path, lambda context: ZapHandler(context, allowed, Counters())):
        pass


async def test_a_hub_does_not_start_when_the_self_test_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object) -> None:
        raise SecurityError(Code.UNKNOWN_KEY, "strangers come in")

    monkeypatch.setattr("hub.app.prove_strangers_stay_out", failing)
    worker = WorkerThread("hub-store", Pulse("hub-store", CLOCK))
    said_ready: list[str] = []
    with pytest.raises(SecurityError, match="strangers come in"):
        await make_hub(tmp_path, worker).app.run(anyio.Event(), said_ready.append)
    assert said_ready == []
    await worker.aclose()


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        context = zmq.asyncio.Context()
        with pytest.raises(PermanentError) as caught:
            sockets.router(context, hub.app.endpoint, new_pair())
        assert caught.value.code is Code.BAD_CONFIG
        context.term()


# --- what may be said ---------------------------------------------------------------------------------


async def test_a_wrong_batch_digest_is_refused_and_the_hub_goes_on(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, raw_edge(hub, hub.admit()) as edge:
        await edge.greet()
        liar = BatchMessage(TENANT, batch(1, 2), b"\0" * 32)
        assert code_of(await edge.say(liar)) == Code.BAD_DIGEST.value
        assert hub.app.status().deltas == 0
        assert isinstance(await edge.say(batch_message(TENANT, batch(1, 2))), Ack)
        status = hub.app.status()
        assert (status.deltas, status.refused) == (2, {Code.BAD_DIGEST.value: 1})


async def test_a_replayed_batch_is_acked_again_and_applied_zero_times(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, raw_edge(hub, hub.admit()) as edge:
        await edge.greet()
        message = batch_message(TENANT, batch(1, 3))
        first = await edge.say(message)
        assert isinstance(first, Ack)
        assert [await edge.say(message) for _ in range(3)] == [first] * 3
        status = hub.app.status()
        assert (status.deltas, status.batches, status.replayed) == (3, 4, 3)


async def test_nothing_is_taken_before_a_hello(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, raw_edge(hub, hub.admit()) as edge:
        for message in (batch_message(TENANT, batch(1, 1)), Fetch(TENANT, 1, 1, 1), Ping(TENANT)):
            assert code_of(await edge.say(message)) == Code.NO_SESSION.value
        assert hub.app.status().deltas == 0


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ((b"",), Code.MALFORMED),
        ((b"\x01\xdd\xff\xff\xff\xff",), Code.MALFORMED),
        ((b"\x01" + b"\x91" * 10_000,), Code.MALFORMED),
        ((b"\x09\x90",), Code.UNSUPPORTED_VERSION),
        ((encode(Pong()),), Code.MALFORMED),
        ((encode(Ping(TENANT)), b"more"), Code.MALFORMED),
        ((encode(batch_message(TENANT, b"\x01\x90")),), Code.NO_SESSION),
    ],
)
async def test_garbage_is_refused_and_counted(tmp_path: Path, frames: tuple[bytes, ...], code: Code) -> None:
    async with running_hub(tmp_path) as hub, raw_edge(hub, hub.admit()) as edge:
        assert code_of(await edge.ask(*frames)) == code.value
        assert refused(hub, code) == 1
        assert isinstance(await edge.greet(), Welcome)
        assert await edge.works()


async def test_a_batch_body_that_does_not_decode_is_refused(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, raw_edge(hub, hub.admit()) as edge:
        await edge.greet()
        assert code_of(await edge.say(batch_message(TENANT, b"\x01\x90"))) == Code.MALFORMED.value
        assert await edge.works()


async def test_an_oversized_frame_cuts_its_sender_only(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        pair = hub.admit()
        async with raw_edge(hub, pair) as big, raw_edge(hub, pair) as other:
            await big.socket.send(bytes(MAX_MESSAGE_BYTES + 1))
            assert isinstance(await other.greet(), Welcome)
            assert await other.works()
        assert hub.app.status().deltas == 0


async def test_an_unknown_protocol_range_is_refused(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, raw_edge(hub, hub.admit()) as edge:
        reply = await edge.greet(protocol_min=2, protocol_max=9)
        assert code_of(reply) == Code.UNSUPPORTED_VERSION.value


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
            assert not await link.flush(0.01)
            assert hub.app.status().deltas == 10
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
