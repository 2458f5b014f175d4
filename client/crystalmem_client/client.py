"""The verbs of the local door, one method each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from crystalmem_client.transport import CrystalMemError, Transport

__all__ = ["Client", "CrystalMemError", "Hit", "Recall", "default_socket"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Hit:
    """One recalled entry at the fidelity it has now."""

    id: str
    text: str
    rung: str
    provenance: str
    score: float
    truncated: bool
    kind: str
    created: str
    model: str


@dataclass(frozen=True)
class Recall:
    """What a recall returned; `recall_id` is None when it was not recorded."""

    recall_id: str | None
    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    shortcut: bool
    over_budget: bool


def default_socket() -> str:
    """Where `crystalmem edge run` listens when nothing is configured (or $CRYSTALMEM_SOCKET)."""
    named = os.environ.get("CRYSTALMEM_SOCKET")
    if named:
        return named
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return str(Path(base) / "crystalmem" / "edge" / "edge.sock")


class Client:
    """One tenant's memory, through the daemon's unix socket or a loopback address with a token.

    Every method raises CrystalMemError with the daemon's code, message, facts and hint.
    """

    def __init__(
        self,
        socket: str | None = None,
        *,
        tenant: str = "default",
        address: str | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """`address` ("127.0.0.1:8377") and `token` replace the unix socket."""
        path = None if address else (socket or default_socket())
        self._transport = Transport(path, address, token, timeout_s)
        self._base = f"/v1/{quote(tenant, safe='')}"

    def remember(
        self,
        text: str,
        *,
        id: str | None = None,
        kind: str = "episode",
        memory_class: str | None = None,
        links: Sequence[str] = (),
        created: str | None = None,
    ) -> Json:
        """Write one entry; returns {"id", "number", "decision"}. `links` are ids that it cites."""
        body: Json = {"text": text, "kind": kind, "links": list(links)}
        optional = {"id": id, "class": memory_class, "created": created}
        body.update({name: value for name, value in optional.items() if value is not None})
        return self._post("remember", body)

    def recall(self, query: str, *, k: int = 5, max_bytes: int = 4096, record: bool = True) -> Recall:
        """The best hits within `k` and `max_bytes`; `record=False` changes nothing."""
        answer = self._post("recall", {"query": query, "k": k, "max_bytes": max_bytes, "record": record})
        return Recall(
            recall_id=answer["recall_id"],
            hits=tuple(
                Hit(**{name: hit[name] for name in Hit.__dataclass_fields__}) for hit in answer["hits"]
            ),
            degraded=tuple(answer["degraded"]),
            shortcut=answer["shortcut"],
            over_budget=answer["over_budget"],
        )

    def outcome(self, recall_id: str, g: float, *, tokens: int | None = None) -> Json:
        """Grade a recall once: g in [0, 1]; `tokens` = what the answer cost the host model."""
        body: Json = {"recall_id": recall_id, "g": g}
        if tokens is not None:
            body["tokens"] = tokens
        return self._post("outcome", body)

    def get(self, id: str) -> Json:
        """One entry at its present fidelity."""
        return self._get(f"entries/{quote(id, safe='')}")

    def explain(self, id: str) -> Json:
        """Why an entry is on its rung: value, prices, last moves."""
        return self._get(f"explain/{quote(id, safe='')}")

    def budget(self) -> Json:
        """Budget, use (logical and on disk), floor and provision, in bytes."""
        return self._get("budget")

    def set_budget(
        self,
        *,
        bytes: int | None = None,
        fraction: float | None = None,
        provision_bytes: int | None = None,
        capability: float | None = None,
    ) -> Json:
        """Set the budget and end the stage; returns when the store fits, with what it did.

        `capability` (0-100) is the stage's measured C for the loop point, where the caller measures it.
        """
        body = self._budget_body(bytes, fraction)
        if provision_bytes is not None:
            body["provision_bytes"] = provision_bytes
        if capability is not None:
            body["capability"] = capability
        return self._post("budget", body)

    def plan_budget(self, *, bytes: int | None = None, fraction: float | None = None) -> Json:
        """Dry run of `set_budget`: what would move, at which price."""
        return self._post("budget/plan", self._budget_body(bytes, fraction))

    def settle(self, *, timeout_s: float | None = None) -> Json:
        """Return when a cap binds or nothing is left to promote or to archive."""
        return self._post("settle", {} if timeout_s is None else {"timeout_s": timeout_s})

    def list_evicted(self, *, limit: int = 100, cursor: int = 0) -> Json:
        """Evicted entries: {"evicted": [...], "total", "next_cursor"}."""
        return self._get(f"evicted?limit={int(limit)}&cursor={int(cursor)}")

    def list_lost(self, *, limit: int = 100) -> Json:
        """Entries that lost exactness before the hub had them: {"lost": [...], "total"}."""
        return self._get(f"lost?limit={int(limit)}")

    def restore(self, id_or_number: str | int) -> Json:
        """Bring one evicted or lossy entry back from the hub's archive."""
        field = "number" if isinstance(id_or_number, int) else "id"
        return self._post("restore", {field: id_or_number})

    def status(self) -> Json:
        """The whole daemon: budget, rungs, link, sources, stage, counters."""
        return self._transport.call("GET", "/v1/status")

    def close(self) -> None:
        """Drop the connection."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @staticmethod
    def _budget_body(size_bytes: int | None, fraction: float | None) -> Json:
        if (size_bytes is None) == (fraction is None):
            raise ValueError("give exactly one of bytes= and fraction=")
        return {"bytes": size_bytes} if fraction is None else {"fraction": fraction}

    def _get(self, path: str) -> Json:
        return self._transport.call("GET", f"{self._base}/{path}")

    def _post(self, path: str, body: Json) -> Json:
        return self._transport.call("POST", f"{self._base}/{path}", body)
