"""edge_agent.drafting with the board's own model: last resort, same gate, same ledger, same cap."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from edge_agent.distill import PlainDistiller
from edge_agent.drafting import Drafting
from edge_agent.entries import NewEntry, StageTally
from edge_agent.ondevice_wire import End
from edge_agent.parts import Parts
from edge_agent.recovery import Recovery, RecoveryLimits
from edge_agent.retrieval import Retrieval
from edge_agent.state import ON_DEVICE, RELEVEL, State
from edge_agent.valuation import Valuation
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Promotion, Provenance, Rung, Source
from shared.memory.text_codec import TextCodec
from shared.memory.value import ValueMode
from shared.ports import Draft, DraftRequest, LedgerRow
from shared.prompt import estimate_tokens
from tests.fakes import FakeClock
from tests.planes import open_store
from tests.unit.test_levels import TEXT
from tests.unit.test_recovery import ScriptedLink

SERVED_TOKENS = 100_000


def original(number: int) -> str:
    return f"{TEXT} Number {number}."


class ScriptedBoard:
    """ports.Generator with the board's `available`; it knows the originals, and adds to them."""

    def __init__(self, added: str = "") -> None:
        self.added = added
        self.hangs: anyio.Event | None = None
        self.available = True
        self.model = "tiny"
        self.failure = ""
        self.tokens = 120
        self.drafted: list[DraftRequest] = []

    def fitted(self, request: DraftRequest) -> DraftRequest:
        return request

    async def draft(self, request: DraftRequest) -> Draft:
        self.drafted.append(request)
        if self.hangs is not None:
            self.hangs.set()
            await anyio.sleep_forever()
        text = "" if self.failure else original(request.number) + self.added
        return Draft(text, self.model, self.tokens, self.failure)


