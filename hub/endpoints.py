"""Several endpoints behind one generator: the healthy ones share the work, a failed one costs one draft."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio

from hub.calls import QUEUE_S, Call, Caller, EndpointStatus
from hub.endpoint import Endpoint, Health
from shared import metrics
from shared.host.log import get_logger
from shared.ports import Clock, Draft, DraftRequest
from shared.prompt import estimate_tokens, judge_tokens
from shared.wire import DraftFailure

# Often enough to see a queue come and go, rare enough to cost nothing.
LOOK_S = 1.0
SLOT_WAIT_S = QUEUE_S
# No token was made: another endpoint may be asked for the same price.
_COSTS_NOTHING = frozenset({DraftFailure.UNREACHABLE, DraftFailure.RATE_LIMITED, DraftFailure.HTTP_ERROR})
_log = get_logger("hub.endpoints")


class Endpoints:
    """ports.Generator over one or more endpoints that serve the same model."""

    def __init__(self, callers: Sequence[Caller], clock: Clock, *, stall_s: float, most: int) -> None:
        self._callers = tuple(callers)
        self._states = tuple(Endpoint(stall_s, most) for _ in callers)
        self._clock = clock
        self._changed = anyio.Event()
        self._looking = anyio.Lock()
        self._looked_ns: int | None = None

    @property
    def model(self) -> str:
        """The model that every endpoint serves."""
        return self._callers[0].model

    def status(self) -> tuple[EndpointStatus, ...]:
        """One moment of all of them."""
        now = self._clock.mono_ns()
        return tuple(
            EndpointStatus(state.health(now).value, len(state.flights), state.limit, state.stalls)
            for state in self._states
        )

    async def draft(self, request: DraftRequest) -> Draft:
        """One draft, charged once: another endpoint is asked only where the first one made no token."""
        return await self._once(lambda caller: caller.call(request), estimate_tokens(request))

    async def judge(self, evidence: str, claim: str) -> Draft:
        """The probability of "yes" as a draft's text, by the same rules."""
        return await self._once(lambda caller: caller.judge(evidence, claim), judge_tokens(evidence, claim))

    async def _once(self, ask: Callable[[Caller], Awaitable[Call]], most: int) -> Draft:
        await self.look()
        tried: set[int] = set()
        failed: Draft | None = None
        while True:
            at = await self._slot(tried)
            if at is None:
                return failed or self._nothing()
            draft = await self._fly(at, ask, most)
            if draft.tokens or draft.failure not in _COSTS_NOTHING:
                return draft
            tried.add(at)
            failed = draft

    async def watch(self) -> None:
        """Look at the engines while anything flies, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_S)
            if any(state.flights for state in self._states):
                await self.look()

    async def look(self) -> None:
        """Once, unless somebody just did: a limit grows by the look."""
        async with self._looking:
            now = self._clock.mono_ns()
            if self._looked_ns is not None and now - self._looked_ns < LOOK_S * 1e9:
                return
            self._looked_ns = now
            async with anyio.create_task_group() as tasks:
                for at, state in enumerate(self._states):
                    if state.wants_look(now):
                        tasks.start_soon(self._look_at, at)
        self._publish()
        self._wake()

    async def aclose(self) -> None:
        """Close every client."""
        for caller in self._callers:
            await caller.aclose()

    async def _look_at(self, at: int) -> None:
        load = await self._callers[at].load()
        state, now = self._states[at], self._clock.mono_ns()
        before = state.stalls
        state.looked(load, now)
        if state.stalls > before:
            metrics.ENDPOINT_STALLS.inc()
            _log.warning("an endpoint makes no progress: drained", endpoint=at)

    async def _fly(self, at: int, ask: Callable[[Caller], Awaitable[Call]], most: int) -> Draft:
        state = self._states[at]
        call: Call | None = None
        flight = anyio.CancelScope()
        state.started(flight, self._clock.mono_ns())
        try:
            with flight:
                call = await ask(self._callers[at])
        finally:
            state.ended(flight, call, self._clock.mono_ns())
            self._wake()
        return call.draft if call is not None else self._callers[at].given_up(most)

    async def _slot(self, tried: set[int]) -> int | None:
        """An endpoint that takes one more; None after a while, and at once where none will."""
        with anyio.move_on_after(SLOT_WAIT_S):
            while True:
                now = self._clock.mono_ns()
                open_ = [at for at in range(len(self._states)) if at not in tried]
                free = [at for at in open_ if self._states[at].takes(now)]
                if free:
                    return min(free, key=lambda at: self._order(at, now))
                if not any(self._states[at].health(now) is Health.HEALTHY for at in open_):
                    return None
                await self._changed.wait()
        return None

    def _order(self, at: int, now_ns: int) -> tuple[bool, float, int]:
        """A probe that is due first: an endpoint that nobody asks never recovers. Then the least loaded."""
        state = self._states[at]
        return not state.probing(now_ns), len(state.flights) / max(state.limit, 1), at

    def _nothing(self) -> Draft:
        healths = {state.health(self._clock.mono_ns()) for state in self._states}
        if Health.HEALTHY in healths:
            reason = DraftFailure.BUSY
        else:
            reason = DraftFailure.RATE_LIMITED if Health.RESTING in healths else DraftFailure.UNREACHABLE
        return Draft("", self.model, 0, reason.value)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _publish(self) -> None:
        now = self._clock.mono_ns()
        for health in Health:
            count = sum(state.health(now) is health for state in self._states)
            metrics.ENDPOINTS.labels(state=health.value).set(count)
        metrics.DRAFTS_IN_FLIGHT.set(sum(len(state.flights) for state in self._states))
