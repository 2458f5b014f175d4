"""Strangers, liars, broken frames against a real hub on real sockets: refused, counted; the hub goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
import zmq
import zmq.asyncio

from hub import auth
from hub.auth import AllowListFile, Edge, ZapHandler, prove_strangers_stay_out
from hub.counters import Counters
from shared.errors import Code, PermanentError, SecurityError
from shared.host import sockets
from shared.host.keys import new_pair
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.scope import EdgeName, TenantName
from shared.wire import (
    MAX_MESSAGE_BYTES,
    Ack,
    BatchMessage,
    Fetch,
    Ping,
    Pong,
    Welcome,
    batch_message,
    encode,
)
from tests.link_harness import (
    CLOCK,
    TENANT,
    ListOutbox,
    link_to,
    make_hub,
    running_hub,
    running_link,
    until,
)
from tests.raw_edge import RawEdge, batch, code_of, raw_edge, refused

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


async def test_without_an_answer_to_zap_nobody_comes_in() -> None:
    """libzmq's default would let everybody in (zeromq/libzmq#2594)."""
    context = zmq.asyncio.Context()
    pair = new_pair()
    router = sockets.router(context, "tcp://127.0.0.1:*", pair)
    edge = sockets.stranger(context, pair.public)
    edge.connect(sockets.bound_endpoint(router))
    edge.send(b"hello")
    assert await router.poll(300) == 0
    edge.close()
    router.close()
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
