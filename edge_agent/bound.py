"""The budget as a promise: no commit leaves the account over it unsaid, and what can wait waits for room."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from edge_agent.account import Account
from edge_agent.plane import Plane
from shared.errors import TransientError


class Bound:
    """Recalls, outcomes and new epochs are taken whatever they cost; the next sweep is then promised on disk.

    A batch and its layers are no such thing: they are sealed and queued where there is room.
    """

    def __init__(self, plane: Plane, account: Account) -> None:
        self._plane = plane
        self._account = account
        self._held = False
        self._sweeping = False

    def hold(self) -> None:
        """From here on somebody sweeps whenever a target is pending."""
        self._held = True
        self._plane.journal.watch = self._promise

    def room_bytes(self) -> float:
        """What may still be charged; no limit while a sweep is under way, which ends below the budget."""
        if not self._held or self._sweeping or self._plane.journal.meta.target_pending:
            return math.inf
        return self._account.room_bytes()

    @contextmanager
    def sweeping(self) -> Iterator[None]:
        """A sweep is under way: layers that it would drop go out first, whatever room there is."""
        self._sweeping = True
        try:
            yield
        finally:
            self._sweeping = False

    def _promise(self) -> None:
        """After a commit: over the budget and no sweep promised yet."""
        meta = self._plane.journal.meta
        if meta.target_pending or self._account.logical_bytes() <= meta.budget_bytes:
            return
        # On a full disk the commit stands all the same; a start looks at the account itself.
        with suppress(TransientError), self._plane.journal.write() as change:
            change.change(target_pending=1)
