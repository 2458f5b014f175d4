"""A hub for the arms with an archive: the real one, over ZeroMQ and CURVE, in the same event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from edge_agent.sync import LinkEndpoint
from hub.app import HubApp, HubPorts, HubSettings
from hub.auth import Edge, allow
from hub.regenerate import Rules
from shared.host.clock import SystemClock
from shared.host.keys import new_pair
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.scope import edge_name, tenant_name
from shared.units import GIB

_NAME = "bench"


@asynccontextmanager
async def hub(directory: Path, rho: float, tenant: str) -> AsyncIterator[LinkEndpoint]:
    """Where it listens for the one edge on its list; ended with the block."""
    clock = SystemClock()
    worker = WorkerThread("bench-hub", Pulse("bench-hub", clock))
    ours, edges = new_pair(), new_pair()
    edges_file = directory / "edges.toml"
    allow(edges_file, Edge(edge_name(_NAME), (edges.public,), (tenant_name(tenant),)))
    settings = HubSettings("tcp://127.0.0.1:*", directory, ours, edges_file, GIB, Rules(rho, strict=True))
    app = HubApp(settings, HubPorts(clock, worker, {}))
    stop, listening = anyio.Event(), anyio.Event()

    def ready(_: str) -> None:
        listening.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.run, stop, ready)
            await listening.wait()
            yield LinkEndpoint(app.endpoint, edges, ours.public)
            stop.set()
    finally:
        await worker.aclose()
