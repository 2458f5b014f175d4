"""What `--env` and `--policy` may say, and which environments can run with the data at hand."""

from __future__ import annotations

from pathlib import Path

from bench.environments import registry as environments
from bench.policies import registry as policies
from shared.errors import Code, CrystalError, InputError

GROUPS = ("seven", "all")


def chosen_environments(names: str, data: Path | None) -> tuple[tuple[str, ...], list[str]]:
    """Environments to run, and a line for each of a group that cannot: named ones raise instead."""
    group = {"seven": environments.SEVEN, "all": environments.NAMES}.get(names)
    wanted = group or tuple(name.strip() for name in names.split(",") if name.strip())
    ready: list[str] = []
    told: list[str] = []
    for name in wanted:
        try:
            environment = environments.make(name, data)
            environment.worlds(0, environment.size("quick"))
        except CrystalError as problem:
            if group is None:
                raise
            told.append(f"{name} is left out: {problem}")
        else:
            ready.append(name)
    if not ready:
        raise InputError(Code.BAD_REQUEST, "no environment can run", asked=names)
    return tuple(ready), told


def chosen_policies(names: str) -> tuple[str, ...]:
    """Policies to run, in the order of the table."""
    groups = {"all": policies.ORDER, "table2": policies.TABLE_II, "ablations": tuple(policies.ABLATIONS)}
    found: list[str] = []
    for name in (part.strip() for part in names.split(",")):
        found += groups.get(name, (name,))
    return tuple(dict.fromkeys(name for name in found if name))
