"""The cap rho n against retries, duplicates, crashes, and engines that fail and count or do not.

Whatever happened: no stage's ledger is over its cap, no base and rung was taken twice in a stage, what was
killed in flight is not asked for again in its stage, and an answer is what was admitted.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hub.drafts import KeptDraft
from hub.ledger import Ledger
from hub.regenerate import Books, Regenerator, Rules
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Kind, Rung
from shared.ports import Draft, DraftRequest, Verdict
from shared.prompt import estimate_tokens
from shared.wire import DraftAsk, DraftReply
from tests.fakes import FakeClock

T = TypeVar("T")
RHO, SERVED = 0.5, 4000
CAP = int(RHO * SERVED)
RESIDUE = "went to the shelf"
NUMBERS, STAGES = st.integers(1, 4), st.integers(1, 3)
MEMORY_DIR = "/dev/shm" if Path("/dev/shm").is_dir() else None
# What an engine may come to: share of the reservation that it counts, text, failure.
OUTCOMES = st.tuples(
    st.floats(0.01, 1.0),
    st.sampled_from(["It went to the shelf.", "It went.", ""]),
    st.sampled_from(["", "timed_out", "http_error", "busy", "unreachable"]),
)


class AnyGate:
    """Admits everything: what is thin was refused before."""

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        return Verdict(admitted=True)


class Shelf(dict[tuple[object, ...], KeptDraft]):
    """Outlives a crash, as the tenant's file does."""

    def kept_draft(self, edge: str, ask: DraftAsk) -> KeptDraft | None:
        return self.get((edge, ask.number, ask.target))

    def keep_draft(self, edge: str, ask: DraftAsk, draft: KeptDraft) -> bool:
        self[edge, ask.number, ask.target] = draft
        return True


class Engine:
    """Answers what it is told, and remembers for what it was asked in which stage."""

    model = "m"

    def __init__(self) -> None:
        self.outcome: tuple[float, str, str] = (1.0, "", "")
        self.held: asyncio.Event | None = None
        self.asked: Counter[tuple[int, int, Rung]] = Counter()
        self.taken: Counter[tuple[int, int, Rung]] = Counter()

    async def draft(self, request: DraftRequest) -> Draft:
        share, text, failure = self.outcome
        key = (request.stage, request.number, request.target)
        self.asked[key] += 1
        if self.held is not None:
            await self.held.wait()
        if failure in {"busy", "unreachable"}:
            return Draft("", "m", 0, failure)
        self.taken[key] += 1
        tokens = max(int(share * estimate_tokens(request)), 1)
        return Draft("" if failure else text, "m", tokens, failure or ("" if text else "empty"))


class CapMachine(RuleBasedStateMachine):
    """The real Regenerator and Ledger; a crash forgets everything that is not on disk."""

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=MEMORY_DIR))
        self.loop = asyncio.new_event_loop()
        self.engine, self.shelf = Engine(), Shelf()
        self.replies: list[tuple[DraftAsk, DraftReply]] = []
        self.crashed: set[tuple[int, int, Rung]] = set()
        self.born()

    def born(self) -> None:
        clock = FakeClock()
        self.worker = WorkerThread("ledger", Pulse("ledger", clock))
        self.ledger = self.run(self.worker.run(Ledger, self.directory / "ledger.db"))
        books = Books(self.shelf, self.ledger, self.worker)
        self.hub = Regenerator(self.engine, {Kind.EPISODE: AnyGate()}, books, clock, Rules(RHO, strict=True))

    def dies(self) -> None:
        self.run(self.worker.run(self.ledger.close))
        self.run(self.worker.aclose())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @rule(number=NUMBERS, stage=STAGES, outcome=OUTCOMES, full=st.booleans(), times=st.integers(1, 3))
    def ask(
        self, number: int, stage: int, outcome: tuple[float, str, str], *, full: bool, times: int
    ) -> None:
        self.engine.outcome = outcome
        asks = [_ask(number, stage, full=full, request=request) for request in range(1, times + 1)]

        async def together() -> list[DraftReply]:
            return list(await asyncio.gather(*(self.hub.draft("edge-1", ask) for ask in asks)))

        before = self.engine.asked.total()
        replies = self.run(together())
        assert self.engine.asked.total() <= before + 1
        self.replies += zip(asks, replies, strict=True)

    @rule(outcome=OUTCOMES, stage=STAGES)
    def everything_at_once(self, outcome: tuple[float, str, str], stage: int) -> None:
        self.engine.outcome = outcome
        asks = [_ask(number, stage, full=full, request=1) for number in range(1, 5) for full in (False, True)]

        async def together() -> None:
            await asyncio.gather(*(self.hub.draft("edge-1", ask) for ask in asks))

        self.run(together())

    @rule(number=NUMBERS, stage=STAGES, full=st.booleans())
    def killed_in_the_middle(self, number: int, stage: int, *, full: bool) -> None:
        ask = _ask(number, stage, full=full, request=1)

        async def until_held() -> None:
            self.engine.held = asyncio.Event()
            flight = asyncio.ensure_future(self.hub.draft("edge-1", ask))
            before = self.engine.asked.total()
            while self.engine.asked.total() == before and not flight.done():
                await asyncio.sleep(0.001)
            if not flight.done():
                self.crashed.add((stage, number, ask.target))
            flight.cancel()
            await asyncio.gather(flight, return_exceptions=True)

        self.run(until_held())
        self.engine.held = None
        self.dies()
        self.born()

    @invariant()
    def no_stage_is_over_its_cap(self) -> None:
        for stage in range(1, 4):
            assert self.run(self.worker.run(self.ledger.tokens_spent, "tenant-1", stage)) <= CAP

    @invariant()
    def nothing_is_made_twice(self) -> None:
        assert all(times == 1 for times in self.engine.taken.values())
        # What was killed was asked for, and stays charged: not again in its stage.
        assert all(self.engine.taken[key] == 0 for key in self.crashed)

    @invariant()
    def an_answer_is_what_was_admitted(self) -> None:
        for ask, reply in self.replies:
            if reply.text:
                assert reply.text == self.shelf["edge-1", ask.number, ask.target].text
        for _, number, target in [key for key, times in self.engine.taken.items() if times]:
            kept = self.shelf.get(("edge-1", number, target))
            assert kept is None or kept.text == "It went to the shelf."
        self.replies.clear()

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.dies()
            self.loop.close()
            shutil.rmtree(self.directory)


def _ask(number: int, stage: int, *, full: bool, request: int) -> DraftAsk:
    return DraftAsk(
        "tenant-1", request, number, 1, b"d" * 16, Rung.SKELETAL, Rung.FULL if full else Rung.COMPRESSED,
        Kind.EPISODE, b"record", RESIDUE, (), (), 100, stage=stage, serving_tokens=SERVED,
        cap_tokens=10**9,
    )  # fmt: skip


TestCap = CapMachine.TestCase
TestCap.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
