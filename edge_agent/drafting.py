"""One model draft: asked of the hub for exactly one base, judged again here, laid over that base."""

from __future__ import annotations

from dataclasses import dataclass, replace

from edge_agent.entries import Overlay, StoredEntry
from edge_agent.ondevice_generator import OnDeviceGenerator
from edge_agent.ondevice_wire import End
from edge_agent.parts import Parts, used_bytes
from edge_agent.state import ON_DEVICE
from shared.errors import CrystalError, TransientError
from shared.memory.gate import Reason
from shared.memory.model import Promotion, Rung, Source
from shared.ports import Draft, DraftRequest, LedgerRow, Link
from shared.prompt import estimate_tokens
from shared.wire import DraftFailure

_NEIGHBOURS = 3
_BYTES_PER_TOKEN = 4
# JSON framing and a model that words things longer than the original did.
_ANSWER_ROOM = 2.0
_LEAST_ANSWER_TOKENS = 64
_MOST_DOUBLINGS = 6
# The base moved while the draft flew.
SUPERSEDED = "superseded"
_UNSETTLED = "unsettled"
# The hub could not draft for any entry now: its model is left alone for a while, longer each time.
_HUB_AWAY = frozenset(
    {
        DraftFailure.BUSY.value,
        DraftFailure.RATE_LIMITED.value,
        DraftFailure.UNREACHABLE.value,
        DraftFailure.NO_MODEL.value,
        DraftFailure.OVER_CAP.value,
    }
)
_FIRST_REST_S = 5.0
_LONGEST_REST_S = 300.0
# Not the entry's fault: it is tried again in the same stage.
_NO_FAULT = _HUB_AWAY | {End.CANCELLED.value, End.UNAVAILABLE.value}


@dataclass(frozen=True)
class Lifted:
    """What became of one attempt; tokens are charged whatever it was."""

    admitted: bool
    reason: str
    tokens: int


