"""`crystalmem bench`: cells, tables and figures, the theory, calibration. Loads `bench` lazily."""

from __future__ import annotations

import sys
from pathlib import Path

import click

_OUT = Path("out/bench/run")


@click.group()
def bench() -> None:
    """Memory hysteresis measured: environments, policies, tables, figures (docs/bench.md)."""


@bench.command("run")
@click.option("--env", "environments", default="seven", show_default=True, help="Names, `seven` or `all`.")
@click.option(
    "--policy", "policies", default="all", show_default=True, help="Names, `table2`, `all` or `ablations`."
)
@click.option("--seeds", default=5, show_default=True, help="Seeds 0 to N - 1.")
@click.option(
    "--stages",
    default="definition1",
    show_default=True,
    help="definition1, deep, grid, cycles10, constant-N.",
)
@click.option("--size", "preset", type=click.Choice(["quick", "full"]), default="full", show_default=True)
@click.option(
    "--answerer", default="reader-free", show_default=True, help="reader-free, or MODEL@URL of an endpoint."
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Folder of the real data; else CRYSTALMEM_DATA, else ../shared/data beside the clone.",
)
@click.option("--out", type=click.Path(path_type=Path), default=_OUT, show_default=True)
@click.option("--workers", default=2, show_default=True)
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--ray-address", default="", help="Address of a running cluster; empty = a local one.")
def run(
    environments: str,
    policies: str,
    seeds: int,
    stages: str,
    preset: str,
    answerer: str,
    data: Path | None,
    out: Path,
    workers: int,
    engine: str,
    ray_address: str,
) -> None:
    """Run cells; those that this code has finished before are not run again. Ctrl-C loses only what flies."""
    from bench.datasets import data_directory
    from bench.runner.choices import chosen_environments, chosen_policies
    from bench.runner.paths import stage_sets
    from bench.runner.run import RunOptions
    from bench.runner.run import run as run_cells

    model, _, url = ("", "", "") if answerer == "reader-free" else answerer.partition("@")
    if answerer != "reader-free" and not (model and url):
        raise click.UsageError(
            "--answerer takes reader-free or MODEL@URL, for example qwen@http://127.0.0.1:8011/v1"
        )
    data = data_directory(data)
    if data is None:
        click.echo("no folder of real data: only environments that need none", err=True)
    environments_chosen, left_out = chosen_environments(environments, data)
    for line in left_out:
        click.echo(line, err=True)
    result = run_cells(
        RunOptions(
            out=out,
            environments=environments_chosen,
            policies=chosen_policies(policies),
            seeds=seeds,
            paths=stage_sets(stages),
            preset=preset,
            data=data,
            model_url=url,
            model_name=model,
            workers=workers,
            engine=engine,
            ray_address=ray_address,
        ),
        click.echo,
    )
    click.echo(
        f"{result.ran} cells in {result.seconds:.0f} s, {result.reused} reused, {result.failed} failed"
    )
    sys.exit(1 if result.failed else 0)


@bench.command("tables")
@click.option("--run", "directory", type=click.Path(path_type=Path), default=_OUT, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/bench/results"), show_default=True)
@click.option("--name", default="bench", show_default=True, help="Title of the page.")
@click.option(
    "--report", "report_path", type=click.Path(path_type=Path), default=None, help="JSON of figures and aims."
)
def tables(directory: Path, out: Path, name: str, report_path: Path | None) -> None:
    """Tables and figures of a run, as a page."""
    from bench.results.page import build

    for line in build(directory, out, name, report_path):
        click.echo(line)
    click.echo(f"wrote {out / 'README.md'}")
