"""The recall bench on a hand-made conversation: its peers, and ours through the product's store."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import embedding_cache, recall
from bench.recall_peers import Bm25, fused, int8, rotated_signs
from shared.memory.vectors import Rotation
from tests.tiny_embedder import make_embedder

TURNS = (
    "the red car is parked by the old house",
    "a cat sleeps near the river",
    "the doctor works in the blue house",
    "the baker sold bread",
)
ASKED = (("who has an automobile?", 0), ("where is the feline?", 1), ("who sold bread?", 3))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    talk = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_1_date_time": "1 pm on 9 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": f"D1:{place}", "text": text}
                for place, text in enumerate(TURNS, 1)
            ],
        },
        "qa": [
            {"question": text, "answer": "x", "evidence": [f"D1:{place + 1}"], "category": 4}
            for text, place in ASKED
        ]
        + [{"question": "why?", "adversarial_answer": "x", "evidence": ["D1:1"], "category": 5}],
    }
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "locomo_1.json").write_text(json.dumps([talk]))
    monkeypatch.setattr(recall, "OUT", tmp_path / "recall.json")
    monkeypatch.setattr(recall, "CUTS", (1, 2))
    monkeypatch.setattr(recall, "_figures", lambda rows, _: ({row.name: row.recall[0] for row in rows}, {}))
    monkeypatch.setattr(embedding_cache, "DIRECTORY", tmp_path / "vectors")
    return tmp_path


def run(folder: Path, model: str) -> dict[str, float]:
    assert recall.main(["--data", str(folder), "--models", str(folder / "models"), "--model", model]) == 0
    figures: dict[str, float] = json.loads((folder / "recall.json").read_text())["figures"]
    return figures


def test_meaning_finds_what_words_do_not(folder: Path) -> None:
    make_embedder(folder / "models" / "tiny")
    figures = run(folder, "tiny")
    assert figures["questions"] == 3.0
    assert figures["BM25"] < 1.0
    assert figures["ours, by words"] < 1.0
    for name in ("f32", "ours, hybrid", "ours, by words + f32"):
        assert figures[name] == 1.0, name
    # Kept vectors give the same figures.
    again = run(folder, "tiny")
    speeds = {"texts_per_s", "texts_per_cpu_s"}
    assert {name: value for name, value in again.items() if name not in speeds} == {
        name: value for name, value in figures.items() if name not in speeds
    }


def test_without_an_embedder_the_words_are_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = run(folder, "absent")
    assert set(figures) == {"BM25", "ours, by words", "turns", "questions"}
    assert "not run: every row with a vector" in capsys.readouterr().out


def test_without_data_it_says_where_to_get_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert recall.main(["--data", str(tmp_path / "no"), "--models", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    for word in ("snap-research/LoCoMo", "CC BY-NC 4.0", "not run: recall of evidence", "models prepare"):
        assert word in told


def test_the_peers_are_what_they_say() -> None:
    found = Bm25(["red red car", "red house by the river", "the cat"]).scores("what is the RED car?")
    assert found[0] > found[1] > 0
    assert found[2] == 0
    assert np.argmax(fused(np.array([3.0, 2.0, 1.0]), np.array([1.0, 3.0, 2.0]))) == 1
    rows = np.random.default_rng(1).standard_normal((5, 64)).astype(np.float32)
    assert np.abs(int8(rows) - rows).max() < np.abs(rows).max() / 200
    assert set(np.unique(rotated_signs(Rotation(64), rows)).tolist()) == {-1.0, 1.0}
