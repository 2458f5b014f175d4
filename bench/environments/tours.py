"""Worlds of an agent that goes from place to place (homes, mazes) and plays new games in those it knows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bench.environments.contract import STAGES, Item, Question, Size, World, cut
from shared.memory.model import Kind

_VISIT = 2
"""Episodes in a place before the agent goes on to the next."""
_UNSEEN_SHARE = 0.1
"""Share of the measuring questions about a place where the agent has never been."""
_EPISODE_S = 600.0
_TRIES = 40
KNOWN, UNSEEN = "known_place", "unseen_place"


class Games(Protocol):
    """The environment's games, by an id that says nothing of the answer."""

    def draw(self, place: str, rng: random.Random) -> str:
        """A game of this place, any."""
        ...

    def question(self, game: str, rng: random.Random, category: str) -> Question:
        """Its words."""
        ...

    def wins(self, game: str, texts: Sequence[str]) -> bool:
        """Whether an agent that has read these texts does it in time."""
        ...


@dataclass
class Stream:
    """Writes up to `limit` items; what is written when it is full is dropped. games: what was played."""

    name: str
    limit: int
    items: list[Item] = field(default_factory=list)
    games: set[str] = field(default_factory=set)
    episodes: int = 0
    _place_of: dict[str, str] = field(default_factory=dict)
    _last: dict[str, str] = field(default_factory=dict)
    _noted: set[tuple[str, str]] = field(default_factory=set)

    @property
    def full(self) -> bool:
        return len(self.items) >= self.limit

    def begin(self, game: str) -> str:
        """A new episode's code: e001, e002, ..."""
        self.episodes += 1
        self.games.add(game)
        return f"e{self.episodes:03d}"

    def episode(self, place: str, text: str, notes: Mapping[str, str]) -> str:
        """The finished episode, linked to its place's last one, and a fact for each thing not noted yet."""
        links = (self._last[place],) if place in self._last else ()
        self._last[place] = self.write(place, text, Kind.EPISODE, links)
        for thing, note in notes.items():
            if (place, thing) not in self._noted:
                self._noted.add((place, thing))
                self.write(place, note, Kind.MEMORY, (self._last[place],))
        return self._last[place]

    def write(self, place: str, text: str, kind: Kind, links: tuple[str, ...]) -> str:
        """The item's id. place "": it holds everywhere."""
        number = len(self.items)
        item = Item(f"{self.name}/{number:04d}", text, kind, _EPISODE_S * self.episodes + number, links)
        if not self.full:
            self.items.append(item)
            self._place_of[item.id] = place
        return item.id

    def told(self, stages: Sequence[Sequence[Item]], first: int, last: int) -> dict[str, list[str]]:
        """Place to what holds everywhere and what these stages say of it; silent places are left out."""
        items = [item for stage in stages[: last + 1] for item in stage]
        everywhere = [item.text for item in items if not self._place_of[item.id]]
        told: dict[str, list[str]] = {}
        for item in (item for stage in stages[first : last + 1] for item in stage):
            if place := self._place_of[item.id]:
                told.setdefault(place, list(everywhere)).append(item.text)
        return told


def visits(
    places: Sequence[str], episodes: Mapping[str, Sequence[int]], rng: random.Random
) -> Iterator[tuple[str, int]]:
    """(place, episode) round after round, in a new order each, until no place has an episode left."""
    left = {place: list(episodes[place]) for place in places}
    while any(left.values()):
        for place in rng.sample(places, len(places)):
            for _ in range(min(_VISIT, len(left[place]))):
                yield place, left[place].pop(0)


def world_of(stream: Stream, games: Games, unseen: str, size: Size, rng: random.Random) -> World:
    """The stream in stages. Measuring games are sure: with all that stage 0 says of a place they are won."""
    stages = cut(stream.items)
    draw = _Draw(games, set(stream.games), rng)
    told = [stream.told(stages, 0, stage) for stage in range(STAGES)]
    measuring = draw.questions(told[0], round((1 - _UNSEEN_SHARE) * size.measuring), sure=True)
    nothing: dict[str, list[str]] = {unseen: []}
    measuring += draw.questions(nothing, size.measuring - len(measuring), category=UNSEEN)
    serving = [tuple(draw.questions(told[stage], size.serving)) for stage in range(STAGES)]
    later = [()] + [
        tuple(draw.questions(stream.told(stages, 1, stage), size.serving // 2, sure=True))
        for stage in range(1, STAGES)
    ]
    return World(stream.name, stages, tuple(measuring), tuple(serving), tuple(later))


@dataclass
class _Draw:
    games: Games
    asked: set[str]
    rng: random.Random

    def questions(
        self, told: Mapping[str, Sequence[str]], count: int, *, sure: bool = False, category: str = KNOWN
    ) -> list[Question]:
        """At most `count` games, not played or asked before; sure: all that was told would win them."""
        places = list(told)
        found: list[Question] = []
        for _ in range(_TRIES * count if places else 0):
            if len(found) >= count:
                break
            place = self.rng.choice(places)
            game = self.games.draw(place, self.rng)
            if game not in self.asked and (not sure or self.games.wins(game, told[place])):
                self.asked.add(game)
                found.append(self.games.question(game, self.rng, category))
        return found
