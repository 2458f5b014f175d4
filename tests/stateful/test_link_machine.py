"""Edge session and hub store against a model: a link that loses, repeats and delays, crashes, old copies.

The edge runs the real Session, the hub the real TenantStore on disk. Whatever happened before: once both talk
undisturbed, the hub holds exactly the edge's entries, each applied once, and nothing that was forgotten.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Coroutine
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from edge_agent.channel import refusal
from edge_agent.link import LinkCounts, LinkTimings
from edge_agent.session import Session
from hub.stores import Stores
from shared.errors import Code, CrystalError, TransientError
from shared.scope import tombstone_hash
from shared.wire import (
    BatchMessage,
    EdgeMessage,
    Forgotten,
    Hello,
    HubMessage,
    Refused,
    Welcome,
    decode_from_edge,
    decode_from_hub,
    encode,
)
from tests.link_harness import EDGE, TENANT, ListOutbox, created, digest, public_id

T = TypeVar("T")
NUMBERS = st.integers(1, 8)


class Fate(Enum):
    """What the link does to one exchange."""

    DELIVERED = "delivered"
    REQUEST_LOST = "request lost"
    REPLY_LOST = "reply lost"
    TWICE = "twice"


# Every commit is synced; a disk would take most of the test's time. Power cuts are another test's business.
MEMORY_DIR = "/dev/shm" if Path("/dev/shm").is_dir() else None
FATES = st.lists(st.sampled_from(Fate), max_size=5)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Nothing here ever waits, so a coroutine ends at its first step."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waited")


class HubSide:
    """Frames in, frames out; a directory behind."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stores = Stores(directory, 1 << 20)
        self.seen: list[bytes] = []

    def answer(self, frame: bytes) -> bytes:
        self.seen.append(frame)
        message = decode_from_edge(frame)
        reply: HubMessage
        try:
            if isinstance(message, Hello):
                stand = self.stores.hello(EDGE, message)
                reply = Welcome(1, stand.generation, stand.cursor, stand.chain, False, stand.verdict)
            else:
                assert isinstance(message, BatchMessage)
                reply = self.stores.apply(EDGE, message).ack
        except CrystalError as error:
            reply = Refused(0, error.code.value, error.message)
        return encode(reply)

    def restart(self) -> None:
        self.stores.close()
        self.stores = Stores(self.directory, 1 << 20)


class LossyChannel:
    """What Session needs of a channel, with a fate for each exchange in turn."""

    def __init__(self, hub: HubSide, fates: list[Fate]) -> None:
        self._hub = hub
        self._fates = fates

    async def exchange(self, message: EdgeMessage, timeout_s: float) -> HubMessage:
        fate = self._fates.pop(0) if self._fates else Fate.DELIVERED
        if fate is Fate.REQUEST_LOST:
            raise TransientError(Code.TIMED_OUT, "the request was lost")
        reply = self._hub.answer(encode(message))
        if fate is Fate.TWICE:
            reply = self._hub.answer(encode(message))
        if fate is Fate.REPLY_LOST:
            raise TransientError(Code.TIMED_OUT, "the reply was lost")
        decoded = decode_from_hub(reply)
        if isinstance(decoded, Refused):
            raise refusal(decoded)
        return decoded


