"""The LoCoMo loader, on a hand-made file with the real one's quirks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.datasets import ENVIRONMENT_NAME, data_directory, locomo

TURNS = [
    {"speaker": "Ann", "dia_id": "D1:1", "text": "I moved to Oslo."},
    {"speaker": "Bob", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a red boat", "query": "boat"},
]
RECORD = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_2_date_time": "1 pm on 9 May, 2023",
        "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Hi"}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": TURNS,
        "session_3_date_time": "never held",
    },
    "qa": [
        {"question": "Where?", "answer": "Oslo", "evidence": ["D1:1; D2:1"], "category": 1},
        {
            "question": "When?",
            "answer": 2022,
            "evidence": ["D", "D:11:26", "D1:99", "D1:2", "D1:2"],
            "category": 2,
        },
        {"question": "Why?", "adversarial_answer": "no", "evidence": [], "category": 5},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "locomo_1.json").write_text(json.dumps([RECORD]), encoding="utf-8")
    return tmp_path


def test_turns_come_in_order_with_their_session(folder: Path) -> None:
    [conversation] = locomo(folder)
    assert conversation.speakers == ("Ann", "Bob")
    assert [turn.id for turn in conversation.turns] == ["D1:1", "D1:2", "D2:1"]
    assert conversation.turns[0].date == "1:56 pm on 8 May, 2023"
    assert conversation.turns[0].said == "Ann: I moved to Oslo."
    assert conversation.turns[1].said == "Bob: Look! [shares a picture: a red boat]"


def test_questions_keep_what_resolves(folder: Path) -> None:
    where, when, why = locomo(folder)[0].questions
    assert where.evidence == ("D1:1", "D2:1")
    assert (when.evidence, when.answer) == (("D1:2",), "2022")
    assert (why.evidence, why.answer, why.category) == ((), "", 5)


def test_the_folder_is_the_option_then_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_NAME, str(tmp_path))
    assert data_directory() == tmp_path
    assert data_directory(tmp_path / "absent") is None
    (tmp_path / "other").mkdir()
    assert data_directory(str(tmp_path / "other")) == tmp_path / "other"
    assert locomo(tmp_path) == []
