"""AgeMem with a frozen policy: one action a write; the least worth keeping goes first."""

from __future__ import annotations

from typing import Any

import pytest

from bench.policies.agemem import AgeMem, quality
from bench.policies.host import Host

from .bench_policy_checks import Scripted, item, texts


def _acts(*actions: Any) -> Scripted:
    return Scripted(act=list(actions))


def _action(action: str, target: int = 0, text: str = "") -> dict[str, Any]:
    return {"action": action, "id": target, "text": text}


def _host(policy: AgeMem, *given: str) -> Host:
    host = Host()
    for n, text in enumerate(given):
        policy.on_write(host, item(f"i{n}", text), n)
    return host


def test_each_action_does_what_it_says() -> None:
    policy = AgeMem(
        0,
        _acts(
            _action("ADD", text="the key is under the mat"),
            _action("ADD"),
            _action("UPDATE", 1, "the key is under the green mat"),
            _action("DELETE", 1),
            _action("NONE"),
        ),
    )
    host = _host(policy, "By the way, the key is under the mat", "a blue tent")
    assert texts(host) == ["the key is under the mat", "a blue tent"], "without a text: as it came"
    updated = policy.on_write(host, item("u", "the mat over the key is green"), 3)
    assert (updated.merged, texts(host)) == (["u"], ["the key is under the green mat", "a blue tent"])
    deleted = policy.on_write(host, item("d", "forget about the tent"), 4)
    assert (deleted.evicted, texts(host)) == (["i1"], ["the key is under the green mat"])
    assert policy.on_write(host, item("n", "thanks, bye"), 5).evicted == ["n"]
    assert len(host.rows) == 1


@pytest.mark.parametrize(
    "answer", ["?", '{"action": "ADD"', '{"action": "BURN", "id": 1, "text": "x"}', "[]"]
)
def test_an_unreadable_action_adds_the_message(answer: str) -> None:
    policy = AgeMem(0, _acts(answer))
    assert texts(_host(policy, "a red kayak", "a blue tent")) == ["a red kayak", "a blue tent"]
    assert policy.spent.unreadable == 4


@pytest.mark.parametrize("action", ["UPDATE", "DELETE"])
def test_a_memory_that_was_not_shown_is_not_touched(action: str) -> None:
    policy = AgeMem(0, _acts(_action("ADD"), _action(action, 7, "a blue tent")))
    assert texts(_host(policy, "a red kayak", "a blue tent")) == ["a red kayak", "a blue tent"]


def test_the_frozen_scorer_adds_updates_deletes_and_refuses() -> None:
    policy = AgeMem(0, None)
    host = _host(
        policy,
        "The boat club in Lisbon opens at 9 every Monday morning",
        "The boat club in Lisbon opens at 11 every Monday morning",
        "Ann keeps 7 violins in a house near Porto",
        "The boat club in Lisbon no longer opens every Monday morning",
        "ok, bye!",
    )
    assert texts(host) == ["Ann keeps 7 violins in a house near Porto"]
    assert policy.stand_in


def test_what_is_said_already_is_not_added() -> None:
    told = "Ann keeps 7 violins in a house near Porto"
    assert texts(_host(AgeMem(0, None), told, told)) == [told]


def test_statements_about_different_things_are_all_kept() -> None:
    told = [
        f"The museum number {n} of {town} opens at {n} o'clock"
        for n, town in enumerate(("Rome", "Oslo", "Bonn"))
    ]
    assert texts(_host(AgeMem(0, None), *told)) == told


@pytest.mark.parametrize(
    ("better", "worse", "nearest"),
    [
        ("Ann bought 7 violins", "so nice, I think", []),
        ("a red kayak", "a red kayak", ["a red kayak"]),
        ("kayak tent violin oven ledger lamp", "kayak", []),
        ("They prefer tea", "They pour tea", []),
    ],
)
def test_quality_rises_with_what_is_told(better: str, worse: str, nearest: list[str]) -> None:
    assert 0 < quality(worse, nearest) < quality(better, []) < 1


def test_a_contradiction_is_worth_keeping() -> None:
    text, same, other = ("the club opens at 9", "the club opens at 9 now", "the club opens at 11")
    assert quality(text, [other]) > quality(text, [same])


def test_eviction_is_by_quality_then_age() -> None:
    policy, host = AgeMem(0, _acts(_action("ADD"))), Host()
    given = [
        ("rich", "Ann bought 7 violins in Porto on 3 May"),
        ("twin-a", "blue tent"),
        ("twin-b", "red kayak"),
        ("poor", "ok"),
        ("fair", "seven lamps for the garden house"),
    ]
    for now, (name, text) in enumerate(given):
        policy.on_write(host, item(name, text), now)
    assert policy.enforce(host, 0, 9).evicted == ["poor", "twin-a", "twin-b", "fair", "rich"]
