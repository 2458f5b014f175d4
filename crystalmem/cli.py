"""`crystalmem`: the daemons, the keys, the demo, and every verb of a running edge."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from crystalmem import __version__
from crystalmem.bench_commands import bench
from crystalmem.memory_commands import COMMANDS, EXIT_REFUSED
from crystalmem.models.command import models
from shared.errors import CrystalError


class _Group(click.Group):
    """Turns our errors into one line with the hint and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CrystalError as problem:
            click.echo(f"{problem.code.value}: {problem}", err=True)
            sys.exit(EXIT_REFUSED)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crystalmem")
def main() -> None:
    """Elastic memory for LLM agents: demotes when the byte budget falls, brings back when it returns.

    Exit codes: 0 done, 1 the daemon or demo failed, 2 refused (bad input or configuration), 3 no daemon.
    """


@main.group()
def edge() -> None:
    """The edge daemon: one tenant's memory."""


@edge.command("run")
@click.option("--config", type=click.Path(path_type=Path), default=None, help="TOML file; none is needed.")
@click.option("--data-dir", default=None, help="Where memory/ and state/ live.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override one key, e.g. memory.ladder=paper.",
)
def edge_run(config: Path | None, data_dir: str | None, settings: tuple[str, ...]) -> None:
    """Run the edge daemon in the foreground."""
    from crystalmem.run_edge import run_edge

    sys.exit(run_edge(config, _overrides(settings, data_dir)))


@main.command()
@click.option("--config", type=click.Path(path_type=Path), default=None, help="TOML file of the edge.")
@click.option("--data-dir", default=None, help="Where memory/ lies.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override one key, e.g. embedder.model=bge-m3.",
)
def reembed(config: Path | None, data_dir: str | None, settings: tuple[str, ...]) -> None:
    """Make every vector anew with the configured embedder; the edge daemon must be stopped.

    Can be interrupted at any point: run it again, or start the daemon, which goes on in idle windows.
    """
    from crystalmem.reembed import reembed_store

    reembed_store(config, _overrides(settings, data_dir), click.echo)


@main.group()
def hub() -> None:
    """The hub daemon: archive, regeneration, ledger."""


@hub.command("run")
@click.option("--config", type=click.Path(path_type=Path), default=None, help="TOML file; none is needed.")
@click.option("--data-dir", default=None, help="Where tenants/ and keys/ live.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override one key, e.g. model.url=..."
)
def hub_run(config: Path | None, data_dir: str | None, settings: tuple[str, ...]) -> None:
    """Run the hub daemon in the foreground."""
    from crystalmem.run_hub import run_hub_command

    sys.exit(run_hub_command(config, _overrides(settings, data_dir)))


@hub.command("allow")
@click.argument("name")
@click.option(
    "--key", "key_file", type=click.Path(path_type=Path), required=True, help="NAME.pub of the edge."
)
@click.option(
    "--tenant", "tenants", multiple=True, required=True, help="Whose memory it may send (repeatable)."
)
@click.option("--edges", "edges_file", type=click.Path(path_type=Path), required=True, help="The allow-list.")
def hub_allow(name: str, key_file: Path, tenants: tuple[str, ...], edges_file: Path) -> None:
    """Put edge NAME on the allow-list; a running hub sees it within a second."""
    from hub.auth import Edge, allow
    from shared.host.keys import load_public
    from shared.scope import edge_name, tenant_name

    edge = Edge(edge_name(name), (load_public(key_file),), tuple(tenant_name(tenant) for tenant in tenants))
    listed = allow(edges_file, edge)
    click.echo(f"{edges_file}: {', '.join(known.name for known in listed.edges)}")


@main.group()
def keys() -> None:
    """CURVE keys of edges and hubs."""


@keys.command("new")
@click.argument("name")
@click.option("--dir", "directory", type=click.Path(path_type=Path), default=Path("keys"), show_default=True)
def keys_new(name: str, directory: Path) -> None:
    """Make a key pair NAME.pub and NAME.key (0600); an existing one is never overwritten."""
    from hub.auth import new_keys

    pair = new_keys(directory, name)
    click.echo(f"public {pair.public_file}\nsecret {pair.secret_file}")


@main.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/demo"), show_default=True)
@click.option(
    "--input",
    "input_file",
    type=click.Path(path_type=Path),
    default=None,
    help="Your own JSONL (docs/data-format.md).",
)
@click.option("--seed", default=7, show_default=True)
@click.option("--cycles", default="definition1,deep", show_default=True)
@click.option("--llm", "llm_url", default="", help="OpenAI-compatible endpoint; adds the paper_llm arm.")
@click.option("--model", "llm_model", default="", help="Model name at that endpoint.")
def demo(out: Path, input_file: Path | None, seed: int, cycles: str, llm_url: str, llm_model: str) -> None:
    """See memory hysteresis happen to LRU and not to CrystalMem, on real episodes."""
    from crystalmem.demo import DemoOptions, run_demo

    if bool(llm_url) != bool(llm_model):
        raise click.UsageError("--llm and --model go together")
    sys.exit(
        run_demo(
            DemoOptions(
                out=out,
                input_file=input_file,
                seed=seed,
                cycles=tuple(name.strip() for name in cycles.split(",")),
                llm_url=llm_url,
                llm_model=llm_model,
            )
        )
    )


for _command in (*COMMANDS, models, bench):
    main.add_command(_command)


def _overrides(settings: tuple[str, ...], data_dir: str | None) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator or not key:
            raise click.UsageError(f"--set takes KEY=VALUE, not {setting!r}")
        found[key] = _literal(value)
    if data_dir is not None:
        found["data_dir"] = data_dir
    return found


def _literal(text: str) -> object:
    readers: tuple[Callable[[str], object], ...] = (int, float)
    for read in readers:
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)
