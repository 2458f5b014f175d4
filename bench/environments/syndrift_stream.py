"""SynDrift's schedule: facts are born, retire and are stated again, with everything that happens known.

Stage 0 holds the workshops' first facts and the first retirements. Later parts bring further retirements, new
workshops and, from the trough on (parts 4 to 6), repetitions: each settled fact again with its own chance.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.environments.contract import FIRST_SHARE, STAGES, Item
from bench.environments.syndrift_words import ASIDES, BADGE, PLAIN, ROLES, SLOTS, WORKSHOPS, Slot, workshop
from shared.memory.model import Kind

RETIRED = 0.3
"""Share of the first facts that retire: half of them before stage 1 is measured, half later."""
AGAIN = (0.0, 0.0, 0.1, 0.4)
"""p_e: the chance that a settled fact is stated again; every fact draws one of these."""
RECOVERY = (4, 5, 6)
"""Parts that are written once the budget has begun to rise."""
_DAY_S = 86_400.0
_FACTS_A_WORKSHOP = len(PLAIN) + 2 * len(ROLES)
_ROLE_NAMES = frozenset(role.name for role in ROLES)

Key = tuple[str, str, str]
"""Workshop, slot, and the person of a badge ("" for the other slots)."""


@dataclass(frozen=True)
class Stated:
    """One statement of a value: the part of the stream it was written in, and its item."""

    part: int
    value: str
    item: str


@dataclass
class Stream:
    """history: values in order, repetitions left out. chance: p_e by item; again: items stated again."""

    parts: tuple[tuple[Item, ...], ...]
    history: dict[Key, list[Stated]] = field(default_factory=dict)
    chance: dict[str, float] = field(default_factory=dict)
    again: frozenset[str] = frozenset()

    def at(self, key: Key, part: int) -> Stated | None:
        """What holds once this part has been written."""
        told = [one for one in self.history.get(key, ()) if one.part <= part]
        return told[-1] if told else None

    def settled(self, key: Key) -> bool:
        """Known before stage 1 is measured, and never retired after."""
        return bool(self.history.get(key)) and self.history[key][-1].part == 0


@dataclass(frozen=True)
class _Event:
    """A statement to come; what it repeats or replaces is found when it is written."""

    key: Key
    value: str
    repeats: bool = False


def stream(rng: random.Random, world: str, items: int) -> Stream:
    """About `items` writes; repetitions beyond the room of their parts come on top."""
    plan = _Plan(rng)
    first = max(_FACTS_A_WORKSHOP, round(FIRST_SHARE * items))
    room = max(1, round((items - first) / (STAGES - 1)))
    opening = plan.opening(first)
    later = plan.later(room)
    return _written(rng, world, [opening, *later], plan)


class _Plan:
    """Values in force while events are drawn."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = iter(rng.sample(range(WORKSHOPS), WORKSHOPS))
        self.now: dict[Key, str] = {}
        self._used: dict[str, set[str]] = {}
        self.chance: dict[Key, float] = {}

    def opening(self, count: int) -> list[_Event]:
        """Exactly `count` events: workshops, and retirements somewhere behind what they replace."""
        born: list[tuple[float, _Event]] = []
        while len(born) + _FACTS_A_WORKSHOP <= count / (1 + RETIRED / 2) or not born:
            born += self._placed(self._founded(), 0.0, 0.8)
        when = {event.key: at for at, event in born}
        while len(born) < count:
            key = self._rng.choice(sorted(self.now))
            if key[1] in _ROLE_NAMES and count - len(born) < 2:
                continue
            placed = self._placed(self._retired(key), when[key], 1.0)
            when.update((event.key, at) for at, event in placed)
            born += placed
        return [event for _, event in sorted(born, key=lambda pair: pair[0])]

    def later(self, room: int) -> list[list[_Event]]:
        """Six parts of `room` events, or more where repetitions need it."""
        parts: list[list[_Event]] = [[] for _ in range(STAGES - 1)]
        keys = sorted(self.now)
        leaving = self._rng.sample(keys, round(RETIRED / 2 * len(keys)))
        for key in sorted(set(keys) - set(leaving)):
            self.chance[key] = self._rng.choice(AGAIN)
            if self._rng.random() < self.chance[key]:
                part = self._rng.choice(RECOVERY)
                parts[part - 1].append(_Event(key, self.now[key], repeats=True))
        for key in leaving:
            parts[self._rng.randrange(STAGES - 1)] += self._retired(key)
        return [self._filled(part, room) for part in parts]

    def _filled(self, part: list[_Event], room: int) -> list[_Event]:
        """With new workshops up to `room`, mixed; whoever takes a role is known before their badge."""
        while len(part) + _FACTS_A_WORKSHOP <= room:
            part = part + self._founded()
        mixed = self._rng.sample(part, len(part))
        return sorted(mixed, key=lambda event: event.key[1] == BADGE.name)

    def _founded(self) -> list[_Event]:
        name = workshop(next(self._names))
        events = [self._set((name, slot.name, ""), slot) for slot in PLAIN]
        for role in ROLES:
            events += self._appointed((name, role.name, ""))
        return events

    def _retired(self, key: Key) -> list[_Event]:
        return self._appointed(key) if key[1] in _ROLE_NAMES else [self._set(key, SLOTS[key[1]])]

    def _appointed(self, key: Key) -> list[_Event]:
        """A person for a role, new to the workshop, and the person's badge; the one before is gone."""
        before = self.now.get(key, "")
        event = self._set(key, SLOTS[key[1]])
        self.now.pop((key[0], BADGE.name, before), None)
        return [event, self._set((key[0], BADGE.name, event.value), BADGE)]

    def _set(self, key: Key, slot: Slot) -> _Event:
        """A value that nothing at this workshop has had, while there is one."""
        used = self._used.setdefault(key[0], set())
        free = [value for value in slot.values if value not in used]
        value = self._rng.choice(free or [v for v in slot.values if v != self.now.get(key)])
        used.add(value)
        self.now[key] = value
        return _Event(key, value)

    def _placed(self, events: list[_Event], begin: float, end: float) -> list[tuple[float, _Event]]:
        """Times in (begin, end); a badge comes behind the role that it belongs to."""
        placed: list[tuple[float, _Event]] = []
        for event in events:
            since = placed[-1][0] if event.key[1] == BADGE.name and placed else begin
            placed.append((self._rng.uniform(since, end), event))
        return placed


