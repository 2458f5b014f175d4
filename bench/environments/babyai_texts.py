"""Experience of mazes as text, and what a text tells of a maze: all that passes through a memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bench.environments.babyai_grid import DOOR, ROOM, Cell, Layout, Maze, Mission, Thing
from bench.environments.babyai_player import Told

_MAZE = re.compile(r"\bmaze\d\d\b")
_PLACED = re.compile(
    r"\b(red|green|blue|purple|yellow|grey) (ball|box|key|door)\b"
    # Shortened texts have lost the brackets: "red ball 10 4".
    r"(?:[^().;\n]{0,40}?\((\d{1,2}), ?(\d{1,2})\)|(?: at)? (\d{1,2}),? (\d{1,2})\b)"
)
_SENTENCES = re.compile(r"[.;\n]+(?:\s+|$)")


def episode_text(grid: Layout, code: str, mission: Mission) -> str:
    """The mission, what came into view by rooms, the doors, and how it ended."""
    # What the bot put elsewhere stands where it stood when the maze begins again.
    seen = [cell for _, cell in sorted(mission.seen) if cell in grid.things]
    rooms: dict[str, list[str]] = {}
    doors = [_placed(grid, cell) for cell in seen if grid.things[cell][1] == DOOR]
    for cell in seen:
        if grid.things[cell][1] != DOOR:
            rooms.setdefault(_room(cell), []).append(_placed(grid, cell))
    lines = [f"{grid.name} episode {code}, mission: {mission.text}."]
    lines += [f"Seen in room {room}: {', '.join(things)}." for room, things in rooms.items()]
    lines += [f"Doors: {', '.join(doors)}."] if doors else []
    way = [_placed(grid, cell) for cell in _way(grid, mission, len(mission.parts))]
    lines += [f"Went through {', then '.join(way)}."] if way else []
    return "\n".join([*lines, f"Outcome of {code}: done after {len(mission.played)} steps."])


def place_texts(grid: Layout, code: str, mission: Mission) -> dict[str, str]:
    """Where what was wanted is, and through which doors it was reached, by its cell."""
    found: dict[str, str] = {}
    for number, cell in enumerate(_reached(grid, mission), 1):
        way = [_placed(grid, door) for door in _way(grid, mission, number)]
        through = f", by {', then '.join(way)}" if way else ""
        found[f"{cell}"] = f"In {grid.name}, {_placed(grid, cell)}{through}, says {code}."
    return found


def read_told(name: str, texts: Sequence[str]) -> Told:
    """Things and doors of the maze of this name; what names no maze comes after what does."""
    here: dict[Thing, dict[Cell, None]] = {}
    somewhere: dict[Thing, dict[Cell, None]] = {}
    for maze, sentence in _sentences(texts):
        if maze in ("", name):
            for colour, kind, x, y, bare_x, bare_y in _PLACED.findall(sentence):
                cell = int(x or bare_x), int(y or bare_y)
                (here if maze else somewhere).setdefault((colour, kind), {}).setdefault(cell)
    things = dict.fromkeys((*here, *somewhere))
    return Told({thing: tuple({**here.get(thing, {}), **somewhere.get(thing, {})}) for thing in things})


def _sentences(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(the maze that it is about, "" where no text says so; sentence)."""
    for text in texts:
        maze = ""
        for sentence in _SENTENCES.split(text):
            named = _MAZE.search(sentence)
            maze = named.group() if named else maze
            yield maze, sentence


def _placed(grid: Layout, cell: Cell) -> str:
    return f"{' '.join(grid.things[cell])} at ({cell[0]}, {cell[1]})"


def _room(cell: Cell) -> str:
    return f"{'ABC'[cell[0] // ROOM]}{cell[1] // ROOM + 1}"


def _reached(grid: Layout, mission: Mission) -> list[Cell]:
    """The cell of each part's thing in the played run."""
    maze, cells = Maze(grid, mission), list[Cell]()
    for action in mission.played:
        before = maze.part
        maze.act(action)
        if maze.part is not before and maze.front in grid.things:
            cells.append(maze.front)
    return cells


def _way(grid: Layout, mission: Mission, parts: int) -> list[Cell]:
    """Doors on the way to what the first `parts` parts wanted, without those that it came back through."""
    maze, doors = Maze(grid, mission), list[Cell]()
    for action in mission.played:
        if maze.part is None or maze.mission.parts.index(maze.part) >= parts:
            break
        before = maze.at
        maze.act(action)
        if maze.at != before and grid.things.get(maze.at, ("", ""))[1] == DOOR:
            if doors and doors[-1] == maze.at:
                doors.pop()
            else:
                doors.append(maze.at)
    return doors
