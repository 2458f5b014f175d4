"""Which socket speaks for which edge and tenant, and what two live ones mean (docs/link.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shared.ports import Clock

# Edges ping every second; a session that was silent for as long as a heartbeat allows is not live.
LIVE_S = 3.0


@dataclass
class Session:
    """One edge process on one socket, for one tenant."""

    routing_id: bytes
    boot_id: bytes
    epoch: bytes
    heard_mono_ns: int


class Rivalry(Enum):
    """What a hello meets."""

    NONE = "none"
    OLDER = "older"
    """Another process with the same key and epoch was live: the newest wins if the books agree."""
    CLONE = "clone"
    """Another process is live in another epoch: a cloned disk, both are fenced."""


class Sessions:
    """At most one session for an edge and tenant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[tuple[str, str], Session] = {}

    def __len__(self) -> int:
        """How many are open, live or not."""
        return len(self._sessions)

    def of(self, edge: str, tenant: str) -> Session | None:
        """The session that holds this place."""
        return self._sessions.get((edge, tenant))

    def heard(self, edge: str, tenant: str, routing_id: bytes) -> Session | None:
        """The session when it is this socket's; marks it live."""
        session = self.of(edge, tenant)
        if session is None or session.routing_id != routing_id:
            return None
        session.heard_mono_ns = self._clock.mono_ns()
        return session

    def rivalry(self, edge: str, tenant: str, boot_id: bytes, epoch: bytes) -> Rivalry:
        """Whether another process is live in this place; the caller probes its socket besides."""
        session = self.of(edge, tenant)
        if session is None or session.boot_id == boot_id:
            return Rivalry.NONE
        if self._clock.mono_ns() - session.heard_mono_ns > LIVE_S * 1e9:
            return Rivalry.NONE
        return Rivalry.OLDER if session.epoch == epoch else Rivalry.CLONE

    def open(self, edge: str, tenant: str, routing_id: bytes, boot_id: bytes, epoch: bytes) -> None:
        """This socket speaks for the edge from now on."""
        self._sessions[edge, tenant] = Session(routing_id, boot_id, epoch, self._clock.mono_ns())

    def drop(self, edge: str, tenant: str) -> None:
        """Nobody speaks for it."""
        self._sessions.pop((edge, tenant), None)
