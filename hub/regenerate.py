"""Drafts: kept ones first; else reserve under the stage's cap, ask once, judge, keep, charge what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as copy
from typing import Protocol

import anyio
from msgspec.structs import replace

from hub.calls import ASK_S
from hub.drafts import KeptDraft
from hub.ledger import Ledger
from shared import metrics
from shared.errors import CrystalError
from shared.host.worker import WorkerThread
from shared.memory.model import Kind, Source
from shared.metrics import CountedBy, DraftResult
from shared.ports import Clock, Draft, DraftRequest, Generator, LedgerRow, Verdict
from shared.prompt import ask_tokens, estimate_tokens, evidence, judge_tokens, prompt_tokens
from shared.replies import unfit
from shared.wire import DraftAsk, DraftFailure, DraftReply

_UNSETTLED = "unsettled"
_TIMED_OUT = DraftFailure.TIMED_OUT.value
# A judge's call is charged like a draft's, and is none.
_JUDGE_YES, _JUDGE_NO = "judge_yes", "judge_no"
# No endpoint took the ask: there was no attempt.
_NOT_ASKED = frozenset({DraftFailure.BUSY, DraftFailure.RATE_LIMITED, DraftFailure.UNREACHABLE})


class DraftGate(Protocol):
    """The part of ports.RungCodec that a hub needs."""

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict: ...


class Shelf(Protocol):
    """Where admitted drafts are kept (hub.stores.Stores). Run on the hub's store thread."""

    def kept_draft(self, edge: str, ask: DraftAsk) -> KeptDraft | None: ...

    def keep_draft(self, edge: str, ask: DraftAsk, draft: KeptDraft) -> bool: ...


class DraftJudge(Protocol):
    """A model's probability of "yes", as a draft's text (hub.endpoints.Endpoints)."""

    async def judge(self, evidence: str, claim: str) -> Draft: ...


@dataclass(frozen=True)
class Rules:
    """rho of Eq. 10, the gate's mode, and what one call may hold at most."""

    rho: float
    strict: bool
    max_tokens: int = 1024
    prompt_tokens: int = 3072
    neighbours: int = 3
    ask_s: float = ASK_S
    judge_threshold: float = 0.0
    """Least probability with which the judge lets in what the gate's rules leave open; 0 = no judge."""


@dataclass(frozen=True)
class Books:
    """Where drafts are kept and charged: both on the hub's store thread."""

    shelf: Shelf
    ledger: Ledger
    worker: WorkerThread


@dataclass(frozen=True)
class _Room:
    """What is left for a judge: of the stage's cap, of the ask's own bound, and until when (loop time)."""

    cap_tokens: int
    ask_tokens: int
    until: float


