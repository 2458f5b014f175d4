"""One cap rho n for hub and board together, against lost answers, late ones, kills on both sides and a judge.

Whatever happened: hub and board never made more tokens in a stage than rho n, and the edge's own books hold
at least what was made.
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

from edge_agent.drafting import Drafting
from edge_agent.entries import StageTally
from edge_agent.sync import _ask
from hub.ledger import Ledger
from hub.regenerate import Books, Regenerator, Rules
from shared.errors import Code, TransientError
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Kind, Promotion, Rung, Source
from shared.ports import ArchivedEntry, Draft, DraftRequest, Verdict
from shared.prompt import estimate_tokens, judge_tokens
from tests.fakes import FakeClock
from tests.stateful.test_cap_machine import MEMORY_DIR, Shelf
from tests.unit.test_board_drafts import _opened, original

T = TypeVar("T")
RHO, SERVED = 0.5, 6000
CAP = int(RHO * SERVED)
LOST = TransientError(Code.TIMED_OUT, "the hub did not answer in time")
ABOVE = {Rung.SKELETAL: Rung.COMPRESSED, Rung.COMPRESSED: Rung.FULL}
SHARES = st.sampled_from([0.05, 0.5, 1.0])
# What becomes of the ask or its answer.
FATES = st.sampled_from(["heard", "unsent", "unheard", "late", "killed"])


class OpenGate:
    """Leaves to the judge what it is told to leave."""

    verdict = Verdict(admitted=True)

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        return self.verdict


class Models:
    """The hub's model and judge and the board's model; counts every token that they make."""

    model, available = "m", True

    def __init__(self) -> None:
        self.share, self.failure, self.text, self.p_yes = 1.0, "", True, 0.9
        self.made: Counter[int] = Counter()
        self.stage = 0
        self.held: asyncio.Event | None = None
        self.asked = 0

    async def draft(self, request: DraftRequest) -> Draft:
        self.asked, self.stage = self.asked + 1, request.stage
        failure = self.failure
        if failure in {"busy", "unreachable"}:
            return Draft("", "m", 0, failure)
        tokens = max(int(self.share * estimate_tokens(request)), 1)
        self.made[request.stage] += tokens
        if self.held is not None:
            await self.held.wait()
        text = original(request.number) if self.text else ""
        return Draft("" if failure else text, "m", tokens, failure or ("" if text else "empty"))

    async def judge(self, evidence: str, claim: str) -> Draft:
        tokens = int(self.share * judge_tokens(evidence, claim))
        self.made[self.stage] += tokens
        return Draft(f"{self.p_yes:.6f}", "m", tokens)

    def fitted(self, request: DraftRequest) -> DraftRequest:
        return request


class LossyLink:
    """ports.Link straight to the hub's Regenerator, with a fate for every ask."""

    def __init__(self, models: Models) -> None:
        self.up = self.generates = True
        self.fate = "heard"
        self.hub: Regenerator | None = None
        self.flights: list[asyncio.Task[Any]] = []
        self._models = models
        self._asks = 0

    async def fetch(self, number: int, version: int) -> ArchivedEntry:
        raise AssertionError

    async def draft(self, request: DraftRequest) -> Draft:
        assert self.hub is not None
        if self.fate == "unsent":
            raise LOST
        self._asks += 1
        models, before = self._models, self._models.asked
        if models.held is not None:
            asyncio.get_running_loop().call_later(0.005, models.held.set)
            models.held = None
        if self.fate in {"late", "killed"}:
            models.held = asyncio.Event()
        flight = asyncio.ensure_future(self.hub.draft("edge-1", _ask("home", self._asks, request)))
        if self.fate in {"late", "killed"}:
            for _ in range(20):
                if models.asked > before or flight.done():
                    break
                await asyncio.sleep(0.001)
            if self.fate == "killed":
                models.held = None
                flight.cancel()
                await asyncio.gather(flight, return_exceptions=True)
            else:
                self.flights.append(flight)
            raise LOST
        reply = await flight
        if self.fate == "unheard":
            raise LOST
        return Draft(reply.text, reply.model, reply.tokens, reply.failure, judged=reply.judged)


