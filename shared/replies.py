"""What a finished reply must be before any gate looks: not our own words back, and no less than the notes."""

from __future__ import annotations

import re

from shared.memory.gate import Reason
from shared.prompt import echoes_prompt
from shared.wire import DraftFailure

# Recall shows the draft instead of its residue. One that drops more than a word or two of the residue would
# take away what the store still holds exactly, and the gate's facts stand for the deepest rung only.
LEAST_KEPT_SHARE = 0.8
# Scripts without spaces: every character is one.
_WORD = re.compile(r"[a-z0-9]+|[^\W\x00-\x7f]")
_SHORTEST = 3
_STEM = 5


def unfit(residue: str, text: str) -> str:
    """Why a reply is no draft of this residue; empty when the gate may judge it."""
    if echoes_prompt(text):
        return Reason.ECHO.value
    held = _words(residue)
    return DraftFailure.THIN.value if len(held & _words(text)) < LEAST_KEPT_SHARE * len(held) else ""


def _words(text: str) -> frozenset[str]:
    """Words that carry something, cut so that most inflections fall together."""
    return frozenset(
        word[:_STEM].rstrip("s") or word
        for word in _WORD.findall(text.casefold())
        if len(word) >= _SHORTEST or word.isdigit() or not word.isascii()
    )
