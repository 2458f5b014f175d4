"""One model draft: asked of the hub for exactly one base, judged again here, laid over that base."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from edge_agent.draft_request import draft_request
from edge_agent.entries import Overlay, StoredEntry
from edge_agent.ondevice_wire import End
from edge_agent.parts import Parts, used_bytes
from edge_agent.state import ON_DEVICE
from shared.errors import Code, CrystalError, PermanentError, TransientError
from shared.host.log import clean, get_logger
from shared.memory.gate import Reason
from shared.memory.model import Promotion, Rung, Source
from shared.ports import Draft, DraftRequest, LedgerRow, Link
from shared.prompt import ask_tokens, estimate_tokens
from shared.wire import DraftFailure

_MOST_DOUBLINGS = 6
# The base moved while the draft flew.
SUPERSEDED = "superseded"
_UNSETTLED = "unsettled"
# The hub's models are out of reach: as good as a hub that generates nothing.
_HUB_GENERATES_NOT = frozenset({DraftFailure.UNREACHABLE.value, DraftFailure.NO_MODEL.value})
# The hub could not draft for any entry now: its model is left alone for a while, longer each time.
_HUB_AWAY = _HUB_GENERATES_NOT | {
    DraftFailure.BUSY.value,
    DraftFailure.RATE_LIMITED.value,
    DraftFailure.OVER_CAP.value,
}
_FIRST_REST_S = 5.0
_LONGEST_REST_S = 300.0
# Not the entry's fault: it is tried again in the same stage.
_NO_FAULT = _HUB_AWAY | {End.CANCELLED.value, End.UNAVAILABLE.value}
# Our own message was not fit to send: nothing left this board.
_NOT_SENT = frozenset({Code.TOO_LARGE, Code.MALFORMED})
_log = get_logger("drafting")


class LocalGenerator(Protocol):
    """A ports.Generator at the edge itself (edge_agent.ondevice_generator is one)."""

    @property
    def model(self) -> str:
        """Its name, as every draft carries it."""
        ...

    @property
    def available(self) -> bool:
        """Whether a draft would be tried now."""
        ...

    def fitted(self, request: DraftRequest) -> DraftRequest:
        """What it can take of a request."""
        ...

    async def draft(self, request: DraftRequest) -> Draft:
        """Never raises for what the model does: a failure is a draft with a reason and its tokens."""
        ...


@dataclass(frozen=True)
class Lifted:
    """What became of one attempt; tokens are charged whatever it was."""

    admitted: bool
    reason: str
    tokens: int


@dataclass(frozen=True)
class _Place:
    """Where an attempt stands in the ledger, charged ahead."""

    row: int
    tokens: int
    again: bool = False
    """An answer was lost before: this is the same charge, not another."""


class Drafting:
    """Asks, judges, admits; a rejected entry waits twice as many stages each time.

    board: the model of last resort, asked only while the link is down or the hub generates nothing.
    Every ask is charged before it is made, here too: a lost answer stays charged as the most it can cost.
    """

    def __init__(
        self,
        parts: Parts,
        link: Link | None,
        *,
        rho: float,
        strict: bool,
        board: LocalGenerator | None = None,
        accept_judge: bool = False,
    ) -> None:
        self._parts = parts
        self._link = link
        self._board = board
        self._rho = rho
        self._strict = strict
        self._accept_judge = accept_judge
        self._rejections: dict[int, tuple[int, int]] = {}
        self._lost: dict[tuple[object, ...], _Place] = {}
        self._rest_s = _FIRST_REST_S
        self._rest_until_ns = 0
        self._rest_for = ""

    def backed_off(self, stage: int) -> frozenset[int]:
        """Entries that may not be tried in this stage."""
        return frozenset(number for number, (until, _) in self._rejections.items() if until > stage)

    @property
    def generates(self) -> bool:
        """Whether some model would draft now."""
        return self._hub_drafts() or self._board_drafts() is not None

    async def lift(self, promotion: Promotion) -> Lifted:
        """One rung up by one draft. TransientError where the hub or the disk went away, nothing else."""
        try:
            prepared = await self._parts.thread.run(self._request, promotion)
            if prepared is None:
                return Lifted(False, "", 0)
            link, board = self._link, self._board_drafts()
            if link is not None and self._hub_drafts():
                return await self._from_hub(link, *prepared)
            if board is not None:
                return await self._from_board(board, *prepared)
        except TransientError:
            raise
        except CrystalError as problem:
            return await self._failed(promotion, problem)
        return Lifted(False, "", 0)

    async def _from_hub(self, link: Link, entry: StoredEntry, request: DraftRequest) -> Lifted:
        thread = self._parts.thread
        reserved = await thread.run(self._reserve_hub, request)
        if reserved is None:
            return Lifted(False, DraftFailure.OVER_CAP.value, 0)
        request, place = reserved
        try:
            draft = await link.draft(request)
        except TransientError:
            # It may have been drafted and charged there: it is asked for again under the same charge.
            self._lost[_key(request)] = replace(place, again=True)
            raise
        except PermanentError as problem:
            unsent = problem.code in _NOT_SENT and not place.again
            lifted = Lifted(False, problem.code.value, 0 if unsent else place.tokens)
            await thread.run(self._settle, request, lifted, place, Source.MODEL.value)
            raise
        self._rest(draft)
        if draft.tokens or draft.failure not in _HUB_AWAY:
            self._lost.pop(_key(request), None)
        draft = replace(draft, tokens=await thread.run(self._charged, request, draft, place))
        async with self._parts.lock:
            return await thread.run(self._take, entry, request, draft, place, Source.MODEL.value)

    async def _from_board(self, board: LocalGenerator, entry: StoredEntry, request: DraftRequest) -> Lifted:
        thread = self._parts.thread
        request = board.fitted(request)
        place = await thread.run(self._reserve, request, ON_DEVICE, estimate_tokens(request))
        if place is None:
            return Lifted(False, DraftFailure.OVER_CAP.value, 0)
        draft = await board.draft(request)
        async with self._parts.lock:
            return await thread.run(self._take, entry, request, draft, place, ON_DEVICE)

    async def _failed(self, promotion: Promotion, problem: CrystalError) -> Lifted:
        """This entry cannot be drafted for: it waits as a rejected one does, and the daemon goes on."""
        _log.warning("no draft", number=promotion.number, reason=clean(str(problem), 300))
        self._back_off(promotion.number, await self._parts.thread.run(self._stage_now))
        return Lifted(False, problem.code.value, 0)

    def _hub_there(self) -> bool:
        return self._link is not None and self._link.up and self._link.generates

    def _rested(self) -> bool:
        return self._parts.clock.mono_ns() >= self._rest_until_ns

    def _hub_drafts(self) -> bool:
        return self._hub_there() and self._rested()

    def _board_drafts(self) -> LocalGenerator | None:
        """The last resort, where it is its turn: never for a hub that is only busy, or out of tokens."""
        away = not self._hub_there() or (not self._rested() and self._rest_for in _HUB_GENERATES_NOT)
        board = self._board
        return board if board is not None and away and board.available else None

    def _rest(self, draft: Draft) -> None:
        """A hub without a place for drafts is not asked again at once: idle windows come many a second."""
        if draft.failure in _HUB_AWAY and not draft.tokens:
            self._rest_for = draft.failure
            self._rest_until_ns = self._parts.clock.mono_ns() + round(self._rest_s * 1e9)
            self._rest_s = min(2 * self._rest_s, _LONGEST_REST_S)
        else:
            self._rest_s = _FIRST_REST_S

    def _back_off(self, number: int, stage: int) -> None:
        _, times = self._rejections.get(number, (0, 0))
        self._rejections[number] = stage + 2 ** min(times, _MOST_DOUBLINGS), times + 1

    # --- store's thread ---------------------------------------------------------------------------------

    def _request(self, promotion: Promotion) -> tuple[StoredEntry, DraftRequest] | None:
        return draft_request(self._parts.store, self._parts.state, promotion)

    def _stage_now(self) -> int:
        return self._parts.store.meta.stage

    def _reserve_hub(self, request: DraftRequest) -> tuple[DraftRequest, _Place] | None:
        """The most that the hub may charge for this; hub and board share the stage's cap."""
        state, tenant, stage = self._parts.state, self._parts.store.meta.tenant, request.stage
        self._lost = {key: place for key, place in self._lost.items() if key[0] == stage}
        place = self._lost.get(_key(request))
        if place is None:
            place = self._reserve(request, Source.MODEL.value, ask_tokens(request))
        if place is None:
            return None
        # The hub counts what it spent itself; the board's own share is taken off here.
        cap_tokens = int(self._rho * request.serving_tokens) - state.board_tokens(tenant, stage)
        return replace(request, cap_tokens=max(cap_tokens, 0)), place

    def _reserve(self, request: DraftRequest, source: str, tokens: int) -> _Place | None:
        row = self._row(request, Lifted(False, _UNSETTLED, tokens), source)
        place = self._parts.state.reserve(row, self._rho * request.serving_tokens)
        return None if place is None else _Place(place, tokens)

    def _charged(self, request: DraftRequest, draft: Draft, place: _Place) -> int:
        """What an answer costs here: "nothing more" says nothing about what was charged before."""
        if draft.tokens:
            return draft.tokens
        if place.again:
            return place.tokens
        if draft.failure == DraftFailure.ALREADY_CHARGED.value:
            row = self._row(request, Lifted(False, _UNSETTLED, 0), Source.MODEL.value)
            return 0 if self._parts.state.charged(row, place.row) else place.tokens
        return 0

    def _take(
        self, entry: StoredEntry, request: DraftRequest, draft: Draft, place: _Place, source: str
    ) -> Lifted:
        """Charge the draft whatever becomes of it; a rejected entry is backed off and otherwise untouched."""
        try:
            reason = draft.failure or self._admit(entry, request, draft)
        except TransientError as problem:
            self._settle(request, Lifted(False, problem.code.value, draft.tokens), place, source)
            raise
        except CrystalError as problem:
            reason = problem.code.value
        if reason in _NO_FAULT and not (reason == DraftFailure.UNREACHABLE.value and draft.tokens):
            pass
        elif reason:
            self._back_off(entry.number, request.stage)
        else:
            self._rejections.pop(entry.number, None)
        lifted = Lifted(not reason, reason, draft.tokens)
        self._settle(request, lifted, place, source)
        return lifted

    def _admit(self, entry: StoredEntry, request: DraftRequest, draft: Draft) -> str:
        """Why the draft is not admitted; empty when it covers its base now."""
        store = self._parts.store
        codec = store.plane.codecs[entry.kind]
        verdict = codec.gate(entry.record, draft.text, request.neighbours, strict=self._strict)
        # A judge never overturns a rule: it speaks only where no rule failed and none could decide.
        judged = verdict.open and draft.judged and self._accept_judge
        if not verdict.admitted and not judged:
            return verdict.reason
        if used_bytes(store) + len(draft.text.encode()) > store.meta.budget_bytes:
            return Reason.OVER_BUDGET.value
        overlay = Overlay(Rung(request.target), draft.text, draft.model, self._parts.clock.wall_ns())
        try:
            store.put_overlay(entry.number, entry.version, entry.base_digest, overlay)
        except TransientError:
            raise
        except CrystalError:
            return SUPERSEDED
        self._parts.retrieval.refresh([entry.number])
        return ""

    def _settle(self, request: DraftRequest, lifted: Lifted, place: _Place, source: str) -> None:
        self._parts.state.settle(place.row, self._row(request, lifted, source))

    def _row(self, request: DraftRequest, lifted: Lifted, source: str) -> LedgerRow:
        return LedgerRow(
            tenant=self._parts.store.meta.tenant,
            stage=request.stage,
            number=request.number,
            version=request.version,
            origin=request.origin,
            to=request.target,
            source=source,
            tokens=lifted.tokens,
            link_bytes=len(request.residue.encode()) if source == Source.MODEL.value else 0,
            admitted=lifted.admitted,
            reason=lifted.reason,
            wall_ns=self._parts.clock.wall_ns(),
        )


def _key(request: DraftRequest) -> tuple[object, ...]:
    """What the hub charges once in a stage."""
    return request.stage, request.number, request.version, request.base_digest, request.target
