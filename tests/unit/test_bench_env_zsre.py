"""ZsRE: counterfactual facts, asked in other words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.datasets import data_directory
from bench.environments.contract import Question, Size
from bench.environments.zsre import Zsre
from shared.errors import Code, InputError
from tests.unit.bench_env_checks import Parrot, check_promises, everything, keep_all, mean_g

FIXTURE = Path(__file__).parents[1] / "fixtures" / "bench" / "zsre_mend.json"
SIZE = Size(1, 12, 4, 3)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "zsre").mkdir()
    (tmp_path / "zsre" / "mend.json").write_bytes(FIXTURE.read_bytes())
    return tmp_path


def test_promises(data: Path) -> None:
    check_promises(lambda: Zsre(data), SIZE)


def test_a_whole_store_answers_everything_and_an_empty_one_nothing(data: Path) -> None:
    environment = Zsre(data)
    worlds = environment.worlds(0, SIZE)
    assert mean_g(environment, worlds, lambda world: []) == 0.0
    assert mean_g(environment, worlds, everything) == 1.0
    assert keep_all(environment, worlds) == [100.0] * 7


def test_real_edits_where_they_are_at_hand() -> None:
    data = data_directory()
    if data is None or not (data / "zsre").is_dir():
        with pytest.raises(InputError, match="REPAIR"):
            Zsre(data)
        return
    environment = Zsre(data)
    worlds = environment.worlds(0, environment.size("quick"))
    assert [len(world.items) for world in worlds] == [150]
    assert min(keep_all(environment, worlds)) > 95.0


def test_mends_layout_is_read(data: Path) -> None:
    environment = Zsre(data)
    assert "7 counterfactual facts" in environment.provenance
    (world,) = environment.worlds(0, SIZE)
    texts = everything(world)
    assert "What year was Hotel Marisol founded? 1931." in texts
    assert sum(text.startswith("who sang song number") for text in texts) >= 1
    assert not any("true one" in text or "nq question" in text for text in texts)
    # Subjects with two records, unnamed ones, and objects that stand in the question are left out.
    assert not any(name in text for text in texts for name in ("Twice Told", "Unnamed", "Echo Bay"))


def test_traffic_uses_the_wordings_of_the_relation(data: Path) -> None:
    environment = Zsre(data)
    asked = {
        question.text
        for seed in range(12)
        for world in environment.worlds(seed, SIZE)
        for round_ in world.serving
        for question in round_
    }
    # Hotel Marisol's own paraphrase measures; the other record of its relation lends a third wording.
    assert "In which year was Hotel Marisol founded?" in asked
    assert "When was Hotel Marisol started?" not in asked
    assert "Otis Brandvold's father is who?" not in asked
    assert "Who was Otis Brandvold's dad?" in asked
    assert not any("Twice Told" in text for text in asked)


def test_the_best_text_about_the_subject_answers(data: Path) -> None:
    environment = Zsre(data)
    question = _question(environment, "When was Hotel Marisol started?")
    right = "What year was Hotel Marisol founded? 1931."
    assert environment.g(question, ["who sang? Singer", right], None) == 1.0
    assert environment.g(question, ["Hotel Marisol 1931"], None) == 1.0
    assert environment.g(question, ["Hotel Marisol: 1930.", right], None) == 0.0
    assert environment.g(question, ["Hotel Marisol founded", "1931"], None) == 0.0
    assert environment.g(question, ["founded? 1931."], None) == 0.0
    assert environment.g(question, ["x"], Parrot("In 1931.")) == 1.0
    assert environment.g(question, [right], Parrot("unknown")) == 0.0


def test_absent_data_are_named() -> None:
    with pytest.raises(InputError, match="MEND") as caught:
        Zsre(None)
    assert caught.value.code is Code.BAD_INPUT_FILE


@pytest.mark.parametrize(
    "raw",
    [b"", b"{}", b"[]", b"[{}]", b"\xff", b"[3]", b"null"],
    ids=["empty", "object", "none", "no fields", "bytes", "number", "null"],
)
def test_a_file_in_another_layout_is_refused(data: Path, raw: bytes) -> None:
    (data / "zsre" / "mend.json").write_bytes(raw)
    with pytest.raises(InputError, match=r"mend\.json"):
        Zsre(data)


@pytest.mark.parametrize("change", [{"alt": ""}, {"subject": 3}, {"src": None}, {"rephrase": "\ud800"}])
def test_a_broken_record_is_refused(data: Path, change: dict[str, Any]) -> None:
    records = json.loads(FIXTURE.read_text(encoding="utf-8"))
    records[0] |= change
    (data / "zsre" / "mend.json").write_text(json.dumps(records), encoding="utf-8")
    with pytest.raises(InputError, match="zsRE edits"):
        Zsre(data)


def test_too_few_subjects_are_no_data(data: Path) -> None:
    records = json.loads(FIXTURE.read_text(encoding="utf-8"))
    (data / "zsre" / "mend.json").write_text(json.dumps(records[:2]), encoding="utf-8")
    with pytest.raises(InputError, match="fewer than three"):
        Zsre(data)


def _question(environment: Zsre, text: str) -> Question:
    for seed in range(20):
        for world in environment.worlds(seed, SIZE):
            for question in (*world.measuring, *world.later[6]):
                if question.text == text:
                    return question
    raise AssertionError(text)
