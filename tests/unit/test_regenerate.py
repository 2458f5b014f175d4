"""Drafts: what an endpoint can do wrong, the hub's gate, and a cap that nothing breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec
import pytest

from hub.ledger import Ledger
from hub.model import OpenAIGenerator
from hub.regenerate import MAX_DRAFTS, Regenerator, Rules
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Kind, Rung
from shared.ports import Draft, DraftRequest, Generator, LedgerRow, Verdict
from shared.prompt import SYSTEM, estimate_tokens
from shared.wire import DraftAsk, DraftFailure, DraftReply
from tests.fakes import FakeClock
from tests.scripted_openai import TOKENS, Script, scripted_openai

REQUEST = DraftRequest(
    number=7, version=1, base_digest=b"d" * 16, origin=Rung.SKELETAL, target=Rung.COMPRESSED,
    residue="went to the shelf", invariants=("tuple: mug / shelf", "span: mug"), neighbours=("the desk was empty",), max_tokens=100,
)  # fmt: skip
ASK = DraftAsk(
    "tenant-1", 1, 7, 1, b"d" * 16, Rung.SKELETAL, Rung.COMPRESSED, Kind.EPISODE, b"record",
    "went to the shelf", ("shelf 1",), (), 100, stage=3, serving_tokens=10_000, cap_tokens=10_000,
)  # fmt: skip


class WordGate:
    """Admits a draft that has the word `shelf`."""

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        assert (record, strict) == (b"record", True)
        return Verdict(admitted=True) if "shelf" in draft else Verdict(admitted=False, reason="span_missing")


class HeldGenerator:
    """Answers when it is let go."""

    model = "held"

    def __init__(self, draft: Draft) -> None:
        self.go = anyio.Event()
        self.calls = 0
        self.requests: list[DraftRequest] = []
        self._draft = draft

    async def draft(self, request: DraftRequest) -> Draft:
        self.calls += 1
        self.requests.append(request)
        await self.go.wait()
        return self._draft


@dataclass(frozen=True)
class Books:
    """The ledger, read on the thread that owns it."""

    ledger: Ledger
    worker: WorkerThread

    async def totals(self) -> Mapping[str, float]:
        return await self.worker.run(self.ledger.totals, "tenant-1")

    async def spent(self, stage: int = 3, tenant: str = "tenant-1") -> int:
        return await self.worker.run(self.ledger.tokens_spent, tenant, stage)


@asynccontextmanager
async def regenerator(
    path: Path, generator: Generator | None, *, rho: float = 0.5
) -> AsyncIterator[tuple[Regenerator, Books]]:
    clock = FakeClock()
    worker = WorkerThread("ledger", Pulse("ledger", clock))
    ledger = await worker.run(Ledger, path / "ledger.db")
    gates = {Kind.EPISODE: WordGate()}
    yield Regenerator(generator, gates, ledger, worker, clock, Rules(rho, strict=True)), Books(ledger, worker)
    await worker.run(ledger.close)
    await worker.aclose()


async def from_endpoint(*script: Script, timeout_s: float = 5.0) -> Draft:
    async with scripted_openai(*script) as endpoint:
        generator = OpenAIGenerator(endpoint.url, "model-1", "none", timeout_s)
        try:
            draft = await generator.draft(REQUEST)
        finally:
            await generator.aclose()
        assert len(endpoint.requests) == 1  # never asked twice
        return draft


# --- the endpoint -----------------------------------------------------------------------------------


async def test_a_good_reply_is_a_draft_with_its_tokens() -> None:
    assert await from_endpoint() == Draft("A good draft.", "model-1", TOKENS)


@pytest.mark.parametrize(
    ("step", "failure", "tokens"),
    [
        (Script.TRUNCATED, DraftFailure.TRUNCATED, TOKENS),
        (Script.FILTERED, DraftFailure.NOT_FINISHED, TOKENS),
        (Script.EMPTY, DraftFailure.EMPTY, TOKENS),
        (Script.WRONG_JSON, DraftFailure.BAD_REPLY, TOKENS),
        (Script.NOT_JSON_AT_ALL, DraftFailure.BAD_REPLY, estimate_tokens(REQUEST)),
        (Script.NO_CHOICES, DraftFailure.BAD_REPLY, estimate_tokens(REQUEST)),
        (Script.ERROR_500, DraftFailure.HTTP_ERROR, estimate_tokens(REQUEST)),
        (Script.ERROR_400, DraftFailure.HTTP_ERROR, 0),
        (Script.CUT, DraftFailure.UNREACHABLE, estimate_tokens(REQUEST)),
    ],
)
async def test_a_failed_call_has_a_reason_and_is_charged(
    step: Script, failure: DraftFailure, tokens: int
) -> None:
    assert await from_endpoint(step) == Draft("", "model-1", tokens, failure.value)


async def test_a_silent_endpoint_is_given_up_at_the_deadline_and_charged() -> None:
    draft = await from_endpoint(Script.SILENT, timeout_s=0.2)
    assert (draft.failure, draft.tokens) == (DraftFailure.TIMED_OUT.value, estimate_tokens(REQUEST))


async def test_without_usage_the_estimate_is_charged() -> None:
    assert (await from_endpoint(Script.NO_USAGE)).tokens == estimate_tokens(REQUEST)


async def test_an_endpoint_that_is_not_there_costs_nothing() -> None:
    generator = OpenAIGenerator("http://127.0.0.1:9/v1", "model-1", "none", 2.0)
    draft = await generator.draft(REQUEST)
    await generator.aclose()
    assert (draft.failure, draft.tokens) == (DraftFailure.UNREACHABLE.value, 0)


async def test_the_prompt_carries_residue_facts_and_a_schema() -> None:
    async with scripted_openai() as endpoint:
        generator = OpenAIGenerator(endpoint.url, "model-1", "none", 5.0)
        await generator.draft(REQUEST)
        await generator.aclose()
        sent = endpoint.requests[0]
    assert sent["messages"][0] == {"role": "system", "content": SYSTEM}
    for text in (REQUEST.residue, "mug - shelf", *REQUEST.neighbours):
        assert text in sent["messages"][-1]["content"]
    assert sent["response_format"]["type"] == "json_schema"
    assert (sent["max_tokens"], sent["temperature"]) == (100, 0.0)


# --- the hub's side -----------------------------------------------------------------------------------


async def test_an_admitted_draft_is_charged_and_recorded(tmp_path: Path) -> None:
    generator = HeldGenerator(Draft("at the shelf", "held", 40))
    generator.go.set()
    async with regenerator(tmp_path, generator) as (source, books):
        assert await source.draft(ASK) == DraftReply(1, "at the shelf", "held", 40)
        assert (await books.totals()) == {"tokens": 40, "link_bytes": 12, "attempts": 1, "admitted": 1}


async def test_no_edge_asks_for_a_longer_reply_than_the_hub_allows(tmp_path: Path) -> None:
    generator = HeldGenerator(Draft("at the shelf", "held", 40))
    generator.go.set()
    async with regenerator(tmp_path, generator) as (source, _):
        await source.draft(msgspec.structs.replace(ASK, max_tokens=2**20))
        await source.draft(ASK)
    assert [request.max_tokens for request in generator.requests] == [1024, ASK.max_tokens]


async def test_a_rejected_draft_keeps_its_text_at_the_hub_and_is_charged(tmp_path: Path) -> None:
    generator = HeldGenerator(Draft("somewhere else", "held", 40))
    generator.go.set()
    async with regenerator(tmp_path, generator) as (source, books):
        assert await source.draft(ASK) == DraftReply(1, "", "held", 40, "span_missing")
        assert (await books.totals()) == {"tokens": 40, "link_bytes": 0, "attempts": 1, "admitted": 0}


async def test_without_an_endpoint_the_source_is_absent(tmp_path: Path) -> None:
    async with regenerator(tmp_path, None) as (source, books):
        assert not source.generates
        assert (await source.draft(ASK)).failure == DraftFailure.NO_MODEL.value
        assert (await books.totals())["attempts"] == 0


async def test_a_kind_without_a_gate_gets_no_draft(tmp_path: Path) -> None:
    generator = HeldGenerator(Draft("at the shelf", "held", 40))
    async with regenerator(tmp_path, generator) as (source, _):
        ask = msgspec.structs.replace(ASK, kind=Kind.MOTION)
        assert (await source.draft(ask)).failure == DraftFailure.NO_MODEL.value
        assert generator.calls == 0


async def test_the_cap_is_the_hubs_own_whatever_the_edge_says(tmp_path: Path) -> None:
    generator = HeldGenerator(Draft("at the shelf", "held", 40))
    generator.go.set()
    cost = estimate_tokens(msgspec.convert(ASK, DraftRequest, from_attributes=True))
    async with regenerator(tmp_path, generator, rho=0.5) as (source, books):
        for serving, cap, failure in (
            (2 * cost - 2, 10**9, DraftFailure.OVER_CAP.value),  # rho n < cost
            (2 * cost, cost - 1, DraftFailure.OVER_CAP.value),  # the edge wants less
            (2 * cost, 10**9, ""),
        ):
            ask = msgspec.structs.replace(ASK, serving_tokens=serving, cap_tokens=cap)
            assert (await source.draft(ask)).failure == failure
        assert generator.calls == 1
        assert await books.spent() == 40
        assert await books.spent(stage=4) == await books.spent(tenant="tenant-2") == 0


async def test_drafts_in_flight_count_in_full(tmp_path: Path) -> None:
    generator = HeldGenerator(Draft("at the shelf", "held", 40))
    cost = estimate_tokens(msgspec.convert(ASK, DraftRequest, from_attributes=True))
    replies: list[DraftReply] = []
    async with regenerator(tmp_path, generator) as (source, books):

        async def ask(number: int) -> None:
            wanted = msgspec.structs.replace(ASK, number=number, cap_tokens=2 * cost)
            replies.append(await source.draft(wanted))

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(ask, number)
            while len(replies) < 2:
                await anyio.sleep(0.005)
            assert await books.spent() == 2 * cost
            generator.go.set()
    assert sorted(reply.failure for reply in replies) == ["", "", "over_cap", "over_cap"]


async def test_the_same_ask_twice_is_one_call(tmp_path: Path) -> None:
    generator = HeldGenerator(Draft("at the shelf", "held", 40))
    replies: list[DraftReply] = []
    async with regenerator(tmp_path, generator) as (source, books):

        async def ask(request: int) -> None:
            replies.append(await source.draft(msgspec.structs.replace(ASK, request=request)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, 1)
            while not generator.calls:
                await anyio.sleep(0.005)
            tasks.start_soon(ask, 2)
            await anyio.wait_all_tasks_blocked()
            generator.go.set()
        assert (await books.totals())["tokens"] == 40
    assert generator.calls == 1
    assert {(reply.request, reply.text, reply.tokens) for reply in replies} == {
        (1, "at the shelf", 40),
        (2, "at the shelf", 0),
    }


async def test_too_many_at_once_are_told_to_come_back(tmp_path: Path) -> None:
    generator = HeldGenerator(Draft("at the shelf", "held", 1))
    failures: list[str] = []
    async with regenerator(tmp_path, generator) as (source, _):

        async def ask(number: int) -> None:
            wanted = msgspec.structs.replace(ASK, number=number, serving_tokens=10**6, cap_tokens=10**6)
            failures.append((await source.draft(wanted)).failure)

        async with anyio.create_task_group() as tasks:
            for number in range(MAX_DRAFTS):
                tasks.start_soon(ask, number)
            while generator.calls < MAX_DRAFTS:
                await anyio.sleep(0.005)
            await ask(MAX_DRAFTS)
            generator.go.set()
    assert failures == ["busy"] + [""] * MAX_DRAFTS


def test_a_reservation_outlives_the_hub_that_made_it(tmp_path: Path) -> None:
    row = LedgerRow(
        "tenant-1", 3, 7, 1, Rung.SKELETAL, Rung.COMPRESSED, "model", 500, 0,
        admitted=False, reason="unsettled", wall_ns=1,
    )  # fmt: skip
    first = Ledger(tmp_path / "ledger.db")
    assert first.reserve(row, 1000) is not None
    first.close()  # killed before it could settle
    second = Ledger(tmp_path / "ledger.db")
    assert second.tokens_spent("tenant-1", 3) == 500
    assert second.reserve(row, 999) is None
    second.record(row)
    assert second.tokens_spent("tenant-1", 3) == 1000
    second.close()
