"""What the link asks of the store: where it stands, the next batch, and what to do with the hub's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from shared.wire import Ack


@dataclass(frozen=True)
class OutboxState:
    """What a hello says. `generation` is the hub's, as last heard (0 = never)."""

    tenant: str
    epoch: bytes
    highest_seq: int
    acked_seq: int
    chain: bytes
    generation: int


class Outbox(Protocol):
    """Durable on return, every one of them. Run on the store's own thread."""

    async def hello(self) -> OutboxState: ...

    async def sealed(self) -> bytes | None:
        """The batch in flight, or the next one, sealed before it is returned; None = nothing waits."""
        ...

    async def acked(self, ack: Ack) -> None:
        """Delete the batch's rows, move the chain, believe the archive except `not_archived`."""
        ...

    async def advance(self, cursor: int, chain: bytes) -> bool:
        """The hub is ahead: True when the batch in flight explains it, and then it counts as acked."""
        ...

    async def fenced(self, hub_generation: int) -> None:
        """This copy is old: new epoch, every live entry queued again, no archived layer believed."""
        ...

    async def resync(self, hub_generation: int) -> None:
        """The hub has lost its tail: new epoch, every live entry queued again."""
        ...
