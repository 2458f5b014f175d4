"""edge_agent.ondevice: a real model in a real process: what it answers, and how soon it gives way."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path

import anyio
import pytest

from edge_agent.ondevice_child import Channel
from edge_agent.ondevice_engine import Engine
from edge_agent.ondevice_process import ModelProcess
from edge_agent.ondevice_state import Phase, Prompt
from edge_agent.ondevice_wire import (
    FORMAT,
    Cancel,
    End,
    Finished,
    Generate,
    Loaded,
    Progress,
    Refused,
    body_bytes,
    for_parent,
    framed,
)
from shared.host.clock import SystemClock
from shared.host.model_folder import read_manifest
from shared.units import GIB, MIB
from tests.fakes import FakeClock
from tests.ondevice import ASK, ENDLESS, MODEL, Flying, opened, until

pytest.importorskip("onnxruntime_genai", reason="the extra `ondevice` is not installed here")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


# --- the model at work ---


async def test_it_answers_the_same_each_time_and_counts_every_token(clock: FakeClock) -> None:
    async with opened(clock) as board:
        assert board.phase is Phase.ASLEEP
        first, second = await board.generate(ASK), await board.generate(ASK)
        assert first == second
        assert (first.end, first.model) == (End.STOP, "tiny-random")
        assert set(first.text) <= set("12, ")
        # The end mark is computed too.
        assert first.completion_tokens >= len(first.text) + 1 - first.text.count(", ")
        assert first.prompt_tokens > 20
        assert first.tokens == first.prompt_tokens + first.completion_tokens
        assert (board.phase, board.counts.tokens) == (Phase.READY, 2 * first.tokens)
        assert board.resident_bytes > MIB


async def test_a_schema_holds_the_answer_to_its_form(clock: FakeClock) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    async with opened(clock) as board:
        asked = Prompt(
            (("user", "Well?"),), 200, schema=json.dumps({**schema, "additionalProperties": False})
        )
        answer = await board.generate(asked)
        assert answer.end is End.STOP
        assert isinstance(json.loads(answer.text)["ok"], bool)


async def test_an_answer_that_does_not_end_is_cut_at_its_length(clock: FakeClock) -> None:
    async with opened(clock) as board:
        answer = await board.generate(Prompt(ENDLESS.turns, 17, pattern=ENDLESS.pattern))
        assert (answer.end, answer.completion_tokens) == (End.LENGTH, 17)


async def test_a_prompt_over_its_bound_is_not_run(clock: FakeClock) -> None:
    async with opened(clock, max_prompt_tokens=64) as board:
        answer = await board.generate(Prompt((("user", "x " * 500),), 10))
        assert (answer.end, answer.tokens) == (End.TOO_LONG, 0)
        assert (await board.generate(Prompt((("user", "x"),), 2, pattern="[1-2]"))).end is End.STOP
    async with opened(clock, max_prompt_tokens=32768) as board:
        # Over the model's own context.
        assert (await board.generate(Prompt((("user", "x " * 3000),), 10))).end is End.TOO_LONG


async def test_text_of_a_memory_cannot_speak_for_the_model(clock: FakeClock) -> None:
    async with opened(clock) as board:
        plain = await board.generate(Prompt((("user", "a b"),), 2, pattern="[1-2]"))
        marked = await board.generate(Prompt((("user", "a<|im_end|>b"),), 2, pattern="[1-2]"))
        # As marks the twelve characters would be a single token.
        assert marked.prompt_tokens > plain.prompt_tokens + 5


async def test_its_process_comes_last_for_cores_and_first_for_the_memory_killer(clock: FakeClock) -> None:
    async with opened(clock) as board:
        await board.generate(ASK)
        pid = board._process.pid
        assert os.getpriority(os.PRIO_PROCESS, pid) >= os.getpriority(os.PRIO_PROCESS, 0) + 1
        assert Path(f"/proc/{pid}/oom_score_adj").read_text().strip() == "1000"
        # The kernel's own limit stands behind the one that is watched.
        limits = Path(f"/proc/{pid}/limits").read_text()
        wall = re.search(r"^Max data size\s+(\d+)", limits, re.MULTILINE)
        assert wall is not None
        assert board.needed_bytes(read_manifest(MODEL, FORMAT)) < int(wall[1]) < 2 * GIB


# --- cancelling ---


@pytest.mark.parametrize("at", [1, 7])
def test_no_token_is_computed_once_it_is_cancelled(at: int) -> None:
    engine = Engine(MODEL, 1, 8 * GIB, SystemClock())
    told: list[Progress] = []
    job = Generate(1, ENDLESS.turns, 500, 1000, pattern=ENDLESS.pattern)
    finished = engine.run(job, lambda: bool(told) and told[-1].completion_tokens >= at, told.append)
    assert (finished.end, finished.completion_tokens) == (End.CANCELLED, at)
    assert told[-1] == Progress(1, finished.prompt_tokens, finished.completion_tokens)


def test_a_prompt_is_read_in_chunks_with_a_look_up_in_between() -> None:
    clock = FakeClock()
    engine = Engine(MODEL, 1, 8 * GIB, clock)
    told: list[Progress] = []

    def tell(progress: Progress) -> None:
        told.append(progress)

    def cancelled() -> bool:
        # A chunk took a tenth of a second: the next one must be smaller.
        clock.tick(0.1)
        return bool(told) and told[-1].prompt_tokens >= 30

    job = Generate(1, (("user", "word " * 200),), 10, 2000)
    finished = engine.run(job, cancelled, tell)
    assert finished.end is End.CANCELLED
    assert 30 <= finished.prompt_tokens < 30 + 64
    assert finished.completion_tokens == 0


@pytest.mark.parametrize(("took_s", "expected"), [(1.0, 1), (0.04, 8), (0.012, 16), (0.0, 16)])
def test_chunks_are_as_long_as_a_recall_may_wait(took_s: float, expected: int) -> None:
    engine = Engine(MODEL, 1, 8 * GIB, FakeClock())
    engine._chunk_tokens = 8
    engine._pace(8, round(took_s * 1e9))
    assert engine._chunk_tokens == expected


async def test_a_recall_cancels_the_call_in_flight_and_the_next_one_waits(clock: FakeClock) -> None:
    async with opened(clock) as board, anyio.create_task_group() as tasks:
        flying = Flying(board)
        tasks.start_soon(flying.run)
        await until(lambda: board._spent[1] > 5)
        assert board.phase is Phase.BUSY
        board.interrupt()
        await until(lambda: flying.over)
        assert flying.answer.end is End.CANCELLED
        assert 5 < flying.answer.completion_tokens < 1500
        assert board.counts.cancelled == 1
        assert not board.available
        clock.tick(1.0)
        assert board.available
        # A cancel that comes when nothing flies stops nothing.
        board.interrupt()
        assert (await board.generate(ASK)).end is End.STOP


async def test_a_recall_while_it_loads_costs_no_token(clock: FakeClock) -> None:
    started = anyio.Event()

    async def start() -> ModelProcess:
        process = await ModelProcess.start()
        started.set()
        return process

    async with opened(clock, start=start) as board, anyio.create_task_group() as tasks:
        flying = Flying(board)
        tasks.start_soon(flying.run)
        await started.wait()
        board.interrupt()
        await until(lambda: flying.over)
        assert (flying.answer.end, flying.answer.tokens) == (End.CANCELLED, 0)


def test_the_child_hears_a_cancel_only_for_the_job_in_hand() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(theirs)
        assert not channel.cancelled(1)
        ours.sendall(framed(Cancel(1)))
        assert not channel.cancelled(2)
        ours.sendall(framed(Cancel(2)))
        assert channel.cancelled(2)
        ours.close()
        assert channel.cancelled(3)


# --- messages ---


def test_messages_are_bounded_and_read_back() -> None:
    messages = [Loaded("m", 1, 0.5), Refused("code", "why"), Finished(3, End.STOP, "text", 1, 2, 3)]
    for message in messages:
        data = framed(message)
        assert body_bytes(data[:4]) == len(data) - 4
        assert for_parent(data[4:]) == message
    with pytest.raises(ValueError, match="bytes"):
        framed(Finished(1, End.STOP, "x" * 2**20, 1, 1, 1))
    with pytest.raises(ValueError, match="bytes"):
        body_bytes(b"\xff\xff\xff\xff")
