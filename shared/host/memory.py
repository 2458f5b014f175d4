"""How much memory a process may still take: of the machine, and of the control group it runs in."""

from __future__ import annotations

from pathlib import Path

from shared.units import KIB

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
# (limit, use) in version 2 and version 1; "max" or a number near 2**63 means no limit.
_CGROUP_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def available_bytes(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """What could be allocated without swapping, the smaller of both; None where the kernel does not say."""
    known = [size for size in (_of_machine(meminfo), _of_group(cgroup)) if size is not None]
    return min(known) if known else None


def resident_bytes() -> int:
    """What this process holds in memory, shared pages included; 0 where the kernel does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * _page_bytes()


def _of_machine(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, rest = line.partition(":")
        if name == "MemAvailable" and rest.split()[:1] and rest.split()[0].isdecimal():
            return int(rest.split()[0]) * KIB
    return None


def _of_group(cgroup: Path) -> int | None:
    for limit_name, use_name in _CGROUP_FILES:
        try:
            limit = int((cgroup / limit_name).read_text("ascii"))
            use = int((cgroup / use_name).read_text("ascii"))
        except (OSError, ValueError):
            continue
        return max(limit - use, 0)
    return None


def _page_bytes() -> int:
    import resource

    return resource.getpagesize()
