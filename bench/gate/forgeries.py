"""Drafts that are wrong as a whole: facts mixed or borrowed, additions, cuts, echoes, wrappings."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable

from bench.gate.texts import MEN, WOMEN, Text, own

NAMES = "|".join((*WOMEN, *MEN))
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.](?=\d)[^.!?\n]+)*[.!?]+")
_FACT = re.compile(rf"^({NAMES}) (?!and )([a-z]+(?:s|ed|t|ve|ew|ok|ld|id|ote|ave|ove|an|am|at|nd) .+)$")
EXTRAS = (
    "{name} was very happy about it.", "It was raining the whole day.", "Everyone agreed with the plan.",
    "{name} left early because of a headache.", "The next step is planned for next week.",
    "They celebrated afterwards with a glass of wine.", "{name} took a photo of it.",
    "This is the best solution so far.", "A neighbour watched everything from the window.",
    "The weather was sunny and warm.", "{name} will call again tomorrow.", "It cost more than expected.",
    "The manager was informed by email.", "{name} has a younger brother.", "Nobody complained.",
    "The whole thing took about an hour.", "Later that evening {name} went for a walk.",
    "A second attempt was not necessary.", "The door was painted blue.", "{name} apologised for the mistake.",
    "The price includes delivery.", "All files were saved on the server.", "{name} speaks fluent Spanish.",
    "The battery should be replaced soon.", "It happens every year.", "The children were already asleep.",
    "{name} prefers tea to coffee.", "The street was closed for traffic.", "It is a family tradition.",
    "Security staff checked the area first.", "{name} kept the receipt.", "The floor had just been cleaned.",
)  # fmt: skip
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u202e"
_ALIKE = {
    "a": "\u0430", "c": "\u0441", "e": "\u0435", "i": "\u0456", "o": "\u043e", "p": "\u0440", "x": "\u0445",
    "y": "\u0443", "A": "\u0410", "B": "\u0392", "E": "\u0395", "H": "\u041d", "K": "\u039a", "M": "\u041c",
    "O": "\u039f", "P": "\u0420", "T": "\u0422", "s": "\u0455", "j": "\u0458",
}  # fmt: skip

Forgery = Callable[[Text, random.Random], "str | None"]


def sentences(text: str) -> list[str]:
    """Sentences with their full stops."""
    return [match[0].strip() for match in _SENTENCE.finditer(text)]


def merged(text: Text, rng: random.Random) -> str | None:
    """What one person did, said of another in the text; `text` must tell of two."""
    facts = [(match, said) for said in sentences(text.plain) if (match := _FACT.match(said.rstrip(".")))]
    rng.shuffle(facts)
    for one, said in facts:
        for other, also in facts:
            if one[2] == other[2] or f" {other[2]}" in said:
                continue
            if one[1] != other[1] and one[1] not in also and other[1] not in said:
                mixed = f"{one[1]} {other[2]}."
                if rng.random() < 0.5:
                    return text.plain.replace(said, mixed, 1)
                joined = f"{said[:-1]} and {other[2]}."
                return text.plain.replace(said, joined, 1).replace(" " + also, "", 1)
    return None


def neighbour(text: Text, rng: random.Random) -> tuple[str, str] | None:
    """A fact of another entry added or put in the place of one: (draft, the other entry)."""
    other = own(rng)
    borrowed = [said for said in sentences(other.plain) if len(said.split()) > 3]
    mine = sentences(text.plain)
    if not borrowed or not mine or other.source == "dialogue":
        return None
    fact = rng.choice(borrowed)
    if fact in text.plain:
        return None
    if rng.random() < 0.5:
        return f"{text.plain.rstrip()} {fact}", other.plain
    return text.plain.replace(rng.choice(mine), fact, 1), other.plain


def extra(text: Text, rng: random.Random) -> str | None:
    """A sentence that could well be true, and that nothing says."""
    people = re.findall(rf"\b(?:{NAMES})\b", text.plain)
    lines = [line for line in EXTRAS if people or "{name}" not in line]
    added = rng.choice(lines).format(name=rng.choice(people) if people else "")
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s|$)", text.plain)]
    at = rng.choice(ends) if ends else len(text.plain)
    return f"{text.plain[:at]} {added}{text.plain[at:]}"


def truncated(text: Text, rng: random.Random) -> str | None:
    """Cut inside a word, somewhere in the last two thirds."""
    plain = text.plain
    cuts = [
        at
        for at in range(max(2, len(plain) // 3), len(plain))
        if plain[at - 1].isalnum() and plain[at].isalnum()
    ]
    return plain[: rng.choice(cuts)] if cuts else None


def empty(text: Text, rng: random.Random) -> str | None:
    """Nothing, in many forms."""
    return rng.choice(
        ("", " ", "\n\n", "...", "\u200b", "{}", "[]", '""', "-", "N/A", "null", "None", "```\n```")
    )


def echo(text: Text, rng: random.Random) -> str | None:
    """The prompt, or a model's talk about it, with or without the text."""
    plain = text.plain
    forms = (
        f"Notes:\n{plain}", f"Notes:\n{plain}\n\nFacts that must stand in the text:\n{plain[:40]}",
        f"Here is the restored memory: {plain}", f"Sure! Here is the complete text:\n\n{plain}",
        f"You restore a memory that was shortened to save space.\n{plain}",
        f"{plain}\n\nContext:\n{plain[:60]}", f"Original text: {plain}", f"Rewritten text: {plain}",
        f"{plain}\n\nI hope this helps!", f"User: restore this memory\nAssistant: {plain}",
        f"As an AI language model, I can restore the text: {plain}", f"<|im_start|>assistant\n{plain}",
        f"Write it out again as complete text. {plain}", f"### Response:\n{plain}",
    )  # fmt: skip
    return rng.choice(forms)


