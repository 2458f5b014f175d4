"""The edge against hubs that lie, break off or fall silent: what does not fit the books is not believed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest
import zmq
import zmq.asyncio
from msgspec.structs import replace

from edge_agent.channel import Channel
from edge_agent.link import LinkCounts, LinkTimings
from edge_agent.session import Session
from shared.errors import Code, CrystalError, IntegrityError, SecurityError, TransientError
from shared.wire import (
    NO_CHAIN,
    Ack,
    Archived,
    DraftReply,
    EdgeMessage,
    Fetch,
    HelloVerdict,
    HubMessage,
    Ping,
    Pong,
    Refused,
    Welcome,
    decode_from_edge,
    encode,
    next_chain,
)
from tests.fakes import FakeClock
from tests.link_harness import TENANT, ListOutbox

WELCOME = Welcome(1, 5, 0, NO_CHAIN, generates=False, verdict=HelloVerdict.CONTINUE)


class ScriptedChannel:
    """Answers exchanges from a list."""

    def __init__(self, *replies: HubMessage) -> None:
        self.replies = list(replies)
        self.sent: list[EdgeMessage] = []

    async def exchange(self, message: EdgeMessage, timeout_s: float) -> HubMessage:
        self.sent.append(message)
        return self.replies.pop(0)


def session(outbox: ListOutbox, *replies: HubMessage) -> tuple[Session, ScriptedChannel, LinkCounts]:
    channel, counts = ScriptedChannel(*replies), LinkCounts()
    made = Session(channel, outbox, b"b" * 16, LinkTimings(), counts)
    return made, channel, counts


async def outbox_with_a_batch() -> tuple[ListOutbox, bytes, Ack]:
    """An outbox, its sealed batch, and the ack an honest hub would give."""
    outbox = ListOutbox()
    outbox.remember(1)
    body = await outbox.sealed()
    assert body is not None
    return outbox, body, Ack(TENANT, outbox.epoch, 1, next_chain(NO_CHAIN, body), 5)


# --- hello --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Pong(), Code.MALFORMED),
        (replace(WELCOME, protocol=2), Code.UNSUPPORTED_VERSION),
        (Refused(0, "disk_full", "no"), Code.DISK_FULL),
        (replace(WELCOME, verdict=HelloVerdict.ALARM), Code.CHAIN_MISMATCH),
    ],
)
async def test_a_hello_that_is_not_welcomed_ends_the_session(reply: HubMessage, code: Code) -> None:
    outbox = ListOutbox()
    with pytest.raises(CrystalError) as caught:
        await session(outbox, reply)[0].greet()
    assert caught.value.code is code
    assert outbox.fences == []


async def test_a_hub_that_fences_for_ever_is_given_up() -> None:
    outbox = ListOutbox()
    fence = replace(WELCOME, verdict=HelloVerdict.FENCE)
    made, channel, counts = session(outbox, *[fence] * 9)
    with pytest.raises(TransientError) as caught:
        await made.greet()
    assert caught.value.code is Code.FENCED
    assert len(channel.sent) == counts.fences == len(outbox.fences) == 3


async def test_a_hub_ahead_that_our_batch_explains_gets_it_again() -> None:
    outbox, body, ack = await outbox_with_a_batch()
    ahead = replace(WELCOME, cursor=1, chain=next_chain(NO_CHAIN, body), verdict=HelloVerdict.AHEAD)
    made, _, counts = session(outbox, ahead, replace(ack, not_archived=(1,)))
    await made.greet()
    await made.send(body)
    assert (counts.fences, outbox.acks[0].not_archived) == (0, (1,))


async def test_a_hub_ahead_by_other_content_is_a_fence() -> None:
    outbox, _, _ = await outbox_with_a_batch()
    ahead = replace(WELCOME, cursor=1, chain=b"?" * 32, verdict=HelloVerdict.AHEAD)
    made, _, counts = session(outbox, ahead, WELCOME)
    await made.greet()
    assert (counts.fences, outbox.fences) == (1, ["fenced"])


async def test_a_hub_ahead_of_an_edge_with_nothing_in_flight_is_a_fence() -> None:
    outbox = ListOutbox()
    made, _, _ = session(outbox, replace(WELCOME, cursor=1, verdict=HelloVerdict.AHEAD), WELCOME)
    await made.greet()
    assert outbox.fences == ["fenced"]


# --- acks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lie", "kind"),
    [
        ({"last_seq": 2}, TransientError),
        ({"epoch": b"?" * 16}, TransientError),
        ({"generation": 6}, TransientError),
        ({"chain": b"?" * 32}, IntegrityError),
    ],
)
async def test_an_ack_that_does_not_fit_the_books_deletes_nothing(
    lie: dict[str, object], kind: type[CrystalError]
) -> None:
    outbox, body, ack = await outbox_with_a_batch()
    made, _, _ = session(outbox, WELCOME, replace(ack, **lie))
    await made.greet()
    with pytest.raises(kind):
        await made.send(body)
    assert (outbox.acks, len(outbox.deltas), outbox.sent) == ([], 1, body)


@pytest.mark.parametrize("reply", [Refused(0, "disk_full", "no"), WELCOME])
async def test_a_batch_that_is_not_acked_stays(reply: HubMessage) -> None:
    outbox, body, _ = await outbox_with_a_batch()
    made, _, _ = session(outbox, WELCOME, reply)
    await made.greet()
    with pytest.raises(CrystalError):
        await made.send(body)
    assert outbox.sent == body


async def test_nothing_is_sent_before_a_hello() -> None:
    outbox, body, ack = await outbox_with_a_batch()
    made, channel, _ = session(outbox, ack)
    with pytest.raises(TransientError):
        await made.send(body)
    assert channel.sent == []


async def test_the_chain_goes_on_from_batch_to_batch() -> None:
    outbox, first, ack = await outbox_with_a_batch()
    outbox.remember(2)
    made, channel, counts = session(outbox, WELCOME, ack)
    await made.greet()
    await made.send(first)
    second = await outbox.sealed()
    assert second is not None
    channel.replies.append(replace(ack, last_seq=2, chain=next_chain(ack.chain, second)))
    await made.send(second)
    assert (outbox.acked_seq, counts.batches) == (2, 2)


# --- the channel ---------------------------------------------------------------------------------------


@dataclass
class Wire:
    """A channel, the hub's end of it, and what happened."""

    channel: Channel
    hub: zmq.asyncio.Socket
    clock: FakeClock
    failures: list[str]

    async def heard(self) -> EdgeMessage:
        return decode_from_edge(await self.hub.recv())


