"""edge_agent.ondevice: its process crashes, hangs, lies, grows or cannot start; the daemon goes on."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import pytest

from edge_agent.ondevice import CALL_S, MOST_DEATHS, NEED_BASE_BYTES, NEED_FACTOR
from edge_agent.ondevice_engine import Engine
from edge_agent.ondevice_process import ModelProcess
from edge_agent.ondevice_state import Phase, Prompt
from edge_agent.ondevice_wire import FORMAT, End, Generate, Load, Loaded, Progress
from shared.host.clock import SystemClock
from shared.host.model_folder import read_manifest
from shared.units import GIB, MIB
from tests.fakes import FakeClock
from tests.ondevice import ASK, ENDLESS, MODEL, Flying, gone, opened, until

pytest.importorskip("onnxruntime_genai", reason="the extra `ondevice` is not installed here")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


# --- crashes ---


async def test_killed_in_the_middle_it_is_charged_and_started_again(clock: FakeClock) -> None:
    async with opened(clock) as board, anyio.create_task_group() as tasks:
        flying = Flying(board)
        tasks.start_soon(flying.run)
        await until(lambda: board._spent[1] > 5)
        pid = board._process.pid
        os.kill(pid, signal.SIGKILL)
        await until(lambda: flying.over)
        assert flying.answer.end is End.CRASHED
        assert flying.answer.completion_tokens > 5
        assert flying.answer.prompt_tokens > 0
        assert gone(pid)
        assert (board.phase, board.available) == (Phase.WAITING, False)
        assert "exit code -9" in board.problem
        assert (await board.generate(ASK)).end is End.UNAVAILABLE
        clock.tick(1.0)
        assert (await board.generate(ASK)).end is End.STOP
        assert (board.counts.deaths, board.counts.restarts, board.problem) == (1, 1, "")


async def test_one_that_never_answers_is_ended_by_the_watch(clock: FakeClock) -> None:
    async with opened(clock) as board, anyio.create_task_group() as tasks:
        await board.generate(ASK)
        pid = board._process.pid
        os.kill(pid, signal.SIGSTOP)
        flying = Flying(board)
        tasks.start_soon(flying.run)
        await anyio.wait_all_tasks_blocked()
        clock.tick(29.0)
        await anyio.wait_all_tasks_blocked()
        assert not flying.over
        clock.tick(2.0)
        await until(lambda: flying.over)
        assert flying.answer.end is End.SILENT
        assert gone(pid)


async def test_one_that_dies_unasked_is_noticed(clock: FakeClock) -> None:
    async with opened(clock) as board, anyio.create_task_group() as tasks:
        await board.generate(ASK)
        tasks.start_soon(board.run)
        await anyio.wait_all_tasks_blocked()
        os.kill(board._process.pid, signal.SIGKILL)
        await until(lambda: board._process.dead)
        clock.tick(1.0)
        await until(lambda: board.counts.deaths == 1)
        # Noticed before the tick, its first wait is over with it.
        assert board.phase in {Phase.WAITING, Phase.ASLEEP}
        tasks.cancel_scope.cancel()


# What a process of the daemon's may do wrong: LOAD and JOB stand for what it was sent.
_SPEAK = """
import socket, sys
from edge_agent.ondevice_wire import *
sock = socket.socket(fileno=int(sys.argv[1]))
def hear():
    size = body_bytes(sock.recv(4, socket.MSG_WAITALL))
    return for_child(sock.recv(size, socket.MSG_WAITALL))
