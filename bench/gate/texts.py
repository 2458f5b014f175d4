"""Texts of the suite: our own, with what could be said instead, and recorded household transcripts."""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OWN = Path(__file__).with_name("texts.txt")
RECORDED = Path(__file__).parents[2] / "crystalmem" / "data" / "alfworld_episodes.jsonl.xz"
WOMEN = ("Ana", "Carla", "Elena", "Greta", "Ines", "Kira", "Mina", "Petra")
MEN = ("Bob", "Dmitri", "Farid", "Hugo", "Jonas", "Luca", "Noor", "Otto")
CITIES = ("Lisbon", "Porto", "Lyon", "Graz", "Turin", "Ghent", "Bergen", "Krakow")
ROOMS = (
    "kitchen", "garage", "office", "bedroom", "hallway", "basement", "attic", "library", "workshop", "pantry",
)  # fmt: skip
_POOLS = (WOMEN, MEN, CITIES, ROOMS)
_SPAN = re.compile(r"\{([^{}|]*)((?:\|[a-z]+=[^{}|]*)+)\}")
_MEASURED = re.compile(r"(?<![\w.,:/-])(\d{2,4})(?= (?:euros|km|ml|cm|people|photos|pages|liters|m|kg)\b)")
_WINDOW_LINES = (6, 14)


@dataclass(frozen=True)
class Edit:
    """plain[start:end] could read `other`: faithfully (act, ord) or wrongly (role, neg, out, cond, place)."""

    kind: str
    start: int
    end: int
    other: str


@dataclass(frozen=True)
class Text:
    """One original with its edits."""

    source: str
    plain: str
    edits: tuple[Edit, ...] = ()

    def with_edit(self, edit: Edit) -> str:
        """The text as the edit would have it, a capital where one stood."""
        other = edit.other
        opens = edit.start == 0 or self.plain[: edit.start].rstrip()[-1:] in (".", "!", "?", "\n")
        if opens and self.plain[edit.start].isupper():
            other = other[:1].upper() + other[1:]
        return self.plain[: edit.start] + other + self.plain[edit.end :]

    def said(self, edit: Edit) -> str:
        """What stands there now."""
        return self.plain[edit.start : edit.end]


@cache
def templates() -> tuple[tuple[str, str], ...]:
    """Kind and marked text of every line of our own."""
    lines = OWN.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t", 1) for line in lines if line and not line.startswith("#"))
    return tuple((kind, text) for kind, text in rows)


def parse(source: str, marked: str) -> Text:
    """A text from its marked form."""
    plain: list[str] = []
    edits: list[Edit] = []
    at = size = 0
    for match in _SPAN.finditer(marked):
        before = marked[at : match.start()]
        start = size + len(before)
        size = start + len(match[1])
        plain += (before, match[1])
        pairs = (piece.split("=", 1) for piece in match[2][1:].split("|"))
        edits += [Edit(kind, start, size, other) for kind, other in pairs]
        at = match.end()
    return Text(source, "".join(plain) + marked[at:], tuple(edits))


def own(rng: random.Random, kinds: Sequence[str] = ()) -> Text:
    """One of our texts (with an edit of one of these kinds) with other people, places and measures in it."""
    rows = [row for row in templates() if not kinds or any(f"|{kind}=" in row[1] for kind in kinds)]
    source, marked = rng.choice(rows)
    names: dict[str, str] = {}
    for pool in _POOLS:
        names.update(zip(pool, rng.sample(pool, len(pool)), strict=True))
    return parse(source, _remeasured(_renamed(marked, names), rng))


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"[A-Za-z]+", lambda match: names.get(match[0], match[0]), text)


def _remeasured(text: str, rng: random.Random) -> str:
    drawn: dict[str, str] = {}
    for number in dict.fromkeys(_MEASURED.findall(text)):
        size = 10 ** (len(number) - 1)
        drawn[number] = str(rng.randrange(size + size // 10, 10 * size))
    if len(set(drawn.values())) < len(drawn):
        return text
    return _MEASURED.sub(lambda match: drawn[match[1]], text)


# --- transcripts ------------------------------------------------------------------------------------


@cache
def episodes() -> tuple[str, ...]:
    """The recorded transcripts that ship with the demo."""
    with lzma.open(RECORDED, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return tuple(row["text"] for row in rows if row["type"] == "episode")


def transcript(rng: random.Random, *, whole: bool = False) -> Text:
    """A transcript, or some of its lines with its last one (how it ended)."""
    text = rng.choice(episodes()).strip()
    if not whole:
        lines = [line for line in text.splitlines() if line]
        count = rng.randint(*_WINDOW_LINES)
        start = rng.randrange(3, max(4, len(lines) - count))
        text = "\n".join([*lines[start : start + count], *lines[-1:]])
    return Text("transcript", text, tuple(_transcript_edits(text, rng)))


_THING = r"([a-z]+ \d+)"
# pattern (% is a thing), kind, what it could read
_LINES = (
    (r"You (open|close) the %\.", "act", r"The \2 is \1ed by you."),
    (r"You (open|close) the %\.", "neg", r"You do not \1 the \2."),
    (r"You pick up the % from the %\.", "act", r"The \1 is picked up from the \2 by you."),
    (r"You pick up the % from the %\.", "role", r"You pick up the \2 from the \1."),
    (r"You pick up the % from the %\.", "neg", r"You never pick up the \1 from the \2."),
    (r"You move the % to the %\.", "act", r"The \1 is moved to the \2 by you."),
    (r"You move the % to the %\.", "role", r"You move the \2 to the \1."),
    (r"You move the % to the %\.", "neg", r"You do not move the \1 to the \2."),
    (r"You (heat|cool|clean) the % using the %\.", "act", r"The \2 is \1ed by you using the \3."),
    (r"You (heat|cool|clean) the % using the %\.", "role", r"You \1 the \3 using the \2."),
    (r"The % is closed\.", "neg", r"The \1 is not closed."),
    (r"The % is closed\.", "out", r"The \1 is open."),
    (r": won after", "out", r": not won after"),
    (r": won after", "out", r": lost after"),
    (r": not won after", "out", r": won after"),
    (r"On the %, you see nothing\.", "ord", r"You see nothing on the \1."),
)  # fmt: skip
_LIST = re.compile(r"you see (an? [a-z]+ \d+), (?:(an? [a-z]+ \d+), )?and (an? [a-z]+ \d+)\.")


def _transcript_edits(text: str, rng: random.Random) -> list[Edit]:
    edits = []
    for pattern, kind, other in _LINES:
        for match in re.finditer(pattern.replace("%", _THING), text):
            said = match.expand(other).replace("closeed", "closed")
            edits.append(Edit(kind, match.start(), match.end(), said))
    for match in _LIST.finditer(text):
        things = [thing for thing in match.groups() if thing]
        turned = [*things[1:], things[0]]
        said = f"you see {', '.join(turned[:-1])}{',' if len(turned) > 2 else ''} and {turned[-1]}."
        edits.append(Edit("ord", match.start(), match.end(), said))
    return edits
