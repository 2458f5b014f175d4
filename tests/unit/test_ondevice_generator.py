"""edge_agent.ondevice_generator: replies are read as the hub reads them; nothing else becomes a draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edge_agent.ondevice_generator import MOST_ANSWER_TOKENS, OnDeviceGenerator
from edge_agent.ondevice_state import Answer, Prompt
from edge_agent.ondevice_wire import End
from shared.memory.model import Rung
from shared.ports import DraftRequest
from shared.prompt import SYSTEM, prompt_tokens, turns

REQUEST = DraftRequest(
    number=1,
    version=1,
    base_digest=bytes(16),
    origin=Rung.TRACE,
    target=Rung.SKELETAL,
    residue="Anna moved Providence May",
    invariants=(),
    neighbours=(),
    max_tokens=50,
)


class Said:
    """A board that gives one answer."""

    model = "tiny"
    available = True
    max_prompt_tokens = 1024

    def __init__(self, text: str, end: End = End.STOP) -> None:
        self._answer = Answer(end, text, "tiny", 40, 10)
        self.asked: list[Prompt] = []

    async def generate(self, prompt: Prompt) -> Answer:
        self.asked.append(prompt)
        return self._answer


async def test_the_hub_s_prompt_is_asked_and_the_text_is_the_draft() -> None:
    board = Said('{"text": "Anna moved to Providence in May."}')
    draft = await OnDeviceGenerator(board).draft(REQUEST)
    assert (draft.text, draft.model, draft.tokens, draft.failure) == (
        "Anna moved to Providence in May.",
        "tiny",
        50,
        "",
    )
    assert (board.asked[0].turns, board.asked[0].max_tokens) == (turns(REQUEST), 50)
    assert '"text"' in board.asked[0].schema


async def test_letters_that_are_escaped_arrive_as_letters() -> None:
    draft = await OnDeviceGenerator(Said('{"text": "Anna moved: Providence, May, caf\\u00e9."}')).draft(
        REQUEST
    )
    assert (draft.text, draft.failure) == ("Anna moved: Providence, May, caf\u00e9.", "")


def test_a_request_is_cut_to_what_the_board_can_take() -> None:
    board = OnDeviceGenerator(Said(""))
    near = tuple(letter + " word" * 150 for letter in "abcd")
    fitted = board.fitted(replace(REQUEST, neighbours=near, max_tokens=2**19))
    assert fitted.max_tokens == MOST_ANSWER_TOKENS
    assert 0 < len(fitted.neighbours) < 4
    assert fitted.neighbours == near[: len(fitted.neighbours)]
    assert prompt_tokens(fitted) <= 1024
    assert board.fitted(REQUEST) == REQUEST


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        ("Anna moved to Providence in May.", "bad_reply"),
        ('{"text": "Anna moved to', "bad_reply"),
        ('{"text": "Anna moved to Providence in May.", "more": 1}', "bad_reply"),
        ('{"text": 5}', "bad_reply"),
        ('{"text": "\\ud800"}', "bad_reply"),
        ("", "bad_reply"),
        ('{"text": "  "}', "empty"),
        (f'{{"text": "{SYSTEM[:80]}"}}', "echo"),
        ('{"text": "Somebody went somewhere."}', "thin"),
    ],
)
async def test_what_is_no_reply_is_a_failure_with_its_tokens(said: str, failure: str) -> None:
    draft = await OnDeviceGenerator(Said(said)).draft(REQUEST)
    assert (draft.failure, draft.tokens) == (failure, 50)


@pytest.mark.parametrize("end", [end for end in End if end is not End.STOP])
async def test_a_call_that_did_not_stop_by_itself_is_no_draft(end: End) -> None:
    draft = await OnDeviceGenerator(Said('{"text": "Anna moved to Providence in May."}', end)).draft(REQUEST)
    assert (draft.text, draft.failure, draft.tokens) == ("", end.value, 50)
