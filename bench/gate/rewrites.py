"""Drafts that say the same in other words; each is faithful by construction, for one text of the suite."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from bench.gate.corruptions import MONTHS
from bench.gate.forgeries import sentences
from bench.gate.texts import CITIES, MEN, WOMEN, Text

_SYNONYMS = Path(__file__).with_name("synonyms.txt")
_MONTH = "|".join(MONTHS)
_HELD_EVERY = 3
_PRONOUN = re.compile(
    r"\b(?:it|its|he|him|his|she|her|they|them|their|there|this|that|the (?:second|first|rest|new)|then|also|"
    r"so|both|own|one|two of|only \d+|some|most|second|i|my|you|yes|we|mine|me|our|us)\b",
    re.IGNORECASE,
)
_CONNECTIVES = (
    "Also, ",
    "In addition, ",
    "Moreover, ",
    "Furthermore, ",
    "Besides, ",
    "Additionally, ",
    "As well as that, ",
)
_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_ONES = _WORDS.split()
_TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_COUNT = re.compile(
    r"(?<=\s)(\d{1,3})(?= (?:euros|km|m|cm|ml|liters|kg|hours|minutes|days|nights|weeks|months|years|steps|"
    r"photos|people|children|cracks|pages|trees|apples|eggs|rooms|cows|birds|tons|parcels|paintings|bottles|glasses|rolls|"
    r"lamps|cores|times|files|warnings|results|seconds|degrees|employees|moves|free days|of them)\b)"
)
_DAY_MONTH = re.compile(rf"(?<![-\w])(\d{{1,2}}) ({_MONTH})(?: (\d{{4}}))?\b(?! and)")
_ISO = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_HALF_DAY = re.compile(r"\b(\d{1,2})(?::(\d\d))? (am|pm)\b")
_CLOCK = re.compile(r"(?<![\d:T])([01]?\d|2[0-3]):([0-5]\d)\b(?! ?[ap]m)")

Rewrite = Callable[[Text, random.Random], "str | None"]


# --- what the texts offer ---------------------------------------------------------------------------


def _edited(kind: str) -> Rewrite:
    def rewrite(text: Text, rng: random.Random) -> str | None:
        edits = [edit for edit in text.edits if edit.kind == kind]
        return text.with_edit(rng.choice(edits)) if edits else None

    return rewrite


voice = _edited("act")


def reordered(text: Text, rng: random.Random) -> str | None:
    """A sentence turned, or whole sentences moved where none leans on another."""
    turned = _edited("ord")(text, rng)
    said = sentences(text.plain)
    free = (
        len(said) > 1
        and " ".join(said) == text.plain.strip()
        and text.source in ("fact", "note", "appointment")
    )
    if free and not any(_PRONOUN.search(one) for one in said) and (turned is None or rng.random() < 0.5):
        return " ".join([*said[1:], said[0]])
    return turned


# --- words ------------------------------------------------------------------------------------------


@cache
def synonyms() -> tuple[tuple[str, str, bool], ...]:
    """Word, what may stand for it, and whether the pair is held out of tuning."""
    lines = _SYNONYMS.read_text(encoding="utf-8").splitlines()
    pairs = [line.split("=") for line in lines if "=" in line and not line.startswith("#")]
    return tuple((said, other, at % _HELD_EVERY == 0) for at, (said, other) in enumerate(pairs))


def _swapped(*, held: bool) -> Rewrite:
    def rewrite(text: Text, rng: random.Random) -> str | None:
        pairs = [(said, other) for said, other, out in synonyms() if out is held]
        rng.shuffle(pairs)
        for said, other in pairs:
            found = list(re.finditer(rf"(?<![\w-]){said}(?![\w-])", text.plain))
            if found:
                match = rng.choice(found)
                return text.plain[: match.start()] + other + text.plain[match.end() :]
        return None

    return rewrite


synonyms_tuned = _swapped(held=False)
synonyms_held = _swapped(held=True)


def in_words(number: int) -> str:
    """0 to 999."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, one = divmod(number, 10)
        return _TENS[tens] + (f"-{_ONES[one]}" if one else "")
    hundreds, rest = divmod(number, 100)
    return f"{_ONES[hundreds]} hundred" + (f" and {in_words(rest)}" if rest else "")


def number_words(text: Text, rng: random.Random) -> str | None:
    """A count in words."""
    found = list(_COUNT.finditer(text.plain))
    if not found:
        return None
    match = rng.choice(found)
    said = in_words(int(match[1]))
    if rng.random() < 0.2:
        said = said.replace("-", " ")
    return text.plain[: match.start()] + said + text.plain[match.end() :]


