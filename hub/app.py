"""The hub daemon, given its ports: open, prove that strangers stay out, say ready, serve, close."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio
import zmq.asyncio

from hub.auth import AllowListFile, ZapHandler, prove_strangers_stay_out
from hub.calls import EndpointStatus
from hub.counters import Counters, HubStatus
from hub.handshakes import HandshakeWatch
from hub.ledger import Ledger
from hub.regenerate import Books, DraftGate, DraftJudge, Regenerator, Rules
from hub.router import Router
from hub.stores import Stores
from shared.errors import SecurityError
from shared.host import sockets
from shared.host.files import lock_directory
from shared.host.keys import KeyPair
from shared.host.log import get_logger
from shared.host.worker import WorkerThread
from shared.memory.model import Kind
from shared.ports import Clock, Generator

LEDGER_NAME = "ledger.db"
TENANTS_NAME = "tenants"
_log = get_logger("hub")


@dataclass(frozen=True)
class HubSettings:
    """Where the hub listens and what it may hold."""

    listen: str
    directory: Path
    keys: KeyPair
    edges_file: Path
    quota_bytes: int
    rules: Rules


@dataclass(frozen=True)
class HubPorts:
    """What the composition root fills in. No generator: the generative source is absent."""

    clock: Clock
    worker: WorkerThread
    gates: Mapping[Kind, DraftGate]
    generator: Generator | None = None
    judge: DraftJudge | None = None
    endpoints: Callable[[], tuple[EndpointStatus, ...]] = tuple
    """How the generator's endpoints are, for `status`."""


class HubApp:
    """One hub over one data directory."""

    def __init__(self, settings: HubSettings, ports: HubPorts) -> None:
        self.endpoint = ""
        self._settings = settings
        self._ports = ports
        self._counters = Counters()
        self._allowed = AllowListFile(settings.edges_file)
        self._router: Router | None = None

    async def run(self, stop: anyio.Event, ready: Callable[[str], None]) -> None:
        """Serve from ready until `stop`. The death of any part ends the whole."""
        settings, worker = self._settings, self._ports.worker
        with ExitStack() as stack:
            stack.enter_context(lock_directory(settings.directory))
            self._allowed.load()
            stores = Stores(settings.directory / TENANTS_NAME, settings.quota_bytes)
            ledger = await worker.run(Ledger, settings.directory / LEDGER_NAME)
            try:
                await self._serve(stores, ledger, stop, ready)
            finally:
                await worker.run(stores.close)
                await worker.run(ledger.close)

    def status(self) -> HubStatus:
        """One moment of the hub."""
        counters, generator = self._counters, self._ports.generator
        return HubStatus(
            endpoint=self.endpoint,
            archive=self._settings.quota_bytes > 0,
            model=generator.model if generator else "",
            sessions=len(self._router.sessions) if self._router else 0,
            refused={code.value: count for code, count in counters.refused.items()},
            batches=counters.batches,
            deltas=counters.deltas,
            replayed=counters.replayed,
            skipped=counters.skipped,
            not_archived=counters.not_archived,
            hellos=dict(counters.hellos),
            fetches=counters.fetches,
            drafts=counters.drafts,
            unsent=counters.unsent,
            clones=counters.clones,
            allow_list_failures=self._allowed.failures,
            endpoints=self._ports.endpoints(),
        )

    async def _serve(
        self, stores: Stores, ledger: Ledger, stop: anyio.Event, ready: Callable[[str], None]
    ) -> None:
        settings, ports = self._settings, self._ports
        books = Books(stores, ledger, ports.worker)
        regenerator = Regenerator(
            ports.generator, ports.gates, books, ports.clock, settings.rules, ports.judge
        )
        with ExitStack() as stack:
            context = zmq.asyncio.Context()
            stack.callback(context.term)
            zap = ZapHandler(context, self._allowed, self._counters)
            stack.callback(zap.close)
            socket = sockets.router(context, settings.listen, settings.keys)
            stack.callback(socket.close)
            self.endpoint = sockets.bound_endpoint(socket)
            self._router = Router(
                socket, self._allowed, stores, ports.worker, regenerator, ports.clock, self._counters
            )
            failure: SecurityError | None = None
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(zap.run)
                try:
                    await prove_strangers_stay_out(context, self.endpoint, settings.keys.public)
                except SecurityError as error:
                    # Raised below: a task group would wrap it.
                    failure = error
                else:
                    # The self-test's own knocks are not counted.
                    self._counters.refused.clear()
                    zap.announce = True
                    _log.info("self-test passed: strangers are refused", endpoint=self.endpoint)
                    watch = HandshakeWatch(socket, self._counters)
                    stack.callback(watch.close)
                    tasks.start_soon(watch.run)
                    tasks.start_soon(self._allowed.watch, ports.clock)
                    tasks.start_soon(self._router.run)
                    ready(f"listening on {self.endpoint}")
                    await stop.wait()
                tasks.cancel_scope.cancel()
            if failure is not None:
                raise failure
