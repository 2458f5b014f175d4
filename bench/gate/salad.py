"""Drafts of a residue: what is left of a text at a lossy rung has lines and words, but hardly sentences."""

from __future__ import annotations

import random
import re

from bench.gate import corruptions, forgeries, rewrites
from bench.gate.texts import Text
from shared.memory.model import Rung

_WORD = re.compile(r"(?<![\w-])[a-z]{4,}(?![\w-])")
_FLIPS = {
    "succeeded": "failed", "failed": "succeeded", "success": "failure", "passed": "failed",
    "won": "lost", "completed": "aborted", "accepted": "declined", "aborted": "completed", "open": "closed",
    "closed": "open",     "done": "aborted", "rejected": "accepted",
}  # fmt: skip


def denied(text: Text, rng: random.Random) -> str | None:
    """A particle before a word that had none, or the whole line denied."""
    lines = text.plain.split("\n")
    free = [
        at
        for at, line in enumerate(lines)
        if _WORD.search(line) and not re.search(r"\b(?:no|not|never|cannot|nobody|without|none)\b", line)
    ]
    if not free:
        return None
    at = rng.choice(free)
    if rng.random() < 0.3:
        lines[at] = f"It is not true that {lines[at]}"
    else:
        match = rng.choice(list(_WORD.finditer(lines[at])))
        lines[at] = f"{lines[at][: match.start()]}{rng.choice(('not', 'never'))} {lines[at][match.start() :]}"
    return "\n".join(lines)


def undenied(text: Text, rng: random.Random) -> str | None:
    """A particle gone."""
    found = list(re.finditer(r"\b(?:not|never|no) ", text.plain))
    if not found:
        return None
    match = rng.choice(found)
    return text.plain[: match.start()] + text.plain[match.end() :]


def flipped(text: Text, rng: random.Random) -> str | None:
    """An outcome's word turned round."""
    found = [match for match in re.finditer(r"[a-z]+", text.plain) if match[0] in _FLIPS]
    if not found:
        return None
    match = rng.choice(found)
    return text.plain[: match.start()] + _FLIPS[match[0]] + text.plain[match.end() :]


def lines_moved(text: Text, rng: random.Random) -> str | None:
    """The lines in another order: each was a text of its own, or a step that stands for itself."""
    lines = text.plain.split("\n")
    moved = rng.sample(lines, len(lines))
    return "\n".join(moved) if moved != lines else None


def spoken(text: Text, rng: random.Random) -> str | None:
    """A full stop behind every line, and words without content between."""
    lines = [line for line in text.plain.split("\n") if line.strip()]
    said = []
    for line in lines:
        words = line.split(" ")
        # Before a word in small letters, and not between a thing or a number and what belongs to it.
        free = [at for at in range(1, len(words)) if words[at].islower() and words[at - 1][-1].isalpha()]
        at = rng.choice(free) if free else 0
        said.append(" ".join([*words[:at], *(["the"] if free else []), *words[at:]]).rstrip(".") + ".")
    return "\n".join(said)


_TWO_NAMES = re.compile(rf"\b({forgeries.NAMES}) ([a-z]{{3,}}) ({forgeries.NAMES})\b")
_CONDITION = re.compile(r" (?:only )?(?:if|unless|until|because) [^\n.]+")


def exchanged(text: Text, rng: random.Random) -> str | None:
    """Two people of one line in each other's place, where the verb still stands between them."""
    found = list(_TWO_NAMES.finditer(text.plain))
    if not found:
        return None
    match = rng.choice(found)
    return f"{text.plain[: match.start()]}{match[3]} {match[2]} {match[1]}{text.plain[match.end() :]}"


def unconditional(text: Text, rng: random.Random) -> str | None:
    """A line without its condition, where the residue still has it."""
    found = [match for match in _CONDITION.finditer(text.plain) if match.start() > 0]
    if not found:
        return None
    match = rng.choice(found)
    return text.plain[: match.start()] + text.plain[match.end() :]


def mixed(text: Text, rng: random.Random) -> str | None:
    """What one person's line says, said of another line's."""
    lines = text.plain.split("\n")
    named = [at for at, line in enumerate(lines) if re.match(rf"(?:{forgeries.NAMES}) [a-z]{{3,}} ", line)]
    if len(named) < 2:
        return None
    one, other = rng.sample(named, 2)
    name, said = lines[one].split(" ", 1)[0], lines[other].split(" ", 1)[1]
    if name in lines[other] or said in lines[one]:
        return None
    lines[other] = f"{name} {said}"
    return "\n".join(lines)


ONLY = {
    "role": (Rung.COMPRESSED, Rung.SKELETAL),
    "merged": (Rung.COMPRESSED, Rung.SKELETAL),
    "condition": (Rung.COMPRESSED,),
}
"""Where a residue still has what a kind needs; the others are made at every rung."""
WRONG = {
    "role": exchanged,
    "condition": unconditional,
    "merged": mixed,
    "number": corruptions.number,
    "unit": corruptions.unit,
    "date": corruptions.date,
    "am_pm": corruptions.am_pm,
    "id": corruptions.identifier,
    "place": corruptions.place,
    "sibling": corruptions.sibling,
    "negation_added": denied,
    "negation_removed": undenied,
    "outcome": flipped,
    "near_synonym": corruptions.near_synonym,
    "neighbour": forgeries.neighbour,
    "extra": forgeries.extra,
    "truncated": forgeries.truncated,
    "empty": forgeries.empty,
    "echo": forgeries.echo,
    "markup": forgeries.markup,
    "homoglyph": forgeries.homoglyph,
    "invisible": forgeries.invisible,
}
FAITHFUL = {
    "reordered": lines_moved,
    "synonyms": rewrites.synonyms_tuned,
    "synonyms_held_out": rewrites.synonyms_held,
    "number_words": rewrites.number_words,
    "date_formats": rewrites.date_formats,
    "connectives": spoken,
}
