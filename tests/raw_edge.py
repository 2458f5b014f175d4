"""A listed key with a free hand over its frames."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import msgspec
import zmq.asyncio

from shared.errors import Code
from shared.host import sockets
from shared.host.keys import KeyPair
from shared.wire import (
    NO_CHAIN,
    Batch,
    EdgeMessage,
    Hello,
    HubMessage,
    Ping,
    Pong,
    Refused,
    decode_from_hub,
    encode,
    encode_batch,
)
from tests.link_harness import TENANT, Hub, created

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
    """How often the hub turned somebody away for this reason."""
    return hub.app.status().refused.get(code.value, 0)


def code_of(reply: HubMessage) -> str:
    """The code of a refusal."""
    assert isinstance(reply, Refused)
    return reply.code
