"""Commands that talk to a running edge daemon through its local door, one a verb."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click
from crystalmem_client import Client, CrystalMemError

from crystalmem.printing import print_budget, print_plan, print_status
from shared.errors import CrystalError
from shared.units import format_bytes, parse_bytes

EXIT_REFUSED = 2
EXIT_UNREACHABLE = 3

Command = Callable[..., None]


class SizeParam(click.ParamType[int]):
    """`64MiB`, `1.5GB` or a number of bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse or fail with the units that are known."""
        try:
            return int(parse_bytes(int(value) if str(value).isdigit() else value))
        except CrystalError as problem:
            self.fail(str(problem), param, ctx)


SIZE = SizeParam()


def door_options(command: Command) -> Command:
    """Where the daemon listens, whose memory is meant, and how answers are printed."""
    command = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")(command)
    command = click.option("--tenant", default="default", show_default=True, help="Whose memory.")(command)
    return click.option("--socket", default=None, help="The daemon's unix socket.")(command)


def call(
    socket: str | None,
    tenant: str,
    as_json: bool,
    verb: Callable[[Client], Any],
    show: Callable[[Any], None],
) -> None:
    """Run one verb and print its answer; a refusal goes to stderr, exit code 2 (3: no daemon)."""
    try:
        with Client(socket, tenant=tenant) as client:
            answer = verb(client)
    except CrystalMemError as problem:
        error = {
            "code": problem.code,
            "message": problem.message,
            "facts": problem.facts,
            "hint": problem.hint,
        }
        click.echo(json.dumps({"error": error}) if as_json else f"refused: {problem}", err=True)
        sys.exit(EXIT_UNREACHABLE if problem.code == "daemon_unreachable" else EXIT_REFUSED)
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False))
    else:
        show(answer)


@click.command()
@click.argument("text")
@click.option("--id", "entry_id", default=None, help="32 hexadecimal digits; made up when left out.")
@click.option("--kind", default="episode", show_default=True)
@click.option("--class", "memory_class", default=None, help="Class of a memory: fact, rule, decision, ...")
@click.option("--link", "links", multiple=True, help="Id of an entry that this one cites (may be repeated).")
@click.option("--created", default=None, help="RFC 3339 time; now when left out.")
@door_options
def remember(
    text: str,
    entry_id: str | None,
    kind: str,
    memory_class: str | None,
    links: tuple[str, ...],
    created: str | None,
    socket: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Remember TEXT (`-` reads standard input)."""
    body = sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if text == "-" else text
    call(
        socket,
        tenant,
        as_json,
        lambda client: client.remember(
            body, id=entry_id, kind=kind, memory_class=memory_class, links=links, created=created
        ),
        lambda answer: click.echo(answer["id"]),
    )


@click.command()
@click.argument("query")
@click.option("-k", default=5, show_default=True, help="At most so many hits.")
@click.option("--max-bytes", default=4096, show_default=True, help="At most so many bytes of text.")
@click.option("--no-record", is_flag=True, help="Measure only: change nothing.")
@door_options
def recall(
    query: str, k: int, max_bytes: int, no_record: bool, socket: str | None, tenant: str, as_json: bool
) -> None:
    """Recall what serves QUERY."""

    def show(answer: dict[str, Any]) -> None:
        for hit in answer["hits"]:
            click.echo(f"[{hit['rung']}, {hit['provenance']}] {hit['id']} score {hit['score']:.2f}")
            click.echo(hit["text"].rstrip() + ("  ...(cut)" if hit["truncated"] else "") + "\n")
        if answer["recall_id"]:
            click.echo(f"grade it: crystalmem outcome {answer['recall_id']} 1.0")
        if not answer["hits"]:
            click.echo("nothing found")

    call(
        socket,
        tenant,
        as_json,
        lambda client: asdict(client.recall(query, k=k, max_bytes=max_bytes, record=not no_record)),
        show,
    )


@click.command()
@click.argument("recall_id")
@click.argument("g", type=float)
@click.option("--tokens", type=int, default=None, help="Tokens the answer cost the host model.")
@door_options
def outcome(
    recall_id: str, g: float, tokens: int | None, socket: str | None, tenant: str, as_json: bool
) -> None:
    """Grade a recall once: G in [0, 1]."""
    call(
        socket,
        tenant,
        as_json,
        lambda client: client.outcome(recall_id, g, tokens=tokens),
        lambda answer: click.echo(f"graded {answer['graded']} entries"),
    )


@click.command()
@click.argument("entry_id")
@door_options
def get(entry_id: str, socket: str | None, tenant: str, as_json: bool) -> None:
    """Show one entry at its present fidelity."""

    def show(answer: dict[str, Any]) -> None:
        click.echo(f"[{answer['rung']}, {answer['provenance']}] {answer['kind']} of {answer['created']}")
        click.echo(answer["text"])

    call(socket, tenant, as_json, lambda client: client.get(entry_id), show)


@click.command()
@click.argument("entry_id")
@door_options
def explain(entry_id: str, socket: str | None, tenant: str, as_json: bool) -> None:
    """Why is this memory on its rung?"""

    def show(answer: dict[str, Any]) -> None:
        click.echo(answer["summary"])
        for move in answer["moves"]:
            frees = format_bytes(move["frees_bytes"])
            click.echo(f"  next: to {move['to']} frees {frees} at price {move['price']:.3g}")

    call(socket, tenant, as_json, lambda client: client.explain(entry_id), show)


