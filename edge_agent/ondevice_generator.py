"""The board's own model as a generative source: the same prompt and form of reply as the hub's."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec

from edge_agent.ondevice import OnDevice
from edge_agent.ondevice_state import Prompt
from edge_agent.ondevice_wire import End
from shared.ports import Draft, DraftRequest
from shared.prompt import prompt_tokens, turns
from shared.replies import unfit
from shared.wire import DraftFailure

# Twice a long turn. A board writes some tens of tokens a second; longer answers are the hub's.
MOST_ANSWER_TOKENS = 512
_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }
)


class _Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str


class OnDeviceGenerator:
    """ports.Generator. Used while the hub is away or generates nothing, never beside it."""

    def __init__(self, board: OnDevice) -> None:
        self._board = board

    @property
    def model(self) -> str:
        """The model's name, as every draft carries it; empty before it was first loaded."""
        return self._board.model

    @property
    def available(self) -> bool:
        """Whether a draft would be tried now."""
        return self._board.available

    def fitted(self, request: DraftRequest) -> DraftRequest:
        """What this board can take of a request: the farthest neighbours go first, the answer is bounded."""
        fitting = replace(request, max_tokens=min(request.max_tokens, MOST_ANSWER_TOKENS))
        while fitting.neighbours and prompt_tokens(fitting) > self._board.max_prompt_tokens:
            fitting = replace(fitting, neighbours=fitting.neighbours[:-1])
        return fitting

    async def draft(self, request: DraftRequest) -> Draft:
        """Never raises for what the model does: a failure is a draft with a reason and its tokens."""
        answer = await self._board.generate(Prompt(turns(request), request.max_tokens, schema=_SCHEMA))
        if answer.end is not End.STOP:
            return Draft("", answer.model, answer.tokens, answer.end.value)
        try:
            text = msgspec.json.decode(answer.text, type=_Reply).text
        except (msgspec.DecodeError, UnicodeError):
            return Draft("", answer.model, answer.tokens, DraftFailure.BAD_REPLY.value)
        reason = unfit(request.residue, text) if text.strip() else DraftFailure.EMPTY.value
        return Draft(text, answer.model, answer.tokens, reason)
