"""A-MEM: notes are analysed, linked and evolve; they stay whole until they go."""

from __future__ import annotations

from bench.policies.amem import AMem
from bench.policies.host import Host
from bench.policies.meter import LINK_BYTES

from .bench_policy_checks import (
    Scripted,
    filled,
    item,
    stream,
    texts,
)

_ANALYSED = {"keywords": ["k"], "context": "about it", "tags": ["t"]}


def _notes(*evolved: object) -> Host:
    """`apple pie`, `apple tart` and then `pie` with these answers to the question of evolution."""
    policy, host = AMem(0, Scripted(analyse=[_ANALYSED], evolve=list(evolved))), Host()
    for now, text in enumerate(("apple pie", "apple tart", "pie")):
        policy.on_write(host, item(f"n{now}", text), now)
    return host


def test_neighbours_are_named_by_rank_in_what_was_shown() -> None:
    none: dict[str, object] = {"links": [], "tags": [], "updates": []}
    update = {"neighbour": 2, "context": "rewritten", "tags": ["new"]}
    host = _notes(none, {"links": [1, 9, 1], "tags": ["mine"], "updates": [update]})
    pie, tart, new = host.by_age()
    assert new.links == [pie.number], "`pie` is nearest to `apple pie`; rank 9 was never shown"
    assert new.metadata["tags"] == "mine"
    assert (tart.metadata["context"], tart.metadata["tags"]) == ("rewritten", "new")
    assert pie.metadata["context"] == "about it"


def test_attributes_and_links_are_charged() -> None:
    host = _notes({"links": [1], "tags": ["t"], "updates": []})
    row = list(host.by_age())[-1]
    plain = Host()
    bare = plain.size_bytes(plain.add(item("n", "pie"), 0).number)
    told = sum(len(name) + len(value) for name, value in row.metadata.items())
    assert told > 0
    assert host.size_bytes(row.number) >= bare + told + LINK_BYTES


def test_unreadable_answers_leave_a_bare_note() -> None:
    policy, host = AMem(0, Scripted(analyse=["?"], evolve=["{"])), Host()
    for now, text in enumerate(("apple pie", "apple tart")):
        policy.on_write(host, item(f"n{now}", text), now)
    assert texts(host) == ["apple pie", "apple tart"]
    assert all(not row.metadata and not row.links for row in host.rows.values())
    assert policy.spent.unreadable == 6


def test_the_stand_in_links_what_is_alike() -> None:
    arm = filled(lambda: AMem(0, None), stream(12))
    linked = {row.item: {arm.host.rows[n].item for n in row.links} for row in arm.host.rows.values()}
    assert linked["i0"] == set()
    assert "i0" in linked["i10"], "both are about Ann and a red kayak"


def test_used_and_linked_notes_stay() -> None:
    policy, host = AMem(0, None), Host()
    numbers = {name: host.add(item(name, name), now).number for now, name in enumerate("abcde")}
    host.rows[numbers["b"]].links = [numbers["a"]]
    host.touched(numbers["b"])
    host.read(numbers["c"], 5)
    assert policy.enforce(host, 0, 6).evicted == ["d", "e", "a", "b", "c"]
    assert not host.rows


def test_links_to_a_deleted_note_go_with_it() -> None:
    policy, host = AMem(0, None), Host()
    numbers = {name: host.add(item(name, name), 0).number for name in "ab"}
    host.rows[numbers["b"]].links = [numbers["a"]]
    host.touched(numbers["b"])
    host.read(numbers["b"], 1)
    policy.enforce(host, host.bytes() - 1, 2)
    assert [row.item for row in host.rows.values()] == ["b"]
    assert host.rows[numbers["b"]].links == []
