"""What a model is told, and what telling it can cost: one prompt for the hub's and the board's models."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from shared.ports import DraftRequest

# Short and with examples: half a billion parameters follow what they are shown, not what they are told
# (docs/regeneration.md has the figures before and after).
SYSTEM = (
    "You turn shortened notes into full sentences. Facts say what must stay true. Use every word of the notes"
    " once, in the same order, spelled the same. Between them you may add only small words: a, the, is, was,"
    ' to, of, in, at, on, and, with, that. Add nothing else. Answer with JSON: {"text": "..."}.'
)
_NOTES = "Notes:\n"
_FACTS = "Facts: "
_CONTEXT = "Told before, for wording only:\n"
# No negation and no everyday scene in them: a small model copies its examples into what has few words.
_EXAMPLES = (
    (f"{_NOTES}Lena blue kayak", "Lena: the blue kayak."),
    (f"{_FACTS}Omar - Friday\n\n{_NOTES}Omar Friday", "Omar, on Friday."),
    (
        # Long notes last: after short ones alone, long ones were cut short.
        f"{_FACTS}Sam - went - bakery\n\n{_NOTES}Sam went bakery Monday bought 3 loaves fresh bread friends"
        " breakfast cold morning walked home river bridge",
        "Sam went to the bakery on Monday, and bought 3 loaves, fresh bread, friends, breakfast, a cold"
        " morning, walked home, the river, the bridge.",
    ),
)
_JUDGE = (
    "You check whether a text is supported by notes. Answer yes when everything that the text says stands in"
    " the notes, in other words or not. Answer no when anything was added, changed, swapped or denied. Answer"
    " with one word: yes or no."
)
_QUESTION = "Is the text supported by the notes? yes or no:"
JUDGE_MAX_TOKENS = 4
_KIND = re.compile(r"^(not )?[a-z_]+: ")
_PARTS = " / "
# Text of a memory must not look like the marks that tell a model who speaks.
_MARK, _UNMARKED = "<|", "< |"
# A template's marks around every message.
_MESSAGE_TOKENS = 12
# An estimate of a text from above may be twice what the model counted when it wrote it.
_CLAIM_ROOM = 2
_WORD = re.compile(r"[A-Za-z]{1,24}|[\x00-\x7f]", re.DOTALL)
# Letters of a usual word: models have one token for most of them, two for nearly all the rest.
_LETTERS_A_TOKEN = 3

Turn = tuple[str, str]
"""Role ("system", "user", "assistant") and text."""


def turns(request: DraftRequest) -> tuple[Turn, ...]:
    """The whole conversation of one draft: what to do, how it looks when done, and the notes."""
    return (*_FRAME, ("user", user_text(request)))


def user_text(request: DraftRequest) -> str:
    """Context, facts and notes of one draft, the notes last.

    A fact of one span is not listed: its words stand in the notes, and small models copy lists.
    """
    told = [fact for fact in request.invariants if _PARTS in fact or fact.startswith("not ")]
    facts = dict.fromkeys(_KIND.sub(lambda kind: kind[1] or "", fact).replace(_PARTS, " - ") for fact in told)
    told_text = "\n\n".join(
        part
        for part in (
            _CONTEXT + "\n---\n".join(request.neighbours) if request.neighbours else "",
            _FACTS + "; ".join(facts) if facts else "",
            _NOTES + request.residue,
        )
        if part
    )
    return unmarked(told_text)


def estimate_tokens(request: DraftRequest) -> int:
    """What a call can cost at most: reserved before it, and charged where the endpoint does not say."""
    return prompt_tokens(request) + request.max_tokens


def prompt_tokens(request: DraftRequest) -> int:
    """What the prompt can cost at most."""
    return _FRAME_TOKENS + _MESSAGE_TOKENS + most_tokens(user_text(request))


def ask_tokens(request: DraftRequest) -> int:
    """What an ask can cost at the hub at most: a draft, and a judge's look at it."""
    claim = _CLAIM_ROOM * request.max_tokens
    return estimate_tokens(request) + judge_tokens(evidence(request.residue, request.invariants), "") + claim


def evidence(residue: str, invariants: Sequence[str]) -> str:
    """What a judge is shown of a base."""
    return "\n".join((residue, *invariants))


def judge_turns(shown: str, claim: str) -> tuple[Turn, ...]:
    """The question whether a text is supported, as a conversation."""
    return (
        ("system", _JUDGE),
        ("user", unmarked(f"Notes:\n{shown}\n\nText:\n{claim}\n\n{_QUESTION}")),
    )


def judge_tokens(shown: str, claim: str) -> int:
    """What that question can cost at most."""
    told = sum(most_tokens(text) + _MESSAGE_TOKENS for _, text in judge_turns(shown, claim))
    return told + JUDGE_MAX_TOKENS


def most_tokens(text: str) -> int:
    """No usual text costs more on a byte-level vocabulary: digits, signs and foreign bytes count one each."""
    total = 0
    for found in _WORD.findall(text):
        total += -(-len(found) // _LETTERS_A_TOKEN) if found.isalpha() else found != " "
    return total + sum(len(char.encode()) for char in text if not char.isascii())


def unmarked(text: str) -> str:
    """A text that holds no control token of a chat template: what a memory says, nobody else says."""
    return text.replace(_MARK, _UNMARKED)


def echoes_prompt(text: str) -> bool:
    """True for a reply that repeats our own words instead of the notes."""
    return any(mark.strip() in text for mark in (SYSTEM[:50], _NOTES, _FACTS + "Sam", _CONTEXT))


_FRAME: tuple[Turn, ...] = (
    ("system", SYSTEM),
    *(
        turn
        for asked, answered in _EXAMPLES
        for turn in (("user", asked), ("assistant", json.dumps({"text": answered})))
    ),
)
_FRAME_TOKENS = sum(_MESSAGE_TOKENS + most_tokens(text) for _, text in _FRAME)