class LinkMachine(RuleBasedStateMachine):
    """One edge, one hub, and everything that can go wrong between and under them."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="link-machine-", dir=MEMORY_DIR))
        self.hub = HubSide(self.root / "hub")
        self.edge = ListOutbox(batch_deltas=3)
        self.wanted: dict[int, tuple[int, bytes]] = {}
        self.copies = 0
        self.edge_copies: list[tuple[ListOutbox, dict[int, tuple[int, bytes]]]] = []
        self.hub_copy: Path | None = None

    @initialize()
    def start(self) -> None:
        self.talk([])

    # --- the edge's own life ----------------------------------------------------------------------

    @rule(number=NUMBERS, text=st.sampled_from(["a", "b", "c"]))
    def write(self, number: int, text: str) -> None:
        version = self.wanted[number][0] + 1 if number in self.wanted else 1
        self.edge.put(lambda seq: created(seq, number, version=version, text=text))
        self.wanted[number] = (version, digest(text))

    @precondition(lambda self: self.wanted)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.wanted)))
        version, _ = self.wanted.pop(number)
        del self.edge.entries[number]
        tombstone = tombstone_hash(TENANT, public_id(number))
        self.edge.put(lambda seq: Forgotten(seq, number, version, tombstone))

    # --- the link ---------------------------------------------------------------------------------

    @rule(fates=FATES)
    def talk(self, fates: list[Fate]) -> None:
        self.converse(self.edge, fates)

    @rule(fates=FATES)
    def talk_on(self, fates: list[Fate]) -> None:
        """In a session whose hello was long ago: what happened since is found out by the batch alone."""
        self.converse(self.edge, fates, greeted=True)

    @precondition(lambda self: self.hub.seen)
    @rule(data=st.data())
    def an_old_frame_arrives(self, data: st.DataObject) -> None:
        frame = data.draw(st.sampled_from(self.hub.seen))
        if isinstance(decode_from_edge(frame), BatchMessage):
            self.hub.answer(frame)

    # --- crashes and copies -----------------------------------------------------------------------

    @rule()
    def hub_crashes(self) -> None:
        self.hub.restart()

    @rule()
    def copy_edge(self) -> None:
        self.edge_copies.append((copy.deepcopy(self.edge), dict(self.wanted)))

    @precondition(lambda self: self.edge_copies)
    @rule(data=st.data())
    def restore_edge(self, data: st.DataObject) -> None:
        edge, wanted = copy.deepcopy(data.draw(st.sampled_from(self.edge_copies)))
        self.edge, self.wanted = edge, wanted

    @precondition(lambda self: self.edge_copies)
    @rule(data=st.data(), fates=FATES, writes=st.integers(0, 4), greeted=st.booleans())
    def a_clone_speaks(self, data: st.DataObject, fates: list[Fate], writes: int, *, greeted: bool) -> None:
        clone, _ = copy.deepcopy(data.draw(st.sampled_from(self.edge_copies)))
        for number in range(100, 100 + writes):
            clone.remember(number, "the clone's own")
        self.copies += 1
        clone.salt = self.copies
        self.converse(clone, fates, greeted=greeted)

    @rule()
    def copy_hub(self) -> None:
        self.hub.restart()
        self.hub_copy = self.root / "copy"
        shutil.rmtree(self.hub_copy, ignore_errors=True)
        shutil.copytree(self.hub.directory, self.hub_copy)

    @precondition(lambda self: self.hub_copy)
    @rule()
    def restore_hub(self) -> None:
        assert self.hub_copy is not None
        self.hub.stores.close()
        shutil.rmtree(self.hub.directory)
        shutil.copytree(self.hub_copy, self.hub.directory)
        self.hub.restart()

    # --- what must hold ---------------------------------------------------------------------------

    @invariant()
    def applied_at_most_once(self) -> None:
        twice = self.rows("SELECT count(*) FROM entry WHERE creations > 1")
        assert twice == [(0,)]

    def teardown(self) -> None:
        try:
            self.converse(self.edge, [])
            self.drop_what_the_hub_knows_as_forgotten()
            named = self.rows(
                "SELECT number, public_id, version, digest FROM entry"
                " WHERE epoch = (SELECT epoch FROM cursor)"
            )
            assert {row[0]: (row[2], row[3]) for row in named} == self.wanted
            assert all(row[1] == public_id(row[0]) for row in named)
            forgotten = {tombstone_hash(TENANT, public_id(number)) for number in range(1, 9)}
            held = {tombstone_hash(TENANT, row[0]) for row in self.rows("SELECT public_id FROM entry")}
            tombstones = {row[0] for row in self.rows("SELECT hash FROM tombstone")}
            assert not held & tombstones & forgotten
            assert not self.edge.deltas
        finally:
            self.hub.stores.close()
            shutil.rmtree(self.root)

    # --- helpers ----------------------------------------------------------------------------------

    def converse(self, edge: ListOutbox, fates: list[Fate], *, greeted: bool = False) -> None:
        """One session: greet, send until nothing waits or the link fails."""
        channel = LossyChannel(self.hub, fates)
        session = Session(channel, edge, b"b" * 16, LinkTimings(), LinkCounts())
        try:
            if greeted:
                session._books, session._generation = run(edge.hello()), edge.generation
            else:
                run(session.greet())
            while (body := run(edge.sealed())) is not None:
                run(session.send(body))
        except TransientError:
            return

    def drop_what_the_hub_knows_as_forgotten(self) -> None:
        """An old copy gives way to the hub's tombstones."""
        self.wanted = {number: found for number, found in self.wanted.items() if number in self.edge.entries}

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.hub.stores._of(TENANT)._database.query(sql)


LinkMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestLink = LinkMachine.TestCase
