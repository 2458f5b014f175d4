"""shared.host.worker: one thread, every job to its end, errors to the caller."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator

import anyio
import pytest

from shared.errors import Code, IntegrityError
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from tests.fakes import FakeClock


@pytest.fixture
async def worker() -> AsyncIterator[WorkerThread]:
    made = WorkerThread("store", Pulse("store", FakeClock()))
    yield made
    await made.aclose()


async def test_every_job_runs_on_the_one_owning_thread(worker: WorkerThread) -> None:
    threads = {await worker.run(threading.get_ident) for _ in range(5)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_arguments_and_result_pass_through(worker: WorkerThread) -> None:
    assert await worker.run(int, "ff", base=16) == 255


async def test_the_job_s_error_reaches_the_caller_and_the_thread_lives_on(worker: WorkerThread) -> None:
    def damaged() -> None:
        raise IntegrityError(Code.CORRUPT, "the store is damaged")

    with pytest.raises(IntegrityError):
        await worker.run(damaged)
    assert await worker.run(int) == 0


class Gate:
    """A job that waits until the test lets it go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.passed = False

    def job(self) -> None:
        self.entered.set()
        self.open.wait(timeout=10)
        self.passed = True


async def entered(gate: Gate) -> None:
    while not gate.entered.is_set():
        await anyio.sleep(0.001)


async def test_jobs_run_one_at_a_time_in_the_order_they_were_handed_over(worker: WorkerThread) -> None:
    gate = Gate()
    done: list[int] = []
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run, gate.job)
        await entered(gate)
        for number in range(20):
            group.start_soon(worker.run, done.append, number)
        await anyio.sleep(0.01)
        assert done == []
        gate.open.set()
    assert done == list(range(20))


async def test_a_cancelled_scope_waits_for_the_running_job(worker: WorkerThread) -> None:
    gate = Gate()
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run, gate.job)
        await entered(gate)
        group.cancel_scope.cancel()
        asyncio.get_running_loop().call_later(0.01, gate.open.set)
    assert gate.passed


@pytest.mark.parametrize("fails", [False, True])
async def test_a_native_cancel_waits_for_the_running_job_too(worker: WorkerThread, fails: bool) -> None:
    gate = Gate()
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, facts: complaints.append(facts["message"]))

    def job() -> None:
        gate.job()
        if fails:
            raise IntegrityError(Code.CORRUPT, "the store is damaged")

    task = asyncio.create_task(worker.run(job))
    await entered(gate)
    task.cancel()
    await anyio.sleep(0.01)
    assert not task.done()
    gate.open.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.passed
    del task
    gc.collect()
    await anyio.sleep(0)
    assert complaints == []


async def test_a_running_job_is_busy_and_a_waiting_thread_is_idle() -> None:
    clock = FakeClock()
    pulse = Pulse("store", clock, limit_s=5.0)
    worker = WorkerThread("store", pulse)

    def slow() -> bool:
        clock.tick(6.0)
        stuck = pulse.stuck
        pulse.touch()
        return stuck and not pulse.stuck

    assert await worker.run(slow)
    clock.tick(60.0)
    assert not pulse.stuck
    await worker.aclose()


async def test_closing_finishes_what_waits_and_ends_the_thread() -> None:
    before = set(threading.enumerate())
    worker = WorkerThread("store", Pulse("store", FakeClock()))
    done: list[int] = []
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run, done.append, 1)
        await anyio.wait_all_tasks_blocked()
        await worker.aclose()
    assert done == [1]
    assert set(threading.enumerate()) == before
