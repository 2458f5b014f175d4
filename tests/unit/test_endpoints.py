"""Several endpoints: health by progress, rest when asked, as many in flight as the engine's queue allows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import TaskGroup

from hub.calls import Call
from hub.endpoint import BLIND_LIMIT, BLIND_LOOK_S, FIRST_BACKOFF_S, FIRST_LIMIT, PATIENCE_S
from hub.endpoints import LOOK_S, Endpoints
from hub.engine import Load
from hub.model import OpenAIGenerator
from shared import metrics
from shared.memory.model import Rung
from shared.ports import Draft, DraftRequest
from shared.wire import DraftFailure
from tests.fakes import FakeClock
from tests.scripted_openai import Script, scripted_openai, vllm_page

REQUEST = DraftRequest(
    number=7, version=1, base_digest=b"d" * 16, origin=Rung.SKELETAL, target=Rung.COMPRESSED,
    residue="went to the shelf", invariants=(), neighbours=(), max_tokens=100,
)  # fmt: skip
GOOD = Call(Draft("A draft.", "m", 40), answered=True)
BROKEN = Call(Draft("", "m", 500, DraftFailure.HTTP_ERROR.value, True))
GONE = Call(Draft("", "m", 0, DraftFailure.UNREACHABLE.value), down=True)
REFUSED = Call(Draft("", "m", 0, DraftFailure.HTTP_ERROR.value))
LIMITED = Call(Draft("", "m", 0, DraftFailure.RATE_LIMITED.value), rest_s=30.0)


class FakeEngine:
    """A Caller whose answers wait for `go`, and whose page says what the test says."""

    model = "m"

    def __init__(self, *answers: Call, page: Load | None = None) -> None:
        self.answers = list(answers)
        self.page = page
        self.calls = 0
        self.looks = 0
        self.flying = 0
        self.go = anyio.Event()
        self.go.set()
        self.closed = False

    def hold(self) -> None:
        self.go = anyio.Event()

    async def call(self, request: DraftRequest) -> Call:
        self.calls += 1
        self.flying += 1
        answer = self.answers.pop(0) if self.answers else GOOD
        try:
            await self.go.wait()
        finally:
            self.flying -= 1
        return answer

    async def judge(self, evidence: str, claim: str) -> Call:
        return await self.call(REQUEST)

    def given_up(self, most: int) -> Draft:
        return Draft("", "m", 900, DraftFailure.TIMED_OUT.value, True)

    async def load(self) -> Load | None:
        self.looks += 1
        return self.page

    async def aclose(self) -> None:
        self.closed = True


def pool(*engines: FakeEngine, stall_s: float = 20.0, most: int = 32) -> tuple[Endpoints, FakeClock]:
    clock = FakeClock()
    return Endpoints(engines, clock, stall_s=stall_s, most=most), clock


@asynccontextmanager
async def asking(endpoints: Endpoints, count: int) -> AsyncIterator[tuple[list[Draft], TaskGroup]]:
    """`count` asks that fly while the block runs; the drafts that came back."""
    drafts: list[Draft] = []

    async def ask() -> None:
        drafts.append(await endpoints.draft(REQUEST))

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        yield drafts, tasks
        tasks.cancel_scope.cancel()


async def pass_time(endpoints: Endpoints, clock: FakeClock, seconds: float) -> None:
    """As the watcher would: a look each LOOK_S."""
    for _ in range(round(seconds / LOOK_S)):
        clock.tick(LOOK_S)
        await endpoints.look()
        await anyio.wait_all_tasks_blocked()


def healths(endpoints: Endpoints) -> list[str]:
    return [status.health for status in endpoints.status()]


# --- how many at once -----------------------------------------------------------------------------------


async def test_an_engine_without_a_page_gets_a_few_and_is_rarely_asked_for_one() -> None:
    engine = FakeEngine()
    endpoints, clock = pool(engine)
    engine.hold()
    async with asking(endpoints, 20):
        await pass_time(endpoints, clock, 10)
        assert engine.flying == BLIND_LIMIT
        assert engine.looks == 1
        await pass_time(endpoints, clock, BLIND_LOOK_S)
        assert engine.looks == 2


async def test_the_limit_follows_the_engines_queue() -> None:
    engine = FakeEngine(page=Load(0, 0, 0))
    endpoints, clock = pool(engine, most=24)
    engine.hold()
    async with asking(endpoints, 40):
        assert engine.flying == FIRST_LIMIT
        seen = []
        for tokens in range(1, 5):
            engine.page = Load(engine.flying, 0, tokens)
            await pass_time(endpoints, clock, LOOK_S)
            seen.append(engine.flying)
        assert seen == [8, 16, 24, 24]  # twice as many each look, never above `most`
        engine.page = Load(20, 4, 9)
        await pass_time(endpoints, clock, LOOK_S)
        assert endpoints.status()[0].limit == 12
        engine.page = Load(24, 0, 10)
        await pass_time(endpoints, clock, LOOK_S)
        assert endpoints.status()[0].limit == 13  # after a queue one by one


async def test_nothing_is_sent_while_the_engine_has_a_queue_but_not_for_ever() -> None:
    engine = FakeEngine(page=Load(16, 3, 0))
    endpoints, clock = pool(engine)
    engine.hold()
    async with asking(endpoints, 3):
        assert engine.calls == 0
        for tokens in range(round(PATIENCE_S / LOOK_S)):
            engine.page = Load(16, 3, tokens)
            await pass_time(endpoints, clock, LOOK_S)
        await pass_time(endpoints, clock, LOOK_S)
        assert engine.flying == 1  # somebody else always queues: one at a time
        engine.page = Load(1, 0, 999)
        await pass_time(endpoints, clock, LOOK_S)
        assert engine.flying == 2  # a limit of one, and then one more each look


async def test_an_ask_that_finds_no_place_comes_back_as_busy_and_unasked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hub.endpoints.SLOT_WAIT_S", 0.05)
    engine = FakeEngine(page=Load(16, 3, 0))
    endpoints, _ = pool(engine)
    assert await endpoints.draft(REQUEST) == Draft("", "m", 0, DraftFailure.BUSY.value)
    assert engine.calls == 0


async def test_the_least_loaded_endpoint_is_asked() -> None:
    first, second = FakeEngine(page=Load(0, 0, 0)), FakeEngine(page=Load(0, 0, 0))
    endpoints, _ = pool(first, second)
    first.hold()
    second.hold()
    async with asking(endpoints, 6):
        assert (first.flying, second.flying) == (3, 3)


# --- health by progress -----------------------------------------------------------------------------------


async def test_an_engine_in_which_nothing_moves_is_drained_and_the_other_takes_over() -> None:
    """vllm-project/vllm#17972: /health says 200, the page is served, and nothing is ever finished."""
    stuck, good = FakeEngine(page=Load(1, 0, 77)), FakeEngine(page=Load(0, 0, 5))
    endpoints, clock = pool(stuck, good, stall_s=20.0)
    stuck.hold()
    async with asking(endpoints, 1) as (drafts, _):
        await pass_time(endpoints, clock, 19)
        assert (drafts, healths(endpoints)) == ([], ["healthy", "healthy"])
        await pass_time(endpoints, clock, 3)
        # Given up and charged: the engine may have made every token of it.
        assert drafts == [Draft("", "m", 900, DraftFailure.TIMED_OUT.value, True)]
        assert (stuck.flying, healths(endpoints)) == (0, ["sick", "healthy"])
        assert endpoints.status()[0].stalls == 1
        for _ in range(3):
            assert (await endpoints.draft(REQUEST)).text
        assert (stuck.calls, good.calls) == (1, 3)
        assert metrics.ENDPOINTS.labels(state="sick")._value.get() == 1


