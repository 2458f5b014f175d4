"""An agent that walks a BabyAI maze: straight to what it was told of, and looking around for what it was not.

It knows how mazes are built (three by three rooms, walls every seven cells), what came into its view, and
where it was told that things and doors are.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from bench.environments.babyai_grid import (
    DOOR,
    HEADINGS,
    ROOM,
    Cell,
    Layout,
    Maze,
    Mission,
    Part,
    Thing,
    layout,
)

PATIENCE = 1.5
"""Steps that a mission may take, as a multiple of the recorded shortest run."""
_SIZE = 3 * ROOM + 1


@dataclass(frozen=True)
class Told:
    """What a memory said of a maze: cells of things, doors among them, likeliest first."""

    things: Mapping[Thing, tuple[Cell, ...]] = field(default_factory=dict)


def limit_of(mission: Mission) -> int:
    """T: a mission counts as done within so many steps."""
    return math.ceil(PATIENCE * len(mission.shortest))


def play(grid: Layout, mission: Mission, told: Told, limit: int) -> Maze:
    """The maze as the agent leaves it, after at most `limit` steps."""
    walker = _Walker(Maze(grid, mission), told, limit)
    walker.run()
    return walker.maze


def wins(name: str, number: int, told: Told) -> bool:
    """Whether the layout's mission of this number is done in time; kept, for equal tellings come often."""
    return _wins(name, number, tuple(sorted(told.things.items())))


@lru_cache(maxsize=8192)
def _wins(name: str, number: int, things: tuple[tuple[Thing, tuple[Cell, ...]], ...]) -> bool:
    grid = layout(name)
    mission = grid.missions[number]
    return play(grid, mission, Told(dict(things)), limit_of(mission)).won


class _Walker:
    def __init__(self, maze: Maze, told: Told, limit: int) -> None:
        self.maze, self._limit = maze, limit
        self._known: set[Cell] = set()
        self._told = {
            thing: [cell for cell in cells if _inside(cell)] for thing, cells in told.things.items()
        }
        self._doors = {cell for (_, kind), cells in self._told.items() if kind == DOOR for cell in cells}

    def run(self) -> None:
        """Replan whenever the way is walked or turns out otherwise."""
        self._look()
        while not self._over() and (part := self.maze.part) is not None:
            wanted = self._candidates(part.thing)
            way = self._way(wanted)
            if not way or not self._walk(way, part, wanted):
                return

    def _walk(self, way: list[Cell], part: Part, wanted: set[Cell]) -> bool:
        """Go on until the way's end, or until what is seen asks for another; False when nothing moved."""
        start = self.maze.steps
        unknown = way[-1] not in self._known
        for cell in way:
            if self._over() or self.maze.part is not part:
                break
            if not self._face(cell):
                break
            if cell in wanted:
                self._handle(cell, part)
                break
            if self.maze.things.get(cell, ("", ""))[1] == DOOR and cell not in self.maze.open:
                self._act("T")
            if not self.maze.free(cell):
                self._known.add(cell)
                break
            self._act("F")
            if (unknown and way[-1] in self._known) or self._candidates(part.thing) != wanted:
                break
        return self.maze.steps > start

    def _handle(self, cell: Cell, part: Part) -> None:
        """Facing what is wanted: `go to` is done by that."""
        if part.kind == "pick up":
            self._act("P")
        elif part.kind == "open":
            self._act("T")
            if self.maze.part is part:
                self._act("T")  # it stood open

    def _face(self, cell: Cell) -> bool:
        heading = HEADINGS.index((cell[0] - self.maze.at[0], cell[1] - self.maze.at[1]))
        part = self.maze.part
        while self.maze.heading != heading and not self._over():
            self._act("R" if (heading - self.maze.heading) % 4 < 3 else "L")
            if self.maze.part is not part:
                return False
        return True

    def _act(self, action: str) -> None:
        if not self._over():
            self.maze.act(action)
            self._look()

    def _look(self) -> None:
        self._known.update(cell for cell in self.maze.view() if _inside(cell))

    def _over(self) -> bool:
        return self.maze.won or self.maze.steps >= self._limit

    # --- where to -------------------------------------------------------------------------------------

    def _candidates(self, thing: Thing) -> set[Cell]:
        """Where it is in sight or was, else where it is said to be and was not looked for."""
        seen = {cell for cell in self._known if self.maze.things.get(cell) == thing}
        return seen or {cell for cell in self._told.get(thing, ()) if cell not in self._known}

    def _way(self, wanted: set[Cell]) -> list[Cell]:
        """Cells to a wanted one, else towards what was not seen yet; [] when there is nowhere to go."""
        start = self.maze.at
        came: dict[Cell, Cell] = {start: start}
        far = {start: 0}
        frontier: list[Cell] = []
        queue = deque([start])
        while queue:
            cell = queue.popleft()
            if cell in wanted and cell != start:
                return _path(came, cell)
            if not self._passable(cell):
                if cell not in self._known:
                    frontier.append(cell)
                continue
            if cell not in self._known and _interior(cell):
                frontier.append(cell)
            for near in self._neighbours(cell):
                if near not in came:
                    came[near] = cell
                    far[near] = far[cell] + 1
                    queue.append(near)
        goals = [cell for cell in frontier if _interior(cell)] or frontier
        if not goals:
            return []
        aim = min(wanted, key=lambda cell: _distance(cell, start)) if wanted else None
        best = min(goals, key=lambda cell: (far[cell] + (_distance(cell, aim) if aim else 0), cell))
        return _path(came, best)

    def _neighbours(self, cell: Cell) -> Iterable[Cell]:
        """Straight on first."""
        x, y = cell
        turned = self.maze.heading
        for turn in (0, 1, 3, 2):
            dx, dy = HEADINGS[(turned + turn) % 4]
            if _inside((x + dx, y + dy)):
                yield x + dx, y + dy

    def _passable(self, cell: Cell) -> bool:
        """As far as the agent knows. An unknown cell of a wall is one, unless a door was told there."""
        if cell == self.maze.at:
            return True
        if cell in self._known:
            thing = self.maze.things.get(cell)
            return cell not in self.maze.grid.walls and (thing is None or thing[1] == DOOR)
        return _interior(cell) or cell in self._doors


def _path(came: Mapping[Cell, Cell], end: Cell) -> list[Cell]:
    path = [end]
    while came[path[-1]] != path[-1]:
        path.append(came[path[-1]])
    return path[-2::-1]


def _interior(cell: Cell) -> bool:
    return cell[0] % ROOM != 0 and cell[1] % ROOM != 0


def _inside(cell: Cell) -> bool:
    return 0 <= cell[0] < _SIZE and 0 <= cell[1] < _SIZE


def _distance(one: Cell, other: Cell) -> int:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])