class House:
    """A store with three lossy entries, a link and a board."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.board = ScriptedBoard()
        self.link: ScriptedLink | None = ScriptedLink()
        self.link.up = False
        self.strict = False

    @property
    def drafting(self) -> Drafting:
        return Drafting(self.parts, self.link, rho=0.1, strict=self.strict, board=self.board)

    async def ledger(self) -> list[tuple[object, ...]]:
        """(source, tokens, admitted, reason) of every row."""

        def rows() -> list[tuple[object, ...]]:
            return self.parts.state._db.query("SELECT source, tokens, admitted, reason FROM ledger")

        return await self.parts.thread.run(rows)


def _opened(directory: Path, thread: WorkerThread) -> Parts:
    store = open_store(directory / "memory", codec=TextCodec(PlainDistiller()))
    numbers = store.add_many([NewEntry(original(number)) for number in (1, 2, 3)])
    store.apply_moves(dict.fromkeys(numbers, Rung.SKELETAL))
    state = State.open(directory / "state")
    state.end_stage(StageTally(0, 0, 0.0, SERVED_TOKENS), 1.0, None, 0)
    valuation = Valuation(store, ValueMode.PRODUCT, 0.3)
    return Parts(store, Retrieval(store), valuation, state, thread, FakeClock(), anyio.Lock())


@asynccontextmanager
async def opened_house(tmp_path: Path) -> AsyncIterator[House]:
    thread = WorkerThread("store", Pulse("store", FakeClock()))
    made = House(await thread.run(_opened, tmp_path, thread))
    yield made
    await thread.run(made.parts.retrieval.close)
    await thread.run(made.parts.state.close)
    await thread.run(made.parts.store.close)
    await thread.aclose()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened_house(tmp_path) as made:
        yield made


STEP = Promotion(1, Rung.SKELETAL, Rung.COMPRESSED, Source.MODEL, 10.0, 100.0)


async def test_an_admitted_draft_says_whose_it_is(house: House) -> None:
    lifted = await house.drafting.lift(STEP)
    assert (lifted.admitted, lifted.reason, lifted.tokens) == (True, "", 120)
    entry = await house.parts.thread.run(house.parts.store.read, 1)
    assert (entry.provenance, entry.overlay.model) == (Provenance.REGENERATED, "tiny")
    assert entry.rung is Rung.SKELETAL
    assert await house.ledger() == [(ON_DEVICE, 120, 1, "")]


async def test_the_same_gate_judges_it(house: House) -> None:
    house.board.added, house.strict = " She paid 4711 dollars for it.", True
    lifted = await house.drafting.lift(STEP)
    assert (lifted.admitted, lifted.tokens) == (False, 120)
    assert lifted.reason
    assert (await house.parts.thread.run(house.parts.store.read, 1)).overlay is None
    assert await house.ledger() == [(ON_DEVICE, 120, 0, lifted.reason)]


@pytest.mark.parametrize(
    ("up", "generates", "asked_of"),
    [(True, True, "hub"), (True, False, "board"), (False, True, "board"), (False, False, "board")],
)
async def test_it_never_replaces_a_hub_that_generates(
    house: House, up: bool, generates: bool, asked_of: str
) -> None:
    house.link.up, house.link.generates = up, generates
    house.link.answer = Draft("", "hub", 9, "no_words")
    drafting = house.drafting
    assert drafting.generates
    await drafting.lift(STEP)
    assert (len(house.link.drafted), len(house.board.drafted)) == ((1, 0) if asked_of == "hub" else (0, 1))


async def test_without_a_hub_it_is_the_source_and_without_it_there_is_none(house: House) -> None:
    house.link = None
    assert house.drafting.generates
    assert (await house.drafting.lift(STEP)).admitted
    house.board.available = False
    assert not house.drafting.generates
    assert (await house.drafting.lift(replace(STEP, number=2))).tokens == 0
    nobody = Drafting(house.parts, None, rho=0.1, strict=True)
    assert not nobody.generates
    assert not (await nobody.lift(replace(STEP, number=2))).admitted


async def test_the_plan_counts_on_the_board(house: House) -> None:
    recovery = Recovery(house.parts, None, house.drafting, RecoveryLimits(0.1, float("inf")))
    assert recovery.generates
    assert await recovery.rise(lambda: False)
    assert {request.number for request in house.board.drafted} == {1, 2, 3}
    spent = await house.parts.thread.run(house.parts.state.tokens_spent, "home", 1)
    assert 0 < spent <= 0.1 * SERVED_TOKENS


@pytest.mark.parametrize("failure", [end.value for end in End if end is not End.STOP])
async def test_what_a_failed_call_computed_is_charged(house: House, failure: str) -> None:
    house.board.failure, house.board.tokens = failure, 77
    drafting = house.drafting
    lifted = await drafting.lift(STEP)
    assert (lifted.admitted, lifted.reason, lifted.tokens) == (False, failure, 77)
    assert await house.ledger() == [(ON_DEVICE, 77, 0, failure)]
    # What a recall or a missing model ended is not the entry's fault; what may have crashed it is.
    spared = {End.CANCELLED.value, End.UNAVAILABLE.value}
    assert (1 in drafting.backed_off(1)) is (failure not in spared)


async def test_over_the_cap_nothing_is_computed(house: House) -> None:
    cap = round(0.1 * SERVED_TOKENS)
    spent = LedgerRow("home", 1, 9, 1, Rung.FULL, Rung.FULL, RELEVEL, cap - 200, 0, False, "", 0)
    await house.parts.thread.run(house.parts.state.record, spent)
    lifted = await house.drafting.lift(STEP)
    assert (lifted.reason, lifted.tokens) == ("over_cap", 0)
    assert house.board.drafted == []


async def test_a_crash_of_the_daemon_leaves_the_attempt_charged(house: House) -> None:
    started = house.board.hangs = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(house.drafting.lift, STEP)
        await started.wait()
        tasks.cancel_scope.cancel()
    ((source, tokens, admitted, reason),) = await house.ledger()
    assert (source, admitted, reason) == (ON_DEVICE, 0, "unsettled")
    assert tokens == estimate_tokens(house.board.drafted[0])


async def test_the_hub_is_told_of_a_cap_without_what_the_board_spent(house: House) -> None:
    house.link.up = house.link.generates = True
    house.link.answer = Draft("", "hub", 9, "no_words")
    await house.drafting.lift(STEP)
    assert house.link.drafted[0].cap_tokens == 10_000
    for source, tokens in ((ON_DEVICE, 3000), (RELEVEL, 500), (Source.MODEL.value, 4000)):
        row = LedgerRow("home", 1, 9, 1, Rung.FULL, Rung.FULL, source, tokens, 0, False, "", 0)
        await house.parts.thread.run(house.parts.state.record, row)
    await house.drafting.lift(replace(STEP, number=2))
    assert house.link.drafted[1].cap_tokens == 6500
