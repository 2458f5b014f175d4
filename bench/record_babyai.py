"""Record the bench's BabyAI layouts: the grid of a level, missions in it, and what its bot did.

    python -m bench.record_babyai OUT.json.xz --layouts 28

Engine and bot are minigrid's. A layout is one of its levels at a seed; the missions are instructions of the
level's own language over that layout, in minigrid's words. The bot plays some of them as it is, and what came
into its view is noted: these are the episodes. Every mission has its shortest run too: the bot with all doors
open and the whole grid in view, and the doors on its way opened when that run is played for real.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import lzma
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

SEED = 9
LEVELS = ("BabyAI-GoTo-v0", "BabyAI-Pickup-v0", "BabyAI-Open-v0", "BabyAI-GoToSeq-v0")
"""Three by three rooms of eight by eight cells, doors between them, eighteen things: nothing is locked."""
EPISODES = 8
ACTIONS = "LRFPDT"
"""Left, right, forward, pick up, drop, toggle: minigrid's first six actions."""
LICENCE = "minigrid: MIT. Choice of missions and this recording: Apache-2.0, as this repository."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--layouts", type=int, default=28)
    options = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        layouts = list(pool.map(record_layout, range(options.layouts)))
    told = {
        "schema": 1,
        "licence": LICENCE,
        "source": "minigrid 3.2.0, played by its BabyAI bot through bench.record_babyai",
        "layouts": layouts,
    }
    options.out.write_bytes(lzma.compress(json.dumps(told, separators=(",", ":")).encode(), preset=9))


class Level:
    """One layout in the engine; `begin` gives it a mission from the start."""

    def __init__(self, index: int) -> None:
        self.id, self.seed = LEVELS[index % len(LEVELS)], SEED * 1000 + index
        gymnasium, minigrid = importlib.import_module("gymnasium"), importlib.import_module("minigrid")
        self._verifier = importlib.import_module("minigrid.envs.babyai.core.verifier")
        self._bot = importlib.import_module("minigrid.utils.baby_ai_bot").BabyAIBot
        if self.id not in gymnasium.registry:
            minigrid.register_minigrid_envs()
        self.env: Any = gymnasium.make(self.id, disable_env_checker=True).unwrapped
        self.reset()

    def reset(self) -> None:
        """The grid and the agent as the seed has them."""
        with contextlib.redirect_stdout(io.StringIO()):  # it prints every rejected sample
            self.env.reset(seed=self.seed)

    def begin(self, parts: list[list[str]]) -> str:
        """A mission, and minigrid's words for it. parts: [kind, colour, type], one or two."""
        self.reset()
        told = [self._instruction(*part) for part in parts]
        instruction = told[0] if len(told) == 1 else self._verifier.BeforeInstr(*told)
        env = self.env
        env.instrs = instruction
        instruction.reset_verifier(env)
        env.max_steps = len(parts) * env.room_size**2 * env.num_rows * env.num_cols
        env.mission = str(instruction.surface(env))
        return str(env.mission)

    def explore(self) -> tuple[str, list[list[int]], float]:
        """The bot as it is: actions, [step, x, y] of what came into view, reward."""
        bot = self._bot(self.env)
        seen: dict[tuple[int, int], int] = {}
        actions, action, reward, over = "", None, 0.0, False
        while not over:
            action = bot.replan(action)
            self._look(len(actions), seen)
            reward, over = self._step(action)
            actions += ACTIONS[int(action)]
        self._look(len(actions), seen)
        return actions, [[step, x, y] for (x, y), step in seen.items()], reward

    def shortest(self, parts: list[list[str]]) -> tuple[str, float]:
        """Actions of a bot that knows where everything is, and the reward that they earn."""
        # A door is gone to here, and opened below.
        self.begin([["go to" if kind == "open" else kind, *named] for kind, *named in parts])
        self.env.open_all_doors()
        bot = self._bot(self.env)
        bot.vis_mask[:] = True
        planned, action, over = [], None, False
        while not over:
            action = bot.replan(action)
            _, over = self._step(action)
            planned.append(action)
        self.begin(parts)
        toggle, forward = self.env.actions.toggle, self.env.actions.forward
        done, reward, over = "", 0.0, False
        for action in [*planned, *[toggle] * (parts[-1][0] == "open")]:
            ahead = self.env.grid.get(*self.env.front_pos)
            closed = ahead is not None and ahead.type == "door" and not ahead.is_open
            for step in [toggle, action] if closed and action == forward else [action]:
                if not over:
                    reward, over = self._step(step)
                    done += ACTIONS[int(step)]
        return done, reward

    def _step(self, action: Any) -> tuple[float, bool]:
        _, reward, won, out_of_time, _ = self.env.step(action)
        return float(reward), bool(won or out_of_time)

    def view(self) -> Iterator[tuple[int, int]]:
        """Cells in view now: minigrid's own visibility."""
        env = self.env
        _, mask = env.gen_obs_grid()
        for x, y in product(range(env.width), range(env.height)):
            if env.in_view(x, y) and mask[env.relative_coords(x, y)]:
                yield x, y

    def things(self) -> list[list[Any]]:
        """[x, y, colour, type] of doors and things."""
        grid = self.env.grid
        cells = ((x, y, grid.get(x, y)) for y, x in product(range(grid.height), range(grid.width)))
        return [[x, y, cell.color, cell.type] for x, y, cell in cells if cell and cell.type != "wall"]

    def walls(self) -> list[str]:
        """Rows of # and . ."""
        grid = self.env.grid
        kinds = [[getattr(grid.get(x, y), "type", "") for x in range(grid.width)] for y in range(grid.height)]
        return ["".join("#" if kind == "wall" else "." for kind in row) for row in kinds]

    def _look(self, step: int, seen: dict[tuple[int, int], int]) -> None:
        for x, y in self.view():
            cell = self.env.grid.get(x, y)
            if cell and cell.type != "wall":
                seen.setdefault((x, y), step)

    def _instruction(self, kind: str, colour: str, thing: str) -> Any:
        names = {"go to": "GoToInstr", "pick up": "PickupInstr", "open": "OpenInstr"}
        return getattr(self._verifier, names[kind])(self._verifier.ObjDesc(thing, colour))


