"""Household experience as text, and a plan read back from texts: all that passes through a memory.

The reader takes what a text says at its present fidelity: a thing named beside a receptacle was seen there, a
"cool plate 607 with fridge 1" says how things are cooled. Texts about another home tell nothing of places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bench.alfworld_games import LAMPS
from bench.environments.alfworld_homes import LOOK, TWO, Episode, Household, Task, verb_of
from bench.environments.alfworld_player import Plan

_THING = re.compile(r"\ba (\w+ \d+)")
_VIEW = re.compile(r"(?:On the|The) (\w+ \d+)(?: is open\. In it)?, you see (.+)\.$")
_HOME = re.compile(r"\bhome\d\d\b")
_SENTENCES = re.compile(r"[.;\n]+(?:\s+|$)")
_NAMED = re.compile(r"\b([a-z]+) (\d+)\b")
_CHANGED = re.compile(r"\b(?:moved?|puts?|heat(?:ed|s)?|cool(?:ed|s)?|clean(?:ed|s)?)\b")
# Shortened texts have lost small words: "cool plate 607 fridge 1". "cool plate in fridge" is a task, no step.
_TREATED = re.compile(
    r"\b(heat|cool|clean)(?:ed|s)? (?:it |\w+ \d+ |\w+ (?=with|using))?(?:with |using )?(?:the |a )?([a-z]+)"
)
_USED = re.compile(
    rf"\b(?:uses?|used|turn(?:ed)? on) (?:the |a )?({'|'.join(lamp.lower() for lamp in LAMPS)})"
)
_TWICE = re.compile(r"\b(?:twice|second)\b")
_TWO_TASK = re.compile(r"\btwo [a-z]+\b")
_MOVES = re.compile(r"\bmoved? [a-z]+ \d+\b")


def episode_text(house: Household, code: str, episode: Episode) -> str:
    """Task, what was seen where before anything was moved, what was done from then on, and how it ended."""
    lines = [f"{house.home.name} episode {code}, task: {episode.text}."]
    start = next((n for n, (command, _) in enumerate(episode.steps) if command.startswith("take ")), None)
    for command, observation in episode.steps[:start]:
        view = _VIEW.search(observation)
        if view and not command.startswith("examine") and view[2] != "nothing":
            things = ", ".join(_THING.findall(view[2]))
            lines.append(f"Seen {_in_or_on(house, view[1])} {view[1]}: {things}.")
    done = [command for command, _ in episode.steps[start:]] if start is not None else []
    if done:
        lines.append(f"Steps: {'; '.join(done)}.")
    end = "won" if episode.won else "not won, given up"
    return "\n".join([*dict.fromkeys(lines), f"Outcome of {code}: {end} after {len(episode.steps)} steps."])


def place_texts(house: Household, code: str, episode: Episode) -> dict[str, str]:
    """A line for each thing that the episode needed and found, by the thing."""
    taken = [
        command.split(" ", 1)[1].split(" from ", 1) for command, _ in episode.steps if command[:5] == "take "
    ]
    used = [command.split(" ", 1)[1] for command, _ in episode.steps if command[:4] == "use "]
    found = dict(taken) | {lamp: house.places[lamp] for lamp in used}
    return {
        thing: f"In {house.home.name}, {thing} stands {_in_or_on(house, place)} {place}, says {code}."
        for thing, place in found.items()
    }


def skill_text(episode: Episode, codes: Sequence[str]) -> str:
    """What to do in a family of tasks, drawn from won episodes of it."""
    task = episode.task
    example = Task(task.family, "Thing", "Place", task.lamp)
    first = f"Skill, for tasks such as '{example.text(0)}' or '{example.text(1)}'"
    steps = ["find the thing", "take it"]
    verb = verb_of(task.family)
    if verb:
        name = next(
            command.rpartition(" with ")[2] for command, _ in episode.steps if command.startswith(f"{verb} ")
        )
        appliance = name.rpartition(" ")[0]
        steps += [f"go to the {appliance}", f"{verb} it with the {appliance}"]
    if task.family == LOOK:
        steps += ["go with it to where the lamp stands", f"use the {task.lamp.lower()}"]
    else:
        steps += ["go to the place, open it if it is closed", "move it there"]
    steps += ["do the same with a second one"] if task.family == TWO else []
    return f"{first}: {'; '.join(steps)}. Worked in {', '.join(codes)}."


def read_plan(house: Household, task: Task, texts: Sequence[str]) -> Plan:
    """What the texts say of this task in this home, best text first."""
    kinds = [kind for kind in (task.target, task.lamp) if kind]
    places: dict[str, dict[str, None]] = {kind: {} for kind in kinds}
    elsewhere: dict[str, dict[str, None]] = {kind: {} for kind in kinds}
    for home, sentence in _sentences(texts):
        if home in ("", house.home.name) and not _CHANGED.search(sentence):
            for kind, place in _seen(house, sentence, kinds):
                (places if home else elsewhere)[kind].setdefault(place)
    found = {kind: tuple({**places[kind], **elsewhere[kind]}) for kind in kinds}
    verb, appliance = _extra_step(house, task, texts)
    return Plan(found, verb, appliance, 2 if task.family == TWO and _says_twice(texts) else 1)


def _in_or_on(house: Household, place: str) -> str:
    return "in" if place in house.openable else "on"


def _sentences(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(the home that it is about, "" where no text says so; sentence)."""
    for text in texts:
        home = ""
        for sentence in _SENTENCES.split(text):
            named = _HOME.search(sentence)
            home = named.group() if named else home
            yield home, sentence


def _seen(house: Household, sentence: str, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(type, receptacle): the receptacle named last before the thing, else the first after it."""
    nouns = {kind.lower(): kind for kind in kinds}
    before = ""
    waiting: list[str] = []
    for match in _NAMED.finditer(sentence):
        name = match.group()
        if name in house.home.receptacles:
            before = name
            yield from [(kind, name) for kind in waiting]
            waiting = []
        elif match[1] in nouns:
            kind = nouns[match[1]]
            if before:
                yield kind, before
            else:
                waiting.append(kind)


def _extra_step(house: Household, task: Task, texts: Sequence[str]) -> tuple[str, str]:
    """(verb, type of the appliance), where a text shows how it is done."""
    if task.family == LOOK:
        return ("use", task.lamp) if any(_USED.search(text) for text in texts) else ("", "")
    kinds = {kind.lower(): kind for kind in house.home.receptacles.values()}
    for text in texts:
        for match in _TREATED.finditer(text):
            if match[1] == verb_of(task.family) and match[2] in kinds:
                return match[1], kinds[match[2]]
    return "", ""


def _says_twice(texts: Sequence[str]) -> bool:
    return any(
        _TWICE.search(text) or (_TWO_TASK.search(text) and len(_MOVES.findall(text)) > 1) for text in texts
    )
