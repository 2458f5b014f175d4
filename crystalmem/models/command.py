"""`crystalmem models`: what can be prepared, and preparing it."""

from __future__ import annotations

from pathlib import Path

import click

from crystalmem.models.recipes import recipe, recipes
from shared.config import default_models_dir

_DIR = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    default=None,
    help="Where models lie, one folder each; default: models/ in the data directory.",
)


@click.group()
def models() -> None:
    """Models for embedding and regeneration: optional, fetched once, checked by hash."""


@models.command("list")
@_DIR
def models_list(directory: Path | None) -> None:
    """What can be prepared, and what is."""
    base = directory or default_models_dir()
    for known in recipes().values():
        state = f"ready in {base / known.name}" if known.is_ready(base / known.name) else "not prepared"
        click.echo(f"{known.name:<19} {state}\n{'':<19} {known.summary}")


@models.command("prepare")
@click.argument("name")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["onnx", "hf"]),
    default="onnx",
    show_default=True,
    help="onnx: for the board; hf: a language model for a hub's engine (the same as NAME-hf).",
)
@_DIR
def models_prepare(name: str, kind: str, directory: Path | None) -> None:
    """Fetch, check and build the model NAME; an interrupted run is taken up again."""
    chosen = recipe(f"{name}-hf" if kind == "hf" and not name.endswith("-hf") else name)
    folder = (directory or default_models_dir()) / chosen.name
    chosen.prepare(folder, click.echo)
    click.echo(f"ready in {folder}")
