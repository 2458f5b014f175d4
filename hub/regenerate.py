"""Drafts: reserve under the stage's cap, ask the model once, judge at the hub, charge whatever came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio
from msgspec.structs import replace

from hub.ledger import Ledger
from shared.errors import CrystalError
from shared.host.worker import WorkerThread
from shared.memory.model import Kind, Source
from shared.ports import Clock, Draft, DraftRequest, Generator, LedgerRow, Verdict
from shared.prompt import estimate_tokens
from shared.wire import DraftAsk, DraftFailure, DraftReply

# Above this many at once an engine only queues; the edge keeps its rung and asks again later.
MAX_DRAFTS = 8
_UNSETTLED = "unsettled"


class DraftGate(Protocol):
    """The part of ports.RungCodec that a hub needs."""

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict: ...


@dataclass(frozen=True)
class Rules:
    """rho of Eq. 10, the gate's mode, and the longest reply that one call may ask for."""

    rho: float
    strict: bool
    max_tokens: int = 1024


class Regenerator:
    """The generative source. Without a generator it is absent, and says so."""

    def __init__(
        self,
        generator: Generator | None,
        gates: Mapping[Kind, DraftGate],
        ledger: Ledger,
        worker: WorkerThread,
        clock: Clock,
        rules: Rules,
    ) -> None:
        self._generator = generator
        self._gates = gates
        self._ledger = ledger
        self._worker = worker
        self._clock = clock
        self._rules = rules
        self._flying: dict[tuple[object, ...], asyncio.Future[DraftReply]] = {}

    @property
    def generates(self) -> bool:
        """True where a model endpoint is configured."""
        return self._generator is not None

    async def draft(self, ask: DraftAsk) -> DraftReply:
        """One reply an ask; an ask that is repeated while its draft flies waits for it and costs nothing."""
        gate = self._gates.get(ask.kind)
        if self._generator is None or gate is None:
            return _nothing(ask, DraftFailure.NO_MODEL)
        key = (ask.tenant, ask.number, ask.version, ask.base_digest, ask.target)
        if key in self._flying:
            reply = await asyncio.shield(self._flying[key])
            return replace(reply, request=ask.request, tokens=0)
        if len(self._flying) >= MAX_DRAFTS:
            return _nothing(ask, DraftFailure.BUSY)
        future = self._flying[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await self._charged(ask, self._generator, gate)
        except CrystalError:
            future.set_result(_nothing(ask, DraftFailure.BUSY))
            raise
        else:
            future.set_result(reply)
            return reply
        finally:
            del self._flying[key]
            future.cancel()

    async def _charged(self, ask: DraftAsk, generator: Generator, gate: DraftGate) -> DraftReply:
        request = _request(ask, self._rules.max_tokens)
        reserved = _reservation(ask, estimate_tokens(request), self._clock.wall_ns())
        # The hub's own rho: an edge may ask for less, never for more.
        cap_tokens = min(int(self._rules.rho * ask.serving_tokens), ask.cap_tokens)
        attempt = await self._worker.run(self._ledger.reserve, reserved, cap_tokens)
        if attempt is None:
            return _nothing(ask, DraftFailure.OVER_CAP)
        draft = await generator.draft(request)
        reason = draft.failure or await anyio.to_thread.run_sync(self._rejection, ask, draft, gate)
        text = "" if reason else draft.text
        await self._worker.run(self._ledger.settle, attempt, draft.tokens, len(text.encode()), reason)
        return DraftReply(ask.request, text, draft.model, draft.tokens, reason)

    def _rejection(self, ask: DraftAsk, draft: Draft, gate: DraftGate) -> str:
        """The gate's reason; empty when the draft is admitted."""
        verdict = gate.gate(ask.record, draft.text, ask.neighbours, strict=self._rules.strict)
        return "" if verdict.admitted else verdict.reason


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


def _request(ask: DraftAsk, max_tokens: int) -> DraftRequest:
    return DraftRequest(
        number=ask.number,
        version=ask.version,
        base_digest=ask.base_digest,
        origin=ask.origin,
        target=ask.target,
        residue=ask.residue,
        invariants=ask.invariants,
        neighbours=ask.neighbours,
        max_tokens=min(ask.max_tokens, max_tokens),
        kind=ask.kind,
        record=ask.record,
        stage=ask.stage,
        serving_tokens=ask.serving_tokens,
        cap_tokens=ask.cap_tokens,
    )


def _nothing(ask: DraftAsk, failure: DraftFailure) -> DraftReply:
    return DraftReply(ask.request, "", "", 0, failure.value)
