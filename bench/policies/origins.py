"""The table of re-creations: what each baseline may do, where it is from, and what of it is ours.

`python -m bench.policies.origins` prints it; docs/bench-policies.md holds it.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.policies import registry
from bench.policies.contract import Origin, Traits

HEAD = (
    "row",
    "system",
    "public source",
    "official code",
    "shortens",
    "lengthens",
    "links",
    "calls a write",
    "calls a squeeze",
    "native knob",
    "ours",
)


def table() -> str:
    """Markdown, one line a baseline, in the order of the tables."""
    lines = [_line(HEAD), _line("---" for _ in HEAD)]
    lines += [_line(_cells(name, origin, traits)) for name, origin, traits in told()]
    return "\n".join(lines)


def told() -> Iterator[tuple[str, Origin, Traits]]:
    """Name, origin and traits of every row that lives on the bench's host."""
    for name in registry.ORDER:
        if not registry.on_host(name):
            continue
        arm = registry.host_arm(name, 0)
        yield name, arm.policy.origin, arm.traits
        arm.close()


def _cells(name: str, origin: Origin, traits: Traits) -> Iterator[str]:
    yield f"`{name}`"
    yield from (origin.system, origin.source, origin.official_code)
    yield from ("yes" if flag else "no" for flag in (traits.shortens, traits.lengthens, traits.links))
    yield from (str(traits.calls_per_write), str(traits.calls_in_enforce), traits.native_knob)
    yield origin.ours


def _line(cells: Iterator[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(table())
