"""One endpoint's state: how many may fly, whether tokens move, when it rests. Decides; does no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import anyio

from hub.calls import Call
from hub.engine import Load
from shared.wire import DraftFailure

# Without /metrics nothing tells whether an engine idles: few enough for any to take at once.
BLIND_LIMIT = 4
FIRST_LIMIT = 4
# An engine that always has a queue would never draft: after so long one at a time is sent all the same.
PATIENCE_S = 30.0
# An endpoint without a page is asked for one this often.
BLIND_LOOK_S = 60.0
FIRST_BACKOFF_S = 5.0
LONGEST_BACKOFF_S = 300.0
# One broken answer is an accident, this many in a row are a state.
_FAILURES_TO_SICK = 3
_SUSPECT = frozenset({DraftFailure.TIMED_OUT, DraftFailure.UNREACHABLE, DraftFailure.HTTP_ERROR})


class Health(str, Enum):
    """What an endpoint is fit for."""

    HEALTHY = "healthy"
    RESTING = "resting"
    """It asked to be left alone (429)."""
    SICK = "sick"
    """It answers nothing, or nothing moves: left alone until a probe is due."""


@dataclass
class Endpoint:
    """Health by progress: requests that finish or tokens that move, never a status 200."""

    stall_s: float
    most: int
    limit: int = FIRST_LIMIT
    flights: set[anyio.CancelScope] = field(default_factory=set)
    stalls: int = 0
    _sees: bool = False
    _next_look_ns: int = 0
    _idle: bool = True
    _congested: bool = False
    _busy_since_ns: int = 0
    _moved: float = -1.0
    _progress_ns: int = 0
    _rest_until_ns: int = 0
    _probe_ns: int | None = None
    """When a sick endpoint may be tried again; None = it is not sick."""
    _backoff_s: float = FIRST_BACKOFF_S
    _failures: int = 0

    def health(self, now_ns: int) -> Health:
        """As of now."""
        if self._probe_ns is not None:
            return Health.SICK
        return Health.RESTING if now_ns < self._rest_until_ns else Health.HEALTHY

    def takes(self, now_ns: int) -> bool:
        """Whether one more may be sent now."""
        if now_ns < self._rest_until_ns:
            return False
        if self._probe_ns is not None:
            return now_ns >= self._probe_ns and not self.flights
        if not self._idle:
            return not self.flights and now_ns - self._busy_since_ns >= PATIENCE_S * 1e9
        return len(self.flights) < min(self.limit, self.most)

    def probing(self, now_ns: int) -> bool:
        """A sick endpoint whose next request is its probe."""
        return self._probe_ns is not None and self.takes(now_ns)

    def started(self, flight: anyio.CancelScope, now_ns: int) -> None:
        """A request flies."""
        if not self.flights:
            self._progress_ns = now_ns
        self.flights.add(flight)

    def ended(self, flight: anyio.CancelScope, call: Call | None, now_ns: int) -> None:
        """A request is over; None = it was called off, which tells nothing."""
        self.flights.discard(flight)
        if call is None:
            return
        if call.rest_s:
            self._rest_until_ns = now_ns + round(call.rest_s * 1e9)
            self._progress_ns = now_ns
            self._probe_ns = None
            return
        if call.answered:
            self._recovered(now_ns)
            return
        self._failures += call.draft.failure in _SUSPECT
        if call.down or self._failures >= _FAILURES_TO_SICK or self._probe_ns is not None:
            self.sicken(now_ns)

    def wants_look(self, now_ns: int) -> bool:
        """Whether its page may tell something new."""
        return now_ns >= self._next_look_ns

    def looked(self, load: Load | None, now_ns: int) -> None:
        """What /metrics said: follow the engine's queue, and notice when nothing moves."""
        if load is None:
            self._blind(now_ns)
        else:
            self._follow(load, now_ns)
        # Before the page was ever read there is no such sign: then only calls that time out tell.
        if self._sees and self.flights and now_ns - self._progress_ns > self.stall_s * 1e9:
            self.stalls += 1
            self.sicken(now_ns)

    def sicken(self, now_ns: int) -> None:
        """Drain: call off what flies, and leave the endpoint alone for a while, longer each time."""
        self._probe_ns = now_ns + round(self._backoff_s * 1e9)
        self._backoff_s = min(2 * self._backoff_s, LONGEST_BACKOFF_S)
        for flight in self.flights:
            flight.cancel()

    def _recovered(self, now_ns: int) -> None:
        self._progress_ns = now_ns
        self._failures = 0
        self._backoff_s = FIRST_BACKOFF_S
        if self._probe_ns is not None:
            self._probe_ns, self.limit, self._congested = None, FIRST_LIMIT, False

    def _blind(self, now_ns: int) -> None:
        self._idle = True
        if not self._sees:
            self._next_look_ns = now_ns + round(BLIND_LOOK_S * 1e9)
        self.limit = min(self.limit, BLIND_LIMIT)

    def _follow(self, load: Load, now_ns: int) -> None:
        self._sees = True
        if load.moved != self._moved:
            self._moved, self._progress_ns = load.moved, now_ns
        if load.waiting > 0:
            if self._idle:
                self._idle, self._busy_since_ns = False, now_ns
            self.limit, self._congested = max(self.limit // 2, 1), True
            return
        self._idle = True
        if len(self.flights) >= self.limit:
            # Fast until the first queue, then one by one.
            self.limit = min(self.limit + (1 if self._congested else self.limit), self.most)
