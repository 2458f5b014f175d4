"""MaRS: groups of unimportant episodes become reflections; then density decides."""

from __future__ import annotations

import pytest

from bench.policies.host import Host
from bench.policies.mars import REFLECTED_SHARE, Mars, Order, density, fifo, hybrid, priority_decay
from shared.memory.model import Kind

from .bench_policy_checks import Scripted, item, texts


def _alike(policy: Mars, count: int = 12) -> Host:
    """Episodes that share all words but one."""
    host = Host()
    for n in range(count):
        policy.on_write(host, item(f"i{n}", f"Ann watered the tomato plants in the garden on day {n}."), n)
    return host


def test_a_group_is_replaced_by_one_reflection_of_a_quarter() -> None:
    model = Scripted(reflect=[{"reflection": "Ann waters plants. " * 50}])
    policy = Mars(0, model)
    host = _alike(policy)
    before = sum(row.text_bytes() for row in list(host.rows.values())[:4])
    report = policy.enforce(host, host.bytes() - 1, 20)
    assert report.merged == ["i0", "i1", "i2", "i3"]
    assert report.model_calls == 1
    made = [row for row in host.rows.values() if row.kind is Kind.KNOWLEDGE]
    assert len(made) == 1
    assert made[0].text_bytes() <= REFLECTED_SHARE * before
    assert report.evicted == []


def test_a_reflection_is_never_reflected_on_again() -> None:
    model = Scripted(reflect=[{"reflection": "Ann waters tomato plants"}])
    policy = Mars(0, model)
    host = _alike(policy, 30)
    policy.enforce(host, host.bytes() / 8, 40)
    assert len(model.asked) > 1
    assert all("Ann waters tomato plants" not in prompt for _, prompt in model.asked)


def test_skills_and_dissimilar_episodes_are_not_grouped() -> None:
    policy, host = Mars(0, Scripted(reflect=[{"reflection": "r"}])), Host()
    for n, text in enumerate(
        ("kayak river", "tax form", "violin lesson", "sour dough", "moon crater", "bike bell")
    ):
        policy.on_write(host, item(f"e{n}", text), n)
    for n in range(6):
        policy.on_write(host, item(f"s{n}", f"To open a door, turn the knob {n}.", kind=Kind.SKILL), 10 + n)
    report = policy.enforce(host, host.bytes() / 2, 20)
    assert report.merged == []
    assert report.model_calls == 0
    assert set(report.evicted) >= {f"e{n}" for n in range(6)}, "a task is worth more than an episode"


def test_an_unreadable_reflection_loses_nothing_by_itself() -> None:
    policy = Mars(0, Scripted(reflect=["?"]))
    host = _alike(policy)
    report = policy.enforce(host, host.bytes() - 1, 20)
    assert report.merged == []
    assert len(host.rows) == 11
    assert all(text.startswith("Ann watered") for text in texts(host))
    assert policy.spent.unreadable == policy.spent.calls["reflect"] == 2


@pytest.mark.parametrize(
    ("removal", "expected"),
    [
        (density, ["long", "old", "skill", "fresh", "read"]),
        (fifo, ["old", "read", "skill", "long", "fresh"]),
        (priority_decay, ["old", "long", "skill", "fresh", "read"]),
        (hybrid, ["old", "skill", "long", "fresh", "read"]),
    ],
)
def test_orders_of_removal(removal: Order, expected: list[str]) -> None:
    host = Host()
    given = [
        ("old", "kayak", Kind.MESSAGE, 0),
        ("read", "maple", Kind.MESSAGE, 1),
        ("skill", "oven", Kind.SKILL, 2),
        ("long", "violin " * 100, Kind.MESSAGE, 2900),
        ("fresh", "river", Kind.MESSAGE, 2990),
    ]
    numbers = {name: host.add(item(name, text, kind=kind), now).number for name, text, kind, now in given}
    host.read(numbers["read"], 2995)
    assert [host.rows[n].item for n in removal(host, 3000)] == expected
