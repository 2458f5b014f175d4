"""A MiniWoB++ episode as text, read back from whatever is left of it, and carried to another page.

A line each: task (the utterance), slots, page, every action, outcome. A line that no longer parses is lost.
An action names a kind of element, and the element by its own text, or by its number and the text beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

Action = int | str
"""A click on the element with this ref, or the typing of this text."""
_DIGEST_BYTES = 8
_STRING = r'"(?:[^"\\]|\\.)*"'
_CLICK = re.compile(rf"do: click (\w+) (?:number ([0-9]+)(?: beside ({_STRING}))?|({_STRING}))")
_TYPE = re.compile(rf"do: type ({_STRING})")


@dataclass(frozen=True)
class Element:
    """beside: the text next to one that has none of its own; "" where there is none."""

    ref: int
    tag: str
    text: str = ""
    beside: str = ""


@dataclass(frozen=True)
class Page:
    """One seed of one task, as the browser showed it. slots: MiniWoB++'s own fields of the utterance."""

    task: str
    seed: int
    utterance: str
    slots: Mapping[str, str]
    elements: tuple[Element, ...]


@dataclass(frozen=True)
class Step:
    """What an episode's line says: type `text`, or (tag not empty) click an element of this kind."""

    tag: str = ""
    text: str = ""
    number: int = 0
    beside: str = ""


@dataclass
class Episode:
    """What could be read of an entry."""

    utterance: str
    slots: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


def written(page: Page, actions: Sequence[Action]) -> str:
    """The entry of an episode that was rewarded."""
    shown = ", ".join(_shown(element) for element in page.elements)
    lines = [f"task: {page.utterance}", f"slots: {_json(page.slots)}", f"page: {shown}"]
    lines += [_line(described(page, action)) for action in actions]
    return "\n".join([*lines, "outcome: rewarded"])


def described(page: Page, action: Action) -> Step:
    """An action in words that may hold on another page."""
    if isinstance(action, str):
        return Step(text=action)
    element = next(each for each in page.elements if each.ref == action)
    alike = [each for each in page.elements if each.tag == element.tag]
    if element.text:
        return Step(element.tag, element.text)
    return Step(element.tag, "", alike.index(element) + 1, element.beside)


def read(texts: Iterable[str]) -> list[Episode]:
    """Every episode in the texts, in order; one text may hold several."""
    found: list[Episode] = []
    for text in texts:
        current: Episode | None = None
        for line in map(str.strip, text.splitlines()):
            name, _, rest = line.partition(": ")
            if name == "task":
                current = Episode(rest)
                found.append(current)
            elif current is not None and name == "slots":
                current.slots = _slots(rest)
            elif current is not None and (step := _step(line)):
                current.steps.append(step)
    return found


def act(page: Page, texts: Iterable[str]) -> tuple[Action, ...] | None:
    """Replay the episode of the same utterance, else the first of the same form; None where there is neither,
    or where the page has no such element.
    """
    episodes = [episode for episode in read(texts) if episode.steps]
    form = general(page.utterance, page.slots)
    same = next((each for each in episodes if each.utterance == page.utterance), None)
    chosen = same or next((each for each in episodes if general(each.utterance, each.slots) == form), None)
    return None if chosen is None else carried(chosen, page)


def general(utterance: str, slots: Mapping[str, str]) -> str:
    """An utterance with its slots' values replaced by their names."""
    return swapped(utterance, {value: f"{{{name}}}" for name, value in reversed(list(slots.items()))})


def carried(episode: Episode, page: Page) -> tuple[Action, ...] | None:
    """The steps with the episode's slot values replaced by the page's, on the page's elements."""
    swaps = {
        value: page.slots[name]
        for name, value in reversed(list(episode.slots.items()))
        if name in page.slots and page.slots[name] != value
    }
    actions: list[Action] = []
    for step in episode.steps:
        text = swapped(step.text, swaps)
        if not step.tag:
            actions.append(text)
            continue
        element = _found(page, step, text, swaps)
        if element is None:
            return None
        actions.append(element.ref)
    return tuple(actions)


def digest(actions: Sequence[Action]) -> str:
    """The recording's key beside the page."""
    return blake2b(json.dumps(list(actions)).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def swapped(text: str, swaps: Mapping[str, str]) -> str:
    """Whole words only, all at once, the longest first."""
    wanted = [re.escape(value) for value in sorted(swaps, key=len, reverse=True) if value]
    if not wanted:
        return text
    return re.sub(rf"(?<!\w)(?:{'|'.join(wanted)})(?!\w)", lambda match: swaps[match[0]], text)


def _found(page: Page, step: Step, text: str, swaps: Mapping[str, str]) -> Element | None:
    alike = [each for each in page.elements if each.tag == step.tag]
    if text:
        return next((each for each in alike if each.text == text), None)
    beside = swapped(step.beside, swaps)
    near = next((each for each in alike if each.beside == beside), None) if beside else None
    number = swapped(str(step.number), swaps)
    at = int(number) - 1 if number.isdecimal() else -1
    return near or (alike[at] if 0 <= at < len(alike) else None)


def _step(line: str) -> Step | None:
    try:
        if click := _CLICK.fullmatch(line):
            tag, number, beside, text = click.groups()
            return Step(tag, json.loads(text or '""'), int(number or 0), json.loads(beside or '""'))
        if typed := _TYPE.fullmatch(line):
            return Step(text=json.loads(typed[1]))
    except ValueError:
        # Not every text in quotes is JSON's.
        return None
    return None


def _slots(told: str) -> dict[str, str]:
    try:
        record: Any = json.loads(told)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(record, dict):
        return {}
    return {name: value for name, value in record.items() if isinstance(value, str)}


def _line(step: Step) -> str:
    if not step.tag:
        return f"do: type {_json(step.text)}"
    if step.text:
        return f"do: click {step.tag} {_json(step.text)}"
    return f"do: click {step.tag} number {step.number}" + (
        f" beside {_json(step.beside)}" if step.beside else ""
    )


def _shown(element: Element) -> str:
    told = element.text or element.beside
    return f"{element.tag} {_json(told)}" if told else element.tag


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
