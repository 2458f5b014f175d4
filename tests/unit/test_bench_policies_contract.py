"""Rules that every policy on the bench's host keeps (baselines.md 0 and 7), over the whole registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from bench.policies import registry
from bench.policies.contract import HostPolicy, Report
from bench.policies.host import Host, HostArm, merge
from bench.policies.llm import Llm, StandIn
from shared.errors import InputError

from .bench_policy_checks import (
    filled,
    holds_every_budget,
    item,
    same_twice,
    squeezed,
    state,
    stream,
    texts,
)

PACKED = ("lru_packed", "curator_packed")
WITH_MODEL = (
    "mem0",
    "mem0_v3",
    "memgpt",
    "mars",
    "amem",
    "memoryos",
    "r3mem",
    "amac",
    "recmem",
    "agemem",
)
ON_HOST = ("keep_all", "lru", "expiry", "random", "curator", "human_inspired", *WITH_MODEL)
BOUNDED = tuple(name for name in ON_HOST if name != "keep_all")
_MIB = 2**20


def make(name: str, llm: Llm | None = None) -> HostPolicy:
    return registry.host_policy(name, 1, llm)


class Parrot:
    """A model that always says the same."""

    stand_in = False
    name = "parrot"

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def complete(self, purpose: str, prompt: str, schema: Mapping[str, Any]) -> str:
        return self.answer


class Careless:
    """A model whose answers have the right form and no sense: empty texts, numbers of nothing shown."""

    stand_in = False
    name = "careless"

    def __init__(self, items: int) -> None:
        self.items = items

    def complete(self, purpose: str, prompt: str, schema: Mapping[str, Any]) -> str:
        return json.dumps(self._value(schema))

    def _value(self, schema: Mapping[str, Any]) -> Any:
        if "enum" in schema:
            return schema["enum"][self.items % len(schema["enum"])]
        kind = schema["type"]
        if kind == "object":
            return {name: self._value(part) for name, part in schema["properties"].items()}
        if kind == "array":
            return [self._value(schema["items"]) for _ in range(self.items)]
        return {"string": "", "integer": 999, "number": 0.0, "boolean": bool(self.items)}[kind]


# --- the registry -----------------------------------------------------------------------------------------


def test_every_baseline_of_the_registry_is_checked_here() -> None:
    assert {name for name in registry.ORDER if registry.on_host(name)} == {*ON_HOST, *PACKED}
    assert set(registry.BINARY_SEVEN) == {name for name in BOUNDED if make(name).traits.binary}


@pytest.mark.parametrize("name", [*ON_HOST, *PACKED])
def test_an_arm_is_made_by_name_and_says_whether_a_rule_answers_for_a_model(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CRYSTALMEM_BENCH_POLICY_URL", raising=False)
    arm = registry.make(name, 3)
    assert isinstance(arm, HostArm)
    assert (arm.name, arm.budget_exempt) == (name, name == "keep_all")
    assert arm.stand_in == (name in WITH_MODEL)
    if name in WITH_MODEL:
        assert not HostArm(make(name, Parrot("?"))).stand_in
    arm.close()


@pytest.mark.parametrize("name", ["", "LRU", "crystalmem"])
def test_an_unknown_name_is_told_what_there_is(name: str) -> None:
    with pytest.raises(InputError) as problem:
        make(name)
    assert "lru" in problem.value.hint
    assert problem.value.facts["name"] == name


# --- one meter, hard postcondition ------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOUNDED)
def test_every_budget_holds_with_reads_and_writes_between(name: str) -> None:
    holds_every_budget(partial(make, name))


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_all_half_one_entry_one_byte_and_nothing(name: str, count: int) -> None:
    arm = filled(
        partial(make, name), [item(f"i{n}", f"lamp {n} is in room {n % 37}", hours=n) for n in range(count)]
    )
    whole = arm.host.bytes()
    one = max((arm.host.size_bytes(number) for number in arm.host.rows), default=0)
    for budget in (whole, whole / 2, one, 1, 0):
        arm.set_budget(budget)
        assert arm.host.bytes() <= budget
    assert (arm.host.rows, arm.held().total) == ({}, 0)


@pytest.mark.parametrize("name", BOUNDED)
def test_a_mebibyte_of_text_comes_and_goes(name: str) -> None:
    arm = filled(partial(make, name), [item("large", "Ann " + "x" * _MIB + " 7 times"), *stream(2)])
    assert arm.host.bytes() > _MIB
    arm.set_budget(_MIB)
    assert arm.host.bytes() <= _MIB
    arm.set_budget(0)
    assert arm.host.bytes() == 0


@pytest.mark.parametrize("name", ON_HOST)
def test_the_meter_is_the_sum_of_what_is_there(name: str) -> None:
    _, arm = squeezed(partial(make, name))
    for _ in range(3):
        arm.recall("What did Ann buy in Lisbon?", 5, 2000, record=True)
    rows = sum(row.size_bytes() for row in arm.host.rows.values())
    side = sum(len(name.encode()) + len(text.encode()) for name, text in arm.host.side.items())
    assert arm.host.bytes() == rows + side == arm.held().total
    assert arm.host.rows


def test_keep_all_keeps_all() -> None:
    report, arm = squeezed(partial(make, "keep_all"))
    assert texts(arm.host) == [one.text for one in stream(20)]
    assert report.evicted == []


# --- determinism ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ON_HOST)
def test_the_same_life_leaves_the_same_bytes(name: str) -> None:
    same_twice(partial(make, name))


@pytest.mark.parametrize("name", ON_HOST)
def test_a_recall_that_is_not_recorded_changes_nothing(name: str) -> None:
    arms = [squeezed(partial(make, name))[1] for _ in range(2)]
    asked = [arms[0].recall(one.text, 5, 2000, record=False) for one in stream(10)]
    assert all(found.ticket == "" for found in asked)
    for arm in arms:
        arm.write(item("late", "Ann sold her lamp to Ben.", hours=200.0))
        arm.set_budget(arm.host.bytes() / 2)
    assert state(arms[0].host) == state(arms[1].host)


# --- traits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ON_HOST)
def test_traits_are_what_it_does(name: str) -> None:
    watered = [item(f"w{n}", f"Ann watered her tomato plants on day {n}.", hours=n) for n in range(4)]
    given = [*stream(60), *watered]
    arm = filled(partial(make, name), [])
    writes = [arm.write(one) for one in given]
    whole = arm.host.bytes()
    squeeze = Report()
    for share in (1, 0.45):
        merge(squeeze, arm.set_budget(share * whole))
    traits = arm.traits
    original = {one.text for one in given}
    seen = [row.text for row in arm.host.rows.values()]
    assert traits.shortens == any(text not in original for text in seen)
    linked = filled(partial(make, name), given).host.rows.values()
    assert traits.links == any(row.links for row in linked)
    assert max(report.model_calls for report in writes) == traits.calls_per_write, name
    assert (traits.calls_per_write > 0) == any(report.model_calls for report in writes)
    assert (traits.calls_in_enforce > 0) == (squeeze.model_calls > 0)
    merge(squeeze, arm.set_budget(whole))
    assert squeeze.promoted == []
    for one in given:
        arm.recall(one.text, 3, 2000, record=True)
    assert traits.lengthens == bool(arm.settle().promoted)
    if traits.binary:
        assert squeeze.demoted == []


@pytest.mark.parametrize("name", ON_HOST)
def test_a_squeeze_and_back_promotes_nothing_and_resurrects_nothing(name: str) -> None:
    arm = filled(partial(make, name), stream(20))
    whole = arm.host.bytes()
    for share in (1, 0.75, 0.5, 0.25):
        arm.set_budget(share * whole)
    held = state(arm.host)
    for share in (0.5, 0.75, 1):
        report = arm.set_budget(share * whole)
        assert (report.promoted, report.evicted, report.demoted) == ([], [], [])
    assert state(arm.host) == held


def test_the_ladder_without_promotion_demotes() -> None:
    report, _ = squeezed(partial(make, "human_inspired"))
    assert report.demoted
    assert report.promoted == []


@pytest.mark.parametrize("name", registry.BINARY_SEVEN)
def test_who_survives_a_small_budget_survives_a_larger_one(name: str) -> None:
    survivors = []
    for share in (0.3, 0.6, 0.9):
        arm = filled(partial(make, name), stream(30))
        arm.recall("kayak", 3, 2000, record=True)
        arm.set_budget(share * arm.host.bytes())
        survivors.append({row.text for row in arm.host.rows.values()})
    assert survivors[0] < survivors[1] < survivors[2]


@pytest.mark.parametrize("name", registry.BINARY_SEVEN)
def test_nothing_is_left_of_what_was_evicted(name: str) -> None:
    things = ("kayak", "violin", "oven", "ledger", "lamp", "tent", "orchid", "bicycle", "mortgage", "puppy")
    given = [
        item(
            f"i{n}",
            f"mark{n}x: the {thing} was {n + 20} days late, which nobody on {thing} street minded",
            hours=n,
        )
        for n, thing in enumerate(things)
    ]
    arm = filled(partial(make, name), given)
    assert len(arm.host.rows) == len(given)
    gone = arm.set_budget(arm.host.bytes() / 2).evicted
    assert gone
    kept = repr([arm.host.rows, arm.host.side])
    for evicted in gone:
        mark = f"mark{evicted[1:]}x"
        assert mark not in kept
        assert all(hit.item != evicted for hit in arm.recall(mark, 10, 5000, record=False).hits)
    assert all(one.id in gone or f"mark{one.id[1:]}x" in kept for one in given)


# --- models that answer badly -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_MODEL)
@pytest.mark.parametrize("answer", ["", "I would rather not.", '{"facts": ["Ann', "[]", "null"])
def test_an_unreadable_answer_loses_no_text(name: str, answer: str) -> None:
    policy = make(name, Parrot(answer))
    arm = HostArm(policy)
    given = stream(30)
    for one in given:
        arm.write(one)
    kept = texts(arm.host)
    assert all(one.text in kept for one in given)
    whole = arm.host.bytes()
    for share in (0.6, 0.3, 0.05, 0):
        arm.set_budget(share * whole)
        arm.recall("What did Ann buy in Lisbon?", 5, 2000, record=True)
        assert arm.host.bytes() <= share * whole
    spent = policy.spent  # type: ignore[attr-defined]
    assert spent.unreadable == sum(spent.calls.values()) > 0


@pytest.mark.parametrize("name", WITH_MODEL)
@pytest.mark.parametrize("items", [0, 1, 2, 3])
def test_an_answer_without_sense_breaks_nothing(name: str, items: int) -> None:
    arm = HostArm(make(name, Careless(items)))
    for one in stream(30):
        arm.write(one)
    whole = arm.host.bytes()
    for share in (1, 0.5, 0.1, 0, 1):
        arm.set_budget(share * whole)
        arm.recall("What did Ann buy in Lisbon?", 5, 2000, record=True)
        arm.write(item(f"late{share}", "Ann sold her lamp to Ben.", hours=200.0))
        assert arm.host.bytes() <= share * whole
        _is_sound(arm.host)


def _is_sound(host: Host) -> None:
    for number, row in host.rows.items():
        assert row.number == number
        assert set(row.links) <= host.rows.keys()
    assert host.bytes() == sum(host.size_bytes(number) for number in host.rows) + sum(
        len(name.encode()) + len(text.encode()) for name, text in host.side.items()
    )


@pytest.mark.parametrize("name", WITH_MODEL)
def test_prose_around_an_answer_is_read_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _lived(name)
    quiet = StandIn.complete

    def talking(self: StandIn, purpose: str, prompt: str, schema: Mapping[str, Any]) -> str:
        return (
            f"Sure {{here}} you are:\n```json\n{quiet(self, purpose, prompt, schema)}\n```\nAnything else [?]"
        )

    monkeypatch.setattr(StandIn, "complete", talking)
    assert _lived(name) == plain


def _lived(name: str) -> list[tuple[object, ...]]:
    arm = filled(partial(make, name), stream(25))
    arm.set_budget(arm.host.bytes() / 2)
    return state(arm.host)
