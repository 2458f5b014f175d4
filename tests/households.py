"""Made-up household episodes in the demo's input format, for tests that need a small stream of any size."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

THINGS = (
    "mug",
    "plate",
    "apple",
    "bread",
    "knife",
    "book",
    "lamp",
    "pillow",
    "towel",
    "soap",
    "bottle",
    "egg",
)
PLACES = ("fridge", "cabinet", "drawer", "shelf", "countertop", "desk", "dresser", "sofa", "bed", "toilet")
VIEWS = 8


def rows(episodes: int, seed: int = 1) -> list[dict[str, Any]]:
    """A header, `episodes` transcripts of about 1 KB, and a measuring and a serving question about each."""
    rng = random.Random(seed)
    made: list[dict[str, Any]] = [{"type": "header", "name": "made-up homes"}]
    asked: list[dict[str, Any]] = []
    for number in range(episodes):
        code = f"e{number:04d}"
        views = [_view(rng) for _ in range(VIEWS)]
        steps = [
            f"> go to {place}\nYou arrive at {place}. On the {place}, you see {things}."
            for place, things in views
        ]
        text = "\n".join([f"home-{number % 7} episode {code}, task: put a mug in the fridge.", *steps])
        text += f"\nOutcome of {code}: won after {len(steps)} steps."
        made.append(
            {
                "type": "episode",
                "id": code,
                "text": text,
                "links": [f"e{number - 7:04d}"] if number >= 7 else [],
            }
        )
        for split, (place, things) in (("measure", views[0]), ("serve", views[1])):
            ask = f"In episode {code}, what was seen on {place}?"
            question = {
                "id": f"{split}-{code}",
                "question": ask,
                "gold": things,
                "split": split,
                "about": [code],
            }
            asked.append({"type": "question", "kind": "content"} | question)
    return made + asked


def write(path: Path, episodes: int, seed: int = 1) -> Path:
    """The rows as a JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(episodes, seed)), "utf-8")
    return path


def _view(rng: random.Random) -> tuple[str, str]:
    place = f"{rng.choice(PLACES)} {rng.randint(1, 9)}"
    return place, ", ".join(f"a {thing} {rng.randint(1, 9999)}" for thing in rng.sample(THINGS, 5))
