"""RecMem: recurrence opens the gate; raw items become episodes and facts."""

from __future__ import annotations

from typing import Any

from bench.policies.host import Host
from bench.policies.recmem import LEAST_RECURRENCE, RECURRENCE, RecMem

from .bench_policy_checks import Scripted, item, texts

_NO = {"should_merge": False, "merged_memory": ""}


def _model(**more: list[Any]) -> Scripted:
    answers: dict[str, list[Any]] = {
        "merge": [_NO],
        "episodes": [{"episodes": ["a week of watering"]}],
        "facts": [{"facts": ["Ann gardens"]}],
    }
    return Scripted(**(answers | more))


def _watered(day: int) -> str:
    return f"Ann watered the tomato plants in the garden on day {day}."


def _written(model: Scripted | None, *given: str) -> tuple[RecMem, Host]:
    policy, host = RecMem(0, model), Host()
    for n, text in enumerate(given):
        policy.on_write(host, item(f"i{n}", text, hours=n), n)
    return policy, host


def _layers(host: Host) -> list[tuple[str, str]]:
    return [(row.metadata.get("layer", ""), row.text) for row in host.by_age()]


def test_what_does_not_recur_stays_raw_without_a_call() -> None:
    model = _model()
    _, host = _written(model, "a red kayak", "seven violins", *map(_watered, range(RECURRENCE - 1)))
    assert model.asked == []
    assert len(host.rows) == RECURRENCE + 1


def test_the_fifth_of_a_kind_consolidates_in_the_order_of_time() -> None:
    model = _model()
    policy, host = _written(model, "a red kayak", *map(_watered, range(RECURRENCE - 1)))
    report = policy.on_write(host, item("last", _watered(9), hours=9), 9)
    assert [purpose for purpose, _ in model.asked] == ["episodes", "facts"]
    days = [model.asked[0][1].index(f"day {day}") for day in (0, 1, 2, 3, 9)]
    assert days == sorted(days)
    assert report.merged == ["i1", "i2", "i3", "i4", "last"]
    assert report.model_calls == 2
    assert _layers(host) == [("", "a red kayak"), ("episode", "a week of watering"), ("fact", "Ann gardens")]


def test_a_write_that_an_episode_is_like_is_merged_if_the_model_agrees() -> None:
    model = _model(
        episodes=[{"episodes": [_watered(0)]}],
        merge=[_NO, {"should_merge": True, "merged_memory": "Ann watered on many days."}],
    )
    policy, host = _written(model, *map(_watered, range(RECURRENCE)))
    policy.on_write(host, item("no", _watered(7), hours=7), 7)
    assert ("", _watered(7)) in _layers(host), "the model said no: raw"
    report = policy.on_write(host, item("yes", _watered(8), hours=8), 8)
    assert report.merged == ["yes"]
    assert ("episode", "Ann watered on many days.") in _layers(host)
    assert [purpose for purpose, _ in model.asked[-2:]] == ["merge", "facts"]


def test_known_facts_are_shown_so_that_none_is_written_twice() -> None:
    model = _model()
    _written(model, *map(_watered, range(2 * RECURRENCE)))
    asked = [prompt for purpose, prompt in model.asked if purpose == "facts"]
    assert '"known": []' in asked[0]
    assert "Ann gardens" in asked[1]


def test_unreadable_answers_lose_nothing() -> None:
    given = [_watered(day) for day in range(RECURRENCE)]
    policy, host = _written(_model(episodes=["?"]), *given)
    assert texts(host) == given
    assert policy.spent.unreadable == policy.spent.calls["episodes"] == 2
    for useless in ('{"episodes": []}', '{"episodes": [" "]}'):
        assert texts(_written(_model(episodes=[useless]), *given)[1]) == given
    _, host = _written(_model(facts=["?"]), *given)
    assert _layers(host) == [("episode", "a week of watering")]
    _, host = _written(_model(merge=["?"], episodes=[{"episodes": [_watered(0)]}]), *given, _watered(7))
    assert ("", _watered(7)) in _layers(host)


def test_the_order_of_eviction() -> None:
    model = _model(facts=[{"facts": ["Ann gardens", "tomatoes grow"]}])
    policy, host = _written(
        model,
        *map(_watered, range(RECURRENCE)),
        "an oven bakes bread daily",
        "a red kayak",
        "an oven bakes bread daily",
    )
    gardens = next(row.number for row in host.rows.values() if row.text == "Ann gardens")
    host.read(gardens, 50)
    order = []
    while host.rows:
        before = dict(host.rows)
        policy.enforce(host, host.bytes() - 1, 60)
        order += [before[number].text for number in before.keys() - host.rows.keys()]
    assert order == [
        "a red kayak",
        "an oven bakes bread daily",
        "an oven bakes bread daily",
        "tomatoes grow",
        "Ann gardens",
        "a week of watering",
    ]


def test_the_gate_opens_earlier_at_each_tight_stage_until_there_is_room() -> None:
    model = _model()
    policy, host = _written(model, *map(_watered, range(RECURRENCE - 1)))
    whole = host.bytes()
    policy.enforce(host, whole, 10)
    policy.enforce(host, 0.6 * whole, 11)
    assert (policy.recurrence, model.asked) == (RECURRENCE, [])
    report = policy.enforce(host, 0.4 * whole, 12)
    assert policy.recurrence == RECURRENCE - 1
    assert report.model_calls == 0, "three were evicted by then: nothing recurs"
    policy.enforce(host, 0.4 * whole, 13)
    assert policy.recurrence == RECURRENCE - 1, "the same stage"
    for part in range(4):
        policy.enforce(host, (0.3 - part / 100) * whole, 14)
    assert policy.recurrence == LEAST_RECURRENCE
    policy.enforce(host, whole, 15)
    assert policy.recurrence == RECURRENCE


def test_a_tight_stage_consolidates_what_recurs() -> None:
    model = _model()
    policy, host = _written(model, *map(_watered, range(RECURRENCE - 1)))
    whole = host.bytes()
    policy.enforce(host, 4 * whole, 10)
    report = policy.enforce(host, 1.5 * whole, 11)
    assert report.model_calls == 2
    assert [layer for layer, _ in _layers(host)] == ["episode", "fact"]


def test_the_stand_in_says_only_what_was_written() -> None:
    given = [f"Ann watered the tomato plants in the garden. She used {day + 3} litres." for day in range(8)]
    policy, host = _written(None, *given)
    assert policy.stand_in
    said = " ".join(given)
    assert {layer for layer, _ in _layers(host)} == {"episode", "fact"}
    for text in texts(host):
        assert all(sentence.strip(".") in said for sentence in text.split(". "))