@asynccontextmanager
async def wire() -> AsyncIterator[Wire]:
    context = zmq.asyncio.Context()
    hub, edge = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    hub.bind("inproc://channel")
    edge.connect("inproc://channel")
    clock, failures = FakeClock(), list[str]()
    channel = Channel(edge, clock, LinkCounts(), lambda: failures.append("failed"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(channel.read)
        yield Wire(channel, hub, clock, failures)
        tasks.cancel_scope.cancel()
    channel.close()
    hub.close()
    context.term()


FETCH = Fetch(TENANT, 7, 1, 1)


@pytest.mark.parametrize("frames", [[b"\x01\xc0"], [encode(Pong()), b"more"], [encode(FETCH)]])
async def test_garbage_from_the_hub_ends_the_session(frames: list[bytes]) -> None:
    async with wire() as line:
        await line.hub.send_multipart(frames)
        with pytest.raises(SecurityError):
            await line.channel.exchange(Ping(TENANT), 5)
        assert line.failures == ["failed"]


async def test_who_waits_hears_why_the_session_ended() -> None:
    async with wire() as line:
        await line.hub.send(encode(Refused(7, Code.NO_SESSION.value, "say hello first")))
        with pytest.raises(TransientError) as caught:
            await line.channel.request(FETCH, 5)
        assert caught.value.code is Code.NO_SESSION
        with pytest.raises(TransientError):
            await line.channel.request(FETCH, 5)  # and so does who comes later


async def test_a_refused_request_leaves_the_session_alone() -> None:
    async with wire() as line:
        await line.hub.send(encode(Refused(7, Code.SOURCE_ABSENT.value, "no")))
        with pytest.raises(CrystalError) as caught:
            await line.channel.request(FETCH, 5)
        assert caught.value.code is Code.SOURCE_ABSENT
        assert line.channel.failure is None


async def test_answers_find_their_questions_whatever_their_order() -> None:
    async with wire() as line:
        replies: dict[int, Archived | DraftReply] = {}

        async def ask(request: int) -> None:
            replies[request] = await line.channel.request(replace(FETCH, request=request), 5)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, 1)
            tasks.start_soon(ask, 2)
            await line.heard()
            await line.heard()
            for request in (9, 2, 1):  # nobody asked 9
                await line.hub.send(encode(DraftReply(request, str(request), "", 0)))
    assert {request: reply.text for request, reply in replies.items() if isinstance(reply, DraftReply)} == {
        1: "1",
        2: "2",
    }


async def test_no_answer_in_time_is_an_error_and_a_late_one_is_dropped() -> None:
    async with wire() as line:
        with pytest.raises(TransientError) as caught:
            await line.channel.request(FETCH, 0.02)
        assert caught.value.code is Code.TIMED_OUT
        await line.hub.send(encode(DraftReply(7, "late", "", 0)))
        await line.hub.send(encode(DraftReply(8, "in time", "", 0)))
        reply = await line.channel.request(replace(FETCH, request=8), 5)
        assert isinstance(reply, DraftReply)
        assert reply.text == "in time"


async def test_a_welcome_answers_no_request() -> None:
    async with wire() as line:
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(TransientError):
                    await line.channel.request(FETCH, 0.05)

            tasks.start_soon(ask)
            await line.heard()
            await line.hub.send(encode(WELCOME))  # nobody waits for a welcome
        assert line.channel.failure is None


async def test_a_silent_hub_counts_as_gone_after_its_time() -> None:
    async with wire() as line, anyio.create_task_group() as tasks:
        tasks.start_soon(line.channel.keep_alive, TENANT, 1.0, 3.0)
        for _ in range(3):
            await anyio.wait_all_tasks_blocked()
            line.clock.tick(1.0)
            assert await line.heard() == Ping(TENANT)
        assert line.channel.failure is None
        await anyio.wait_all_tasks_blocked()
        line.clock.tick(1.0)
        while line.channel.failure is None:
            await anyio.sleep(0.001)
        assert line.channel.failure.code is Code.HUB_UNAVAILABLE


async def test_a_loop_that_was_held_up_does_not_blame_the_hub() -> None:
    async with wire() as line, anyio.create_task_group() as tasks:
        tasks.start_soon(line.channel.keep_alive, TENANT, 1.0, 3.0)
        await anyio.wait_all_tasks_blocked()
        line.clock.tick(60.0)
        assert await line.heard() == Ping(TENANT)
        assert line.channel.failure is None
        tasks.cancel_scope.cancel()
