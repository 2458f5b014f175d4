"""Recorded episodes and questions in the demo's input format (`crystalmem/data/README.md` documents it)."""

from __future__ import annotations

import hashlib
import json
import lzma
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path

from bench.alfworld_agent import Record
from bench.alfworld_questions import Question, Told, draw_questions, outcome_words

START = datetime(2026, 3, 1, 8, 0, tzinfo=timezone.utc)
GAP_MIN = (4, 20)  # minutes between two episodes of the fleet
MEASURE_SHARE = 0.7  # measuring questions ask about this first part of the stream
HEADER: Mapping[str, object] = {
    "type": "header",
    "schema": 1,
    "name": "alfworld-episodes",
    "licence": "ALFWorld and TextWorld: MIT. Homes, games, agent, questions: Apache-2.0, as this repository.",
    "source": "played in the real ALFWorld engine (alfworld 0.4.2, textworld 1.7.0) by bench.record_alfworld",
    "generated": "homes, games, agent, header, outcome, times, questions: ours; observations: the engine's",
}


def arrange(records: Sequence[Record], seed: int) -> list[Told]:
    """One stream of all homes: round k holds the k-th episode of each home, in a seeded order."""
    rng = random.Random(f"{seed}/order")
    order = sorted(records, key=lambda record: (record.index, record.home))
    rounds: dict[int, list[Record]] = {}
    for record in order:
        rounds.setdefault(record.index, []).append(record)
    stream: list[Told] = []
    for index in sorted(rounds):
        rng.shuffle(rounds[index])
        for record in rounds[index]:
            code = f"e{len(stream) + 1:04d}"
            stream.append(Told(code, transcript(record, code), record))
    return stream


def record_line(record: Record) -> str:
    """One line of a home's checkpoint file."""
    return json.dumps(asdict(record), ensure_ascii=False) + "\n"


def transcript(record: Record, code: str) -> str:
    """Header line, the engine's opening text, command and observation of every step, outcome line."""
    lines = [f"{record.home} episode {code}, task: {record.task}.", record.intro]
    for step in record.steps:
        lines += [f"> {step.command}", step.observation]
    return "\n".join([*lines, f"Outcome of {code}: {outcome_words(record)}."]) + "\n"


def rows(
    stream: Sequence[Told], questions: Mapping[str, Sequence[Question]], seed: int
) -> list[dict[str, object]]:
    """The objects of the JSONL file, in order."""
    ids = [
        hashlib.blake2b(f"alfworld/{seed}/{told.code}".encode(), digest_size=16).hexdigest()
        for told in stream
    ]
    rng, time = random.Random(f"{seed}/times"), START
    last: dict[tuple[str, str], str] = {}
    made: list[dict[str, object]] = [dict(HEADER)]
    for told, name in zip(stream, ids, strict=True):
        key = (told.record.home, told.record.family)
        links = [last[key]] if key in last else []
        last[key] = name
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ")
        made.append(
            {
                "type": "episode",
                "id": name,
                "time": stamp,
                "text": told.text,
                "links": links,
                "kind": "episode",
            }
        )
        time += timedelta(minutes=rng.randint(*GAP_MIN))
    asked = sorted(
        ((q, split) for split, qs in questions.items() for q in qs),
        key=lambda pair: (pair[0].episode, pair[0].kind),
    )
    for i, (q, split) in enumerate(asked):
        made.append(
            {
                "type": "question",
                "id": f"q{i + 1:04d}",
                "question": q.question,
                "gold": q.gold,
                "split": split,
                "about": [ids[q.episode]],
                "kind": q.kind,
            }
        )
    return made


def split_questions(stream: Sequence[Told], seed: int, count: int) -> dict[str, list[Question]]:
    """Half for the measuring set (first part of the stream), half serving traffic (all of it); disjoint."""
    measure = draw_questions(stream, seed, count // 2, round(len(stream) * MEASURE_SHARE))
    return {"measure": measure, "serve": draw_questions(stream, seed, count // 2, len(stream), measure)}


def write(path: Path, made: Sequence[Mapping[str, object]]) -> None:
    """JSONL, packed when the name ends in .xz."""
    data = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in made).encode()
    path.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME) if path.suffix == ".xz" else data)