class Regenerator:
    """The generative source. Without a generator it is absent, and says so."""

    def __init__(
        self,
        generator: Generator | None,
        gates: Mapping[Kind, DraftGate],
        books: Books,
        clock: Clock,
        rules: Rules,
        judge: DraftJudge | None = None,
    ) -> None:
        self._generator = generator
        self._gates = gates
        self._books = books
        self._clock = clock
        self._rules = rules
        self._judge = judge if rules.judge_threshold > 0 else None
        self._flying: dict[tuple[object, ...], asyncio.Future[DraftReply]] = {}

    @property
    def generates(self) -> bool:
        """True where a model endpoint is configured."""
        return self._generator is not None

    async def draft(self, edge: str, ask: DraftAsk) -> DraftReply:
        """One reply an ask; an ask that is repeated while its draft flies waits for it and costs nothing."""
        gate = self._gates.get(ask.kind)
        if self._generator is None or gate is None:
            return _nothing(ask, DraftFailure.NO_MODEL)
        key = (edge, ask.tenant, ask.number, ask.version, ask.base_digest, ask.target)
        if key in self._flying:
            reply = await asyncio.shield(self._flying[key])
            return replace(reply, request=ask.request, tokens=0)
        future = self._flying[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await self._kept(edge, ask) or await self._charged(edge, ask, self._generator, gate)
        except CrystalError:
            future.set_result(_nothing(ask, DraftFailure.BUSY))
            raise
        else:
            future.set_result(reply)
            return reply
        finally:
            del self._flying[key]
            future.cancel()

    async def _kept(self, edge: str, ask: DraftAsk) -> DraftReply | None:
        """What was admitted for this base before. In its own stage the edge may have missed what it cost."""
        kept = await self._books.worker.run(self._books.shelf.kept_draft, edge, ask)
        if kept is None:
            return None
        metrics.DRAFTS.labels(result=DraftResult.KEPT.value).inc()
        tokens = kept.tokens if kept.stage == ask.stage else 0
        return DraftReply(ask.request, kept.text, kept.model, tokens, judged=kept.judged)

    async def _charged(self, edge: str, ask: DraftAsk, generator: Generator, gate: DraftGate) -> DraftReply:
        ledger, worker = self._books.ledger, self._books.worker
        request = _request(ask, self._rules)
        if request is None:
            return _nothing(ask, DraftFailure.TOO_LONG)
        reserved = _reservation(ask, estimate_tokens(request), self._clock.wall_ns())
        # The hub's own rho: an edge may ask for less, never for more.
        cap_tokens = min(int(self._rules.rho * ask.serving_tokens), ask.cap_tokens)
        attempt = await worker.run(ledger.reserve, reserved, cap_tokens, ask.base_digest)
        if isinstance(attempt, DraftFailure):
            return _nothing(ask, attempt)
        until = anyio.current_time() + self._rules.ask_s
        draft = await _by(until, generator.draft(request)) or _given_up(
            generator.model, estimate_tokens(request)
        )
        if draft.failure in _NOT_ASKED and not draft.tokens:
            await worker.run(ledger.release, attempt)
            return _nothing(ask, DraftFailure(draft.failure))
        draft = await self._within(attempt, draft, estimate_tokens(request), cap_tokens)
        verdict = await anyio.to_thread.run_sync(self._verdict, ask, draft, gate)
        room = _Room(cap_tokens, ask_tokens(request) - draft.tokens, until)
        judged, asked_tokens = await self._judged(ask, draft, room) if verdict.open else (False, 0)
        reason = "" if verdict.admitted or judged else verdict.reason
        text = "" if reason else draft.text
        if text:
            # Before the books are closed: a hub that dies in between has charged it, and answers with it.
            kept = KeptDraft(text, draft.model, draft.tokens + asked_tokens, ask.stage, judged)
            await worker.run(self._books.shelf.keep_draft, edge, ask, kept)
        await worker.run(_settle, ledger, attempt, draft, len(text.encode()), reason)
        _count(draft, reason)
        return DraftReply(ask.request, text, draft.model, draft.tokens + asked_tokens, reason, judged)

    def _verdict(self, ask: DraftAsk, draft: Draft, gate: DraftGate) -> Verdict:
        """The endpoint's failure, what a reply must be, then the gate."""
        if reason := draft.failure or unfit(ask.residue, draft.text):
            return Verdict(admitted=False, reason=reason)
        return gate.gate(ask.record, draft.text, ask.neighbours, strict=self._rules.strict)

    async def _within(self, attempt: int, draft: Draft, reserved: int, cap_tokens: int) -> Draft:
        """The same; of a count beyond what was reserved no more is charged than the cap holds."""
        if draft.tokens <= reserved:
            return draft
        granted = await self._books.worker.run(self._books.ledger.stretch, attempt, draft.tokens, cap_tokens)
        return copy(draft, tokens=granted, estimated=draft.estimated or granted < draft.tokens)

    async def _judged(self, ask: DraftAsk, draft: Draft, room: _Room) -> tuple[bool, int]:
        """Whether the judge lets in what no rule decides, and its tokens. All but a clear yes is no."""
        shown = evidence(ask.residue, ask.invariants)
        most = judge_tokens(shown, draft.text)
        # The edge has charged so much for the whole ask, in case that it never hears the answer.
        if self._judge is None or most > room.ask_tokens:
            return False, 0
        ledger, worker = self._books.ledger, self._books.worker
        reserved = _reservation(ask, most, self._clock.wall_ns())
        attempt = await worker.run(ledger.reserve, reserved, room.cap_tokens)
        if isinstance(attempt, DraftFailure):
            return False, 0
        asked = self._judge.judge(shown, draft.text)
        opinion = await _by(room.until, asked) or _given_up(draft.model, most)
        opinion = await self._within(attempt, opinion, most, room.cap_tokens)
        said_yes = not opinion.failure and float(opinion.text) >= self._rules.judge_threshold
        await worker.run(_settle, ledger, attempt, opinion, 0, _JUDGE_YES if said_yes else _JUDGE_NO)
        _count_tokens(opinion)
        return said_yes, opinion.tokens


async def _by(until: float, call: Awaitable[Draft]) -> Draft | None:
    """What a call came to; None where it was not done by then, and then it is over."""
    with anyio.move_on_after(until - anyio.current_time()):
        return await call
    return None


def _given_up(model: str, most: int) -> Draft:
    """Every token of it may have been made."""
    return Draft("", model, most, _TIMED_OUT, estimated=True)


def _settle(ledger: Ledger, attempt: int, draft: Draft, link_bytes: int, reason: str) -> None:
    ledger.settle(attempt, draft.tokens, link_bytes, reason, estimated=draft.estimated)


def _count(draft: Draft, reason: str) -> None:
    result = DraftResult.REJECTED if reason else DraftResult.ADMITTED
    metrics.DRAFTS.labels(result=(DraftResult.FAILED if draft.failure else result).value).inc()
    _count_tokens(draft)


def _count_tokens(draft: Draft) -> None:
    by = CountedBy.ESTIMATE if draft.estimated else CountedBy.ENGINE
    metrics.DRAFT_TOKENS.labels(by=by.value).inc(draft.tokens)


def _reservation(ask: DraftAsk, tokens: int, wall_ns: int) -> LedgerRow:
    return LedgerRow(
        tenant=ask.tenant,
        stage=ask.stage,
        number=ask.number,
        version=ask.version,
        origin=ask.origin,
        to=ask.target,
        source=Source.MODEL.value,
        tokens=tokens,
        link_bytes=0,
        admitted=False,
        reason=_UNSETTLED,
        wall_ns=wall_ns,
    )


def _request(ask: DraftAsk, rules: Rules) -> DraftRequest | None:
    """What is asked of the model: the farthest neighbours go first; None when even alone it is too long."""
    neighbours = ask.neighbours[: rules.neighbours]
    while True:
        request = DraftRequest(
            number=ask.number,
            version=ask.version,
            base_digest=ask.base_digest,
            origin=ask.origin,
            target=ask.target,
            residue=ask.residue,
            invariants=ask.invariants,
            neighbours=neighbours,
            max_tokens=min(ask.max_tokens, rules.max_tokens),
            kind=ask.kind,
            record=ask.record,
            stage=ask.stage,
            serving_tokens=ask.serving_tokens,
            cap_tokens=ask.cap_tokens,
        )
        if prompt_tokens(request) <= rules.prompt_tokens:
            return request
        if not neighbours:
            return None
        neighbours = neighbours[:-1]


def _nothing(ask: DraftAsk, failure: DraftFailure) -> DraftReply:
    metrics.DRAFTS.labels(result=DraftResult.REFUSED.value).inc()
    return DraftReply(ask.request, "", "", 0, failure.value)
