"""R3Mem: residues go down by use and come back by reading, unverified."""

from __future__ import annotations

from typing import Any

from bench.environments.contract import Item
from bench.policies.contract import Report
from bench.policies.host import Host, HostArm, merge
from bench.policies.r3mem import LEVELS, R3Mem

from .bench_policy_checks import Scripted, item, stream, texts

_FULL = "Ann bought a red kayak for 5 euros in Lisbon. " * 4


def _model(**more: list[Any]) -> Scripted:
    answers: dict[str, list[Any]] = {
        "compress": [{"residue": "Ann: red kayak, 5 euros, Lisbon. " * 20}],
        "restore": [{"text": _FULL}],
    }
    return Scripted(**(answers | more))


def _arm(model: Scripted | None, items: list[Item]) -> tuple[R3Mem, HostArm, Host]:
    policy = R3Mem(0, model)
    arm = HostArm(policy)
    for one in items:
        arm.write(one)
    return policy, arm, arm.host


def test_a_level_holds_its_share_of_the_original() -> None:
    _, arm, host = _arm(_model(), [item("a", _FULL)])
    size = len(_FULL.encode())
    for level in ("gist", "paragraph", "entities"):
        report = arm.set_budget(host.bytes() - 1)
        assert arm.rungs() == {level: 1}
        assert [to for _, _, to in report.demoted] == [level]
        assert report.model_calls == 1
        assert len(texts(host)[0].encode()) <= LEVELS[level] * size
    assert arm.set_budget(host.bytes() - 1).evicted == ["a"]


def test_the_least_recently_used_goes_first_and_one_level_over_the_whole_store() -> None:
    _, arm, host = _arm(None, stream(5))
    arm.recall("Ben two maple desks 15 euros", 1, 1000, record=True)
    report = Report()
    while not report.evicted:
        merge(report, arm.set_budget(host.bytes() - 1))
    order = ["i0", "i2", "i3", "i4", "i1"]
    assert [step for step, _, _ in report.demoted] == 3 * order
    assert [to for _, _, to in report.demoted] == ["gist"] * 5 + ["paragraph"] * 5 + ["entities"] * 5
    assert report.evicted[0] == "i0"


def test_a_residue_is_made_of_the_level_above() -> None:
    model = _model(compress=[{"residue": "gist of a kayak"}, {"residue": "kayak"}])
    _, arm, host = _arm(model, [item("a", _FULL)])
    for _ in range(2):
        arm.set_budget(host.bytes() - 1)
    assert '"text": "gist of a kayak"' in model.asked[1][1]
    assert texts(host) == ["kayak"]


def test_a_read_restores_what_fits_at_once_and_a_rising_budget_nothing() -> None:
    model = _model(restore=[{"text": "Ann sold a green boat."}])
    policy, arm, host = _arm(model, [item("a", _FULL), item("b", "a blue tent")])
    whole = host.bytes()
    arm.set_budget(whole - 20)
    assert arm.set_budget(2 * whole).promoted == []
    [shown] = arm.recall("red kayak", 1, 1000, record=True).hits
    assert shown.rung == "gist", "the read itself sees the residue"
    assert arm.settle().promoted == [("a", "gist", "full")]
    assert "Ann sold a green boat." in texts(host)
    assert policy.write_backs == 1
    assert policy.lost_invariants == 2, "5 and Lisbon; nothing stops it"
    assert arm.rungs() == {"full": 2}


def test_neighbours_are_the_other_hits() -> None:
    model = _model()
    _, arm, host = _arm(model, [item("a", _FULL), item("b", "a green kayak"), item("c", "seven violins")])
    arm.set_budget(host.bytes() - 1)
    arm.set_budget(10_000)
    arm.recall("kayak", 2, 1000, record=True)
    restoring = [prompt for purpose, prompt in model.asked if purpose == "restore"]
    assert len(restoring) == 1
    assert '"neighbours": ["a green kayak"]' in restoring[0]


def test_a_read_restores_nothing_that_does_not_fit_or_is_not_recorded() -> None:
    model = _model()
    _, arm, host = _arm(model, [item("a", _FULL)])
    arm.set_budget(host.bytes() - 1)
    arm.recall("kayak", 1, 1000, record=True)
    arm.set_budget(10_000)
    arm.recall("kayak", 1, 1000, record=False)
    assert [purpose for purpose, _ in model.asked] == ["compress"]
    assert arm.rungs() == {"gist": 1}


def test_an_unreadable_restoration_leaves_the_residue() -> None:
    for useless in ("?", '{"text": "  "}'):
        policy, arm, host = _arm(_model(restore=[useless]), [item("a", _FULL)])
        arm.set_budget(host.bytes() - 1)
        before = texts(host)
        arm.set_budget(10_000)
        arm.recall("kayak", 1, 1000, record=True)
        assert texts(host) == before
        assert policy.write_backs == 0


def test_an_unreadable_residue_is_made_by_rule() -> None:
    policy, arm, host = _arm(_model(compress=["?"]), [item("a", _FULL)])
    arm.set_budget(host.bytes() - 1)
    assert policy.spent.unreadable == 2
    assert texts(host)[0].rstrip(".") in _FULL


def test_the_stand_in_restores_from_neighbours_only() -> None:
    _, arm, host = _arm(None, stream(8))
    whole = host.bytes()
    arm.set_budget(0.6 * whole)
    left = " ".join(texts(host))
    arm.set_budget(whole)
    for _ in range(3):
        arm.recall("Ann red kayak Lisbon euros", 4, 4000, record=True)
    promoted = arm.settle().promoted
    assert promoted
    for row in host.rows.values():
        if row.item in {name for name, _, _ in promoted}:
            assert all(word in left for word in row.text.split())
