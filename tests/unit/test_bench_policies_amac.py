"""A-MAC: five features, a threshold, and eviction by the same score."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.policies.amac import THRESHOLD, AMac, confidence, rouge_l, type_prior
from bench.policies.host import Host

from .bench_policy_checks import Scripted, item, texts


def _rated(*utilities: float) -> Scripted:
    return Scripted(utility=[{"utility": rate} for rate in utilities])


@pytest.mark.parametrize(
    ("text", "prior"),
    [
        ("They prefer tea and hate coffee", 0.9),
        ("my name is Ann, I live in Berlin", 0.9),
        ("the lamps were broken", 0.7),
        ("going to buy lamps tomorrow", 0.5),
        ("sit down at the moment, right now", 0.2),
        ("blue tent", 0.5),
        ("", 0.5),
    ],
)
def test_priors_by_type(text: str, prior: float) -> None:
    assert type_prior(text) == prior


def test_rouge_l_is_the_f1_of_the_longest_common_subsequence() -> None:
    assert rouge_l("the red kayak sank", "a red old kayak sank") == pytest.approx(2 * 3 / 9)
    assert rouge_l("red", "") == 0.0
    assert rouge_l("one two", "one two") == 1.0


def test_confidence_is_the_best_support_among_turns_that_share_a_word() -> None:
    hearsay = replace(item("t", "the red kayak sank"), source="tool")
    assert confidence(hearsay, ["blue tent", "the red kayak floats"]) == pytest.approx(2 * 3 / 8)
    assert confidence(hearsay, ["blue tent"]) == 0.0
    assert confidence(item("o", "the red kayak sank"), []) == 1.0


def test_what_scores_below_the_threshold_is_not_stored() -> None:
    policy, host = AMac(0, _rated(0.0)), Host()
    refused = policy.on_write(host, item("a", "sit down at the moment, right now"), 1)
    assert (refused.evicted, host.bytes()) == (["a"], 0)
    admitted = policy.on_write(host, item("b", "They prefer tea and hate coffee"), 2)
    assert (admitted.evicted, texts(host)) == ([], ["They prefer tea and hate coffee"])


def test_each_feature_weighs_as_learned() -> None:
    policy, host = AMac(0, _rated(0.5)), Host()
    policy.on_write(host, item("a", "the lamps were broken"), 1)
    assert float(host.rows[1].metadata["score"]) == pytest.approx(0.1 * 0.5 + 0.1 + 0.1 + 0.6 * 0.7)
    again = policy.on_write(host, item("b", "the lamps were broken"), 2)
    assert again.merged == ["a"], "said again: the newer one replaces it"
    assert float(host.rows[2].metadata["score"]) == pytest.approx(0.1 * 0.5 + 0.1 + 0.6 * 0.7)


def test_only_what_the_newer_text_says_too_is_replaced() -> None:
    policy, host = AMac(0, _rated(1.0)), Host()
    for n, text in enumerate(
        (
            "the lamps in room 12 were broken",
            "the lamps in room 14 were broken",
            "the lamps in room 14 were broken twice",
        )
    ):
        policy.on_write(host, item(f"i{n}", text, hours=n), n)
    assert texts(host) == ["the lamps in room 12 were broken", "the lamps in room 14 were broken twice"]
    policy.on_write(host, item("old", "the lamps in room 14 were broken twice", hours=0), 9)
    assert len(host.rows) == 3, "an older telling replaces nothing"


def test_the_model_is_shown_the_last_five_turns() -> None:
    model = _rated(1.0)
    policy, host = AMac(0, model), Host()
    for n in range(8):
        policy.on_write(host, item(f"i{n}", f"They like thing number {n} and {n * 7}"), n)
    shown = model.asked[-1][1]
    assert [n for n in range(8) if f"thing number {n} and" in shown] == [2, 3, 4, 5, 6, 7]


def test_eviction_is_by_score_with_recency_as_it_is_now() -> None:
    policy, host = AMac(0, _rated(0.9, 0.0, 0.9, 0.5)), Host()
    given = [
        ("old", "the kayak was red", 0.0),
        ("useless", "the ledgers are signed", 400.0),
        ("fresh", "the tents were blue", 400.0),
        ("liked", "They love violins", 0.0),
    ]
    for now, (name, text, hours) in enumerate(given):
        policy.on_write(host, item(name, text, hours=hours), now)
    report = policy.enforce(host, 0, 9)
    assert report.evicted == ["old", "useless", "fresh", "liked"]


def test_the_bar_follows_the_survivors_until_there_is_room_again() -> None:
    policy, host = AMac(0, _rated(0.0, 1.0, 0.0)), Host()
    policy.on_write(host, item("low", "the kayak was red"), 1)
    policy.on_write(host, item("high", "They love violins"), 2)
    small = host.bytes() - 1
    policy.enforce(host, small, 3)
    assert texts(host) == ["They love violins"]
    assert policy.threshold > THRESHOLD
    assert policy.on_write(host, item("late", "the tents were blue"), 4).evicted == ["late"]
    policy.enforce(host, small + 1, 5)
    assert policy.threshold == THRESHOLD
    assert policy.on_write(host, item("later", "the tents were blue"), 6).evicted == []


def test_an_unreadable_utility_counts_as_a_half() -> None:
    policy, host = AMac(0, Scripted(utility=["7", '{"utility": 3}'])), Host()
    policy.on_write(host, item("a", "the lamps were broken"), 1)
    assert float(host.rows[1].metadata["score"]) == pytest.approx(0.1 * 0.5 + 0.1 + 0.1 + 0.6 * 0.7)
    assert policy.spent.unreadable == 2
