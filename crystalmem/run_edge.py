"""Composition root of the edge daemon: the real ports behind `crystalmem edge run`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from crystalmem import __version__
from edge_agent.app import EdgeApp
from edge_agent.assembly import EdgePorts, WriteAll, text_codecs
from edge_agent.embedder import EmbedderOptions, OnnxEmbedder, load_embedder
from edge_agent.sync import LinkEndpoint
from shared.config import EdgeConfig, EmbedderConfig, load
from shared.errors import Code, PermanentError
from shared.host.clock import RandomIds, SystemClock, SystemRng
from shared.host.keys import load_pair, load_public
from shared.host.log import configure
from shared.host.service import Supervisor, run_service
from shared.ports import Retention


def run_edge(config_file: Path | None, overrides: Mapping[str, object]) -> int:
    """Run the daemon in the foreground; its exit code."""
    config = load(config_file, EdgeConfig, overrides)
    configure()
    clock = SystemClock()
    embedder, no_embedder = find_embedder(config.embedder)
    ports = EdgePorts(
        clock=clock,
        rng=SystemRng(),
        ids=RandomIds(),
        codecs=text_codecs(),
        admission=WriteAll(),
        retention=_retention(config),
        endpoint=_endpoint(config),
        embedder=embedder,
        no_embedder=no_embedder,
    )
    app = EdgeApp(config, ports, __version__)

    async def daemon(supervisor: Supervisor) -> None:
        await app.run(supervisor)

    if config_file is None:
        click.echo(_welcome(config, no_embedder), err=True)
    return run_service(daemon, clock)


def find_embedder(config: EmbedderConfig) -> tuple[OnnxEmbedder | None, str]:
    """The configured embedder, or why there is none. What is there but wrong is refused."""
    folder = config.folder
    if folder is None:
        return None, "embedder.model is none"
    options = EmbedderOptions(config.provider, config.allow_cpu, config.threads)
    try:
        return load_embedder(folder, options), ""
    except PermanentError as problem:
        if problem.code is not Code.MODEL_ABSENT:
            raise
        return None, f"{problem.message}. {problem.hint}"


def _retention(config: EdgeConfig) -> Retention | None:
    """Comparison policies live with the bench and are loaded only when one is asked for."""
    if config.memory.policy == "lru":
        from bench.policies.lru import Lru

        return Lru()
    if config.memory.policy == "keep_all":
        from bench.policies.keep_all import KeepAll

        return KeepAll()
    return None


def _endpoint(config: EdgeConfig) -> LinkEndpoint | None:
    link = config.link
    if not link.endpoint:
        return None
    keys = load_pair(Path(link.key_file).expanduser())
    hub_key = load_public(Path(link.hub_key_file).expanduser())
    return LinkEndpoint(link.endpoint, keys, hub_key)


def _welcome(config: EdgeConfig, no_embedder: str) -> str:
    hub = "" if config.link.endpoint else "  no hub: nothing is archived, drafts are absent (docs/link.md)\n"
    meaning = f"  recall is by words: {no_embedder}\n" if no_embedder else ""
    socket = "" if not config.door.socket and not config.data_dir else f" --socket {config.socket_path}"
    return (
        f"crystalmem edge: tenant {config.tenant}, data in {config.directory}\n{hub}{meaning}"
        "  next, in another terminal:\n"
        f'    crystalmem remember "Mug 2 is in cabinet 3." --kind memory{socket}\n'
        f'    crystalmem recall "where is mug 2?"{socket}\n'
        f"    crystalmem status{socket}\n"
    )
