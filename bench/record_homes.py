"""Record the bench's ALFWorld homes: what stands where, and episodes that the real engine played.

    python -m bench.record_homes OUT.json.xz --homes 8 --episodes 12

A home keeps its furnishing over all its games (ALFWorld furnishes each trial anew), so experience of places
has a use. Homes, games and agent are ours; every observation and whether a task is won are the engine's.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bench.alfworld_agent import Agent, start_engine
from bench.alfworld_games import (
    OPENABLE,
    Game,
    Home,
    Wheel,
    build_home,
    choose_plans,
    load_wheel,
    make_game,
    turn_over,
)

SEED = 4
LICENCE = "ALFWorld and TextWorld: MIT. Homes, games and agent: Apache-2.0, as this repository."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--homes", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=12)
    options = parser.parse_args()
    tasks = [(index, options.homes, options.episodes) for index in range(options.homes)]
    with ProcessPoolExecutor(2) as pool:
        homes = list(pool.map(record_home, tasks))
    told = {
        "schema": 1,
        "licence": LICENCE,
        "source": "played in ALFWorld 0.4.2 (textworld 1.7.0) by bench.record_homes",
        "count": options.homes,
        "homes": homes,
    }
    options.out.write_bytes(lzma.compress(json.dumps(told, separators=(",", ":")).encode(), preset=9))


def furnished(wheel: Wheel, index: int, count: int) -> tuple[Home, dict[str, str]]:
    """Home `index` of `count`, and where its things stand (thing -> receptacle)."""
    home = build_home(wheel, index, *choose_plans(wheel, count, SEED)[index], SEED)
    return home, turn_over(wheel, home, {}, random.Random(f"{SEED}/furnish/{index}"))


def game_of(wheel: Wheel, home: Home, places: Mapping[str, str], episode: int) -> tuple[Game, random.Random]:
    """The home's game of this number, and what its agent draws from."""
    rng = random.Random(f"{SEED}/episode/{home.name}/{episode}")
    return make_game(wheel, home, places, rng), rng


def record_home(task: tuple[int, int, int]) -> dict[str, Any]:
    """One home with its episodes, as the file holds it."""
    index, count, episodes = task
    os.environ.setdefault("ALFWORLD_DATA", tempfile.mkdtemp(prefix="alfworld-"))  # the wheel wants a folder
    wheel, engine = load_wheel(), start_engine()
    home, places = furnished(wheel, index, count)
    able, can = wheel.constants.VAL_ACTION_OBJECTS, wheel.constants.VAL_RECEPTACLE_OBJECTS
    types = sorted({home.belongings[thing] for thing in places})
    told = []
    for number in range(episodes):
        game, rng = game_of(wheel, home, places, number)
        record = Agent(engine, home, game, rng).play(number)
        told.append(
            {
                "family": game.family,
                "task": game.task,
                "target": game.target,
                "place": game.place,
                "lamp": game.lamp,
                "intro": record.intro,
                "steps": [[step.command, step.observation] for step in record.steps],
                "won": record.won,
            }
        )
        print(home.name, number, game.family, record.won, len(record.steps), flush=True)
    return {
        "name": home.name,
        "kind": home.kind,
        "receptacles": dict(home.receptacles),
        "openable": sorted(name for name, kind in home.receptacles.items() if kind in OPENABLE),
        "places": places,
        "things": {thing: home.belongings[thing] for thing in sorted(places)},
        "able": {
            kind: [
                verb
                for verb, name in (("heat", "Heatable"), ("cool", "Coolable"), ("clean", "Cleanable"))
                if kind in able[name]
            ]
            for kind in types
        },
        "can": {
            kind: [thing for thing in types if thing in can[kind]]
            for kind in sorted(set(home.receptacles.values()))
        },
        "episodes": told,
    }


if __name__ == "__main__":
    main()
