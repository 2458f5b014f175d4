"""Composition root of the hub daemon: configuration and keys in, ports filled, one supervised service."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec

from hub.app import HubApp, HubPorts, HubSettings
from hub.calls import ASK_S, QUEUE_S
from hub.counters import HubStatus
from hub.regenerate import DraftGate, Rules
from shared import metrics
from shared.config import HubConfig, ModelConfig, load
from shared.errors import Code, CrystalError, PermanentError
from shared.host import log
from shared.host.clock import SystemClock
from shared.host.keys import SECRET_SUFFIX, KeyPair, load_pair, new_pair, write_pair
from shared.host.service import Supervisor, run_service
from shared.host.worker import WorkerThread
from shared.memory import gate
from shared.memory.layers import decode_record
from shared.memory.model import Kind
from shared.ports import Clock, Verdict

if TYPE_CHECKING:
    from hub.endpoints import Endpoints

STATUS_NAME = "status.json"
METRICS_NAME = "metrics.prom"
EDGES_NAME = "edges.toml"
STATUS_PERIOD_S = 1.0
_KEY_NAME = "hub"
_log = log.get_logger("hub")


class TextGate:
    """Judges drafts of text entries. No distiller: invariants travel inside the record."""

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        """hub.regenerate.DraftGate."""
        return gate.judge(decode_record(record), draft, neighbours, strict=strict)


def run_hub_command(config_file: Path | None, overrides: Mapping[str, object]) -> int:
    """`crystalmem hub run`: the exit code."""
    log.configure()
    clock = SystemClock()
    try:
        config = load(config_file, HubConfig, overrides)
        settings, generator = settings_of(config), generator_of(config.model, clock)
    except CrystalError as error:
        _log.error("the hub cannot start", code=error.code.value, reason=log.clean(str(error), 500))
        return 1
    return run_hub(settings, generator, clock)


def run_hub(settings: HubSettings, generator: Endpoints | None, clock: Clock) -> int:
    """Serve until SIGTERM; 0 when that was asked for, 1 when a part died."""
    return run_service(partial(_daemon, settings, generator, clock), clock)


def settings_of(config: HubConfig) -> HubSettings:
    """The files behind a configuration; makes the hub's key pair at the first start."""
    directory = config.directory
    return HubSettings(
        listen=config.listen,
        directory=directory,
        keys=_keys(config),
        edges_file=Path(config.edges_file).expanduser() if config.edges_file else directory / EDGES_NAME,
        quota_bytes=config.quota_bytes,
        rules=Rules(
            config.rho,
            strict=config.gate == "strict",
            max_tokens=config.model.max_tokens,
            prompt_tokens=config.model.prompt_tokens,
            neighbours=config.model.neighbours,
            # A slower model is the operator's choice: an edge that waits less asks again for what was kept.
            ask_s=max(ASK_S, config.model.timeout_s + QUEUE_S),
            judge_threshold=config.model.judge_threshold,
        ),
    )


def generator_of(model: ModelConfig, clock: Clock) -> Endpoints | None:
    """The generative source; None where no endpoint is configured."""
    if not model.endpoints:
        return None
    # Importing the client takes longer than all the rest of the start.
    from hub.endpoints import Endpoints
    from hub.model import OpenAIGenerator

    # Local engines want no key, and the client refuses an empty one.
    api_key = _secret(Path(model.api_key_file).expanduser()) if model.api_key_file else "none"
    callers = [OpenAIGenerator(url, model.name, api_key, model.timeout_s, clock) for url in model.endpoints]
    return Endpoints(callers, clock, stall_s=model.stall_s, most=model.max_in_flight)


async def _daemon(
    settings: HubSettings, generator: Endpoints | None, clock: Clock, supervisor: Supervisor
) -> None:
    worker = WorkerThread("hub-store", supervisor.pulse("hub-store"))
    gates: dict[Kind, DraftGate] = {kind: TextGate() for kind in Kind if kind is not Kind.MOTION}
    ports = HubPorts(clock, worker, gates)
    if generator is not None:
        ports = HubPorts(clock, worker, gates, generator, generator, generator.status)
        supervisor.start("endpoints", generator.watch)
    app = HubApp(settings, ports)
    supervisor.start("status", _publish, app, settings.directory, clock)
    try:
        await app.run(supervisor.stop, supervisor.ready)
    finally:
        if generator is not None:
            await generator.aclose()
        await worker.aclose()


async def _publish(app: HubApp, directory: Path, clock: Clock) -> None:
    """A hub has no door of its own: status.json, and metrics.prom for a node exporter to collect."""
    written: HubStatus | None = None
    while True:
        await clock.sleep(STATUS_PERIOD_S)
        status = app.status()
        if status != written:
            text = msgspec.json.format(msgspec.json.encode(status)) + b"\n"
            await anyio.to_thread.run_sync(_replace, directory / STATUS_NAME, text)
            await anyio.to_thread.run_sync(_replace, directory / METRICS_NAME, metrics.exposition())
            written = status


def _replace(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one."""
    partial_file = path.with_name(path.name + ".partial")
    partial_file.write_bytes(content)
    partial_file.replace(path)


def _keys(config: HubConfig) -> KeyPair:
    if config.key_file:
        return load_pair(Path(config.key_file).expanduser())
    directory = config.directory / "keys"
    secret = directory / f"{_KEY_NAME}{SECRET_SUFFIX}"
    if not os.path.lexists(secret):
        write_pair(directory, _KEY_NAME, new_pair())
    return load_pair(secret)


def _secret(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PermanentError(
            Code.BAD_CONFIG, "the API key file cannot be read", path=str(path), reason=str(error)
        ) from error
