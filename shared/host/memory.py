"""How much memory a process may still take: of the machine, and of the control groups it runs in."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.units import KIB

_FIELD = re.compile(r"^(?:Node \d+ )?([A-Za-z()]+):\s+(\d+) kB$", re.MULTILINE)
# Of a node: what MemAvailable is reckoned from, less what the kernel keeps back.
_RECLAIMABLE = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")
_RECLAIMED_SHARE = 0.9


@dataclass(frozen=True)
class Kernel:
    """Where the kernel says it. A hardened unit does not see meminfo (ProcSubset=pid), but the nodes."""

    meminfo: Path = Path("/proc/meminfo")
    nodes: Path = Path("/sys/devices/system/node")
    groups: Path = Path("/sys/fs/cgroup")
    own_groups: Path = Path("/proc/self/cgroup")


def available_bytes(kernel: Kernel | None = None) -> int | None:
    """What could be allocated without swapping, the least of all bounds; None where nothing is told."""
    told = kernel or Kernel()
    machine = _of_machine(told)
    bounds = [*([] if machine is None else [machine]), *_of_groups(told)]
    return min(bounds, default=None)


def resident_bytes() -> int:
    """What this process holds in memory, shared pages included; 0 where the kernel does not say."""
    fields = _read(Path("/proc/self/statm")).split()
    return int(fields[1]) * resource.getpagesize() if len(fields) > 1 else 0


def _of_machine(kernel: Kernel) -> int | None:
    told = _kilobytes(kernel.meminfo).get("MemAvailable")
    if told is not None:
        return told * KIB
    nodes = [fields for path in sorted(kernel.nodes.glob("node*/meminfo")) if (fields := _kilobytes(path))]
    if not nodes:
        return None
    reclaimable = sum(fields.get(name, 0) for fields in nodes for name in _RECLAIMABLE)
    return int(_RECLAIMED_SHARE * reclaimable * KIB)


def _of_groups(kernel: Kernel) -> Iterator[int]:
    """Room below the limit of every group this process is in, up to the root. File pages can be given up."""
    for line in _read(kernel.own_groups).splitlines():
        _, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if controllers not in {"", "memory"}:
            continue
        version_2 = controllers == ""
        base = kernel.groups if version_2 else kernel.groups / "memory"
        group = base / path.lstrip("/")
        while group.is_relative_to(base):
            limit = _number(group / ("memory.max" if version_2 else "memory.limit_in_bytes"))
            use = _number(group / ("memory.current" if version_2 else "memory.usage_in_bytes"))
            if limit is not None and use is not None:
                yield max(limit - max(use - _inactive_file_bytes(group), 0), 0)
            group = group.parent


def _inactive_file_bytes(group: Path) -> int:
    found = re.search(r"^(?:total_)?inactive_file (\d+)$", _read(group / "memory.stat"), re.MULTILINE)
    return int(found[1]) if found else 0


def _kilobytes(path: Path) -> dict[str, int]:
    return {name: int(number) for name, number in _FIELD.findall(_read(path))}


def _number(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdecimal() else None


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