def markup(text: Text, rng: random.Random) -> str | None:
    """The text inside Markdown, HTML or JSON."""
    plain = text.plain
    first, _, rest = plain.partition(" ")
    said, packed = sentences(plain), json.dumps({"text": plain})
    forms = (
        packed, json.dumps([plain]), f"```\n{plain}\n```", f"```json\n{packed}\n```",
        f"# Memory\n\n{plain}", f"**{plain}**", f"**{first}** {rest}",
        "\n".join(f"- {one}" for one in said) or None,
        "\n".join(f"{at}. {one}" for at, one in enumerate(said, 1)) or None,
        f"<p>{plain}</p>", f"| text |\n| --- |\n| {plain} |", f"## Summary\n{plain}", f"<text>{plain}</text>",
        f"> {plain}" if not plain.startswith(">") else None, f"`{plain}`", f"text: {plain}", f"* {plain}",
    )  # fmt: skip
    return rng.choice(forms)


def homoglyph(text: Text, rng: random.Random) -> str | None:
    """One letter, or a whole word's letters, from another script."""
    places = [at for at, letter in enumerate(text.plain) if letter in _ALIKE]
    if not places:
        return None
    at = rng.choice(places)
    if rng.random() < 0.5:
        return text.plain[:at] + _ALIKE[text.plain[at]] + text.plain[at + 1 :]
    start = at
    while start and text.plain[start - 1].isalnum():
        start -= 1
    end = at
    while end < len(text.plain) and text.plain[end].isalnum():
        end += 1
    word = "".join(_ALIKE.get(letter, letter) for letter in text.plain[start:end])
    return text.plain[:start] + word + text.plain[end:]


def invisible(text: Text, rng: random.Random) -> str | None:
    """A character that nobody sees, inside a word or at its edge."""
    places = [at for at, letter in enumerate(text.plain) if letter.isalnum()]
    at = rng.choice(places)
    return text.plain[:at] + rng.choice(_INVISIBLE) + text.plain[at:]


WHOLE: dict[str, Forgery] = {
    "merged": merged,
    "extra": extra,
    "truncated": truncated,
    "empty": empty,
    "echo": echo,
    "markup": markup,
    "homoglyph": homoglyph,
    "invisible": invisible,
}
"""`neighbour` is apart: it brings an entry along."""
