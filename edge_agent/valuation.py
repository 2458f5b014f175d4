"""What entries are worth now: the store's columns through the paper's maths."""

from __future__ import annotations

from collections.abc import Callable

from edge_agent.columns import Pricing
from edge_agent.store import Store
from shared.memory import value
from shared.memory.value import ValueColumns, ValueMode

Signal = Callable[[Store], ValueColumns]
"""Where influence comes from, row by row in ascending number order: Eq. 8, as the store holds it."""


class Valuation:
    """v of Eq. 6 and tau for a store, with the scale that was fitted at the last stage's end.

    signal: what Eq. 9 is computed from; a comparison may put another than Eq. 8 in its place.
    """

    def __init__(
        self, store: Store, mode: ValueMode, coupling: float, signal: Signal = Store.value_columns
    ) -> None:
        self._signal = signal
        self._store = store
        self._mode = mode
        self._coupling = coupling

    def pricing(self, *, archive: bool) -> Pricing:
        """Values of the live entries in ascending number order; `archive`: the hub can be asked now."""
        columns = self._signal(self._store)
        values = value.values(columns, self._mode, factor=self._store.meta.scale, lam=self._coupling)
        return Pricing(values, value.default_tau(values, self._mode), archive)

    def by_number(self) -> dict[int, float]:
        """v by entry number, for the hub and for events."""
        numbers = self._store.table.numbers().tolist()
        return dict(zip(numbers, self.pricing(archive=False).values.tolist(), strict=True))

    def fitted_scale(self) -> float:
        """s, to be put in force when a stage ends."""
        if self._mode is ValueMode.PAPER:
            return 1.0
        return value.scale(value.coupled_values(self._signal(self._store), self._coupling))
