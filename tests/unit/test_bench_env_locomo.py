"""LoCoMo: turns with their dates, and the share of a gold answer that the returned turns tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.datasets import data_directory
from bench.environments import moments
from bench.environments.contract import Question, Size, World
from bench.environments.locomo import Locomo
from shared.errors import Code, InputError
from shared.memory.model import Kind
from tests.unit.bench_env_checks import Parrot, check_promises, everything, keep_all, mean_g

FIXTURE = Path(__file__).parents[1] / "fixtures" / "bench" / "locomo.json"
SIZE = Size(2, 14, 10, 4)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "locomo_2.json").write_bytes(FIXTURE.read_bytes())
    return tmp_path


def test_promises(data: Path) -> None:
    worlds = check_promises(lambda: Locomo(data), SIZE)
    assert {item.kind for world in worlds for item in world.items} == {Kind.MESSAGE}


def test_a_whole_store_tells_nearly_everything_and_an_empty_one_nothing(data: Path) -> None:
    environment = Locomo(data)
    worlds = environment.worlds(0, SIZE)
    assert mean_g(environment, worlds, lambda world: []) == 0.0
    assert mean_g(environment, worlds, everything) > 0.9
    assert min(keep_all(environment, worlds)) > 85.0


def test_real_conversations_where_they_are_at_hand() -> None:
    data = data_directory()
    if data is None or not (data / "locomo").is_dir():
        with pytest.raises(InputError, match="snap-research"):
            Locomo(data)
        return
    environment = Locomo(data)
    worlds = environment.worlds(0, environment.size("quick"))
    assert all(len(world.items) == environment.size("quick").items for world in worlds)
    assert sum(not question.needs_model for world in worlds for question in world.measuring) >= 30
    assert min(keep_all(environment, worlds)) > 55.0


def test_entries_hold_date_speaker_and_caption_and_cite_the_turn_before(data: Path) -> None:
    (world, _) = Locomo(data).worlds(1, SIZE)
    texts = everything(world)
    assert sum("[1:56 pm on 8 May, 2023]" in text for text in texts) == 10
    assert any(text.endswith("[shares a picture: a photo of a lighthouse at dusk]") for text in texts)
    assert [len(item.links) for item in world.items] == [0] + [1] * 9 + [0] + [1] * 3
    assert world.items[0].time == moments.seconds("1:56 pm on 8 May, 2023")
    assert world.items[10].time == moments.seconds("12:05 am on 11 June, 2023")


def test_questions_go_where_their_evidence_is(data: Path) -> None:
    (world, _) = Locomo(data).worlds(1, SIZE)
    assert {question.text for question in world.later[6]} == {
        f"How many points had {_speaker(world)}?",
        "Who can repair the kiln?",
    }
    asked = {question.text for group in (world.measuring, *world.serving, *world.later) for question in group}
    assert "Nobody said where this is." not in asked
    assert [q.text for q in world.measuring if q.needs_model] == [f"What did {_speaker(world)} bake?"]


def test_only_a_model_can_decline(data: Path) -> None:
    environment = Locomo(data)
    (world, _) = environment.worlds(1, SIZE)
    (declined,) = (question for question in world.measuring if question.needs_model)
    with pytest.raises(InputError, match="only a model"):
        environment.g(declined, everything(world), None)
    assert environment.g(declined, ["x"], Parrot("Not mentioned.")) == 1.0
    assert environment.g(declined, ["x"], Parrot("plum cake")) == 0.0


@pytest.mark.parametrize(
    ("category", "answer", "least", "most"),
    [
        ("4", "plum cake with walnuts", 1.0, 1.0),
        ("4", "cake", 0.3, 0.7),
        ("1", "blue, red, green", 1.0, 1.0),
        ("1", "red", 0.3, 0.4),
        ("2", "3 June 2023", 1.0, 1.0),
        ("3", "likely yes", 1.0, 1.0),
        ("3", "no", 0.0, 0.0),
    ],
)
def test_a_models_answer_is_graded_as_the_benchmark_does(
    data: Path, category: str, answer: str, least: float, most: float
) -> None:
    environment = Locomo(data)
    wanted = {"4": "bake", "1": "colours", "2": "exam", "3": "own a pet"}[category]
    question = _question(environment, wanted)
    assert question.category == category
    assert least <= environment.g(question, ["x"], Parrot(answer)) <= most


def test_reader_free_counts_words_of_the_texts(data: Path) -> None:
    environment = Locomo(data)
    baked = _question(environment, "Ivar bake")
    assert environment.g(baked, ["plum cake", "some walnuts"], None) == 1.0
    assert environment.g(baked, ["plum"], None) == pytest.approx(1 / 3)
    assert environment.g(_question(environment, "own a pet"), ["she volunteers at a shelter"], None) == 0.0


def test_absent_data_are_named() -> None:
    with pytest.raises(InputError, match=r"locomo10\.json.*CC BY-NC") as caught:
        Locomo(None)
    assert caught.value.code is Code.BAD_INPUT_FILE


@pytest.mark.parametrize(
    "raw",
    [b"", b"{}", b"[]", b"[{}]", b"\xff", b"[3]", b'[{"sample_id": "a", "conversation": {}, "qa": []}]'],
    ids=["empty", "object", "none", "no fields", "bytes", "number", "no speakers"],
)
def test_a_file_in_another_layout_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "locomo_2.json").write_bytes(raw)
    with pytest.raises(InputError, match="locomo"):
        Locomo(tmp_path)


@pytest.mark.parametrize("change", [{"category": "many"}, {"evidence": 3}, {"category": None}])
def test_a_broken_record_is_refused(data: Path, change: dict[str, Any]) -> None:
    records = json.loads(FIXTURE.read_text(encoding="utf-8"))
    records[0]["qa"][0] |= change
    (data / "locomo" / "locomo_2.json").write_text(json.dumps(records), encoding="utf-8")
    with pytest.raises(InputError, match="LoCoMo"):
        Locomo(data)


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("12:00 am on 1 January, 1970", 0.0),
        ("12:01 pm on 1 January, 1970", 43_260.0),
        ("1970/01/02 (Fri) 00:01", 86_460.0),
        ("1970/01/02", 86_400.0),
        ("yesterday", None),
        ("1:00 pm on 31 February, 2023", None),
        ("1:00 pm on 3 Smarch, 2023", None),
        ("", None),
    ],
)
def test_dates_are_read(date: str, seconds: float | None) -> None:
    assert moments.seconds(date) == seconds


def test_times_rise() -> None:
    assert moments.rising([5.0, None, 3.0, 100.0]) == [5.0, 6.0, 7.0, 100.0]
    assert moments.rising([None, None]) == [0.0, 1.0]


def _question(environment: Locomo, part: str) -> Question:
    """The first question whose text holds this, from whatever world asks it."""
    for seed in range(30):
        for world in environment.worlds(seed, SIZE):
            for group in (world.measuring, *world.serving):
                for question in group:
                    if part in question.text and not question.needs_model:
                        return question
    raise AssertionError(part)


def _speaker(world: World) -> str:
    """Who spoke first."""
    return world.items[0].text.split("] ")[1].split(":")[0]
