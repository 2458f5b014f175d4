"""BabyAI's grid in plain Python: recorded layouts, the six actions, what is in view, when a mission is done.

Every rule is minigrid's: tests replay its bot's recorded runs here, and `make test-engines` compares the two
step by step.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from shared.errors import Code, InputError

Cell = tuple[int, int]
Thing = tuple[str, str]
"""Colour and type."""
DOOR, WALL = "door", "wall"
ROOM = 7
"""Cells from wall to wall; a room has six by six cells inside."""
VIEW = 7
HEADINGS: tuple[Cell, ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Right, down, left, up."""


@dataclass(frozen=True)
class Part:
    """kind: `go to`, `pick up` or `open`."""

    kind: str
    thing: Thing


@dataclass(frozen=True)
class Mission:
    """In minigrid's words, with the recorded runs of its bot as letters of `Maze.act`.

    shortest: by a bot that knew everything. played: by the bot as it is, "" where it did not play; seen: step
    and cell of what came into its view.
    """

    text: str
    parts: tuple[Part, ...]
    shortest: str
    played: str
    seen: tuple[tuple[int, Cell], ...]


@dataclass(frozen=True)
class Layout:
    """A level at a seed: the same grid and start for every mission. heading: an index of HEADINGS."""

    name: str
    level: str
    seed: int
    walls: frozenset[Cell]
    things: Mapping[Cell, Thing]
    start: Cell
    heading: int
    missions: tuple[Mission, ...]


@lru_cache(maxsize=1)
def layouts() -> Mapping[str, Layout]:
    """By name, in order."""
    path = files("bench.environments") / "data" / "babyai.json.xz"
    told = json.loads(lzma.decompress(path.read_bytes()))
    return {
        row["name"]: Layout(
            row["name"],
            row["level"],
            row["seed"],
            frozenset(
                (x, y) for y, line in enumerate(row["walls"]) for x, mark in enumerate(line) if mark == "#"
            ),
            {(x, y): (colour, kind) for x, y, colour, kind in row["things"]},
            (row["start"][0], row["start"][1]),
            row["start"][2],
            tuple(
                Mission(
                    mission["text"],
                    tuple(Part(kind, (colour, thing)) for kind, colour, thing in mission["parts"]),
                    mission["shortest"],
                    mission.get("played", ""),
                    tuple((step, (x, y)) for step, x, y in mission.get("seen", ())),
                )
                for mission in row["missions"]
            ),
        )
        for row in told["layouts"]
    }


def layout(name: str) -> Layout:
    """InputError(BAD_REQUEST) for a name that is not in the recording."""
    if name not in layouts():
        raise InputError(
            Code.BAD_REQUEST, "no such BabyAI layout", layout=name, hint=f"one of {', '.join(layouts())}"
        )
    return layouts()[name]


class Maze:
    """One run of a mission."""

    def __init__(self, grid: Layout, mission: Mission) -> None:
        self.grid, self.mission = grid, mission
        self.at, self.heading = grid.start, grid.heading
        self.things = dict(grid.things)
        self.open: set[Cell] = set()
        self.held: Thing | None = None
        self.steps = 0
        self._done = 0
        self._spots = [self._matching(part.thing) for part in mission.parts]

    @property
    def won(self) -> bool:
        return self._done == len(self.mission.parts)

    @property
    def part(self) -> Part | None:
        """What is to be done now; None when all is done."""
        return None if self.won else self.mission.parts[self._done]

    @property
    def front(self) -> Cell:
        """The cell that the agent faces."""
        (x, y), (dx, dy) = self.at, HEADINGS[self.heading]
        return x + dx, y + dy

    def act(self, action: str) -> None:
        """L, R: turn; F: forward; P: pick up; D: drop; T: toggle. What is not possible costs its step too."""
        if action not in {"L", "R", "F", "P", "D", "T"}:
            raise InputError(Code.BAD_REQUEST, "no such action", action=action, hint="one of L R F P D T")
        self.steps += 1
        ahead, held = self.front, self.held
        thing = self.things.get(ahead)
        if action in "LR":
            self.heading = (self.heading + (1 if action == "R" else -1)) % 4
        elif action == "F" and self.free(ahead):
            self.at = ahead
        elif action == "P" and held is None and thing and thing[1] != DOOR:
            self.held = self.things.pop(ahead)
        elif action == "D":
            self._drop(ahead)
        elif action == "T" and thing:
            self._toggle(ahead, thing)
        self._verify(action, held)

    def free(self, cell: Cell) -> bool:
        """The agent can stand there."""
        return cell not in self.grid.walls and (cell not in self.things or cell in self.open)

    def view(self) -> Iterator[Cell]:
        """Cells in sight: seven by seven ahead, as far as walls and closed doors let it be seen."""
        (x, y), (fx, fy) = self.at, HEADINGS[self.heading]
        rx, ry = -fy, fx  # to the agent's right
        half, last = VIEW // 2, VIEW - 1
        cells = [
            [
                (x + fx * (last - j) + rx * (i - half), y + fy * (last - j) + ry * (i - half))
                for j in range(VIEW)
            ]
            for i in range(VIEW)
        ]
        clear = [[self._transparent(cell) for cell in column] for column in cells]
        seen = [[False] * VIEW for _ in range(VIEW)]
        seen[half][last] = True
        for j in range(last, -1, -1):
            for side, columns in ((1, range(last)), (-1, range(last, 0, -1))):
                for i in columns:
                    if seen[i][j] and clear[i][j]:
                        seen[i + side][j] = True
                        if j:
                            seen[i + side][j - 1] = seen[i][j - 1] = True
        return (cells[i][j] for i in range(VIEW) for j in range(VIEW) if seen[i][j])

    def _transparent(self, cell: Cell) -> bool:
        thing = self.things.get(cell)
        outside = min(cell) < 0 or max(cell) > 3 * ROOM
        return not (
            outside or cell in self.grid.walls or (thing and thing[1] == DOOR and cell not in self.open)
        )

    def _drop(self, ahead: Cell) -> None:
        if self.held and ahead not in self.things and ahead not in self.grid.walls:
            self.things[ahead] = self.held
            self.held = None
        # minigrid looks for the mission's things again after every drop, and only then.
        self._spots = [self._matching(part.thing) for part in self.mission.parts]

    def _toggle(self, ahead: Cell, thing: Thing) -> None:
        if thing[1] == DOOR:
            self.open ^= {ahead}
        elif thing[1] == "box":
            del self.things[ahead]  # an opened box is gone, and these are empty

    def _verify(self, action: str, held: Thing | None) -> None:
        while (part := self.part) is not None:
            ahead = self.front
            if part.kind == "go to":
                done = ahead in self._spots[self._done]
            elif part.kind == "pick up":
                done = action == "P" and held is None and self.held == part.thing
            else:
                done = action == "T" and ahead in self.open and self.things.get(ahead) == part.thing
            if not done:
                return
            self._done += 1

    def _matching(self, thing: Thing) -> frozenset[Cell]:
        return frozenset(cell for cell, its in self.things.items() if its == thing)
