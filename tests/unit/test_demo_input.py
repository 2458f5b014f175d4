"""The demo's input: every bad line is reported with its number and reason, and nothing of it is used."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from crystalmem.demo import episodes
from crystalmem.demo.stream import SERVED_PER_STAGE, STAGES, cut
from shared.errors import Code, PermanentError

HEADER = {"type": "header", "schema": 1, "name": "homes"}


def episode(number: int, **changes: Any) -> dict[str, Any]:
    row = {
        "type": "episode",
        "id": f"e{number}",
        "time": "2026-03-01T08:00:00Z",
        "text": f"episode {number}: the mug is in fridge {number}",
        "links": [],
        "kind": "episode",
    }
    return row | changes


def question(number: int, home: int, split: str = "measure", **changes: Any) -> dict[str, Any]:
    row = {
        "type": "question",
        "id": f"q{number}",
        "question": f"where is the mug in episode {home}?",
        "gold": f"fridge {home}",
        "split": split,
        "about": [f"e{home}"],
        "kind": "place",
    }
    return row | changes


def good_rows(count: int = 20) -> list[dict[str, Any]]:
    rows = [HEADER, *(episode(number) for number in range(count))]
    rows += [question(number, number % count) for number in range(count)]
    return rows + [question(100 + number, number % count, "serve") for number in range(count)]


def write(path: Path, rows: list[Any], extra: bytes = b"") -> Path:
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows) + extra)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(PermanentError) as caught:
        episodes.load(path)
    assert caught.value.code is Code.BAD_INPUT_FILE
    assert "docs/data-format.md" in caught.value.hint
    return caught.value.message


def test_a_good_file_is_read_whole_in_order(tmp_path: Path) -> None:
    dataset = episodes.load(write(tmp_path / "in.jsonl", good_rows()))
    assert dataset.name == "homes"
    assert [item.id for item in dataset.episodes] == [f"e{number}" for number in range(20)]
    assert dataset.episodes[0].time == "2026-03-01T08:00:00+00:00"
    assert len(dataset.questions) == 40


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.xz"])
def test_packed_files_are_read_like_plain_ones(tmp_path: Path, suffix: str) -> None:
    plain = write(tmp_path / "in.jsonl", good_rows())
    packed = tmp_path / f"in{suffix}"
    packed.write_bytes((gzip if suffix.endswith("gz") else lzma).compress(plain.read_bytes()))
    assert episodes.load(packed).episodes == episodes.load(plain).episodes


BAD_LINES = {
    "not JSON": (b"{broken\n", "not JSON"),
    "deep nesting": (b"[" * 100_000 + b"\n", "not JSON"),
    "not an object": (b'["episode"]\n', "not a JSON object"),
    "not UTF-8": (b'{"type": "episode", "text": "\xff"}\n', "not UTF-8 at byte 29"),
    "no type": (json.dumps({"id": "x"}).encode() + b"\n", '"type" is missing'),
    "unknown type": (json.dumps({"type": "epsiode"}).encode() + b"\n", "unknown type 'epsiode'"),
    "late header": (json.dumps(HEADER).encode() + b"\n", "a header must come before"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_with_its_reason(tmp_path: Path, name: str) -> None:
    line, reason = BAD_LINES[name]
    said = refusal(write(tmp_path / "in.jsonl", good_rows(), line))
    assert "line 62: " in said
    assert reason in said


BAD_EPISODES = {
    "text missing": ({"text": None}, '"text" is missing'),
    "text empty": ({"text": " \n"}, '"text" is empty'),
    "text no string": ({"text": 5}, '"text" is not a string'),
    "text with NUL": ({"text": "a\0b"}, "NUL"),
    "text with a lone surrogate": ({"text": "a\ud800b"}, "lone surrogate"),
    "text too long": ({"text": "x" * (episodes.MAX_TEXT_BYTES + 1)}, "1048577 bytes"),
    "id missing": ({"id": None}, "id must be"),
    "id a number": ({"id": 7}, "id must be"),
    "id blank": ({"id": " "}, "id must be"),
    "id too long": ({"id": "x" * 201}, "id must be"),
    "id unprintable": ({"id": "a\nb"}, "id must be"),
    "id twice": ({"id": "e3"}, "duplicate id 'e3'"),
    "links no list": ({"links": "e1"}, '"links" is not a list'),
    "links of numbers": ({"links": [1]}, '"links" is not a list'),
    "link unknown": ({"links": ["e77"]}, "link to unknown or later episode 'e77'"),
    "link to itself": ({"links": ["e99"]}, "link to unknown or later episode 'e99'"),
    "kind unknown": ({"kind": "saga"}, "unknown kind 'saga'"),
    "time no time": ({"time": "yesterday"}, "not an RFC 3339 time"),
    "time a number": ({"time": 5}, "not an RFC 3339 time"),
    "time without zone": ({"time": "2026-03-01T08:00:00"}, "no time zone"),
}


@pytest.mark.parametrize("name", BAD_EPISODES)
def test_a_bad_episode_is_named_with_its_reason(tmp_path: Path, name: str) -> None:
    changes, reason = BAD_EPISODES[name]
    rows = good_rows()
    said = refusal(write(tmp_path / "in.jsonl", [*rows, episode(99, **changes)]))
    assert f"line {len(rows) + 1}: " in said
    assert reason in said


BAD_QUESTIONS = {
    "gold missing": ({"gold": None}, '"gold" is missing'),
    "gold of stop words": ({"gold": "it is the"}, "no content word"),
    "question empty": ({"question": ""}, '"question" is empty'),
    "split unknown": ({"split": "train"}, "not 'train'"),
    "split missing": ({"split": None}, "not None"),
    "about missing": ({"about": []}, "about names no episode"),
    "about unknown": ({"about": ["e1", "e77"]}, "about unknown episode 'e77'"),
    "id twice": ({"id": "q3"}, "duplicate id 'q3'"),
}


@pytest.mark.parametrize("name", BAD_QUESTIONS)
def test_a_bad_question_is_named_with_its_reason(tmp_path: Path, name: str) -> None:
    changes, reason = BAD_QUESTIONS[name]
    rows = good_rows()
    said = refusal(write(tmp_path / "in.jsonl", [*rows, question(99, 1, **changes)]))
    assert f"line {len(rows) + 1}: " in said
    assert reason in said


def test_several_bad_lines_are_all_counted(tmp_path: Path) -> None:
    said = refusal(write(tmp_path / "in.jsonl", good_rows(), b"x\n" * 9))
    assert said.count("not JSON") == episodes.SHOWN_PROBLEMS
    assert f"and {9 - episodes.SHOWN_PROBLEMS} more" in said


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "0 episodes"),
        ([episode(number) for number in range(20)], 'no question with split "serve"'),
        ([row for row in good_rows() if row.get("split") != "measure"], 'no question with split "measure"'),
        ([*good_rows()[:5], question(1, 1), question(2, 1, "serve")], "4 episodes"),
    ],
)
def test_a_file_without_enough_to_run_is_refused(tmp_path: Path, rows: list[Any], reason: str) -> None:
    assert reason in refusal(write(tmp_path / "in.jsonl", rows))


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_damaged_packed_file_is_refused(tmp_path: Path, suffix: str) -> None:
    plain = write(tmp_path / "in.jsonl", good_rows()).read_bytes()
    packed = tmp_path / f"in{suffix}"
    whole = (gzip if suffix == ".gz" else lzma).compress(plain)
    packed.write_bytes(whole[: len(whole) // 2])
    assert f"not a whole {suffix} file" in refusal(packed)
    packed.write_bytes(b"plain text")
    assert f"not a whole {suffix} file" in refusal(packed)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nowhere.jsonl")


def test_an_endless_line_is_refused_before_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episodes, "MAX_LINE_BYTES", 1000)
    assert "line 62: longer than 1000 bytes" in refusal(
        write(tmp_path / "in.jsonl", good_rows(), b"x" * 5000)
    )


def test_a_packed_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episodes, "MAX_INPUT_BYTES", 1000)
    packed = tmp_path / "in.xz"
    packed.write_bytes(lzma.compress(b"\n" * 100_000))
    assert "exceeds 1000 bytes" in refusal(packed)


# --- the stream ------------------------------------------------------------------------------------------


def test_the_stream_is_cut_seventy_and_six_equal_parts(tmp_path: Path) -> None:
    dataset = episodes.load(write(tmp_path / "in.jsonl", good_rows(100)))
    stream = cut(dataset, seed=7)
    assert len(stream.before) == 70
    assert [len(stage.writes) for stage in stream.stages] == [0, 5, 5, 5, 5, 5, 5]
    written = [*stream.before, *(item for stage in stream.stages for item in stage.writes)]
    assert tuple(written) == dataset.episodes


def test_only_what_is_written_is_asked(tmp_path: Path) -> None:
    stream = cut(episodes.load(write(tmp_path / "in.jsonl", good_rows(100))), seed=7)
    known = {item.id for item in stream.before}
    assert len(stream.fixed) == 70
    assert all(set(asked.about) <= known for asked in stream.fixed)
    for stage in stream.stages:
        assert 0 < len(stage.served) <= SERVED_PER_STAGE
        assert all(asked.split == "serve" and set(asked.about) <= known for asked in stage.served)
        later = stream.askable(stream.later, stage.number)
        assert all(set(asked.about) <= known for asked in later)
        known |= {item.id for item in stage.writes}
    assert len(stream.askable(stream.later, STAGES)) == 25
    assert stream.askable(stream.later, 1) == ()


def test_order_and_samples_come_from_the_seed(tmp_path: Path) -> None:
    dataset = episodes.load(write(tmp_path / "in.jsonl", good_rows(100)))
    assert cut(dataset, seed=7) == cut(dataset, seed=7)
    one, other = cut(dataset, seed=7), cut(dataset, seed=8)
    assert one.stages[3].served != other.stages[3].served
    assert {asked.id for asked in one.fixed} == {asked.id for asked in other.fixed}


def test_a_stream_whose_first_part_is_never_measured_is_refused(tmp_path: Path) -> None:
    rows = [episode(number) for number in range(20)] + [question(1, 19), question(2, 1, "serve")]
    dataset = episodes.load(write(tmp_path / "in.jsonl", rows))
    with pytest.raises(PermanentError, match="no measuring question is about the first 70%"):
        cut(dataset, seed=7)