class Drafting:
    """Asks, judges, admits; a rejected entry waits twice as many stages each time.

    board: the model of last resort, asked only while the hub is away or generates nothing.
    """

    def __init__(
        self,
        parts: Parts,
        link: Link | None,
        *,
        rho: float,
        strict: bool,
        board: OnDeviceGenerator | None = None,
        accept_judge: bool = False,
    ) -> None:
        self._parts = parts
        self._link = link
        self._board = board
        self._rho = rho
        self._strict = strict
        self._accept_judge = accept_judge
        self._rejections: dict[int, tuple[int, int]] = {}
        self._rest_s = _FIRST_REST_S
        self._rest_until_ns = 0

    def backed_off(self, stage: int) -> frozenset[int]:
        """Entries that may not be tried in this stage."""
        return frozenset(number for number, (until, _) in self._rejections.items() if until > stage)

    @property
    def generates(self) -> bool:
        """Whether some model would draft now."""
        return self._hub_generates() or (self._board is not None and self._board.available)

    async def lift(self, promotion: Promotion) -> Lifted:
        """One rung up by one draft. TransientError where the hub went away."""
        thread = self._parts.thread
        prepared = await thread.run(self._request, promotion)
        if prepared is None:
            return Lifted(False, "", 0)
        entry, request = prepared
        if self._link is not None and self._hub_generates():
            draft = await self._link.draft(request)
            self._rest(draft)
            async with self._parts.lock:
                return await thread.run(self._take, entry, request, draft, None)
        if self._board is None or not self._board.available:
            return Lifted(False, "", 0)
        return await self._from_board(self._board, entry, request)

    async def _from_board(
        self, board: OnDeviceGenerator, entry: StoredEntry, request: DraftRequest
    ) -> Lifted:
        """Reserved under the cap first: a crash in between leaves it charged."""
        thread = self._parts.thread
        place = await thread.run(self._reserve, request)
        if place is None:
            return Lifted(False, DraftFailure.OVER_CAP.value, 0)
        draft = await board.draft(request)
        async with self._parts.lock:
            return await thread.run(self._take, entry, request, draft, place)

    def _hub_generates(self) -> bool:
        rested = self._parts.clock.mono_ns() >= self._rest_until_ns
        return rested and self._link is not None and self._link.up and self._link.generates

    def _rest(self, draft: Draft) -> None:
        """A hub without a place for drafts is not asked again at once: idle windows come many a second."""
        if draft.failure in _HUB_AWAY and not draft.tokens:
            self._rest_until_ns = self._parts.clock.mono_ns() + round(self._rest_s * 1e9)
            self._rest_s = min(2 * self._rest_s, _LONGEST_REST_S)
        else:
            self._rest_s = _FIRST_REST_S

    # --- store's thread ---------------------------------------------------------------------------------

    def _request(self, promotion: Promotion) -> tuple[StoredEntry, DraftRequest] | None:
        store = self._parts.store
        if promotion.number not in store.table:
            return None
        try:
            entry = store.read(promotion.number)
        except CrystalError:
            return None
        if entry.shown_rung is not promotion.origin or not entry.record:
            return None
        codec = store.plane.codecs[entry.kind]
        fraction = store.plane.ladder.rungs[store.plane.ladder.index(promotion.to)].text_fraction
        answer = _ANSWER_ROOM * fraction * entry.text_bytes / _BYTES_PER_TOKEN
        meta, state = store.meta, self._parts.state
        served = state.serving_tokens(meta.stage - 1)
        # The hub counts what it spent itself; the board's own share is taken off here.
        cap_tokens = int(self._rho * served) - state.board_tokens(meta.tenant, meta.stage)
        return entry, DraftRequest(
            number=entry.number,
            version=entry.version,
            base_digest=entry.base_digest,
            origin=promotion.origin,
            target=promotion.to,
            residue=entry.base_text,
            invariants=codec.invariants(entry.record),
            neighbours=self._neighbours(entry.number),
            max_tokens=max(round(answer), _LEAST_ANSWER_TOKENS),
            kind=entry.kind,
            record=entry.record,
            stage=store.meta.stage,
            serving_tokens=served,
            cap_tokens=max(cap_tokens, 0),
        )

    def _neighbours(self, number: int) -> tuple[str, ...]:
        store = self._parts.store
        graph = store.plane.graph
        by_count = sorted(graph.neighbours(number).items(), key=lambda edge: (-edge[1], edge[0]))
        near = dict.fromkeys((*graph.references(number), *(other for other, _ in by_count)))
        live = [other for other in near if other in store.table][:_NEIGHBOURS]
        texts = dict(store.texts(live))
        return tuple(texts[other] for other in live if other in texts)

    def _reserve(self, request: DraftRequest) -> int | None:
        row = self._row(request, Lifted(False, _UNSETTLED, estimate_tokens(request)))
        cap_tokens = self._rho * request.serving_tokens
        return self._parts.state.reserve(replace(row, source=ON_DEVICE, link_bytes=0), cap_tokens)

    def _take(self, entry: StoredEntry, request: DraftRequest, draft: Draft, place: int | None) -> Lifted:
        """Charge the draft whatever becomes of it; a rejected entry is backed off and otherwise untouched."""
        try:
            reason = draft.failure or self._admit(entry, request, draft)
        except TransientError as problem:
            self._record(request, Lifted(False, problem.code.value, draft.tokens), place)
            raise
        if reason in _NO_FAULT and not (reason == DraftFailure.UNREACHABLE.value and draft.tokens):
            pass
        elif reason:
            _, times = self._rejections.get(entry.number, (0, 0))
            self._rejections[entry.number] = request.stage + 2 ** min(times, _MOST_DOUBLINGS), times + 1
        else:
            self._rejections.pop(entry.number, None)
        lifted = Lifted(not reason, reason, draft.tokens)
        self._record(request, lifted, place)
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

    def _record(self, request: DraftRequest, lifted: Lifted, place: int | None) -> None:
        """place: where a draft of the board was reserved."""
        if place is None:
            self._parts.state.record(self._row(request, lifted))
        else:
            self._parts.state.settle(place, self._row(request, lifted))

    def _row(self, request: DraftRequest, lifted: Lifted) -> LedgerRow:
        return LedgerRow(
            tenant=self._parts.store.meta.tenant,
            stage=request.stage,
            number=request.number,
            version=request.version,
            origin=request.origin,
            to=request.target,
            source=Source.MODEL.value,
            tokens=lifted.tokens,
            link_bytes=len(request.residue.encode()),
            admitted=lifted.admitted,
            reason=lifted.reason,
            wall_ns=self._parts.clock.wall_ns(),
        )