def _written(rng: random.Random, world: str, parts: list[list[_Event]], plan: _Plan) -> Stream:
    """Events as items: day and text, links to what they replace or belong to."""
    made = Stream(())
    days = itertools.count(1)
    again: set[str] = set()
    written: list[tuple[Item, ...]] = []
    asides = _asides(rng)
    for number, events in enumerate(parts):
        items: list[Item] = []
        for event in events:
            day = next(days)
            known = made.history.setdefault(event.key, [])
            name = f"{world}-{day}"
            text = f"Day {day}: {_sentence(event)}, {next(asides)}."
            if event.repeats:
                again.add(known[-1].item)
                links: tuple[str, ...] = ()
            else:
                links = _links(made, event)
                known.append(Stated(number, event.value, name))
            items.append(Item(name, text, Kind.MEMORY, day * _DAY_S, links))
        written.append(tuple(items))
    made.parts = tuple(written)
    made.again = frozenset(again)
    for key, told in made.history.items():
        if key in plan.chance and told[-1].part == 0:
            made.chance[told[-1].item] = plan.chance[key]
    return made


def _sentence(event: _Event) -> str:
    group, slot, person = event.key
    return SLOTS[slot].said.format(g=group, p=person, v=event.value)


def _links(made: Stream, event: _Event) -> tuple[str, ...]:
    group, slot, person = event.key
    before = [made.history[event.key][-1].item] if made.history.get(event.key) else []
    if slot == BADGE.name and not before:
        roles = [made.history.get((group, role, ""), []) for role in sorted(_ROLE_NAMES)]
        before = [told[-1].item for told in roles if told and told[-1].value == person]
    return tuple(before)


def _asides(rng: random.Random) -> Iterator[str]:
    while True:
        yield rng.choice(ASIDES)
