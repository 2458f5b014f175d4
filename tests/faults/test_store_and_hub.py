"""The real store over the real link to the real hub: what was given away comes back, forgotten does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_agent.distill import PlainDistiller
from edge_agent.entries import ArchiveMode, EvictionReason
from edge_agent.link import OutboxState
from edge_agent.store import Store
from edge_agent.sync import LinkEndpoint, SyncLink
from shared.errors import Code, PermanentError
from shared.host.clock import SystemRng
from shared.host.keys import KeyPair
from shared.memory import codec
from shared.memory.model import LADDERS, Rung
from shared.memory.text_codec import TextCodec
from shared.wire import Ack
from tests.link_harness import CLOCK, FAST, Hub, running_hub, running_link, until
from tests.planes import fill, open_store

HOME = "home"
TEXTS = TextCodec(PlainDistiller())


class OnThisThread:
    """BatchSource over a store that lives on the test's own thread."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def hello(self) -> OutboxState:
        return self.store.link.state()

    async def sealed(self) -> bytes | None:
        return self.store.link.sealed()

    async def acked(self, ack: Ack) -> None:
        self.store.link.acked(ack)

    async def fenced(self, hub_generation: int) -> None:
        self.store.link.fenced(hub_generation)

    async def resync(self, hub_generation: int) -> None:
        self.store.link.resync(hub_generation)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "edge", archive=ArchiveMode.DEMOTED, codec=TEXTS)
    yield opened
    opened.close()


def link_to(hub: Hub, store: Store, pair: KeyPair) -> SyncLink:
    endpoint = LinkEndpoint(hub.app.endpoint, pair, hub.keys.public)
    return SyncLink(OnThisThread(store), endpoint, b"b" * 16, CLOCK, SystemRng(), FAST)


async def original(link: SyncLink, number: int) -> str:
    """An entry's text from its archived layers alone, checked by its digest."""
    entry = await link.fetch(number, 1)
    text = TEXTS.join(entry.layers, LADDERS["product"])
    assert codec.digest(text.encode()) == entry.digest
    return text


async def test_what_was_given_away_comes_back_byte_for_byte_also_after_a_new_epoch(
    tmp_path: Path, store: Store
) -> None:
    texts = fill(store, 12, 900)
    numbers = list(texts)
    async with running_hub(tmp_path / "hub") as hub:
        pair = hub.admit(tenants=(HOME,))
        async with running_link(link_to(hub, store, pair)) as link:
            await until(lambda: link.up)
            store.link.ship(numbers)
            assert await link.flush(10)
            store.apply_moves(dict.fromkeys(numbers, Rung.TRACE))
            store.evict(numbers[:3], EvictionReason.BUDGET, {})
            assert await link.flush(10)
            assert {number: await original(link, number) for number in numbers} == texts
        store.link.fenced(2)
        async with running_link(link_to(hub, store, pair)) as link:
            await until(lambda: link.up)
            assert await link.flush(10)
            assert {number: await original(link, number) for number in numbers} == texts
        status = hub.app.status()
        assert (status.refused, status.skipped, status.not_archived) == ({}, 0, 0)


async def test_what_was_forgotten_is_gone_at_the_hub_also_across_a_new_epoch(
    tmp_path: Path, store: Store
) -> None:
    told, untold, kept = fill(store, 3, 900)
    async with running_hub(tmp_path / "hub") as hub:
        pair = hub.admit(tenants=(HOME,))
        async with running_link(link_to(hub, store, pair)) as link:
            await until(lambda: link.up)
            store.link.ship([told, untold, kept])
            assert await link.flush(10)
            store.forget(told)
            assert await link.flush(10)
        store.forget(untold)
        store.link.fenced(2)
        async with running_link(link_to(hub, store, pair)) as link:
            await until(lambda: link.up)
            assert await link.flush(10)
            assert await original(link, kept)
            for number in (told, untold):
                with pytest.raises(PermanentError) as caught:
                    await link.fetch(number, 1)
                assert caught.value.code is Code.SOURCE_ABSENT
