"""Which facts of a household episode can still be read off at each rung.

A fact is read off where one line of the kept text has all its parts as whole words, in any order:
* step: what heated, cooled, cleaned or used what, by the verb of the engine's command;
* place: where each thing that the agent moved ended up;
* outcome: won or not, and after how many steps;
* seen: every other thing where it was first seen. TRACE cannot hold these; they are reported apart.
Besides, the share of the recorded questions' gold tokens that the episode they are about still has.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from bench.reader_free import content_tokens

_DEED = re.compile(r"^> (\w+) (\w+ \d+) (?:to|with|in|on|from|using) (\w+ \d+)", re.MULTILINE)
_USED = re.compile(r"^> (use) (\w+ \d+)", re.MULTILINE)
_SEEN = re.compile(r"(?:On the (\w+ \d+), you see|The (\w+ \d+) is open\. In it, you see) ([^.]*)\.")
_THING = re.compile(r"an? (\w+ \d+)")
_OUTCOME = re.compile(r"^Outcome of \w+: (not )?(won)\D*(\d+)", re.MULTILINE)
MEANT = ("step", "place", "outcome")


@dataclass(frozen=True)
class Asked:
    """A recorded question: the tokens of its answer, and the episode they were in."""

    gold: frozenset[str]
    text: str


def recorded() -> tuple[list[str], list[Asked]]:
    """Texts of the shipped episodes, and the questions about them."""
    packed = files("crystalmem").joinpath("data/alfworld_episodes.jsonl.xz").read_bytes()
    texts: dict[str, str] = {}
    asked = []
    for line in lzma.decompress(packed).decode().splitlines():
        record = json.loads(line)
        if record["type"] == "episode":
            texts[record["id"]] = record["text"]
        elif record["type"] == "question":
            asked.append(Asked(frozenset(content_tokens(record["gold"])), texts[record["about"][0]]))
    return list(texts.values()), asked


def facts(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(kind, parts) of every fact of an episode."""
    ended: dict[str, str] = {}
    for verb, thing, place in _DEED.findall(text):
        if verb in ("move", "put"):
            ended[thing] = place
        elif verb != "take":
            yield "step", (verb, thing, place)
    yield from (("step", parts) for parts in _USED.findall(text))
    yield from (("place", parts) for parts in ended.items())
    for denied, won, steps in _OUTCOME.findall(text):
        yield "outcome", (*denied.split(), won, steps)
    first: dict[str, str] = {}
    for on, inside, listed in _SEEN.findall(text):
        for thing in _THING.findall(listed):
            first.setdefault(thing, on or inside)
    yield from (("seen", parts) for parts in first.items() if parts[0] not in ended)


def read_off(texts: Sequence[str], keep: Callable[[str], str]) -> dict[str, float]:
    """Share of each kind of fact that is still there, and of the three that are meant for TRACE."""
    there: dict[str, list[bool]] = {kind: [] for kind in (*MEANT, "seen")}
    for text in texts:
        lines = [f" {re.sub(r'[^0-9a-z]+', ' ', line.lower())} " for line in keep(text).splitlines()]
        for kind, parts in facts(text):
            there[kind].append(any(all(f" {part} " in line for part in parts) for line in lines))
    shares = {kind: sum(found) / len(found) for kind, found in there.items()}
    meant = [found for kind in MEANT for found in there[kind]]
    return shares | {"facts": sum(meant) / len(meant)}


def gold_kept(asked: Sequence[Asked], kept: Mapping[str, str]) -> float:
    """Mean share of a gold answer's tokens in the kept text of its episode."""
    found = (len(one.gold & content_tokens(kept[one.text])) / len(one.gold) for one in asked)
    return sum(found) / len(asked)
