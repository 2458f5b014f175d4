"""Other signals in the place of Eq. 8's influence, for the ablations of Table IV."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edge_agent.store import Store
from shared.memory.schedules import chance
from shared.memory.value import ValueColumns

_TRUSTED = 1_000
"""Grades that make `shared.memory.value` take the influence as it is, with no prior."""


def recency_influence(store: Store) -> ValueColumns:
    """The younger the last recall (or the write), the more influence, evenly over (0, 1]."""
    rows = store.table.rows()
    touched = np.maximum(rows["heat"]["last_recall_event"], rows["facts"]["created_event"])
    order = np.lexsort((rows["number"], touched))
    rank = np.empty(len(rows), np.float64)
    rank[order] = np.arange(1, len(rows) + 1)
    return _instead(store, rank / max(len(rows), 1))


class RandomInfluence:
    """A number by chance for each entry, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, store: Store) -> ValueColumns:
        numbers = store.table.numbers().astype(np.int64)
        return _instead(store, chance(numbers, self._seed))


def _instead(store: Store, influence: np.ndarray[tuple[int], np.dtype[np.float64]]) -> ValueColumns:
    columns = store.value_columns()
    return replace(
        columns,
        influence=influence,
        idle_stages=np.zeros_like(columns.idle_stages),
        grades=np.full_like(columns.grades, _TRUSTED),
    )