async def test_a_slow_engine_whose_tokens_move_is_left_alone() -> None:
    slow = FakeEngine(page=Load(1, 0, 0))
    endpoints, clock = pool(slow, stall_s=20.0)
    slow.hold()
    async with asking(endpoints, 1) as (drafts, _):
        for tokens in range(300):
            slow.page = Load(1, 0, tokens)
            await pass_time(endpoints, clock, LOOK_S)
        assert (drafts, healths(endpoints), slow.flying) == ([], ["healthy"], 1)


async def test_requests_that_finish_are_progress_too() -> None:
    engine = FakeEngine(page=Load(1, 0, 0))
    endpoints, clock = pool(engine, stall_s=5.0)
    engine.hold()
    async with asking(endpoints, 1):
        await pass_time(endpoints, clock, 4)
        held, engine.go = engine.go, anyio.Event()
        engine.go.set()
        assert (await endpoints.draft(REQUEST)).text
        engine.hold()
        await pass_time(endpoints, clock, 4)
        assert healths(endpoints) == ["healthy"]
        await pass_time(endpoints, clock, 3)
        assert healths(endpoints) == ["sick"]
        held.set()


async def test_an_idle_engine_does_not_fall_sick() -> None:
    engine = FakeEngine(page=Load(0, 0, 0))
    endpoints, clock = pool(engine, stall_s=5.0)
    await pass_time(endpoints, clock, 600)
    assert healths(endpoints) == ["healthy"]
    assert (await endpoints.draft(REQUEST)).text


async def test_a_page_that_vanishes_with_requests_in_flight_is_no_progress() -> None:
    engine = FakeEngine(page=Load(1, 0, 0))
    endpoints, clock = pool(engine, stall_s=5.0)
    engine.hold()
    async with asking(endpoints, 1):
        engine.page = None
        await pass_time(endpoints, clock, 7)
        assert healths(endpoints) == ["sick"]


