"""The link's words on the edge: its phases and their legal moves, what it asks of the store, its status."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from msgspec import Struct

from shared.errors import Code, PermanentError
from shared.wire import Ack


class Phase(str, Enum):
    """Where the link stands."""

    OFFLINE = "offline"
    CONNECTING = "connecting"
    """Until the hub has answered a hello."""
    READY = "ready"
    SENDING = "sending"
    """One batch is in flight."""
    BACKOFF = "backoff"
    STOPPED = "stopped"
    """Another process speaks for this edge: a person must say which one is right."""
    ALARMED = "alarmed"
    """The two sides' digests differ: both keep their evidence."""

    @property
    def up(self) -> bool:
        """True while the hub answers."""
        return self in {Phase.READY, Phase.SENDING}


_LOST = frozenset({Phase.BACKOFF, Phase.STOPPED, Phase.ALARMED, Phase.OFFLINE})
_MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.OFFLINE: frozenset({Phase.CONNECTING}),
    Phase.CONNECTING: frozenset({Phase.READY}) | _LOST,
    Phase.READY: frozenset({Phase.SENDING}) | _LOST,
    Phase.SENDING: frozenset({Phase.READY}) | _LOST,
    Phase.BACKOFF: frozenset({Phase.CONNECTING, Phase.OFFLINE}),
    Phase.STOPPED: frozenset({Phase.OFFLINE}),
    Phase.ALARMED: frozenset({Phase.OFFLINE}),
}


def transition(origin: Phase, to: Phase) -> Phase:
    """`to`, where the table allows it; an illegal move is a fault of ours."""
    if to not in _MOVES[origin]:
        raise PermanentError(Code.INTERNAL, "an illegal move of the link", origin=origin.value, to=to.value)
    return to


@dataclass(frozen=True)
class OutboxState:
    """What a hello says. `generation` is the hub's, as last heard (0 = never)."""

    tenant: str
    epoch: bytes
    highest_seq: int
    acked_seq: int
    chain: bytes
    generation: int


class BatchSource(Protocol):
    """The store's outbox, seen from the link. Every call is durable when it returns."""

    async def hello(self) -> OutboxState: ...

    async def sealed(self) -> bytes | None:
        """The batch in flight, or the next one, sealed before it is returned; None = nothing waits."""
        ...

    async def acked(self, ack: Ack) -> None:
        """Delete the batch's rows, move the chain, believe the archive except `not_archived`."""
        ...

    async def fenced(self, hub_generation: int) -> None:
        """This copy is old: new epoch, every live entry queued again, no archived layer believed."""
        ...

    async def resync(self, hub_generation: int) -> None:
        """The hub has lost its tail: new epoch, every live entry queued again."""
        ...


@dataclass(frozen=True)
class LinkTimings:
    """Every wait of the link, in seconds."""

    hello_s: float = 5.0
    ack_s: float = 10.0
    """Longer than the hub's longest blocking step; then the batch goes out again on a new socket."""
    fetch_s: float = 10.0
    draft_s: float = 45.0
    """Longer than the hub's own limit for an ask (40 s, hub.calls.ASK_S)."""
    ping_s: float = 1.0
    silent_s: float = 2.0
    """Looked at with each ping: a hub that is gone is noticed within 3 s (runtime.md R8)."""
    backoff_min_s: float = 0.25
    backoff_max_s: float = 5.0
    """With the hello's wait this brings the link back within 10 s of the network (runtime.md R8)."""
    refused_s: float = 30.0
    """Between attempts while the hub refuses us: only its operator can change that."""


@dataclass
class LinkCounts:
    """Counted since start, over all sessions."""

    up_bytes: int = 0
    down_bytes: int = 0
    batches: int = 0
    resent: int = 0
    fences: int = 0
    resyncs: int = 0


class LinkStatus(Struct, frozen=True):
    """One moment of the link. `code` and `hint` say why it is not up."""

    phase: str
    paused: bool
    generates: bool
    code: str
    hint: str
    acked_seq: int
    hub_generation: int
    batches: int
    resent: int
    fences: int
    resyncs: int
    link_up_bytes: int
    link_down_bytes: int
