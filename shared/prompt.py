"""What the model is told, and what telling it can cost."""

from __future__ import annotations

from shared.ports import DraftRequest

SYSTEM = (
    "You restore a memory that was shortened to save space. Write it out again as complete text."
    " Use only what the notes and the facts say. Every fact must stand in your text with its exact words,"
    " numbers, order and negations. Add no number, name, date or claim that the notes do not have."
    ' Context is for wording only. Answer with JSON: {"text": "..."}.'
)
# Our own words in the prompt, counted generously.
_PROMPT_TOKENS = 256
# Usual text has 3 to 5 bytes a token; below 2 only random bytes go.
_BYTES_A_TOKEN = 2


def user_text(request: DraftRequest) -> str:
    """Notes, facts and context of one draft."""
    parts = [f"Notes:\n{request.residue}"]
    if request.invariants:
        parts.append("Facts that must stand in the text:\n" + "\n".join(request.invariants))
    if request.neighbours:
        parts.append("Context:\n" + "\n---\n".join(request.neighbours))
    return "\n\n".join(parts)


def estimate_tokens(request: DraftRequest) -> int:
    """What a call can cost at most: reserved before it, and charged where the endpoint does not say."""
    texts = (request.residue, *request.invariants, *request.neighbours)
    prompt_tokens = _PROMPT_TOKENS + sum(len(text.encode()) for text in texts) // _BYTES_A_TOKEN
    return prompt_tokens + request.max_tokens
