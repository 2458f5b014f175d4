"""The shipped recording keeps its promises; no engine is needed here."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import lzma
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench import alfworld_check, alfworld_dataset
from bench.alfworld_agent import Record, Step
from bench.alfworld_games import load_wheel
from bench.alfworld_questions import Told, questions_about
from bench.reader_free import Index, content_tokens, share_found, words
from bench.record_alfworld import read_records, record_homes

DATA = Path(__file__).parents[2] / "crystalmem" / "data" / "alfworld_episodes.jsonl.xz"
MAX_FILE_BYTES = 400_000
FIRST_PART = 0.7


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).decode("utf-8").splitlines()]


@pytest.fixture(scope="module")
def episodes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["type"] == "episode"]


@pytest.fixture(scope="module")
def questions(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["type"] == "question"]


def home_of(episode: dict[str, Any]) -> str:
    return str(episode["text"].split()[0])


def test_the_file_is_small_and_its_lines_are_of_the_documented_types(rows: list[dict[str, Any]]) -> None:
    assert DATA.stat().st_size <= MAX_FILE_BYTES
    assert [row["type"] for row in rows].count("header") == 1
    assert rows[0]["type"] == "header"
    assert rows[0]["schema"] == 1
    assert {"name", "licence", "source", "generated"} <= set(rows[0])
    assert {row["type"] for row in rows[1:]} == {"episode", "question"}


def test_there_are_enough_homes_episodes_and_bytes(episodes: list[dict[str, Any]]) -> None:
    sizes = [len(episode["text"].encode()) for episode in episodes]
    assert len(episodes) >= 600
    assert len({home_of(episode) for episode in episodes}) >= 20
    assert sum(sizes) >= 1_200_000
    assert sum(1024 <= size <= 4096 for size in sizes) >= 0.95 * len(sizes)


def test_every_episode_is_a_finished_transcript(episodes: list[dict[str, Any]]) -> None:
    for number, episode in enumerate(episodes, start=1):
        lines = episode["text"].splitlines()
        assert re.fullmatch(rf"home-\d\d episode e{number:04d}, task: .+\.", lines[0])
        assert lines[1] == "-= Welcome to TextWorld, ALFRED! =-"
        steps = sum(line.startswith("> ") for line in lines)
        assert re.fullmatch(
            rf"Outcome of e{number:04d}: (won|not won, given up) after {steps} steps\.", lines[-1]
        )
        assert "Nothing happens." not in lines
    assert sum(": won after" in episode["text"] for episode in episodes) > 0.7 * len(episodes)


def test_ids_are_unique_links_point_back_and_time_runs_on(episodes: list[dict[str, Any]]) -> None:
    seen: dict[str, str] = {}
    times = [episode["time"] for episode in episodes]
    assert all(earlier < later for earlier, later in itertools.pairwise(times))
    for episode in episodes:
        assert re.fullmatch(r"[0-9a-f]{32}", episode["id"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", episode["time"])
        assert episode["id"] not in seen
        assert episode["kind"] == "episode"
        assert [seen[link] for link in episode["links"]] == [home_of(episode)] * len(episode["links"])
        seen[episode["id"]] = home_of(episode)
    assert sum(len(episode["links"]) for episode in episodes) > len(episodes) / 2


def test_every_tenth_of_the_stream_has_many_homes(episodes: list[dict[str, Any]]) -> None:
    tenth = len(episodes) // 10
    for start in range(0, tenth * 10, tenth):
        assert len({home_of(episode) for episode in episodes[start : start + tenth]}) >= 20


def test_questions_are_many_of_all_kinds_and_split_in_halves(
    episodes: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    place = {episode["id"]: number for number, episode in enumerate(episodes)}
    splits = Counter(question["split"] for question in questions)
    assert len(questions) >= 300
    assert len({question["id"] for question in questions}) == len(questions)
    assert len({question["question"] for question in questions}) == len(questions)
    assert set(splits) == {"serve", "measure"}
    assert min(splits.values()) >= 150
    for split in splits:
        kinds = Counter(question["kind"] for question in questions if question["split"] == split)
        assert set(kinds) == {"place", "step", "content", "outcome"}
        assert min(kinds.values()) >= 10
    asked = {split: [place[q["about"][0]] for q in questions if q["split"] == split] for split in splits}
    assert max(asked["measure"]) < FIRST_PART * len(episodes)
    assert min(asked["serve"]) < 0.1 * len(episodes)
    assert max(asked["serve"]) > 0.9 * len(episodes)


def test_each_gold_answer_stands_in_its_episode_and_not_in_its_question(
    episodes: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    texts = {episode["id"]: episode["text"] for episode in episodes}
    for question in questions:
        (about,) = question["about"]
        code = re.search(r"e\d{4}", texts[about].splitlines()[0])
        assert code is not None
        assert question["question"].startswith(f"In {texts[about].split()[0]} during episode {code[0]} (")
        assert set(words(question["gold"])) <= set(words(texts[about]))
        assert len(content_tokens(question["gold"]) - content_tokens(question["question"])) >= 3


def test_the_questions_tell_a_full_store_from_a_recent_one(
    episodes: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    texts = [episode["text"] for episode in episodes]
    measure = [question for question in questions if question["split"] == "measure"]
    full = alfworld_check.score(texts, measure)
    assert full >= 0.9
    assert alfworld_check.score(alfworld_check.newest(texts), measure) <= full - 0.2


RECORD = Record(
    home="home-03",
    index=0,
    family="pick_heat_then_place_in_recep",
    task="put a hot cup in fridge",
    intro="-= Welcome to TextWorld, ALFRED! =-",
    steps=(
        Step("go to drawer 1", "The drawer 1 is closed.", None),
        Step("open drawer 1", "(engine text)", ("drawer 1", ("cup 5", "fork 3", "pan 7"))),
        Step("take cup 5 from drawer 1", "(engine text)", None),
        Step("go to microwave 1", "(engine text)", None),
        Step("heat cup 5 with microwave 1", "(engine text)", None),
        Step("open fridge 1", "(engine text)", ("fridge 1", ("egg 9",))),
        Step("move cup 5 to fridge 1", "(engine text)", None),
    ),
    won=True,
    places={"cup 5": "fridge 1", "egg 9": "fridge 1", "fork 3": "drawer 1", "pan 7": "drawer 1"},
    held="",
    states={"cup 5": ("ishot",)},
)


def test_gold_answers_come_from_the_state_and_not_from_the_text() -> None:
    made = {q.kind: q.gold for q in questions_about(0, Told("e0001", "", RECORD))}
    assert made["content"] == "cup 5, fork 3, pan 7"
    assert made["place"] == "drawer 1: cup 5, fork 3"
    assert made["step"] == "heat cup 5 with microwave 1; drawer 1: fork 3, pan 7"
    assert made["outcome"] == "won, 7 steps; cup 5 to fridge 1; egg 9"


def test_a_resumed_recording_drops_a_line_that_a_crash_cut(tmp_path: Path) -> None:
    path = tmp_path / "home-03.jsonl"
    whole = alfworld_dataset.record_line(RECORD)
    path.write_text(whole + whole[:50], encoding="utf-8")
    assert list(read_records(path)) == [RECORD]
    assert path.read_text(encoding="utf-8") == whole


def test_the_missing_engine_is_named() -> None:
    if importlib.util.find_spec("alfworld"):
        pytest.skip("the engine is installed here")
    with pytest.raises(SystemExit, match=r"pip install 'alfworld==0\.4\.2'"):
        load_wheel()


def test_the_grade_is_the_share_of_content_tokens_in_the_hits() -> None:
    assert share_found("the cup 5, egg 9", ["cup 5 was there"]) == 0.5
    assert share_found("the of", ["anything"]) == 0.0
    index = Index(["home-01 e0001 cup", "home-02 e0002 cup", "x" * 5000 + " e0003"])
    assert index.ranked("where was the cup in e0002") == [1, 0]
    assert index.ranked("where was the cup in e0002", without=frozenset({1})) == [0]
    assert len(index.hits("e0003")[0]) == 4096


def test_the_engine_still_plays_the_first_recorded_episode(
    tmp_path: Path, episodes: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not importlib.util.find_spec("alfworld"):
        pytest.skip("needs the real engine: pip install 'alfworld==0.4.2'")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "empty"))
    options = argparse.Namespace(homes=24, episodes_per_home=1, seed=7)
    record_homes(tmp_path, range(1), options)
    (record,) = read_records(tmp_path / "home-01.jsonl")
    shipped = next(episode["text"] for episode in episodes if home_of(episode) == "home-01")
    code = shipped.split()[2].rstrip(",")
    assert alfworld_dataset.transcript(record, code) == shipped