@click.group()
def budget() -> None:
    """See, set or try out the byte budget."""


@budget.command("get")
@door_options
def budget_get(socket: str | None, tenant: str, as_json: bool) -> None:
    """The budget and what uses it."""
    call(socket, tenant, as_json, lambda client: client.budget(), print_budget)


@budget.command("set")
@click.option("--bytes", "size_bytes", type=SIZE, default=None, help="For example 64MiB.")
@click.option("--fraction", type=float, default=None, help="Share of the provision, in (0, 1].")
@click.option("--provision", "provision_bytes", type=SIZE, default=None, help="Set B0 as well.")
@click.option("--yes", is_flag=True, help="Do not ask, even if memories must be evicted.")
@door_options
def budget_set(
    size_bytes: int | None,
    fraction: float | None,
    provision_bytes: int | None,
    yes: bool,
    socket: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Set the budget now; returns when the store fits. A person is asked before anything is evicted."""
    _one_of(size_bytes, fraction)
    if not yes and sys.stdin.isatty():
        call(
            socket,
            tenant,
            False,
            lambda client: client.plan_budget(bytes=size_bytes, fraction=fraction),
            _confirm_evictions,
        )
    call(
        socket,
        tenant,
        as_json,
        lambda client: client.set_budget(
            bytes=size_bytes, fraction=fraction, provision_bytes=provision_bytes
        ),
        print_budget,
    )


@budget.command("plan")
@click.option("--bytes", "size_bytes", type=SIZE, default=None, help="For example 64MiB.")
@click.option("--fraction", type=float, default=None, help="Share of the provision, in (0, 1].")
@door_options
def budget_plan(
    size_bytes: int | None, fraction: float | None, socket: str | None, tenant: str, as_json: bool
) -> None:
    """What would move under that budget (changes nothing)."""
    _one_of(size_bytes, fraction)
    call(
        socket,
        tenant,
        as_json,
        lambda client: client.plan_budget(bytes=size_bytes, fraction=fraction),
        print_plan,
    )


@click.command()
@click.option("--timeout", "timeout_s", type=float, default=60.0, show_default=True, help="Seconds.")
@door_options
def settle(timeout_s: float, socket: str | None, tenant: str, as_json: bool) -> None:
    """Wait until nothing is left to bring back or to archive, or a cap binds."""
    call(
        socket,
        tenant,
        as_json,
        lambda client: client.settle(timeout_s=timeout_s),
        lambda answer: click.echo(
            f"{answer['state']}: {answer['promoted']} promoted, {sum(answer['rejected'].values())} rejected,"
            f" {answer['tokens']} tokens, {answer['archived']} archived"
        ),
    )


@click.command()
@click.option("--limit", default=100, show_default=True)
@click.option("--cursor", default=0, help="next_cursor of the page before.")
@door_options
def evicted(limit: int, cursor: int, socket: str | None, tenant: str, as_json: bool) -> None:
    """List evicted memories."""

    def show(answer: dict[str, Any]) -> None:
        for row in answer["evicted"]:
            kept = "restorable" if row["restorable"] else "gone"
            click.echo(f"{row['number']:>8}  {kept:<10}  value {row['value']:.4f}  {row['reason']}")
        click.echo(f"{answer['total']} in all")

    call(socket, tenant, as_json, lambda client: client.list_evicted(limit=limit, cursor=cursor), show)


@click.command()
@click.option("--limit", default=100, show_default=True)
@door_options
def lost(limit: int, socket: str | None, tenant: str, as_json: bool) -> None:
    """List memories that a squeeze took below exact before the hub had them."""

    def show(answer: dict[str, Any]) -> None:
        for row in answer["lost"]:
            click.echo(f"{row['number']:>8}  {row['id'] or 'evicted'}")
        click.echo(f"{answer['total']} in all")

    call(socket, tenant, as_json, lambda client: client.list_lost(limit=limit), show)


@click.command()
@click.argument("which")
@door_options
def restore(which: str, socket: str | None, tenant: str, as_json: bool) -> None:
    """Bring one memory back from the hub's archive: WHICH is an id or the number of an evicted entry."""
    target: str | int = int(which) if which.isdigit() and len(which) < 11 else which
    call(
        socket,
        tenant,
        as_json,
        lambda client: client.restore(target),
        lambda answer: click.echo(f"{answer['id']} is back at {answer['rung']}"),
    )


@click.command()
@door_options
def status(socket: str | None, tenant: str, as_json: bool) -> None:
    """How the edge is: budget, rungs, link, sources."""
    call(socket, tenant, as_json, lambda client: client.status(), print_status)


COMMANDS: tuple[click.Command, ...] = (
    remember,
    recall,
    outcome,
    get,
    explain,
    budget,
    settle,
    evicted,
    lost,
    restore,
    status,
)


def _confirm_evictions(plan: dict[str, Any]) -> None:
    if plan["evicted"]:
        print_plan(plan)
        click.confirm("Evict them? What the hub has no layers of is gone for good", abort=True)


def _one_of(size_bytes: int | None, fraction: float | None) -> None:
    if (size_bytes is None) == (fraction is None):
        raise click.UsageError("give exactly one of --bytes and --fraction")
