"""Drafts that change a detail: numbers, units, dates, times, ids, places, names, polarity, outcome, roles."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from bench.gate.texts import CITIES, MEN, ROOMS, WOMEN, Text

_NEARLY = Path(__file__).with_name("nearly.txt")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH = "|".join(MONTHS)
_NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?:[.,]\d+)?(?![\w:/-])(?![.,]\d)")
_UNITS: tuple[tuple[str, ...], ...] = (
    ("km", "m", "cm", "mm", "miles", "meters"), ("kg", "g", "mg", "tons"), ("liters", "ml", "gallons"),
    ("hours", "minutes", "seconds", "days", "weeks", "months"), ("euros", "dollars", "pounds"),
    ("degrees", "%"), ("V", "mV", "A", "W"), ("GB", "MB"), ("ms", "s"), ("photos", "pages"),
    ("steps", "rounds"),
)  # fmt: skip
_UNIT_OF = {unit: group for group in _UNITS for unit in group}
_UNIT = re.compile(rf"(?<=\d )({'|'.join(sorted(map(re.escape, _UNIT_OF), key=len, reverse=True))})(?!\w)")
_DATE = re.compile(rf"\b(\d{{1,2}}) ({_MONTH})\b|\b(\d{{4}}-\d\d)-(\d\d)\b|\b({'|'.join(WEEKDAYS)})\b")
_CLOCK = re.compile(r"\b(\d{1,2}(?::\d\d)?) (am|pm)\b")
_ID = re.compile(
    r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9-]*\d[A-Za-z0-9-]*\b|\b[a-z]+ \d{2,4}\b|\b\d{4,6}\b"
)
_NEGATED = re.compile(r"\b(?:not|never|no|cannot|nobody|none|without|nothing|neither)\b", re.IGNORECASE)

Corruption = Callable[[Text, random.Random], "str | None"]


def _pick(pattern: re.Pattern[str], text: str, rng: random.Random) -> re.Match[str] | None:
    found = list(pattern.finditer(text))
    return rng.choice(found) if found else None


def _with(text: str, match: re.Match[str], other: str, group: int = 0) -> str:
    return text[: match.start(group)] + other + text[match.end(group) :]


def number(text: Text, rng: random.Random) -> str | None:
    """One number, one up or down in its last place."""
    match = _pick(_NUMBER, text.plain, rng)
    if match is None:
        return None
    digits = match[0].replace(",", "")
    step = rng.choice((-1, 1))
    if "." in digits:
        places = len(digits.split(".")[1])
        return _with(text.plain, match, f"{float(digits) + step / 10**places:.{places}f}")
    return _with(text.plain, match, str(max(0, int(digits) + step) if int(digits) else 1))


def unit(text: Text, rng: random.Random) -> str | None:
    """Another unit of the same kind behind a number."""
    match = _pick(_UNIT, text.plain, rng)
    if match is None:
        return None
    others = [other for other in _UNIT_OF[match[1]] if other != match[1]]
    if match[1] == "m":
        others.remove("meters")  # the same unit
    return _with(text.plain, match, rng.choice(others))


def date(text: Text, rng: random.Random) -> str | None:
    """A date some days off, another month, or another weekday."""
    match = _pick(_DATE, text.plain, rng)
    if match is None:
        return None
    if match[5]:
        return _with(text.plain, match, rng.choice([day for day in WEEKDAYS if day != match[5]]))
    if match[3]:
        return _with(text.plain, match, f"{match[3]}-{_other_day(match[4], rng):02d}")
    if rng.random() < 0.5:
        other = rng.choice([month for month in MONTHS if month != match[2]])
        return _with(text.plain, match, f"{match[1]} {other}")
    return _with(text.plain, match, f"{_other_day(match[1], rng)} {match[2]}")


def _other_day(day: str, rng: random.Random) -> int:
    return rng.choice([other for other in range(1, 29) if other != int(day)])


def am_pm(text: Text, rng: random.Random) -> str | None:
    """Morning for evening, or twelve hours off."""
    match = _pick(_CLOCK, text.plain, rng)
    if match is not None:
        return _with(text.plain, match, "am" if match[2] == "pm" else "pm", 2)
    match = _pick(re.compile(r"\b([01]?\d):(\d\d)\b(?! [ap]m)"), text.plain, rng)
    if match is None or int(match[1]) > 11 or int(match[1]) < 1:
        return None
    return _with(text.plain, match, f"{int(match[1]) + 12}:{match[2]}")


def identifier(text: Text, rng: random.Random) -> str | None:
    """Two digits of an id exchanged, or one replaced."""
    match = _pick(_ID, text.plain, rng)
    if match is None:
        return None
    digits = [at for at, letter in enumerate(match[0]) if letter.isdigit()]
    letters = list(match[0])
    pairs = [(a, b) for a, b in pairwise(digits) if letters[a] != letters[b] and b == a + 1]
    if pairs and letters[pairs[0][0]] != "0" and rng.random() < 0.6:
        a, b = rng.choice(pairs)
        letters[a], letters[b] = letters[b], letters[a]
    else:
        at = rng.choice(digits)
        letters[at] = rng.choice([digit for digit in "123456789" if digit != letters[at]])
    return _with(text.plain, match, "".join(letters))


def place(text: Text, rng: random.Random) -> str | None:
    """Another room or town, sometimes one that the text has elsewhere."""
    pools: list[Sequence[str]] = [ROOMS, CITIES, _receptacles(text.plain)]
    for pool in rng.sample(pools, len(pools)):
        match = _pick(re.compile(rf"\b(?:{'|'.join(pool)})\b"), text.plain, rng) if pool else None
        if match is None or len(set(pool)) < 2:
            continue
        there = [word for word in dict.fromkeys(pool) if word != match[0] and word in text.plain]
        others = there if there and rng.random() < 0.4 else [word for word in pool if word != match[0]]
        draft = _with(text.plain, match, rng.choice(others))
        if not _listed(text.plain, match):
            return draft
    return None


def _receptacles(text: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(re.findall(r"(?:arrive at|On the|from the|to the|open the) ([a-z]+ \d+)", text))
    )


def _listed(text: str, match: re.Match[str]) -> bool:
    """True for an action's own line ("> go to fridge 1"): the next line would still say it right."""
    start = text.rfind("\n", 0, match.start()) + 1
    return text[start : start + 1] == ">"


