"""What every policy of the bench is held to, and a scripted model, for their tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.environments.contract import Item
from bench.policies.contract import HostPolicy, Report
from bench.policies.host import Host, HostArm, merge
from shared.memory.model import Kind

_HOUR_S = 3600.0
_STRANGE = ("", ".", "\U0001f600 \U0001f600", "a\0b", "x" * 100_000, "Ünïcödé 日本語の文章。")


class Scripted:
    """A model that answers from a script, by purpose; the last answer of a purpose repeats."""

    stand_in = False
    name = "scripted"

    def __init__(self, **answers: Sequence[Any]) -> None:
        self._answers = {purpose: list(given) for purpose, given in answers.items()}
        self.asked: list[tuple[str, str]] = []

    def complete(self, purpose: str, prompt: str, schema: Mapping[str, Any]) -> str:
        self.asked.append((purpose, prompt))
        left = self._answers[purpose]
        answer = left.pop(0) if len(left) > 1 else left[0]
        return answer if isinstance(answer, str) else json.dumps(answer)


def item(name: str, text: str, *, hours: float = 0.0, kind: Kind = Kind.MESSAGE) -> Item:
    """One write at `hours` of the stream's own time."""
    return Item(name, text, kind, hours * _HOUR_S)


def stream(count: int) -> list[Item]:
    """Messages of a few sentences about ten people; the same for the same count."""
    people = ("Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo", "Iris", "Jan")
    things = ("a red kayak", "two maple desks", "an old telescope", "a blue tent", "seven tomato plants")
    return [
        item(
            f"i{n}",
            f"{people[n % 10]} bought {things[n % 5]} for {10 * n + 5} euros in Lisbon on {n % 28 + 1} May."
            f" The shop of {people[(n + 3) % 10]} was nearly empty that day, so nobody had to wait."
            f" Afterwards they walked along the river and talked about order {n * 37 % 101}.",
            hours=2.0 * n,
        )
        for n in range(count)
    ]


def filled(make: Callable[[], HostPolicy], items: Sequence[Item]) -> HostArm:
    """An arm of the policy after these writes, without a budget."""
    arm = HostArm(make())
    for one in items:
        arm.write(one)
    return arm


def holds_every_budget(make: Callable[[], HostPolicy]) -> None:
    """Ten thousandths to nothing, up and down, with reads and writes between; odd texts; an empty host."""
    empty = HostArm(make())
    empty.set_budget(0)
    assert empty.host.bytes() == 0
    strange = filled(make, [item(f"s{n}", text) for n, text in enumerate(_STRANGE)])
    for small in (5000, 120, 1, 0):
        strange.set_budget(small)
        assert strange.host.bytes() <= small
    arm = filled(make, stream(30))
    whole = arm.host.bytes()
    for step, share in enumerate((1, 0.75, 0.5, 0.25, 0.1, 0.02, 0, 0.5, 1)):
        budget = share * whole
        report = arm.set_budget(budget)
        assert arm.host.bytes() == report.bytes_after <= budget
        held = state(arm.host)
        arm.settle()
        assert state(arm.host) == held, "enforcing twice is enforcing once"
        arm.recall("What did Ann buy in Lisbon?", 5, 2000, record=True)
        assert arm.host.bytes() <= budget
        arm.write(item(f"late{step}", f"Ann sold lamp number {step} to Ben.", hours=100.0 + step))
        assert arm.host.bytes() <= budget
    for row in arm.host.rows.values():
        assert all(link in arm.host.rows for link in row.links), "no dangling links"


def same_twice(make: Callable[[], HostPolicy]) -> None:
    """The same writes, reads and budgets leave the same bytes."""
    states = []
    for _ in range(2):
        arm = filled(make, stream(20))
        arm.recall("kayak", 3, 2000, record=True)
        arm.set_budget(arm.host.bytes() / 3)
        states.append(state(arm.host))
    assert states[0] == states[1]


def squeezed(make: Callable[[], HostPolicy]) -> tuple[Report, HostArm]:
    """All that a squeeze to a quarter and back did, without reads."""
    arm = filled(make, stream(20))
    whole, report = arm.host.bytes(), Report()
    for share in (1, 0.75, 0.5, 0.25, 0.5, 0.75, 1):
        merge(report, arm.set_budget(share * whole))
    return report, arm


def texts(host: Host) -> list[str]:
    """Rows' texts, oldest first."""
    return [row.text for row in host.by_age()]


def state(host: Host) -> list[tuple[object, ...]]:
    rows = [(r.number, r.text, r.rung, r.links, sorted(r.metadata.items())) for r in host.by_age()]
    return [*rows, tuple(sorted(host.side.items()))]
