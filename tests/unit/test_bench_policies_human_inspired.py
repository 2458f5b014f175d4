"""The human-inspired ladder: down by the product's own rungs, never up."""

from __future__ import annotations

from bench.environments.contract import Item
from bench.policies.contract import Report
from bench.policies.host import Host, HostArm, merge
from bench.policies.human_inspired import LEVELS, HumanInspired, maturity
from edge_agent.distill import PlainDistiller
from shared.memory.model import LADDERS, Rung
from shared.memory.text_codec import TextCodec

from .bench_policy_checks import item, stream, texts

_DAY = 24.0


def _arm(items: list[Item]) -> tuple[HostArm, Host]:
    arm = HostArm(HumanInspired(0, None))
    for one in items:
        arm.write(one)
    return arm, arm.host


def test_levels_are_the_papers_four_rungs() -> None:
    assert LEVELS == ("full", "compressed", "skeletal", "trace")


def test_each_level_is_what_the_products_codec_gives_and_costs_its_record() -> None:
    codec, ladder = TextCodec(PlainDistiller()), LADDERS["paper"]
    one = stream(1)[0]
    arm, host = _arm([one])
    overhead = host.bytes() - len(one.text.encode())
    for rung in (Rung.COMPRESSED, Rung.SKELETAL, Rung.TRACE):
        arm.set_budget(host.bytes() - 1)
        expected = codec.drop(one.text, ladder, rung).record
        assert arm.rungs() == {rung.name.lower(): 1}
        assert texts(host) == [codec.render(expected)]
        assert host.bytes() == overhead + len(expected)
        held = arm.held()
        assert (held.text, held.residue, held.metadata) == (0, len(expected), overhead)
    assert arm.set_budget(host.bytes() - 1).evicted == ["i0"]


def test_what_was_shown_can_be_found_and_what_was_dropped_cannot() -> None:
    arm, host = _arm(stream(1))
    arm.set_budget(host.bytes() - len(stream(1)[0].text) // 2)
    [hit] = arm.recall("Ann red kayak euros Lisbon", 1, 1000, record=False).hits
    assert hit.text == texts(host)[0]
    assert len(hit.text) < len(stream(1)[0].text)


def test_the_least_strong_fades_to_a_trace_before_the_next_loses_anything() -> None:
    arm, host = _arm(stream(6))
    report = Report()
    while not report.evicted:
        merge(report, arm.set_budget(host.bytes() - 1))
    down = [step for step, _, _ in report.demoted]
    assert len(down) == 18
    assert down == [name for name in dict.fromkeys(down) for _ in range(3)]
    assert [(origin, to) for _, origin, to in report.demoted[:3]] == [
        ("full", "compressed"),
        ("compressed", "skeletal"),
        ("skeletal", "trace"),
    ]
    assert report.promoted == []
    assert report.evicted == down[:1], "only when all are traces, and the least strong first"


def test_a_rising_budget_brings_nothing_back() -> None:
    arm, host = _arm(stream(6))
    whole = host.bytes()
    arm.set_budget(whole / 2)
    before = texts(host)
    assert arm.set_budget(2 * whole) == Report(bytes_before=host.bytes(), bytes_after=host.bytes())
    assert texts(host) == before


def test_memories_mature_over_two_weeks() -> None:
    assert [round(maturity(days), 2) for days in (0, 7, 14)] == [0.03, 0.5, 0.97]
    policy, host = HumanInspired(0, None), Host()
    for name, hours in (("old", 0.0), ("week", 7 * _DAY), ("new", 14 * _DAY)):
        policy.on_write(host, item(name, f"{name} kayak", hours=hours), 0)
    assert policy.order(host, 0) == [3, 2, 1]


def test_importance_counts_recency_frequency_surprise_entities_and_outcome() -> None:
    policy, host = HumanInspired(0, None), Host()
    given = ["red kayak", "red kayak", "blue tent", "Ann paid Ben 30 euros in Rome", "green lamp"]
    for n, text in enumerate(given):
        policy.on_write(host, item(f"i{n}", text), 0)
    policy.on_outcome(host, [3], 0.0, 0)
    host.read(5, 0)
    # 2 says what 1 said; 3 was of no use; 1; 4 names people; 5 is used.
    assert policy.order(host, 0) == [2, 3, 1, 4, 5]
    policy, host = HumanInspired(0, None), Host()
    for n, text in enumerate(("red kayak", "blue tent")):
        policy.on_write(host, item(f"i{n}", text), 400 * n)
    assert policy.order(host, 500) == [1, 2], "the longer without an access"


def test_recall_starts_the_decay_again() -> None:
    policy, host = HumanInspired(0, None), Host()
    for n, text in enumerate(("red kayak", "blue tent")):
        policy.on_write(host, item(f"i{n}", text), 0)
    policy.on_write(host, item("late", "seven violins", hours=60 * _DAY), 0)
    assert policy.order(host, 0)[1:] == [1, 2]
    policy.on_read(host, "q", [1], 0)
    assert policy.order(host, 0)[1:] == [2, 1]


def test_what_cannot_be_shortened_goes_whole() -> None:
    arm, host = _arm([item("tiny", "ok")])
    report = arm.set_budget(host.bytes() - 1)
    assert (report.demoted, report.evicted) == ([], ["tiny"])