async def test_a_sick_endpoint_is_probed_with_a_wait_that_doubles_and_recovers() -> None:
    engine = FakeEngine(GONE, GONE, GONE, page=Load(0, 0, 0))
    endpoints, clock = pool(engine)
    wait_s = FIRST_BACKOFF_S
    for _ in range(3):
        assert (await endpoints.draft(REQUEST)).failure == DraftFailure.UNREACHABLE.value
        calls = engine.calls
        await pass_time(endpoints, clock, wait_s - LOOK_S)
        assert (await endpoints.draft(REQUEST)).tokens == 0
        assert engine.calls == calls  # left alone
        await pass_time(endpoints, clock, 2 * LOOK_S)
        wait_s *= 2
    assert (await endpoints.draft(REQUEST)).text
    assert healths(endpoints) == ["healthy"]


async def test_only_one_request_probes() -> None:
    engine = FakeEngine(GONE, page=Load(0, 0, 0))
    endpoints, clock = pool(engine)
    await endpoints.draft(REQUEST)
    await pass_time(endpoints, clock, FIRST_BACKOFF_S + LOOK_S)
    engine.hold()
    async with asking(endpoints, 5) as (drafts, _):
        assert engine.flying == 1
        assert [draft.failure for draft in drafts] == [DraftFailure.UNREACHABLE.value] * 4


async def test_failures_in_a_row_make_sick_and_one_good_answer_forgives() -> None:
    engine = FakeEngine(BROKEN, BROKEN, GOOD, BROKEN, BROKEN, BROKEN)
    endpoints, _ = pool(engine)
    seen = []
    for _ in range(6):
        await endpoints.draft(REQUEST)
        seen.append(healths(endpoints)[0])
    assert seen == ["healthy"] * 5 + ["sick"]


# --- rest, and who else may be asked -----------------------------------------------------------------------


async def test_a_rest_is_kept_to_the_second() -> None:
    engine = FakeEngine(LIMITED)
    endpoints, clock = pool(engine)
    assert (await endpoints.draft(REQUEST)).failure == DraftFailure.RATE_LIMITED.value
    await pass_time(endpoints, clock, 29)
    assert healths(endpoints) == ["resting"]
    assert await endpoints.draft(REQUEST) == Draft("", "m", 0, DraftFailure.RATE_LIMITED.value)
    assert engine.calls == 1
    await pass_time(endpoints, clock, 2)
    assert (await endpoints.draft(REQUEST)).text


@pytest.mark.parametrize("failed", [LIMITED, GONE, REFUSED])
async def test_what_cost_nothing_is_asked_of_another_endpoint(failed: Call) -> None:
    first, second = FakeEngine(failed), FakeEngine()
    endpoints, _ = pool(first, second)
    assert await endpoints.draft(REQUEST) == GOOD.draft
    assert (first.calls, second.calls) == (1, 1)


async def test_what_cost_something_is_not_asked_again() -> None:
    first, second = FakeEngine(BROKEN), FakeEngine()
    endpoints, _ = pool(first, second)
    assert await endpoints.draft(REQUEST) == BROKEN.draft
    assert second.calls == 0


async def test_an_endpoint_that_refuses_everything_is_left_alone() -> None:
    async with scripted_openai(*[Script.ERROR_404] * 3) as served:
        generator = OpenAIGenerator(served.url, "model-1", "none", 5.0)
        endpoints = Endpoints([generator], FakeClock(), stall_s=20.0, most=8)
        for _ in range(3):
            await endpoints.draft(REQUEST)
        await endpoints.aclose()
    assert len(served.requests) == 1


async def test_a_stalled_engine_over_http_is_told_to_stop() -> None:
    clock = FakeClock()
    async with scripted_openai(Script.SILENT) as served:
        served.page = vllm_page(running=1)
        endpoints = Endpoints([OpenAIGenerator(served.url, "m", "none", 60.0)], clock, stall_s=5.0, most=8)
        drafts: list[Draft] = []

        async def ask() -> None:
            drafts.append(await endpoints.draft(REQUEST))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                while not served.requests:
                    await anyio.sleep(0.01)
                for _ in range(8):
                    clock.tick(LOOK_S)
                    await endpoints.look()
            while not served.cancelled:
                await anyio.sleep(0.01)
        await endpoints.aclose()
    assert drafts[0].failure == DraftFailure.TIMED_OUT.value


async def test_the_watcher_looks_only_while_something_flies() -> None:
    engine = FakeEngine(page=Load(0, 0, 0))
    endpoints, clock = pool(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(endpoints.watch)
        await anyio.wait_all_tasks_blocked()
        for _ in range(5):
            await clock.advance(LOOK_S)
        assert engine.looks == 0
        engine.hold()
        async with asking(endpoints, 1):
            for _ in range(5):
                await clock.advance(LOOK_S)
        assert engine.looks >= 5
        tasks.cancel_scope.cancel()


async def test_an_ask_that_is_called_off_frees_its_place() -> None:
    engine = FakeEngine(page=Load(0, 0, 0))
    endpoints, _ = pool(engine)
    engine.hold()
    async with asking(endpoints, FIRST_LIMIT):
        assert engine.flying == FIRST_LIMIT
    assert (engine.flying, endpoints.status()[0].flying, healths(endpoints)) == (0, 0, ["healthy"])
    await endpoints.aclose()
    assert engine.closed
