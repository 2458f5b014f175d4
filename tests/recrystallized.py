"""A whole squeeze and recovery of real daemons whose only way back is a model: edge, hub, endpoint."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crystalmem_client import Client

from crystalmem.demo.processes import Fleet, Value
from crystalmem.demo.site import TENANT, HubSite, Model
from hub.app import LEDGER_NAME
from tests.daemons import Edge

_PEOPLE = ("Sofia", "Ken", "Maria", "Oleg", "Ines", "Tariq", "Lena", "Omar")
_THINGS = ("red kayak", "old lamp", "train ticket", "blue tent", "camera bag", "steel ladder")


@dataclass(frozen=True)
class Recovered:
    """What both sides' books say when the edge has settled."""

    settled: str
    """Why `settle` returned."""
    status: Mapping[str, Any]
    spending: list[tuple[int, int, str]]
    """Tokens, admitted and reason of each attempt in the hub's ledger."""
    overlays: int


def recrystallized(
    directory: Path, model: Model, *, entries: int, served_tokens: int, settle_s: float
) -> Recovered:
    """Fill, serve, squeeze, give the budget back, settle. The archive is off: drafts or nothing."""
    with Fleet(directory) as fleet:
        site = HubSite("regen", directory, fleet, model)
        site.start()
        link: dict[str, Value] = site.link_table()
        tables: dict[str, Value | Mapping[str, Value]] = {
            # Lossy rungs are the subject here: nothing is evicted while an entry can still be demoted.
            "memory": {"ladder": "paper", "provision_bytes": 1 << 20, "eviction": "last_resort"},
            "archive": {"mode": "never", "grace_s": 0.0},
            "link": link,
            # Drafts are asked for in `settle` and never behind the reader's back.
            "idle": {"window_s": 3600.0, "patience_s": 3600.0},
        }
        edge = Edge(fleet, "edge", tables, TENANT).start()
        # Settling waits for a model.
        with Client(str(edge.socket), tenant=TENANT, timeout_s=settle_s + 60) as client:
            ids = [client.remember(text)["id"] for text in texts(entries)]
            client.settle(timeout_s=30)
            floor = client.budget()["floor_bytes"]
            used = client.budget()["logical_bytes"]
            client.set_budget(bytes=int(max(floor * 1.05, used * 0.7)))
            recall = client.recall("Who asked for the red kayak?")
            # The stage that ends with the next budget pays for drafts of the one after it.
            client.outcome(recall.recall_id, 1.0, tokens=served_tokens)
            client.set_budget(bytes=1 << 20)
            settled = client.settle(timeout_s=settle_s)["state"]
            status = client.status()
            overlays = sum(bool(client.get(entry)["model"]) for entry in ids)
        edge.daemon.stop()
        site.stop()
        with closing(sqlite3.connect(site.data / LEDGER_NAME)) as ledger:
            spending = ledger.execute("SELECT tokens, admitted, reason FROM spending").fetchall()
    return Recovered(settled, status, spending, overlays)


def texts(count: int) -> list[str]:
    """Reports of half a kilobyte, each with names, numbers, days and an outcome."""
    return [" ".join(_report(at, part) for part in range(2)) for at in range(count)]


def _report(at: int, part: int) -> str:
    who, thing = _PEOPLE[(at + 3 * part) % 8], _THINGS[(at + part) % 6]
    return (
        f"{who} asked for the {thing} on day {at + 3 + part}; it was in room {at * 7 + 12 + part}, behind two"
        f" boxes, and the key did not fit at first. After {at + 2} tries the door opened, and the {thing} was"
        " handed over in the evening with a note of thanks."
    )
