"""What the hub's judge may do at an edge: nothing, unless the edge was told so and no rule has failed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from edge_agent.distill import PlainDistiller
from edge_agent.drafting import Drafting
from edge_agent.entries import NewEntry, StageTally
from edge_agent.parts import Parts
from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.valuation import Valuation
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Promotion, Rung, Source
from shared.memory.text_codec import TextCodec
from shared.memory.value import ValueMode
from shared.ports import ArchivedEntry, Draft, DraftRequest, Verdict
from tests.fakes import FakeClock
from tests.planes import open_store

STEP = Promotion(1, Rung.SKELETAL, Rung.COMPRESSED, Source.MODEL, 10.0, 100.0)
TEXT = "The mug 2 was taken from the shelf 3 and cleaned with the sinkbasin 1. " * 8


class RuledCodec(TextCodec):
    """Says of every draft what the test says."""

    verdict = Verdict(admitted=True)

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        return self.verdict


@dataclass
class OneDraft:
    """A link whose hub answers with one draft."""

    draft_: Draft
    up: bool = True
    generates: bool = True

    async def fetch(self, number: int, version: int) -> ArchivedEntry:
        raise AssertionError

    async def draft(self, request: DraftRequest) -> Draft:
        return self.draft_


@dataclass
class House:
    parts: Parts
    codec: RuledCodec


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    thread = WorkerThread("store", Pulse("store", FakeClock()))
    codec = RuledCodec(PlainDistiller())

    def opened() -> Parts:
        store = open_store(tmp_path / "memory", codec=codec)
        numbers = store.add_many([NewEntry(TEXT)])
        store.apply_moves(dict.fromkeys(numbers, Rung.SKELETAL))
        state = State.open(tmp_path / "state")
        state.end_stage(StageTally(0, 0, 0.0, 100_000), 1.0, None, 0)
        valuation = Valuation(store, ValueMode.PRODUCT, 0.3)
        return Parts(store, Retrieval(store), valuation, state, thread, FakeClock(), anyio.Lock())

    parts = await thread.run(opened)
    yield House(parts, codec)
    for part in (parts.retrieval, parts.state, parts.store):
        await thread.run(part.close)
    await thread.aclose()


OPEN = Verdict(admitted=False, reason="unsupported_clause", open=True)
FAILED = Verdict(admitted=False, reason="tuple_swapped")


@pytest.mark.parametrize(
    ("verdict", "judged", "accept", "admitted"),
    [
        (OPEN, True, True, True),
        (OPEN, True, False, False),  # the edge was not told to believe a judge
        (OPEN, False, True, False),  # nobody judged
        (FAILED, True, True, False),  # a rule failed: no judge overturns it
    ],
)
async def test_a_judge_only_where_the_rules_leave_it_open(
    house: House, verdict: Verdict, *, judged: bool, accept: bool, admitted: bool
) -> None:
    house.codec.verdict = verdict
    link = OneDraft(Draft("The mug 2 was washed.", "m", 40, judged=judged))
    drafting = Drafting(house.parts, link, rho=0.1, strict=True, accept_judge=accept)
    lifted = await drafting.lift(STEP)
    assert (lifted.admitted, lifted.tokens) == (admitted, 40)
    assert lifted.reason == ("" if admitted else verdict.reason)
