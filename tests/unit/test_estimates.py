"""Estimates of a store that was opened anew: nothing left to sample is no reason to know nothing."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from edge_agent.sweep import Sweep
from shared.memory.model import LADDERS, Rung
from tests.planes import fill, flat_pricing, open_store


@pytest.mark.parametrize("ladder", ["product", "paper"])
def test_a_store_of_residues_alone_still_goes_down_after_a_restart(tmp_path: Path, ladder: str) -> None:
    store = open_store(tmp_path, ladder=ladder)
    numbers = list(fill(store, 60, 2000))
    store.apply_moves(dict.fromkeys(numbers, Rung.COMPRESSED))
    store.close()
    store = open_store(tmp_path, ladder=ladder)
    assert math.isfinite(store.usage().packed_bytes)
    sizes = store.sweep_columns(flat_pricing(store)).size_bytes
    assert np.isfinite(sizes[:, LADDERS[ladder].index(Rung.TRACE)]).all()
    store.set_budget(round(store.usage().logical_bytes * 0.6))
    report = Sweep(store, lambda: flat_pricing(store)).run()
    assert report.evicted == []
    assert {move.to for move in report.moves.values()} <= {Rung.SKELETAL, Rung.TRACE}
    store.close()
