"""bench.distill: what it counts, on small texts whose figures can be worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import distill, distill_alfworld, distill_locomo, distill_speed
from bench.datasets import Conversation, Question, Turn
from tests.texts import TRANSCRIPT


def turn(number: int, speaker: str, text: str, caption: str = "") -> Turn:
    return Turn(f"D1:{number}", 1, "", speaker, text, caption)


CONVERSATION = Conversation(
    "conv-x",
    ("Ana", "Bo"),
    (
        turn(1, "Ana", "I adopted three greyhounds from the shelter in Porto last week, they are great!"),
        turn(2, "Bo", "Wow! That is so nice, what are you going to do now?", "a photo of two racing dogs"),
    ),
    (
        Question("How many greyhounds?", "3 greyhounds", 4, ("D1:1",)),
        Question("Which dogs?", "racing dogs", 4, ("D1:2",)),
        Question("Both?", "Porto, racing", 1, ("D1:1", "D1:2")),
        Question("Not told", "Lisbon", 4, ("D1:1",)),
        Question("No content", "so", 4, ("D1:1",)),
        Question("No evidence", "Porto", 4, ()),
        Question("Nobody said", "", 5, ("D1:1",)),
    ),
)


def test_only_what_the_evidence_answers_is_asked() -> None:
    shown = distill_locomo.eligible([CONVERSATION], captions=True)
    assert [one.gold for one in shown] == [("3", "greyhound"), ("racing", "dogs"), ("porto", "racing")]
    assert [one.gold for one in distill_locomo.eligible([CONVERSATION], captions=False)] == [
        ("3", "greyhound")
    ]


def test_strict_is_all_tokens_soft_is_their_share() -> None:
    asked = distill_locomo.eligible([CONVERSATION], captions=True)
    texts = list(distill_locomo.turn_texts(CONVERSATION, captions=True).values())
    whole = distill_locomo.grade(asked, texts, lambda text, share: text, 1.0)
    assert (whole.strict, whole.soft, whole.share) == (1.0, 1.0, 1.0)
    got = distill_locomo.grade(asked, texts, lambda text, share: "Porto, three dogs", 0.5)
    assert got.strict == 0.0
    assert got.soft == pytest.approx(0.5)
    assert got.share == pytest.approx(2 * 17 / sum(len(text.encode()) for text in texts))


@pytest.mark.parametrize("share", [0.5, 0.25, 0.08])
def test_every_way_to_keep_holds_its_bytes(share: float) -> None:
    texts = list(distill_locomo.turn_texts(CONVERSATION, captions=True).values())
    for keep in (distill_locomo.ours(), distill_locomo.key_words(texts), distill_locomo.sentences(texts)):
        for text in texts:
            kept = keep(text, share)
            assert 0 < len(kept.encode()) <= max(int(len(text.encode()) * share), 4)


def test_a_fact_is_read_off_a_line_with_all_its_parts() -> None:
    found = sorted(distill_alfworld.facts(TRANSCRIPT))
    assert [parts for kind, parts in found if kind != "seen"] == [
        ("won", "9"),
        ("apple 17", "garbagecan 1"),
        ("heat", "apple 17", "microwave 1"),
    ]
    assert ("seen", ("egg 204", "fridge 1")) in found
    assert set(distill_alfworld.read_off([TRANSCRIPT], lambda text: text).values()) == {1.0}
    split = distill_alfworld.read_off(
        [TRANSCRIPT], lambda text: text.replace("garbagecan 1", "\ngarbagecan 1")
    )
    assert split["place"] == 0.0
    assert split["step"] == split["outcome"] == 1.0
    longer = distill_alfworld.read_off([TRANSCRIPT], lambda text: text.replace("after 9", "after 19"))
    assert longer["outcome"] == 0.0


def test_a_lost_episode_is_not_read_as_won() -> None:
    lost = TRANSCRIPT.replace("won after 9 steps", "not won, given up after 9 steps")
    assert ("outcome", ("not", "won", "9")) in set(distill_alfworld.facts(lost))
    assert distill_alfworld.read_off([lost], lambda text: text.replace("not won", "won"))["outcome"] == 0.0


def test_odd_texts_have_the_size_they_are_asked_for() -> None:
    for name, make in distill_speed.ODD.items():
        size, twice = len(make(3000).encode()), len(make(6000).encode())
        assert 2400 < size <= 3300, name
        assert 1.9 < twice / size < 2.1, name


def test_without_the_data_it_says_so_and_runs_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, asked = distill_alfworld.recorded()
    monkeypatch.setattr(distill_alfworld, "recorded", lambda: (texts[:8], asked[:4]))
    monkeypatch.setattr(distill_speed, "ROUNDS", 1)
    monkeypatch.setattr(distill_speed, "ODD", {"one letter": lambda size: "a" * 64})
    monkeypatch.setattr(distill_speed, "one_long_line", lambda: 0.0)
    out = tmp_path / "distill.json"
    assert distill.main(["--data", str(tmp_path), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "LoCoMo did not run" in shown
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["figures"]["alfworld_trace_facts"] > 0.8
    assert "ms_per_kb" in report["aims"]
    assert not any(name.startswith("locomo") for name in report["figures"])
