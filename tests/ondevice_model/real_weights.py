"""Real weights in the real process. Nothing here asks for a wording: small models say what they like."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from edge_agent.distill import PlainDistiller, sentences
from edge_agent.ondevice import OnDevice
from edge_agent.ondevice_generator import OnDeviceGenerator
from edge_agent.ondevice_state import Phase, Prompt
from edge_agent.ondevice_wire import FORMAT, End
from edge_agent.relevel import choice_prompt, most_chosen, parse_choice
from shared.host.model_folder import read_manifest, verify
from shared.memory.gate import Reason
from shared.memory.model import LADDERS, Rung
from shared.memory.text_codec import TextCodec
from shared.ports import DraftRequest
from shared.prompt import estimate_tokens
from shared.wire import DraftFailure
from tests.fakes import FakeClock
from tests.ondevice import Flying, opened, until
from tests.unit.test_levels import TEXT

pytestmark = pytest.mark.timeout(600)


def request_for(codec: TextCodec) -> DraftRequest:
    record = codec.drop(TEXT, LADDERS["product"], Rung.SKELETAL).record
    return DraftRequest(
        number=1,
        version=1,
        base_digest=bytes(16),
        origin=Rung.SKELETAL,
        target=Rung.COMPRESSED,
        residue=codec.render(record),
        invariants=codec.invariants(record),
        neighbours=(),
        max_tokens=120,
        record=record,
    )


def test_the_folder_is_what_its_manifest_says(folder: Path) -> None:
    manifest = read_manifest(folder, FORMAT)
    verify(folder, manifest)
    assert manifest.licence.startswith("Apache-2.0")
    assert "sha256" in manifest.source


async def test_it_loads_within_what_the_daemon_reserves_for_it(folder: Path) -> None:
    async with opened(FakeClock(), folder) as board:
        answer = await board.generate(Prompt((("user", "word " * 700),), 200, pattern="[a-z ]{3000}"))
        assert (answer.end, answer.completion_tokens) == (End.LENGTH, 200)
        assert board.resident_bytes <= board.needed_bytes(read_manifest(folder, FORMAT))


async def test_its_choices_are_numbers_among_the_sentences_and_repeat(folder: Path) -> None:
    found = sentences(TEXT)
    prompt = choice_prompt([TEXT[start:end] for start, end, _ in found])
    async with opened(FakeClock(), folder) as board:
        first, second = await board.generate(prompt), await board.generate(prompt)
        assert first == second
        assert first.end is End.STOP
        assert parse_choice(first.text, len(found), most_chosen(len(found)))


async def test_a_draft_is_whole_or_says_why_not_and_is_charged(folder: Path) -> None:
    codec = TextCodec(PlainDistiller())
    request = request_for(codec)
    async with opened(FakeClock(), folder) as board:
        draft = await OnDeviceGenerator(board).draft(request)
    assert draft.model == read_manifest(folder, FORMAT).model
    assert draft.tokens > 100
    known = {*End, *DraftFailure, *Reason} - {End.STOP}
    assert draft.failure in {"", *(reason.value for reason in known)}
    assert bool(draft.text) or draft.failure
    assert draft.tokens <= estimate_tokens(request)
    # Whether it is let in is the gate's word, as for any other source; what it adds never is.
    added = f"{draft.text or request.residue} Zebulon paid 4711 dollars for it."
    assert not codec.gate(request.record, added, (), strict=True).admitted


@pytest.mark.parametrize("tokens", [0, 3])
async def test_a_recall_ends_the_call_in_prompt_and_answer(folder: Path, tokens: int) -> None:
    prompt = Prompt((("user", "word " * 500),), 400, pattern="[a-z ]{3000}")

    def under_way(board: OnDevice) -> bool:
        return board._spent[0] > 8 and board._spent[1] >= tokens

    async with opened(FakeClock(), folder) as board, anyio.create_task_group() as tasks:
        flying = Flying(board, prompt)
        tasks.start_soon(flying.run)
        with anyio.fail_after(120):
            await until(lambda: board.phase is Phase.BUSY)
            while not under_way(board):
                await anyio.sleep(0.01)
        board.interrupt()
        await until(lambda: flying.over)
        assert flying.answer.end is End.CANCELLED
        assert 0 < flying.answer.tokens < 900
