"""What a finished reply must be before any gate looks: not our own words back, and no less than the notes."""

from __future__ import annotations

from shared.memory.gate import Reason
from shared.memory.lexicon import FUNCTION_WORDS
from shared.memory.support import lemma
from shared.memory.tokens import clauses
from shared.prompt import echoes_prompt
from shared.wire import DraftFailure

# Recall shows the draft instead of its residue. One that drops more than inflections and a word or two of the
# residue would take away what the store still holds exactly, and the gate's facts may not notice.
LEAST_KEPT_SHARE = 0.8


def unfit(residue: str, text: str) -> str:
    """Why a reply is no draft of this residue; empty when the gate may judge it."""
    if echoes_prompt(text):
        return Reason.ECHO.value
    held = _content(residue)
    kept = len(held & _content(text))
    return DraftFailure.THIN.value if kept < LEAST_KEPT_SHARE * len(held) else ""


def _content(text: str) -> frozenset[str]:
    return frozenset(
        lemma(token.norm)
        for clause in clauses(text)
        for token in clause.tokens
        if token.norm not in FUNCTION_WORDS
    )