def ordinal(day: int) -> str:
    """1st, 2nd, 3rd, 4th."""
    if day in (11, 12, 13):
        return f"{day}th"
    return f"{day}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th') }".replace(" ", "")


def date_formats(text: Text, rng: random.Random) -> str | None:
    """A date or a time of day, written another way."""
    forms: list[tuple[re.Match[str], list[str]]] = []
    for match in _DAY_MONTH.finditer(text.plain):
        day, month, year = int(match[1]), match[2], match[3]
        behind, comma = (f" {year}", ",") if year else ("", "")
        forms.append((match, [
            f"{month} {day}{comma}{behind}", f"{month} {ordinal(day)}{comma}{behind}",
            f"{day} {month[:3]}{behind}", f"{ordinal(day)} {month}{behind}",
            f"the {ordinal(day)} of {month}{behind}",
            *([f"{year}-{MONTHS.index(month) + 1:02d}-{day:02d}"] if year else []),
        ]))  # fmt: skip
    for match in _ISO.finditer(text.plain):
        year, month, day = match[1], MONTHS[int(match[2]) - 1], int(match[3])
        forms.append(
            (match, [f"{day} {month} {year}", f"{month} {day}, {year}", f"{ordinal(day)} of {month} {year}"])
        )
    for match in _HALF_DAY.finditer(text.plain):
        hour, minute, half = int(match[1]), match[2] or "00", match[3]
        on_clock = hour % 12 + 12 * (half == "pm")
        dotted = f"{half[0]}.m."
        ends = (f" {half}", half, f" {half.upper()}", f" {dotted}")
        forms.append((match, [f"{on_clock:02d}:{minute}", *(f"{hour}:{minute}{end}" for end in ends)]))
    for match in _CLOCK.finditer(text.plain):
        hour, minute = int(match[1]), match[2]
        if hour < 13 and not match[1].startswith("0"):
            continue  # "4:10" may be either
        half = "am" if hour < 12 else "pm"
        forms.append((match, [f"{hour % 12 or 12}:{minute} {half}", f"{hour % 12 or 12}:{minute}{half}"]))
    if not forms:
        return None
    match, others = rng.choice(forms)
    others = [other for other in others if other != match[0]]
    return text.plain[: match.start()] + rng.choice(others) + text.plain[match.end() :]


# --- sentences --------------------------------------------------------------------------------------


def _lowered(said: str) -> str:
    first = said.split(maxsplit=1)[0].removesuffix("'s").rstrip(".,:")
    proper = first in (*WOMEN, *MEN, *CITIES) or any(
        letter.isupper() or letter.isdigit() for letter in first[1:]
    )
    proper = proper or first in MONTHS or first == "I"
    return said if proper else said[0].lower() + said[1:]


def joined(text: Text, rng: random.Random) -> str | None:
    """Two sentences made one."""
    return _between(text, rng, lambda after: rng.choice((", and ", " and ", "; ")) + _lowered(after), drop=1)


def connectives(text: Text, rng: random.Random) -> str | None:
    """A sentence opened with a word that only links."""
    return _between(text, rng, lambda after: f" {rng.choice(_CONNECTIVES)}{_lowered(after)}", drop=0)


def _between(text: Text, rng: random.Random, link: Callable[[str], str], *, drop: int) -> str | None:
    if text.source == "transcript":
        places = [match.start() for match in re.finditer(r"(?<=\.) (?=(?:The|On|In the) )", text.plain)]
    else:
        places = [match.start() for match in re.finditer(r"(?<=[a-z\d]\.) (?=[A-Z])", text.plain)]
    places = [at for at in places if not re.match(r" \w+:", text.plain[at:])]
    places = [at for at in places if "?" not in text.plain[at:].split(".")[0]]
    if not places:
        return None
    at = rng.choice(places)
    return text.plain[: at - drop] + link(text.plain[at + 1 :])


def identity(text: Text, rng: random.Random) -> str | None:
    """Nothing was dropped, and nothing is changed."""
    return text.plain


REWRITES: dict[str, tuple[Rewrite, Sequence[str]]] = {
    "identity": (identity, ()),
    "reordered": (reordered, ("ord",)),
    "synonyms": (synonyms_tuned, ()),
    "synonyms_held_out": (synonyms_held, ()),
    "voice": (voice, ("act",)),
    "number_words": (number_words, ()),
    "date_formats": (date_formats, ()),
    "joined": (joined, ()),
    "connectives": (connectives, ()),
}
"""Each with the edits a text must offer for it."""
