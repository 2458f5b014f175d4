"""What the daemon's passes share: one store with its index and values, its thread, its books."""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.store import Store
from edge_agent.valuation import Valuation
from shared.host.worker import WorkerThread
from shared.ports import Clock


@dataclass(frozen=True)
class Parts:
    """store, retrieval, valuation and state belong to `thread`: reach them through `thread.run` only.

    lock: held by whoever changes entries, and by nobody who waits for the hub; recalls need none.
    """

    store: Store
    retrieval: Retrieval
    valuation: Valuation
    state: State
    thread: WorkerThread
    clock: Clock
    lock: anyio.Lock


def used_bytes(store: Store) -> float:
    """The larger of the logical and the physical account: neither may pass the budget."""
    return float(max(store.account.logical_bytes(), store.account.disk_bytes() - store.meta.empty_bytes))
