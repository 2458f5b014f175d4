"""What the demo found, as the structs of `report.json` (schema 1; docs/demo.md explains every field)."""

from __future__ import annotations

from pathlib import Path

import msgspec

SCHEMA = 1
# Everything else is identical from run to run with one seed and input on one machine.
NOT_PROMISED = (
    "seconds",
    "link_up_bytes",
    "link_down_bytes",
    "settle_s",
    "environment",
    "wall_s",
    "link.acked",
)


class StageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of one arm, as it stood when its capability was measured unless the name says otherwise."""

    stage: int
    b: float
    budget_bytes: int
    packed_bytes: int
    logical_bytes: int
    disk_bytes: int
    floor_bytes: int
    C: float
    n: int
    C_interval: tuple[float, float]
    C_later: float | None
    n_later: int
    rungs: dict[str, int]
    evicted: int
    lost_exact: int
    promoted: int
    rejected: dict[str, int]
    tokens: int
    link_up_bytes: int
    link_down_bytes: int
    seconds: float
    entries: int
    served: int
    ungraded: int
    writes: int
    disk_after_writes_bytes: int
    logical_after_writes_bytes: int
    violations: tuple[str, ...]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What the separate checker found in the files of one arm, beside the driver's journal."""

    written: int
    edge_live: int
    edge_evicted: int
    lost: int
    changed: int
    duplicated: int
    unjournalled: int
    hub_entries: int
    hub_lost: int
    hub_changed: int
    acked: int
    applied_twice: int
    details: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """True where a hard promise did not hold."""
        faults = (self.lost, self.changed, self.duplicated, self.unjournalled)
        return any(faults) or any((self.hub_lost, self.hub_changed, self.applied_twice))


class ArmResult(msgspec.Struct, frozen=True, kw_only=True):
    """One arm over one cycle."""

    title: str
    policy: str
    ladder: str
    archive: str
    eviction: str
    budget_exempt: bool
    H: float | None
    D: float
    identical: int
    entries: int
    byte_identical: bool
    empty_capability: float
    empty_bytes: int
    final_logical_bytes: int
    final_disk_bytes: int
    hub_kills: int
    wall_s: float
    check: Check
    stages: tuple[StageRow, ...]


class CycleResult(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm over one schedule."""

    schedule: tuple[float, ...]
    arms: dict[str, ArmResult]


class LinkTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The link over all arms, from the checker's reading of the files."""

    acked: int
    lost: int
    applied_twice: int
    hub_kills: int


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """One stated aim and what was measured; a missed aim is reported, it is no failure of the run."""

    cycle: str
    aim: str
    wanted: str
    measured: str
    met: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`report.json`."""

    schema: int
    seed: int
    cycles: dict[str, CycleResult]
    link: LinkTotals
    aims: tuple[Aim, ...]
    violations: tuple[str, ...]
    broken: tuple[str, ...]
    provision_bytes: int
    provision_from: str
    statements: tuple[str, ...]
    not_promised: tuple[str, ...]
    input: dict[str, str | int | float | dict[str, int]]
    environment: dict[str, str | int]
    wall_s: float


def write_report(report: Report, path: Path) -> None:
    """The report as indented JSON, replaced in one step."""
    scratch = path.with_suffix(".partial")
    scratch.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    scratch.replace(path)
