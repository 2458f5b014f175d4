"""The edge daemon, given its ports: opens the store, keeps the door, the link and the idle loop running."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from edge_agent import api
from edge_agent.assembly import EdgePorts, close_parts, compose, make_link, open_parts
from edge_agent.embedding import Embedding
from edge_agent.parts import Parts
from shared.config import EdgeConfig
from shared.host.files import lock_directory
from shared.host.service import Supervisor
from shared.host.worker import WorkerThread


class _Worker:
    """A worker that can be ended before the store is closed under it."""

    def __init__(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._work = work
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()

    async def run(self) -> None:
        """Work until `end`; a failure leaves as it is."""
        try:
            with self._scope:
                await self._work()
        finally:
            self._done.set()

    async def end(self) -> None:
        """Cancel, and wait until the store is no longer used."""
        self._scope.cancel()
        await self._done.wait()


class EdgeApp:
    """One tenant's daemon."""

    def __init__(self, config: EdgeConfig, ports: EdgePorts, version: str) -> None:
        self._config = config
        self._ports = ports
        self._version = version

    async def run(self, supervisor: Supervisor) -> None:
        """Serve until the stop; READY is said once an interrupted sweep is finished."""
        directory = self._config.directory
        (directory / "memory").mkdir(parents=True, exist_ok=True, mode=0o700)
        with lock_directory(directory):
            thread = WorkerThread("store", supervisor.pulse("store"))
            try:
                parts = await thread.run(open_parts, self._config, self._ports, thread, anyio.Lock())
                embedding = self._embedding(parts, supervisor)
                try:
                    await self._serve(supervisor, parts, embedding)
                finally:
                    await embedding.aclose()
                    await thread.run(close_parts, parts)
            finally:
                await thread.aclose()

    async def _serve(self, supervisor: Supervisor, parts: Parts, embedding: Embedding) -> None:
        config = self._config
        link = make_link(parts, self._ports)
        passes = compose(config, self._ports, parts, link, embedding, self._version)
        workers: list[_Worker] = []
        try:
            async with api.serve(passes.verbs, config.socket_path, config.door):
                if link is not None:
                    workers.append(_start(supervisor, _Worker("link", link.run)))
                async with parts.lock:
                    # Recalls are answered meanwhile and say over_budget.
                    await passes.elastic.resume()
                workers.append(_start(supervisor, _Worker("ondevice", passes.board.model.run)))
                workers.append(_start(supervisor, _Worker("idle", passes.idle.run)))
                supervisor.ready(f"tenant {config.tenant}, {len(parts.store)} entries, {config.socket_path}")
                await supervisor.stop.wait()
        finally:
            for worker in reversed(workers):
                await worker.end()
            await passes.board.model.aclose()

    def _embedding(self, parts: Parts, supervisor: Supervisor) -> Embedding:
        return Embedding(
            parts,
            WorkerThread("embedder", supervisor.pulse("embedder")),
            self._ports.embedder,
            absence=self._ports.no_embedder,
            query_timeout_s=self._config.embedder.query_timeout_s,
        )


def _start(supervisor: Supervisor, worker: _Worker) -> _Worker:
    supervisor.start(worker.name, worker.run)
    return worker
