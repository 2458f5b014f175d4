"""Answers of the daemon as a person reads them."""

from __future__ import annotations

from typing import Any

import click

from shared.units import format_bytes

Json = dict[str, Any]


def print_budget(answer: Json) -> None:
    """Budget, use, floor; and what a change did."""
    click.echo(
        f"budget {format_bytes(answer['budget_bytes'])}"
        f" of {format_bytes(answer['provision_bytes'])} provisioned"
        f" ({answer['budget_bytes'] / answer['provision_bytes']:.0%})"
    )
    click.echo(
        f"in use {format_bytes(answer['logical_bytes'])} (on disk {format_bytes(answer['disk_bytes'])},"
        f" an empty store is {format_bytes(answer['empty_bytes'])});"
        f" floor {format_bytes(answer['floor_bytes'])}"
    )
    click.echo("rungs: " + _rungs(answer["rungs"]))
    if "moved" in answer:
        click.echo(
            f"moved {answer['moved']}, evicted {answer['evicted']}, lost exact {answer['lost_exact']},"
            f" {answer['seconds']:.2f} s"
        )


def print_plan(answer: Json) -> None:
    """A dry run."""
    if not answer["feasible"]:
        click.echo("not feasible: the floor lies above this budget")
    click.echo(
        f"{answer['moved']} moves, {answer['evicted']} evictions:"
        f" {format_bytes(answer['before_bytes'])} -> {format_bytes(answer['after_bytes'])} (estimated)"
    )
    for row in answer["by_rung"]:
        click.echo(f"  {row['origin']:>10} -> {row['to']:<10} {row['count']}")


def print_status(answer: Json) -> None:
    """The whole daemon on one screen."""
    click.echo(
        f"tenant {answer['tenant']}, ladder {answer['ladder']}, stage {answer['stage']}, {answer['state']}"
    )
    print_budget(answer["budget"])
    link = answer["link"]
    click.echo(f"hub: {link['state']}" + (f" ({link['endpoint']})" if link["endpoint"] else ""))
    for source, why in answer["sources"].items():
        click.echo(f"source {source}: {why}")
    _print_embedder(answer["embedder"])
    _print_ondevice(answer["ondevice"])
    for note in answer["notes"]:
        click.echo(f"note: {note}")


def _print_embedder(held: Json) -> None:
    model = (
        f"{held['model']}, {held['width']} d, {held['provider']}" if held["state"] == "ready" else "absent"
    )
    failed = f", {held['failed']} failed" if held["failed"] else ""
    click.echo(
        f"embedder: {model}; vectors: {held['embedded']} made, {held['pending']} pending,"
        f" {held['without']} without{failed}"
    )


def _print_ondevice(board: Json) -> None:
    name = f" {board['model']}" if board["model"] else ""
    why = f": {board['problem']}" if board["problem"] else ""
    click.echo(f"on-device model{name}: {board['state']}{why}")
    if board["calls"]:
        held = f", {format_bytes(board['resident_bytes'])} in memory" if board["resident_bytes"] else ""
        click.echo(
            f"  {board['calls']} calls, {board['tokens']} tokens, {board['cancelled']} cancelled,"
            f" {board['deaths']} crashes{held}"
        )
    if board["relevelled"]:
        told = ", ".join(f"{count} {name}" for name, count in sorted(board["relevelled"].items()))
        click.echo(f"  asked which sentences matter: {told}")


def _rungs(rungs: Json) -> str:
    return ", ".join(f"{count} {name}" for name, count in rungs.items()) or "empty"
