"""MemGPT: the queue is flushed into a recursive summary, recall and archival."""

from __future__ import annotations

from bench.policies.host import Host
from bench.policies.memgpt import KEPT_MESSAGES, SUMMARY_SHARE, MemGpt

from .bench_policy_checks import Scripted, squeezed, stream


def _tiers(host: Host) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in host.by_age():
        found.setdefault(row.metadata.get("tier", ""), []).append(row.item)
    return found


def _written(model: Scripted | None, count: int) -> tuple[MemGpt, Host]:
    policy, host = MemGpt(0, model), Host()
    for now, one in enumerate(stream(count)):
        policy.on_write(host, one, now)
    return policy, host


def test_a_flush_takes_the_oldest_and_never_the_last_three() -> None:
    model = Scripted(summarise=[{"summary": "first"}, {"summary": "second"}], save=[{"save": [1, 77]}])
    policy, host = _written(model, 10)
    policy.enforce(host, 2 * host.bytes(), 20)
    tiers = _tiers(host)
    assert tiers[""][-KEPT_MESSAGES:] == ["i7", "i8", "i9"]
    assert tiers["archival"] == ["i0"]
    assert "i1" in tiers["recall"]
    assert [row.text for row in host.rows.values() if row.metadata.get("tier") == "summary"] == ["first"]


def test_a_later_summary_includes_the_earlier_one() -> None:
    model = Scripted(summarise=[{"summary": "first"}, {"summary": "second"}], save=[{"save": []}])
    policy, host = _written(model, 10)
    policy.enforce(host, 2 * host.bytes(), 20)
    for now, one in enumerate(stream(10), 30):
        policy.on_write(host, one, now)
    policy.enforce(host, 2 * host.bytes(), 50)
    asked = [prompt for purpose, prompt in model.asked if purpose == "summarise"]
    assert '"earlier": "first"' in asked[1]
    assert _tiers(host)["summary"] == ["i0"]


def test_the_summary_holds_a_tenth_of_what_was_flushed() -> None:
    policy, host = _written(None, 20)
    whole = sum(row.text_bytes() for row in host.rows.values())
    policy.enforce(host, host.bytes(), 30)
    summaries = [row.text for row in host.rows.values() if row.metadata.get("tier") == "summary"]
    assert len(summaries) == 1
    assert 0 < len(summaries[0].encode()) <= SUMMARY_SHARE * whole


def test_recall_goes_before_archival_and_the_queue_goes_last() -> None:
    model = Scripted(summarise=[{"summary": "s"}], save=[{"save": [1]}])
    policy, host = _written(model, 10)
    policy.enforce(host, 2 * host.bytes(), 20)
    tiers = _tiers(host)
    evicted = policy.enforce(host, 0, 21).evicted
    flushed = tiers["recall"] + tiers["archival"]
    assert evicted[: len(flushed)] == flushed
    assert evicted[-1] == "i9"


def test_an_unreadable_summary_loses_no_message() -> None:
    policy, host = _written(Scripted(summarise=["?"], save=["[]"]), 10)
    policy.enforce(host, 2 * host.bytes(), 20)
    assert {row.item for row in host.rows.values()} == {f"i{n}" for n in range(10)}
    assert policy.spent.unreadable == 4


def test_nothing_returns_to_the_queue() -> None:
    _, arm = squeezed(lambda: MemGpt(0, None))
    before = _tiers(arm.host)
    arm.recall("kayak", 5, 2000, record=True)
    arm.set_budget(1e9)
    assert _tiers(arm.host) == before