def sibling(text: Text, rng: random.Random) -> str | None:
    """Another person of the store, or another thing of the same sort."""
    people = [name for name in (*WOMEN, *MEN) if re.search(rf"\b{name}\b", text.plain)]
    if people:
        one = rng.choice(people)
        pool = WOMEN if one in WOMEN else MEN
        others = [name for name in pool if name not in people]
        if not others:
            return None
        match = _pick(re.compile(rf"\b{one}\b"), text.plain, rng)
        return _with(text.plain, match, rng.choice(others)) if match else None
    match = _pick(re.compile(r"(?:see|up|move|heat|cool|clean) (?:an?|the) (([a-z]+) \d+)"), text.plain, rng)
    if match is None:
        return None
    other = rng.choice([thing for thing in ("vase", "mug", "fork", "pan", "towel") if thing != match[2]])
    return _with(text.plain, match, f"{other} {rng.randint(20, 990)}", 1)


@cache
def near_synonyms() -> tuple[tuple[str, str], ...]:
    """A word, and one near to it that says something else."""
    lines = _NEARLY.read_text(encoding="utf-8").splitlines()
    return tuple(
        (said, other)
        for said, _, other in (line.partition("=") for line in lines if not line.startswith("#"))
        if other
    )


def near_synonym(text: Text, rng: random.Random) -> str | None:
    """One word replaced by one that is near to it and changes the fact."""
    pairs = list(near_synonyms())
    rng.shuffle(pairs)
    for said, other in pairs:
        match = _pick(re.compile(rf"(?<![\w-]){said}(?![\w-])"), text.plain, rng)
        if match is not None and not _listed(text.plain, match):
            return _with(text.plain, match, other)
    return None


# --- what the texts themselves offer ----------------------------------------------------------------


def _edited(kind: str, keep: Callable[[str, str], bool] = lambda said, other: True) -> Corruption:
    def corrupt(text: Text, rng: random.Random) -> str | None:
        edits = [edit for edit in text.edits if edit.kind == kind and keep(text.said(edit), edit.other)]
        return text.with_edit(rng.choice(edits)) if edits else None

    return corrupt


def _denies(words: str) -> bool:
    return bool(_NEGATED.search(words))


role = _edited("role")
outcome = _edited("out")
condition = _edited("cond")
negation_added = _edited("neg", lambda said, other: not _denies(said))
negation_removed = _edited("neg", lambda said, other: _denies(said) and not _denies(other))

DETAILS: dict[str, tuple[Corruption, Sequence[str]]] = {
    "number": (number, ()),
    "unit": (unit, ()),
    "date": (date, ()),
    "am_pm": (am_pm, ()),
    "id": (identifier, ()),
    "role": (role, ("role",)),
    "place": (place, ()),
    "negation_added": (negation_added, ("neg",)),
    "negation_removed": (negation_removed, ("neg",)),
    "outcome": (outcome, ("out",)),
    "sibling": (sibling, ()),
    "condition": (condition, ("cond",)),
    "near_synonym": (near_synonym, ()),
}
"""Each with the edits a text must offer for it."""
