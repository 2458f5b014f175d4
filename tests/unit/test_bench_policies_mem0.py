"""Mem0: facts are merged at write; a squeeze only deletes."""

from __future__ import annotations

from bench.policies.host import Host
from bench.policies.mem0 import Mem0
from bench.policies.mem0_v3 import Mem0V3

from .bench_policy_checks import (
    Scripted,
    item,
    texts,
)


def _stored(*answers: object) -> tuple[Host, Mem0]:
    """A store that holds `old one`, `old two`, then one write that gets these decisions."""
    add = [{"actions": [{"event": "ADD", "id": 0, "text": text}]} for text in ("old one", "old two")]
    model = Scripted(extract=[{"facts": ["f"]}], decide=[*add, {"actions": list(answers)}])
    policy, host = Mem0(0, model), Host()
    for now, name in enumerate("abc"):
        policy.on_write(host, item(name, "a message"), now)
    return host, policy


def test_the_four_decisions() -> None:
    assert texts(_stored({"event": "ADD", "id": 0, "text": "new"})[0]) == ["old one", "old two", "new"]
    updated = texts(_stored({"event": "UPDATE", "id": 1, "text": "newer"})[0])
    assert len(updated) == 2
    assert "newer" in updated
    assert texts(_stored({"event": "NONE", "id": 1, "text": ""})[0]) == ["old one", "old two"]
    paired = ({"event": "DELETE", "id": 1, "text": ""}, {"event": "ADD", "id": 0, "text": "new"})
    assert len(_stored(*paired)[0].rows) == 2
    assert "new" in texts(_stored(*paired)[0])


def test_a_lone_delete_loses_nothing_until_a_squeeze_which_takes_it_first() -> None:
    host, policy = _stored({"event": "DELETE", "id": 1, "text": ""})
    assert len(host.rows) == 2
    marked = next(row.number for row in host.rows.values() if "superseded" in row.metadata)
    policy.enforce(host, host.bytes() - 1, 9)
    assert marked not in host.rows
    assert len(host.rows) == 1


def test_an_id_that_was_not_offered_is_ignored() -> None:
    host, _ = _stored({"event": "UPDATE", "id": 99, "text": "x"}, {"event": "DELETE", "id": -1, "text": ""})
    assert texts(host) == ["old one", "old two"]


def test_unreadable_answers_keep_the_message_verbatim() -> None:
    for broken in ({"extract": ["no json"]}, {"extract": [{"facts": ["f"]}], "decide": ['{"actions": [{']}):
        policy, host = Mem0(0, Scripted(**broken)), Host()
        policy.on_write(host, item("a", "Ann has a boat."), 1)
        assert texts(host) == ["Ann has a boat."]
        assert policy.spent.unreadable == 2
    around = Scripted(
        extract=['Sure! {"facts": ["Ann has a boat"]} Bye'],
        decide=['```{"actions": [{"event": "ADD", "id": 0, "text": "Ann has a boat"}]}```'],
    )
    policy, host = Mem0(0, around), Host()
    policy.on_write(host, item("a", "Well, Ann has a boat."), 1)
    assert texts(host) == ["Ann has a boat"]


def test_the_stand_in_merges_repeats_and_replaces_what_changed() -> None:
    policy, host = Mem0(0, None), Host()
    policy.on_write(host, item("a", "The rent of the harbour flat is 900 euros."), 1)
    policy.on_write(host, item("b", "The rent of the harbour flat is 900 euros."), 2)
    assert len(host.rows) == 1
    policy.on_write(host, item("c", "The rent of the harbour flat is 950 euros."), 3)
    assert texts(host) == ["The rent of the harbour flat is 950 euros."]


def test_the_longest_without_an_update_goes_first() -> None:
    decide = [{"actions": [{"event": "ADD", "id": 0, "text": text}]} for text in ("alpha", "beta", "gamma")]
    update = {"actions": [{"event": "UPDATE", "id": 1, "text": "f again"}]}
    policy = Mem0(0, Scripted(extract=[{"facts": ["alpha"]}], decide=[*decide, update]))
    host = Host()
    for now, name in enumerate("abcd"):
        policy.on_write(host, item(name, "m"), now)
    assert policy.enforce(host, 0, 9).evicted == ["b", "c", "a"]


def test_v3_only_adds_and_drops_identical_texts() -> None:
    policy, host = Mem0V3(0, None), Host()
    for now, text in enumerate(
        ("Rent is 900 euros monthly.", "Rent is 950 euros monthly.", "Rent is 900 euros monthly.")
    ):
        policy.on_write(host, item(str(now), text), now)
    assert texts(host) == ["Rent is 900 euros monthly.", "Rent is 950 euros monthly."]
