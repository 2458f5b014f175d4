"""What the tests of the sweep share: one row, budgets, and the order of moves by a full sort."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shared.memory.crystallize import decide, floor_bytes
from shared.memory.energy import hull
from shared.memory.model import LADDERS, EvictionMode, Ladder, SweepColumns
from tests.unit.columns import PRODUCT, bytes_at

TAU = 1 / 512
LAST_RESORT, PRICED = EvictionMode.LAST_RESORT, EvictionMode.PRICED
ladders = st.sampled_from(list(LADDERS.values()))
modes = st.sampled_from(EvictionMode)
shares = st.floats(0.0, 1.05)

ROW = [100.0, 40.0, 30.0, 20.0, 10.0]


def swept(columns: SweepColumns, budget: float, mode: EvictionMode = LAST_RESORT) -> list[int]:
    return [int(rung) for rung in decide(columns, PRODUCT, budget, mode, TAU).position]


def between(columns: SweepColumns, share: float) -> float:
    """A budget from the floor (0) to what the rows hold now (1)."""
    floor = floor_bytes(columns)
    return floor + share * (bytes_at(columns, columns.position) - floor)


def move_order(columns: SweepColumns, ladder: Ladder) -> list[tuple[int, int]]:
    """(row, target) of every guarded hull move, by a full sort."""
    moves = hull(columns, ladder, TAU, guarded=columns.guarded)
    keys = (columns.recalls_last_stage, columns.last_recall, columns.created, columns.id_rank)
    ranked = sorted(
        (float(moves.price[move, row]), *(int(key[row]) for key in keys), move, row)
        for move, row in zip(*np.nonzero(np.isfinite(moves.price)), strict=True)
    )
    return [(row, move + 1) for *_, move, row in ranked]