load = hear()
"""
_LOADED = _SPEAK + "sock.sendall(framed(Loaded('fake', 1, 0.1)))\njob = hear()\n"
GARBAGE = {
    "not a length": "sock.sendall(b'\\xff' * 64)",
    "not JSON": "sock.sendall((5).to_bytes(4, 'little') + b'{{{{{')",
    "not UTF-8": "sock.sendall((4).to_bytes(4, 'little') + b'\\xff\\xfe\\xfd\\xfc')",
    "an unknown message": "sock.sendall((16).to_bytes(4, 'little') + b'{\"type\": \"hello\"}')",
    "nothing said": "sock.sendall(bytes(4))",
    "cut in the middle": "sock.sendall((100).to_bytes(4, 'little') + b'{'); sys.exit(3)",
}


def speaking(script: str) -> Callable[[], Awaitable[ModelProcess]]:
    return partial(ModelProcess.start, (sys.executable, "-c", script))


@pytest.mark.parametrize("said", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("loaded", [False, True], ids=["loading", "answering"])
async def test_nonsense_is_not_believed(clock: FakeClock, said: str, loaded: bool) -> None:
    script = (_LOADED if loaded else _SPEAK) + said
    async with opened(clock, start=speaking(script)) as board:
        answer = await board.generate(ASK)
        assert answer.text == ""
        if loaded:
            assert answer.end in {End.GARBAGE, End.CRASHED}
        else:
            assert answer.end is End.UNAVAILABLE
        assert board.counts.deaths == 1
        assert board.phase is Phase.WAITING


@pytest.mark.parametrize(
    "said",
    [
        "sock.sendall(framed(Finished(job.job + 1, End.STOP, 'another job', 1, 1, 1)))",
        "sock.sendall(framed(Loaded('again', 1, 0.1)))",
    ],
)
async def test_an_answer_to_something_else_is_not_taken(clock: FakeClock, said: str) -> None:
    async with opened(clock, start=speaking(_LOADED + said)) as board:
        assert (await board.generate(ASK)).end is End.GARBAGE


@pytest.mark.parametrize(
    ("text", "loads"),
    [("x" * 1_100_000, False), ('"' * 700_000, True), ("half a character: \ud800", True)],
    ids=["surely too long", "too long once framed", "no Unicode"],
)
async def test_a_prompt_that_no_message_holds_ends_neither_daemon_nor_process(
    clock: FakeClock, text: str, *, loads: bool
) -> None:
    async with opened(clock, max_prompt_tokens=32768) as board:
        answer = await board.generate(Prompt((("user", text),), 10))
        assert (answer.end, answer.tokens) == (End.TOO_LONG, 0)
        assert board.phase is (Phase.READY if loads else Phase.ASLEEP)
        assert (await board.generate(ASK)).end is End.STOP
        assert board.counts.deaths == 0


_WORKS_ON = (
    "import select, time\nwhile {}: sock.sendall(framed(Progress(job.job, 7, 2))); time.sleep(0.005)\n"
)
_STOPS = (
    _WORKS_ON.format("not select.select([sock], [], [], 0)[0]")
    + "hear(); sock.sendall(framed(Finished(job.job, End.CANCELLED, '', 7, 2, 1))); hear()"
)


@pytest.mark.parametrize(
    ("script", "after_s", "end", "deaths"),
    [
        (_STOPS, CALL_S, End.OVERDUE, 0),
        (_WORKS_ON.format("True"), CALL_S + 30.0, End.SILENT, 1),
    ],
    ids=["it stops when told to", "it does not"],
)
async def test_a_call_has_a_deadline_whatever_it_says(
    clock: FakeClock, script: str, after_s: float, end: End, deaths: int
) -> None:
    async with opened(clock, start=speaking(_LOADED + script)) as board, anyio.create_task_group() as tasks:
        flying = Flying(board)
        tasks.start_soon(flying.run)
        await until(lambda: board._spent == (7, 2))
        for _ in range(round(after_s) // 10 - 1):
            clock.tick(10.0)
            await anyio.sleep(0.03)
            assert not flying.over
        clock.tick(11.0)
        await until(lambda: flying.over)
        assert (flying.answer.end, flying.answer.tokens, board.counts.deaths) == (end, 9, deaths)


async def test_after_some_deaths_in_a_row_it_is_given_up(clock: FakeClock) -> None:
    script = _LOADED + "sock.sendall(framed(Progress(job.job, 7, 2)))\nimport os; os.abort()"
    async with opened(clock, start=speaking(script)) as board:
        waits = []
        for _ in range(MOST_DEATHS):
            answer = await board.generate(ASK)
            assert (answer.end, answer.tokens) == (End.CRASHED, 9)
            waits.append((board._not_before_mono_ns - clock.mono_ns()) / 1e9)
            clock.tick(120.0)
        assert waits == [1.0, 2.0, 4.0, 8.0, 16.0]
        assert (board.phase, board.available) == (Phase.GIVEN_UP, False)
        assert "given up" in board.problem
        clock.tick(1e6)
        assert (await board.generate(ASK)).end is End.UNAVAILABLE


async def test_a_process_that_cannot_be_started_is_a_refusal(clock: FakeClock) -> None:
    async with opened(clock, start=partial(ModelProcess.start, ("/nowhere/python",))) as board:
        assert (await board.generate(ASK)).end is End.UNAVAILABLE
        assert "no process" in board.problem


# --- bounds ---


async def test_the_kernel_is_asked_for_memory_off_the_loop(clock: FakeClock) -> None:
    asked_on: list[threading.Thread] = []

    def available() -> int:
        asked_on.append(threading.current_thread())
        return 8 * GIB

    async with opened(clock, available=available) as board:
        assert (await board.generate(ASK)).end is End.STOP
    assert asked_on
    assert threading.current_thread() not in asked_on


async def test_a_board_without_the_memory_is_refused_with_both_numbers(clock: FakeClock) -> None:
    free = [5 * MIB]
    async with opened(clock, available=lambda: free[0], memory_bytes=300 * MIB) as board:
        assert (await board.generate(ASK)).end is End.UNAVAILABLE
        assert str(300 * MIB) in board.problem
        assert str(5 * MIB) in board.problem
        assert (board.phase, board._process) == (Phase.WAITING, None)
        free[0] = 400 * MIB
        assert (await board.generate(ASK)).end is End.UNAVAILABLE
        clock.tick(60.0)
        assert (await board.generate(ASK)).end is End.STOP


async def test_the_need_follows_the_files_and_an_unknown_board_is_tried(clock: FakeClock) -> None:
    needed = round(NEED_BASE_BYTES + NEED_FACTOR * read_manifest(MODEL, FORMAT).size_bytes)
    async with opened(clock, available=lambda: needed - 1) as board:
        assert (await board.generate(ASK)).end is End.UNAVAILABLE
        assert str(needed) in board.problem
    async with opened(clock, available=lambda: needed) as board:
        assert (await board.generate(ASK)).end is End.STOP
    async with opened(clock, available=lambda: None) as board:
        assert (await board.generate(ASK)).end is End.STOP


async def test_a_model_that_grows_over_its_bound_is_not_kept(clock: FakeClock) -> None:
    async with opened(clock, memory_bytes=20 * MIB) as board:
        assert (await board.generate(ASK)).end is End.UNAVAILABLE
        assert "holds more than it may" in board.problem
        assert board.phase is Phase.WAITING


def test_a_call_that_grows_over_the_bound_ends() -> None:
    engine = Engine(MODEL, 1, 8 * GIB, SystemClock())
    engine._memory_bytes = MIB
    finished = engine.run(Generate(1, ENDLESS.turns, 100, 1000), lambda: False, lambda _: None)
    assert (finished.end, finished.completion_tokens) == (End.OUT_OF_MEMORY, 0)


async def test_unused_it_gives_its_memory_back_and_comes_again(clock: FakeClock) -> None:
    async with opened(clock, idle_unload_s=120.0) as board, anyio.create_task_group() as tasks:
        await board.generate(ASK)
        pid = board._process.pid
        tasks.start_soon(board.run)
        await anyio.wait_all_tasks_blocked()
        await clock.advance(119.0)
        assert board.phase is Phase.READY
        await clock.advance(1.0)
        await until(lambda: board.phase is Phase.ASLEEP)
        assert gone(pid)
        assert (board.resident_bytes, board.counts.deaths, board.available) == (0, 0, True)
        assert (await board.generate(ASK)).end is End.STOP
        tasks.cancel_scope.cancel()


async def test_a_stop_while_it_generates_leaves_no_process(clock: FakeClock) -> None:
    async with opened(clock) as board:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(Flying(board).run)
                await until(lambda: board._spent[1] > 5)
                pid = board._process.pid
                scope.cancel()
        assert gone(pid)
        assert board.counts.deaths == 0
        assert (await board.generate(ASK)).end is End.STOP


async def test_the_process_ends_when_the_daemon_is_gone() -> None:
    process = await ModelProcess.start()
    process.send(Load(str(MODEL), 1, 8 * GIB))
    assert isinstance(await process.receive(), Loaded)
    process.send(Generate(1, ENDLESS.turns, 1500, 1000, pattern=ENDLESS.pattern))
    assert isinstance(await process.receive(), Progress)
    process._writer.close()
    await until(lambda: process.dead)
    assert await process.end() == 0