def record_layout(index: int) -> dict[str, Any]:
    """One layout with its missions, as the file holds it."""
    level, rng = Level(index), random.Random(f"{SEED}/{index}")
    env = level.env
    told: dict[str, Any] = {
        "name": f"maze{index + 1:02d}",
        "level": level.id,
        "seed": level.seed,
        "walls": level.walls(),
        "things": level.things(),
        "start": [int(env.agent_pos[0]), int(env.agent_pos[1]), int(env.agent_dir)],
    }
    missions: list[dict[str, Any]] = []
    choice = possible(told["things"])
    for parts in rng.sample(choice, len(choice)):
        mission: dict[str, Any] = {"text": level.begin(parts), "parts": parts}
        mission["shortest"], reward = level.shortest(parts)
        if reward <= 0:
            continue
        if len(missions) < EPISODES:
            level.begin(parts)
            mission["played"], mission["seen"], mission["reward"] = level.explore()
        missions.append(mission)
    told["missions"] = missions
    steps = [len(mission["shortest"]) for mission in missions]
    print(told["name"], level.id, f"{len(missions)} of {len(choice)}", sum(steps) / len(steps), flush=True)
    return told


def possible(things: list[list[Any]]) -> list[list[list[str]]]:
    """Missions of every kind, as many pairs as there are single ones."""
    named = sorted({(colour, kind) for _, _, colour, kind in things})
    doors = [["open", colour, kind] for colour, kind in named if kind == "door"]
    goals = [["go to", colour, kind] for colour, kind in named if kind != "door"]
    taken = [["pick up", colour, kind] for colour, kind in named if kind != "door"]
    pairs = [[one, other] for one, other in zip(goals, goals[1:] + goals[:1], strict=True)]
    return [[part] for part in (*goals, *taken, *doors)] + pairs


if __name__ == "__main__":
    main()
