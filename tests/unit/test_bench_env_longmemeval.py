"""LongMemEval: evidence sessions among fillers, and whether the returned turns hold the answer."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.datasets import data_directory
from bench.environments.contract import Question, Size
from bench.environments.longmemeval import LongMemEval
from bench.environments.longmemeval_sessions import PIECE_BYTES, history, pieces
from shared.errors import Code, InputError
from shared.memory.model import Kind
from tests.unit.bench_env_checks import Parrot, check_promises, everything, keep_all, mean_g

FIXTURES = Path(__file__).parents[1] / "fixtures" / "bench"
SIZE = Size(1, 26, 7, 3)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "longmemeval").mkdir()
    for path in FIXTURES.glob("longmemeval_*.json"):
        (tmp_path / "longmemeval" / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_promises(data: Path) -> None:
    (world,) = check_promises(lambda: LongMemEval(data), SIZE)
    assert {item.kind for item in world.items} == {Kind.MESSAGE}


def test_a_whole_store_tells_nearly_everything_and_an_empty_one_nothing(data: Path) -> None:
    environment = LongMemEval(data)
    worlds = environment.worlds(0, SIZE)
    assert mean_g(environment, worlds, lambda world: []) == 0.0
    assert mean_g(environment, worlds, everything) == 1.0
    assert min(keep_all(environment, worlds)) > 80.0


def test_real_sessions_where_they_are_at_hand() -> None:
    data = data_directory()
    if data is None or not (data / "longmemeval").is_dir():
        with pytest.raises(InputError, match="xiaowu0162"):
            LongMemEval(data)
        return
    environment = LongMemEval(data)
    size = environment.size("quick")
    worlds = environment.worlds(0, size)
    types = Counter(question.category for world in worlds for question in world.measuring)
    assert sum(types.values()) >= 50
    assert sum(types.values()) - types["asked_again"] - types["abstention"] >= 15
    assert all(len(item.text.encode()) < PIECE_BYTES + 60 for world in worlds for item in world.items)


def test_both_layouts_are_read_and_each_session_is_kept_once() -> None:
    official = history(json.loads((FIXTURES / "longmemeval_official.json").read_text(encoding="utf-8")))
    assert set(official.questions) == {"q1", "q2", "q3_abs", "q4"}
    assert official.questions["q1"].answer == "14"
    assert official.questions["q2"].evidence == ("answer_q2_1", "answer_q2_2")
    assert official.questions["q3_abs"].abstention
    assert sum(name.startswith("filler") for name in official.sessions) == 7
    assert official.sessions["filler_1"].date == "2023/06/01 (Thu) 11:30"
    shared = history(json.loads((FIXTURES / "longmemeval_haystacks.json").read_text(encoding="utf-8")))
    assert shared.questions["h1+1"].type == "added-by-redistributor"
    official.add(shared)
    assert official.sessions["filler_5"].date == "2023/07/10 (Mon) 09:00"
    assert "filler_7" in official.sessions


def test_turns_come_by_date_with_their_sessions_chained(data: Path) -> None:
    (world,) = LongMemEval(data).worlds(0, SIZE)
    assert world.items[0].text.startswith("[2023/05/20 (Sat) 02:21] User: By the way")
    assert [len(item.links) for item in world.items[:5]] == [0, 1, 1, 1, 0]
    assert {question.category for question in world.measuring} >= {"single-session-user", "asked_again"}


def test_preferences_are_left_out_and_abstention_needs_a_model(data: Path) -> None:
    environment = LongMemEval(data)
    (world,) = environment.worlds(0, SIZE)
    assert "Can you suggest a film?" not in {question.text for question in world.measuring}
    (declined,) = (question for question in world.measuring if question.needs_model)
    with pytest.raises(InputError, match="only a model"):
        environment.g(declined, [], None)
    assert environment.g(declined, [], Parrot("You did not mention it.")) == 1.0
    assert environment.g(declined, [], Parrot("Biscuit")) == 0.0


def test_an_answer_counts_whole_or_by_its_words(data: Path) -> None:
    environment = LongMemEval(data)
    passport = _question(environment, "Where do I keep my passport?")
    assert environment.g(passport, ["it is in the blue tin now"], None) == 1.0
    assert environment.g(passport, ["a tin", "grey"], None) == pytest.approx(0.5)
    assert environment.g(passport, ["desk drawer"], None) == 0.0
    assert environment.g(passport, [], Parrot("In the blue tin!")) == 1.0
    assert environment.g(passport, ["in the blue tin"], Parrot("In the desk drawer.")) == 0.0
    chairs = _question(environment, "How many chairs did I paint?")
    assert environment.g(chairs, ["I painted 14 chairs"], None) == 1.0
    assert environment.g(chairs, ["I painted 141 chairs"], None) == 0.0


def test_a_probe_asks_for_what_the_reply_alone_says(data: Path) -> None:
    environment = LongMemEval(data)
    (world,) = environment.worlds(0, SIZE)
    for round_ in world.serving:
        for question in round_:
            reply = [t for t in everything(world) if environment.g(question, [t], None) == 1.0]
            assert len(reply) >= 1
            assert all("] Assistant: " in text for text in reply)
            assert environment.g(question, [question.text], None) < 0.5


def test_long_turns_are_cut_at_blanks() -> None:
    text = "wörter und " * 1500
    cut = pieces(text)
    assert len(cut) > 3
    assert all(0 < len(piece.encode()) <= PIECE_BYTES for piece in cut)
    assert " ".join(cut).split() == text.split()
    assert pieces("ü" * 3000) == ["ü" * 2000, "ü" * 1000]
    assert pieces("  ") == []


def test_absent_data_are_named() -> None:
    with pytest.raises(InputError, match=r"longmemeval_s\.json") as caught:
        LongMemEval(None)
    assert caught.value.code is Code.BAD_INPUT_FILE


@pytest.mark.parametrize(
    "raw",
    [b"", b"{}", b"[]", b"[{}]", b"\xff", b"[3]", b"null"],
    ids=["empty", "object", "none", "no fields", "bytes", "number", "null"],
)
def test_a_file_in_another_layout_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "longmemeval").mkdir()
    (tmp_path / "longmemeval" / "s.json").write_bytes(raw)
    with pytest.raises(InputError, match="LongMemEval"):
        LongMemEval(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"haystack_dates": []},
        {"haystack_session_ids": [1, 2, 3, 4]},
        {"haystack_sessions": [[{"role": "system", "content": "x"}]] * 4},
        {"haystack_sessions": [[{"role": "user", "content": "\ud800"}]] * 4},
        {"question": ""},
        {"answer_session_ids": [3]},
    ],
    ids=["dates", "ids", "role", "surrogate", "question", "evidence"],
)
def test_a_broken_record_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    records = json.loads((FIXTURES / "longmemeval_official.json").read_text(encoding="utf-8"))
    records[0] |= change
    (tmp_path / "longmemeval").mkdir()
    (tmp_path / "longmemeval" / "s.json").write_text(json.dumps(records), encoding="utf-8")
    with pytest.raises(InputError, match="LongMemEval"):
        LongMemEval(tmp_path)


def test_questions_without_their_sessions_are_no_data(tmp_path: Path) -> None:
    records = json.loads((FIXTURES / "longmemeval_official.json").read_text(encoding="utf-8"))
    for record in records:
        record["answer_session_ids"] = ["elsewhere"]
    (tmp_path / "longmemeval").mkdir()
    (tmp_path / "longmemeval" / "s.json").write_text(json.dumps(records), encoding="utf-8")
    with pytest.raises(InputError, match="no question whose sessions"):
        LongMemEval(tmp_path)


def _question(environment: LongMemEval, text: str) -> Question:
    for seed in range(10):
        for world in environment.worlds(seed, SIZE):
            for question in (*world.measuring, *world.later[6]):
                if question.text == text:
                    return question
    raise AssertionError(text)
