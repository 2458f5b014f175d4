"""MemoryOS: pages become sessions, hot sessions become profile and knowledge."""

from __future__ import annotations

from bench.policies.host import Host
from bench.policies.memoryos import KNOWLEDGE_CAPACITY, LONG_SHARE, SHORT_CAPACITY, SHORT_SHARE, MemoryOs

from .bench_policy_checks import Scripted, stream


def _tier(host: Host, tier: str) -> list[str]:
    """Items of a tier, oldest first; `short` has no mark."""
    marks = {"mid": "session", "sessions": "keywords", "long": "long"}
    return [
        row.item
        for row in host.by_age()
        if (marks[tier] in row.metadata if tier in marks else not row.metadata.keys() & set(marks.values()))
    ]


def _model(**more: list[object]) -> Scripted:
    answers: dict[str, list[object]] = {
        "continuity": [{"continues": True, "chain": "c"}],
        "topic": [{"summary": "gardens", "keywords": ["garden"]}],
        "profile": [{"profile": "likes gardens"}],
        "knowledge": [{"knowledge": ["has a garden"]}],
    }
    return Scripted(**(answers | more))


def _written(model: Scripted | None, count: int) -> tuple[MemoryOs, Host]:
    policy, host = MemoryOs(0, model), Host()
    for now, one in enumerate(stream(count)):
        policy.on_write(host, one, now)
    return policy, host


def test_the_queue_holds_ten_pages_and_pops_the_oldest() -> None:
    model = _model()
    _, host = _written(model, SHORT_CAPACITY + 2)
    assert _tier(host, "short") == [f"i{n}" for n in range(2, SHORT_CAPACITY + 2)]
    assert _tier(host, "mid") == ["i0", "i1"]
    assert [purpose for purpose, _ in model.asked] == ["continuity", "topic"] * 2


def test_pages_of_a_topic_share_a_session_and_continue_a_chain() -> None:
    topics = [{"summary": "gardens", "keywords": ["a"]}] * 2 + [{"summary": "tax forms", "keywords": ["b"]}]
    _, host = _written(_model(topic=list(topics)), SHORT_CAPACITY + 3)
    sessions = [row.text for row in host.by_age() if "keywords" in row.metadata]
    assert sessions == ["gardens", "tax forms"]
    pages = {row.item: row for row in host.rows.values() if "session" in row.metadata}
    assert pages["i0"].metadata["session"] == pages["i1"].metadata["session"]
    assert pages["i0"].metadata["session"] != pages["i2"].metadata["session"]
    assert pages["i1"].links == [pages["i0"].number]


def test_a_hot_session_teaches_once_and_cools() -> None:
    model = _model()
    _, host = _written(model, SHORT_CAPACITY + 5)
    asked = [purpose for purpose, _ in model.asked]
    assert (asked.count("profile"), asked.count("knowledge")) == (1, 1)
    assert {row.text for row in host.rows.values() if "long" in row.metadata} == {
        "likes gardens",
        "has a garden",
    }
    session = next(row for row in host.rows.values() if "keywords" in row.metadata)
    assert int(session.metadata["pages"]) < 5


def test_reads_heat_a_session() -> None:
    model = _model()
    policy, host = _written(model, SHORT_CAPACITY + 1)
    page = next(row.number for row in host.rows.values() if "session" in row.metadata)
    for now in range(100, 102):
        policy.on_read(host, "q", [page], now)
    assert "profile" not in [purpose for purpose, _ in model.asked]
    policy.on_read(host, "q", [page], 103)
    assert "profile" in [purpose for purpose, _ in model.asked]


def test_knowledge_is_first_in_first_out() -> None:
    facts = [f"fact {n}" for n in range(KNOWLEDGE_CAPACITY + 5)]
    _, host = _written(_model(knowledge=[{"knowledge": facts}]), SHORT_CAPACITY + 5)
    held = [row.text for row in host.by_age() if row.metadata.get("long") == "fact"]
    assert held == facts[5:]


def test_tiers_keep_their_shares_under_a_budget() -> None:
    policy, host = _written(None, 40)
    budget = host.bytes() / 2
    policy.enforce(host, budget, 50)
    size = dict.fromkeys(("short", "long"), 0)
    for row in host.rows.values():
        mark = (
            "long"
            if "long" in row.metadata
            else ""
            if row.metadata.keys() & {"session", "keywords"}
            else "short"
        )
        if mark:
            size[mark] += host.size_bytes(row.number)
    assert size["short"] <= SHORT_SHARE * budget
    assert size["long"] <= LONG_SHARE * budget


def test_the_least_accessed_session_loses_its_pages_before_its_summary() -> None:
    topics = [{"summary": name, "keywords": [name]} for name in ("kayaks", "desks")]
    policy, host = _written(_model(topic=list(topics)), SHORT_CAPACITY + 2)
    policy.enforce(host, 0.5 * host.bytes(), 40)
    first = next(row for row in host.rows.values() if row.metadata.get("session"))
    kept = int(first.metadata["session"])
    for now in range(50, 53):
        policy.on_read(host, "q", [kept], now)
    policy.enforce(host, host.bytes() - 1, 60)
    sessions = {row.number: row for row in host.rows.values() if "keywords" in row.metadata}
    assert kept in sessions
    report = policy.enforce(host, host.size_bytes(kept) + 1, 61)
    assert [row.number for row in host.rows.values()] == [kept]
    assert report.evicted


def test_unreadable_answers_keep_the_page() -> None:
    _, host = _written(
        Scripted(continuity=["?"], topic=["?"], profile=["?"], knowledge=["?"]), SHORT_CAPACITY + 1
    )
    assert _tier(host, "mid") == ["i0"]
    assert len(_tier(host, "short")) == SHORT_CAPACITY
