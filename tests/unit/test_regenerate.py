"""Drafts at the hub: the gate, what is kept, and a cap that nothing breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from hub.drafts import KeptDraft
from hub.ledger import Ledger
from hub.regenerate import Books, Regenerator, Rules
from shared.errors import Code, TransientError
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Kind, Rung
from shared.ports import Draft, DraftRequest, Generator, LedgerRow, Verdict
from shared.prompt import SYSTEM, estimate_tokens
from shared.wire import DraftAsk, DraftFailure, DraftReply
from tests.fakes import FakeClock

EDGE = "edge-1"
ASK = DraftAsk(
    "tenant-1", 1, 7, 1, b"d" * 16, Rung.SKELETAL, Rung.COMPRESSED, Kind.EPISODE, b"record",
    "went to the shelf", ("tuple: went / shelf",), (), 100, stage=3, serving_tokens=10_000, cap_tokens=10_000,
)  # fmt: skip
TEXT = "It went to the shelf."
COST = estimate_tokens(msgspec.convert(ASK, DraftRequest, from_attributes=True))


class WordGate:
    """Admits a draft that does not speak of Rome."""

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        assert (record, strict) == (b"record", True)
        return Verdict("Rome" not in draft, "unsupported_name" if "Rome" in draft else "")


@dataclass
class HeldGenerator:
    """Answers with `drafts` in turn (then the last for ever) when it is let go."""

    drafts: list[Draft]
    go: anyio.Event = field(default_factory=anyio.Event)
    requests: list[DraftRequest] = field(default_factory=list)
    model: str = "held"

    @property
    def calls(self) -> int:
        return len(self.requests)

    async def draft(self, request: DraftRequest) -> Draft:
        self.requests.append(request)
        await self.go.wait()
        return self.drafts.pop(0) if len(self.drafts) > 1 else self.drafts[0]


def ready(*drafts: Draft) -> HeldGenerator:
    """A generator that answers at once."""
    generator = HeldGenerator(list(drafts) or [Draft(TEXT, "held", 40)])
    generator.go.set()
    return generator


class MemoryShelf:
    """A shelf that can be full."""

    def __init__(self) -> None:
        self.kept: dict[tuple[object, ...], KeptDraft] = {}
        self.full = False

    def kept_draft(self, edge: str, ask: DraftAsk) -> KeptDraft | None:
        return self.kept.get(_key(edge, ask))

    def keep_draft(self, edge: str, ask: DraftAsk, draft: KeptDraft) -> bool:
        if self.full:
            raise TransientError(Code.DISK_FULL, "no space left")
        self.kept[_key(edge, ask)] = draft
        return True


def _key(edge: str, ask: DraftAsk) -> tuple[object, ...]:
    return edge, ask.number, ask.version, ask.base_digest, ask.target


@dataclass(frozen=True)
class Reader:
    """The ledger, read on the thread that owns it."""

    ledger: Ledger
    worker: WorkerThread
    shelf: MemoryShelf

    async def totals(self) -> Mapping[str, float]:
        return await self.worker.run(self.ledger.totals, "tenant-1")

    async def spent(self, stage: int = 3, tenant: str = "tenant-1") -> int:
        return await self.worker.run(self.ledger.tokens_spent, tenant, stage)

    async def estimated(self) -> int:
        return await self.worker.run(self.ledger.estimated_tokens, "tenant-1")


@asynccontextmanager
async def regenerator(
    path: Path, generator: Generator | None, *, shelf: MemoryShelf | None = None, **rules: Any
) -> AsyncIterator[tuple[Regenerator, Reader]]:
    clock = FakeClock()
    worker = WorkerThread("ledger", Pulse("ledger", clock))
    ledger = await worker.run(Ledger, path / "ledger.db")
    reader = Reader(ledger, worker, shelf or MemoryShelf())
    settings = Rules(**{"rho": 0.5, "strict": True, **rules})
    books = Books(reader.shelf, ledger, worker)
    yield Regenerator(generator, {Kind.EPISODE: WordGate()}, books, clock, settings), reader
    await worker.run(ledger.close)
    await worker.aclose()


def other(ask: DraftAsk = ASK, **change: object) -> DraftAsk:
    return msgspec.structs.replace(ask, **change)


# --- one draft --------------------------------------------------------------------------------------------


async def test_an_admitted_draft_is_charged_kept_and_recorded(tmp_path: Path) -> None:
    async with regenerator(tmp_path, ready()) as (source, books):
        assert await source.draft(EDGE, ASK) == DraftReply(1, TEXT, "held", 40)
        assert (await books.totals()) == {
            "tokens": 40,
            "link_bytes": len(TEXT),
            "attempts": 1,
            "admitted": 1,
        }
        assert list(books.shelf.kept.values()) == [KeptDraft(TEXT, "held", 40, 3, judged=False)]


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (Draft("It went to the shelf in Rome.", "held", 40), "unsupported_name"),
        (Draft("It went.", "held", 40), DraftFailure.THIN.value),
        (Draft("Notes:\nwent to the shelf", "held", 40), "echo"),
        (Draft(f"{SYSTEM} It went to the shelf.", "held", 40), "echo"),
        (Draft("", "held", 40, DraftFailure.TRUNCATED.value), "truncated"),
    ],
)
async def test_a_rejected_draft_stays_at_the_hub_and_is_charged(
    tmp_path: Path, draft: Draft, reason: str
) -> None:
    async with regenerator(tmp_path, ready(draft)) as (source, books):
        assert await source.draft(EDGE, ASK) == DraftReply(1, "", "held", 40, reason)
        assert (await books.totals()) == {"tokens": 40, "link_bytes": 0, "attempts": 1, "admitted": 0}
        assert books.shelf.kept == {}


async def test_without_an_endpoint_the_source_is_absent(tmp_path: Path) -> None:
    async with regenerator(tmp_path, None) as (source, books):
        assert not source.generates
        assert (await source.draft(EDGE, ASK)).failure == DraftFailure.NO_MODEL.value
        assert (await books.totals())["attempts"] == 0


async def test_a_kind_without_a_gate_gets_no_draft(tmp_path: Path) -> None:
    generator = ready()
    async with regenerator(tmp_path, generator) as (source, _):
        assert (await source.draft(EDGE, other(kind=Kind.MOTION))).failure == DraftFailure.NO_MODEL.value
        assert generator.calls == 0


# --- the prompt -------------------------------------------------------------------------------------------


async def test_no_edge_asks_for_a_longer_reply_than_the_hub_allows(tmp_path: Path) -> None:
    generator = ready()
    async with regenerator(tmp_path, generator) as (source, _):
        await source.draft(EDGE, other(max_tokens=2**20))
        await source.draft(EDGE, other(number=8))
    assert [request.max_tokens for request in generator.requests] == [1024, ASK.max_tokens]


async def test_the_farthest_neighbours_give_way_to_the_cap(tmp_path: Path) -> None:
    generator = ready()
    near = tuple(letter * 3 + " word" * 100 for letter in "abcdef")
    async with regenerator(tmp_path, generator, neighbours=4, prompt_tokens=900) as (source, _):
        await source.draft(EDGE, other(neighbours=near))
        await source.draft(EDGE, other(number=8, neighbours=("short", *near)))
    async with regenerator(tmp_path, generator, neighbours=0) as (source, _):
        await source.draft(EDGE, other(number=9, neighbours=near))
    first, second, third = (request.neighbours for request in generator.requests)
    assert first == near[:2]
    assert second == ("short", *near[:2])
    assert third == ()


async def test_a_residue_over_the_cap_is_refused_and_costs_nothing(tmp_path: Path) -> None:
    generator = ready()
    async with regenerator(tmp_path, generator, prompt_tokens=600) as (source, books):
        for ask in (other(residue="word " * 500), other(invariants=("tuple: " + "word / " * 500,))):
            assert (await source.draft(EDGE, ask)) == DraftReply(1, "", "", 0, DraftFailure.TOO_LONG.value)
        assert (generator.calls, (await books.totals())["attempts"]) == (0, 0)


# --- the cap -----------------------------------------------------------------------------------------------


async def test_the_cap_is_the_hubs_own_whatever_the_edge_says(tmp_path: Path) -> None:
    generator = ready()
    async with regenerator(tmp_path, generator, rho=0.5) as (source, books):
        for serving, cap, failure in (
            (2 * COST - 2, 10**9, DraftFailure.OVER_CAP.value),  # rho n < cost
            (2 * COST, COST - 1, DraftFailure.OVER_CAP.value),  # the edge wants less
            (2 * COST, 10**9, ""),
        ):
            reply = await source.draft(EDGE, other(serving_tokens=serving, cap_tokens=cap))
            assert reply.failure == failure
        assert generator.calls == 1
        assert await books.spent() == 40
        assert await books.spent(stage=4) == await books.spent(tenant="tenant-2") == 0


async def test_drafts_in_flight_count_in_full(tmp_path: Path) -> None:
    generator = HeldGenerator([Draft(TEXT, "held", 40)])
    replies: list[DraftReply] = []
    async with regenerator(tmp_path, generator) as (source, books):

        async def ask(number: int) -> None:
            replies.append(await source.draft(EDGE, other(number=number, cap_tokens=2 * COST)))

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(ask, number)
            while len(replies) < 2:
                await anyio.sleep(0.005)
            assert await books.spent() == 2 * COST
            generator.go.set()
    assert sorted(reply.failure for reply in replies) == ["", "", "over_cap", "over_cap"]


async def test_what_no_endpoint_took_is_no_attempt(tmp_path: Path) -> None:
    busy = [Draft("", "held", 0, reason) for reason in ("busy", "rate_limited", "unreachable")]
    generator = ready(*busy, Draft(TEXT, "held", 40))
    async with regenerator(tmp_path, generator) as (source, books):
        failures = [(await source.draft(EDGE, ASK)).failure for _ in range(4)]
        assert failures == ["busy", "rate_limited", "unreachable", ""]
        assert (await books.totals())["attempts"] == 1


async def test_an_estimate_is_charged_and_told_apart(tmp_path: Path) -> None:
    generator = ready(Draft("", "held", 300, "timed_out", estimated=True), Draft(TEXT, "held", 40))
    async with regenerator(tmp_path, generator) as (source, books):
        await source.draft(EDGE, ASK)
        await source.draft(EDGE, other(number=8))
        assert (await books.spent(), await books.estimated()) == (340, 300)


async def test_a_draft_that_is_not_done_in_time_is_given_up_and_charged(tmp_path: Path) -> None:
    generator = HeldGenerator([Draft(TEXT, "held", 40)])
    async with regenerator(tmp_path, generator, ask_s=0.05) as (source, books):
        with anyio.fail_after(5):
            reply = await source.draft(EDGE, ASK)
        assert reply == DraftReply(1, "", "held", COST, "timed_out")
        assert (await books.spent(), await books.estimated()) == (COST, COST)


# --- repeats -----------------------------------------------------------------------------------------------


async def test_the_same_ask_twice_is_one_call(tmp_path: Path) -> None:
    generator = HeldGenerator([Draft(TEXT, "held", 40)])
    replies: list[DraftReply] = []
    async with regenerator(tmp_path, generator) as (source, books):

        async def ask(request: int) -> None:
            replies.append(await source.draft(EDGE, other(request=request)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, 1)
            while not generator.calls:
                await anyio.sleep(0.005)
            tasks.start_soon(ask, 2)
            await anyio.wait_all_tasks_blocked()
            generator.go.set()
        assert (await books.totals())["tokens"] == 40
    assert generator.calls == 1
    assert {(reply.request, reply.text, reply.tokens) for reply in replies} == {(1, TEXT, 40), (2, TEXT, 0)}


async def test_an_admitted_draft_is_never_generated_again(tmp_path: Path) -> None:
    generator, shelf = (
        ready(Draft(TEXT, "held", 40), Draft("Another text: shelf.", "held", 40)),
        MemoryShelf(),
    )
    async with regenerator(tmp_path, generator, shelf=shelf) as (source, _):
        await source.draft(EDGE, ASK)
    async with regenerator(tmp_path, generator, shelf=shelf) as (source, books):  # after a restart
        assert await source.draft(EDGE, other(request=2)) == DraftReply(2, TEXT, "held", 40)
        # In a later stage the edge has its cost in the books already.
        assert await source.draft(EDGE, other(request=3, stage=9)) == DraftReply(3, TEXT, "held", 0)
        # A cap that is used up holds nothing back that costs nothing.
        assert (await source.draft(EDGE, other(cap_tokens=0))).text == TEXT
        assert (await books.totals())["tokens"] == 40
    assert generator.calls == 1


@pytest.mark.parametrize(
    "change",
    [{"number": 8}, {"version": 2}, {"base_digest": b"e" * 16}, {"target": Rung.FULL}],
)
async def test_another_base_is_another_draft(tmp_path: Path, change: dict[str, object]) -> None:
    generator = ready()
    async with regenerator(tmp_path, generator) as (source, _):
        await source.draft(EDGE, ASK)
        await source.draft(EDGE, other(**change))
        await source.draft("edge-2", other(number=99))
    assert generator.calls == 3


async def test_what_was_charged_in_a_stage_is_not_asked_for_again_in_it(tmp_path: Path) -> None:
    generator = ready(Draft("It went.", "held", 40))
    async with regenerator(tmp_path, generator) as (source, books):
        first = await source.draft(EDGE, ASK)
        again = await source.draft(EDGE, other(request=2))
        assert (first.failure, again) == ("thin", DraftReply(2, "", "", 0, "already_charged"))
        assert (generator.calls, await books.spent()) == (1, 40)
        await source.draft(EDGE, other(stage=4))  # the edge waited as it should
        assert generator.calls == 2


async def test_a_shelf_that_is_full_leaves_the_charge_and_no_second_call(tmp_path: Path) -> None:
    generator, shelf = ready(), MemoryShelf()
    shelf.full = True
    async with regenerator(tmp_path, generator, shelf=shelf) as (source, books):
        with pytest.raises(TransientError):
            await source.draft(EDGE, ASK)
        assert await books.spent() == COST  # the reservation
        assert (await source.draft(EDGE, ASK)).failure == "already_charged"
    assert generator.calls == 1


async def test_a_hub_that_dies_before_its_books_are_closed_has_kept_the_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise TransientError(Code.DISK_FULL, "no space left")

    generator = ready()
    async with regenerator(tmp_path, generator) as (source, books):
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "settle", dies)
            with pytest.raises(TransientError):
                await source.draft(EDGE, ASK)
        assert await books.spent() == COST
        assert (await source.draft(EDGE, ASK)).text == TEXT
    assert generator.calls == 1


def test_a_reservation_outlives_the_hub_that_made_it(tmp_path: Path) -> None:
    row = LedgerRow(
        "tenant-1", 3, 7, 1, Rung.SKELETAL, Rung.COMPRESSED, "model", 500, 0,
        admitted=False, reason="unsettled", wall_ns=1,
    )  # fmt: skip
    first = Ledger(tmp_path / "ledger.db")
    assert isinstance(first.reserve(row, 1000, b"d" * 16), int)
    first.close()  # killed before it could settle
    second = Ledger(tmp_path / "ledger.db")
    assert second.tokens_spent("tenant-1", 3) == second.estimated_tokens("tenant-1") == 500
    assert second.reserve(row, 999, b"e" * 16) is DraftFailure.OVER_CAP
    assert second.reserve(row, 9999, b"d" * 16) is DraftFailure.ALREADY_CHARGED
    second.record(row)
    assert second.tokens_spent("tenant-1", 3) == 1000
    second.close()
