"""The store's outbox as the link drives it: every call on the store's thread, durable when it returns."""

from __future__ import annotations

from edge_agent.link import OutboxState
from edge_agent.parts import Parts
from shared.wire import Ack


class StoreSource:
    """Implements edge_agent.link.BatchSource."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def hello(self) -> OutboxState:
        """Where the edge stands."""
        return await self._parts.thread.run(self._parts.store.link.state)

    async def sealed(self) -> bytes | None:
        """The batch in flight, or the next one."""
        return await self._parts.thread.run(self._parts.store.link.sealed)

    async def acked(self, ack: Ack) -> None:
        """Believe an ack; what the hub knows as forgotten is forgotten here too."""
        await self._parts.thread.run(self._acked, ack)

    async def fenced(self, hub_generation: int) -> None:
        """A new epoch, everything told again."""
        await self._parts.thread.run(self._parts.store.link.fenced, hub_generation)

    async def resync(self, hub_generation: int) -> None:
        """The same, because the hub lost its tail."""
        await self._parts.thread.run(self._parts.store.link.resync, hub_generation)

    def _acked(self, ack: Ack) -> None:
        store = self._parts.store
        forgotten = [number for number in store.link.acked(ack).forgotten if number in store.table]
        for number in forgotten:
            store.forget(number)
        self._parts.retrieval.refresh(forgotten)
