"""Any recovery plan on any store: no cap is ever broken, and bytes are what the moves really add."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.memory.model import LADDERS, Ladder, Promotion, Rung, Source
from shared.memory.recrystallize import RecoveryCaps, RecoveryColumns, plan
from tests.unit.columns import NOT_OFFERED, recovery_columns

ladders = st.sampled_from(list(LADDERS.values()))


@st.composite
def recoveries(draw: st.DrawFn, ladder: Ladder) -> RecoveryColumns:
    rungs = len(ladder.rungs)
    n = draw(st.integers(1, 6))
    rows, position, overlay = [], [], []
    for _ in range(n):
        row = sorted(draw(st.lists(st.integers(1, 300), min_size=rungs, max_size=rungs)), reverse=True)
        at = draw(st.integers(0, rungs))
        gone = draw(st.sets(st.integers(1, rungs), max_size=2)) - {at}
        rows.append([NOT_OFFERED if k in gone else float(size) for k, size in enumerate(row)])
        position.append(at)
        above = [k for k in range(at) if k not in gone and ladder.rungs[k].rung is not Rung.PACKED]
        lossy = at < rungs and ladder.rungs[at].rung.lossy
        overlay.append(draw(st.sampled_from([-1, *above])) if lossy else -1)

    def column(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(strategy, min_size=n, max_size=n))

    return recovery_columns(
        rows,
        position,
        overlay_position=overlay,
        overlay_bytes=[0 if at < 0 else draw(st.integers(1, 300)) for at in overlay],
        stub_bytes=column(st.integers(0, 24)),
        value=column(st.sampled_from([0.0, 0.25, 0.5, 2.0])),
        recalls_last_stage=column(st.integers(0, 5)),
        exact_source=column(st.booleans()),
        model_source=column(st.booleans()),
        draft_tokens=np.reshape(
            draw(st.lists(st.integers(0, 99), min_size=n * rungs, max_size=n * rungs)), (n, rungs)
        ),
        archive_bytes=column(st.integers(0, 99)),
    )


class Store:
    """Bytes as they really are after each promotion: base plus overlay."""

    def __init__(self, columns: RecoveryColumns, ladder: Ladder) -> None:
        self.columns = columns
        self.rungs = [*(spec.rung for spec in ladder.rungs), Rung.EVICTED]
        self.base = columns.position.tolist()
        self.overlay = columns.overlay_position.tolist()
        self.overlay_bytes = columns.overlay_bytes.astype(float).tolist()

    def total(self) -> float:
        sizes = np.column_stack([self.columns.size_bytes, self.columns.stub_bytes])
        return float(sum(sizes[row, at] for row, at in enumerate(self.base)) + sum(self.overlay_bytes))

    def apply(self, promotion: Promotion) -> None:
        row, to = promotion.number - 100, self.rungs.index(promotion.to)
        shown = self.overlay[row] if self.overlay[row] >= 0 else self.base[row]
        assert to < shown or promotion.source is Source.ARCHIVE
        if promotion.source is Source.MODEL:
            assert promotion.origin is self.rungs[shown]
            assert promotion.to is not Rung.PACKED
            between = range(to + 1, shown)
            offered = [k for k in between if np.isfinite(self.columns.size_bytes[row, k])]
            assert all(self.rungs[k] is Rung.PACKED for k in offered)
            self.overlay[row], self.overlay_bytes[row] = to, float(self.columns.size_bytes[row, to])
        else:
            assert promotion.origin is self.rungs[self.base[row]]
            assert to < self.base[row]
            self.base[row] = to
            if self.overlay[row] >= to or promotion.to is Rung.PACKED:
                self.overlay[row], self.overlay_bytes[row] = -1, 0.0


@settings(max_examples=120)
@given(st.data(), ladders, st.floats(-50, 900), st.floats(0, 1500), st.floats(0, 300))
def test_no_cap_is_ever_broken(
    data: st.DataObject, ladder: Ladder, headroom: float, tokens: float, archive: float
) -> None:
    columns = data.draw(recoveries(ladder))
    store = Store(columns, ladder)
    budget = store.total() + headroom
    promotions = plan(columns, ladder, RecoveryCaps(budget, store.total(), tokens, archive))
    order = [Source.ARCHIVE, Source.MODEL, Source.UNPACK]
    assert [p.source for p in promotions] == sorted((p.source for p in promotions), key=order.index)
    for promotion in promotions:
        before = store.total()
        store.apply(promotion)
        assert store.total() - before == pytest.approx(promotion.growth_bytes)
        assert store.total() <= max(budget, before) + 1e-6
        if promotion.source is Source.UNPACK:
            assert store.total() <= 0.8 * budget + 1e-6
    assert sum(p.tokens for p in promotions) <= tokens
    restored = [p.number - 100 for p in promotions if p.source is Source.ARCHIVE]
    assert len(restored) == len(set(restored))
    spent = float(columns.archive_bytes[restored].sum())
    assert spent <= archive
    for row in set(np.flatnonzero(columns.exact_source)) - set(restored):
        # What was left out does not fit: no bytes or no link.
        rest = 1 if Rung.PACKED in store.rungs else 0
        fits = [
            k
            for k in range(rest, int(columns.position[row]))
            if columns.overlay_position[row] < 0
            and columns.size_bytes[row, k] - bytes_of(columns, row) <= budget - store.total()
        ]
        assert not fits or columns.archive_bytes[row] > archive - spent


def bytes_of(columns: RecoveryColumns, row: int) -> float:
    sizes = [*columns.size_bytes[row], columns.stub_bytes[row]]
    return float(sizes[columns.position[row]])
