"""Binary policies over packed text: packed first, evicted then, read as written."""

from __future__ import annotations

import pytest

from bench.environments.contract import Item
from bench.policies import registry
from bench.policies.host import HostArm
from bench.policies.lru import Lru
from bench.policies.packed import PackedHost, packed_arm
from edge_agent.bodies import ROW_BYTES
from shared.memory.blocks import BlockMember, pack_block
from shared.memory.model import Kind

from .bench_policy_checks import item, stream


def _arm(items: list[Item]) -> tuple[HostArm, PackedHost]:
    arm = packed_arm("lru_packed", Lru(), 0)
    for one in items:
        arm.write(one)
    assert isinstance(arm.host, PackedHost)
    return arm, arm.host


def test_nothing_is_packed_while_it_fits() -> None:
    arm, host = _arm(stream(10))
    arm.set_budget(host.bytes())
    assert arm.rungs() == {"full": 10}


def test_packing_comes_before_evicting_and_reads_decode() -> None:
    items = stream(40)
    arm, host = _arm(items)
    report = arm.set_budget(host.bytes() / 2)
    assert report.evicted == report.demoted == []
    assert arm.rungs() == {"packed": 40}
    assert all(row.text == "" for row in host.rows.values())
    for n in (0, 17, 39):
        [hit] = arm.recall(items[n].text, 1, 10_000, record=False).hits
        assert (hit.item, hit.text, hit.rung) == (f"i{n}", items[n].text, "packed")


def test_a_packed_store_costs_its_blocks() -> None:
    items = stream(40)
    arm, host = _arm(items)
    plain = arm.held()
    arm.set_budget(host.bytes() - 1)
    held = arm.held()
    block = pack_block([BlockMember(n, one.text.encode()) for n, one in enumerate(items, 1)])
    assert held.text == len(block.body) + ROW_BYTES
    assert held.metadata == plain.metadata - 40 * ROW_BYTES, "one row of bodies instead of forty"
    assert held.total == host.bytes()
    assert 0 <= sum(host.size_bytes(n) for n in host.rows) - host.bytes() < 40, "shares add up"


def test_eviction_is_the_policys_and_leaves_nothing_dead() -> None:
    arm, host = _arm(stream(40))
    arm.recall("Ann bought a red kayak for 5 euros", 1, 1000, record=True)
    arm.set_budget(host.bytes() / 5)
    assert 0 < len(host.rows) < 39
    kept = {row.item for row in host.rows.values()}
    assert "i0" in kept, "recalled last"
    assert kept - {"i0"} == {f"i{n}" for n in range(41 - len(kept), 40)}
    fresh, other = _arm([one for one in stream(40) if one.id in kept])
    fresh.recall("Ann bought a red kayak for 5 euros", 1, 1000, record=True)
    other.pack()
    assert host.held().text == pytest.approx(other.held().text, abs=2 * len(kept))


def test_kinds_are_packed_apart() -> None:
    arm, host = _arm([item(f"{n}", "word " * 50, kind=Kind(n % 2)) for n in range(8)])
    host.pack()
    assert arm.held().text == sum(
        len(pack_block([BlockMember(n + 1, b"word " * 50) for n in range(first, 8, 2)]).body) + ROW_BYTES
        for first in (0, 1)
    )


def test_what_packing_makes_larger_stays_as_it_is() -> None:
    arm, host = _arm([item("a", "kayak")])
    before = host.bytes()
    host.pack()
    assert host.bytes() == before
    assert arm.rungs() == {"full": 1}


def test_a_rising_budget_unpacks_nothing_and_new_writes_come_plain() -> None:
    arm, host = _arm(stream(20))
    whole = host.bytes()
    arm.set_budget(whole / 2)
    arm.set_budget(whole)
    arm.write(item("late", "Ann sold her kayak."))
    assert arm.rungs() == {"packed": 20, "full": 1}


@pytest.mark.parametrize("name", ["lru_packed", "curator_packed"])
def test_the_budget_holds_with_reads_and_writes_between(name: str) -> None:
    arm = registry.make(name, 1)
    texts = ("", "\U0001f600", "a\0b", "x" * 200_000, *(one.text for one in stream(30)))
    for n, text in enumerate(texts):
        arm.write(item(f"i{n}", text))
    whole = arm.held().total
    for step, share in enumerate((1, 0.5, 0.1, 0.01, 0.002, 0, 0.5, 1)):
        report = arm.set_budget(share * whole)
        assert report.promoted == []
        assert arm.held().total == report.bytes_after <= share * whole
        arm.recall("What did Ann buy in Lisbon?", 5, 2000, record=True)
        arm.write(item(f"late{step}", f"Ann sold lamp number {step} to Ben."))
        assert arm.held().total <= share * whole
    arm.close()