class EdgeCapMachine(RuleBasedStateMachine):
    """The real Drafting with its books, the real Regenerator with its ledger; both may be killed."""

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=MEMORY_DIR))
        self.loop = asyncio.new_event_loop()
        self.clock, self.models, self.gate = FakeClock(), Models(), OpenGate()
        self.link, self.shelf = LossyLink(self.models), Shelf()
        self.thread = WorkerThread("store", Pulse("store", self.clock))
        self.parts = self.run(self.thread.run(_opened, self.directory, self.thread))
        assert isinstance(self.parts.clock, FakeClock)
        self.edge_clock = self.parts.clock
        self.worker = WorkerThread("ledger", Pulse("ledger", self.clock))
        self.ledger = self.run(self.worker.run(Ledger, self.directory / "ledger.db"))
        self.hub_starts()
        self.edge_starts()
        self.next_stage()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @rule()
    def hub_starts(self) -> None:
        async def killed() -> None:
            for flight in self.link.flights:
                flight.cancel()
            await asyncio.gather(*self.link.flights, return_exceptions=True)

        self.run(killed())
        self.link.flights.clear()
        self.models.held = None
        rules = Rules(RHO, strict=True, judge_threshold=0.8)
        books = Books(self.shelf, self.ledger, self.worker)
        gates = dict.fromkeys(Kind, self.gate)
        self.link.hub = Regenerator(self.models, gates, books, self.clock, rules, self.models)

    @rule()
    def edge_starts(self) -> None:
        """What is not in its books is forgotten."""
        self.drafting = Drafting(
            self.parts, self.link, rho=RHO, strict=False, board=self.models, accept_judge=True
        )

    @rule()
    def next_stage(self) -> None:
        def turn() -> None:
            stage = self.parts.store.meta.stage
            self.parts.state.end_stage(StageTally(stage, 0, 0.0, SERVED), 1.0, None, 0)
            self.parts.store.begin_stage(1.0)

        self.run(self.thread.run(turn))

    @rule(
        number=st.integers(1, 3),
        share=SHARES,
        failure=st.sampled_from(["", "", "timed_out", "http_error", "busy", "unreachable"]),
        text=st.booleans(),
        verdict=st.sampled_from(
            [Verdict(admitted=True), Verdict(False, "no_words"), Verdict(False, "unsupported", open=True)]
        ),
        fate=FATES,
    )
    def hub_drafts(
        self, number: int, share: float, failure: str, verdict: Verdict, fate: str, *, text: bool
    ) -> None:
        self.models.share, self.models.failure, self.models.text = share, failure, text
        self.gate.verdict, self.link.fate = verdict, fate
        self.link.up = True
        self.lifts(number)

    @rule(number=st.integers(1, 3), share=SHARES, text=st.booleans())
    def board_drafts(self, number: int, share: float, *, text: bool) -> None:
        self.models.share, self.models.failure, self.models.text = share, "", text
        self.link.up = False
        if self.models.held is None:
            self.lifts(number)

    def lifts(self, number: int) -> None:
        shown = self.run(self.thread.run(self.parts.store.read, number)).shown_rung
        if shown not in ABOVE:
            return
        self.edge_clock.tick(1000.0)
        step = Promotion(number, shown, ABOVE[shown], Source.MODEL, 10.0, 100.0)

        async def lift() -> None:
            try:
                await self.drafting.lift(step)
            except TransientError:
                assert self.link.fate != "heard"

        self.run(lift())

    @invariant()
    def hub_and_board_keep_one_cap(self) -> None:
        for stage, made in self.models.made.items():
            assert made <= CAP
            assert made <= self.run(self.thread.run(self.parts.state.tokens_spent, "home", stage)) <= CAP

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.hub_starts()
            for part in (self.parts.retrieval, self.parts.state, self.parts.store):
                self.run(self.thread.run(part.close))
            self.run(self.worker.run(self.ledger.close))
            self.run(self.thread.aclose())
            self.run(self.worker.aclose())
            self.loop.close()
            shutil.rmtree(self.directory)


TestEdgeCap = EdgeCapMachine.TestCase
TestEdgeCap.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
