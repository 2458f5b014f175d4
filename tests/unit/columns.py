"""Columns for the tests of the maths: small stores by hand, and strategies for random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from shared.memory.model import LADDERS, Kind, Ladder, SweepColumns
from shared.memory.recrystallize import RecoveryColumns

PRODUCT = LADDERS["product"]
PAPER = LADDERS["paper"]
NOT_OFFERED = float("inf")


def sweep_columns(sizes: Sequence[Sequence[float]], **given: Any) -> SweepColumns:
    """Rows at FULL with value .5 and the ladder's own tokens; `given` replaces whole columns."""
    n = len(sizes)
    columns: dict[str, Any] = {
        "number": np.arange(n) + 100,
        "kind": np.full(n, Kind.KNOWLEDGE),
        "position": np.zeros(n),
        "size_bytes": sizes,
        "tokens": np.zeros(np.shape(sizes)),
        "value": np.full(n, 0.5),
        "recalls_last_stage": np.zeros(n),
        "last_recall": np.zeros(n),
        "created": np.arange(n),
        "id_rank": np.arange(n),
        "guarded": np.zeros(n),
        "exempt": np.zeros(n),
        "protected": np.zeros(n),
        "stub_bytes": np.zeros(n),
    } | given
    return SweepColumns(**_typed(columns, n, len(sizes[0]) if n else 5))


def recovery_columns(
    sizes: Sequence[Sequence[float]], position: Sequence[int], **given: Any
) -> RecoveryColumns:
    """Rows without any source, value .5, draft tokens 100, archive bytes 10."""
    n = len(sizes)
    columns: dict[str, Any] = {
        "number": np.arange(n) + 100,
        "kind": np.full(n, Kind.KNOWLEDGE),
        "position": position,
        "overlay_position": np.full(n, -1),
        "size_bytes": sizes,
        "stub_bytes": np.full(n, 20.0),
        "overlay_bytes": np.zeros(n),
        "value": np.full(n, 0.5),
        "recalls_last_stage": np.zeros(n),
        "last_recall": np.zeros(n),
        "created": np.arange(n),
        "id_rank": np.arange(n),
        "exact_source": np.zeros(n),
        "model_source": np.zeros(n),
        "draft_tokens": np.full(np.shape(sizes), 100.0),
        "archive_bytes": np.full(n, 10.0),
    } | given
    return RecoveryColumns(**_typed(columns, n, len(sizes[0]) if n else 5))


_TYPES = {
    np.int64: ("number", "last_recall", "created", "id_rank"),
    np.uint8: ("kind",),
    np.int8: ("position", "overlay_position"),
    np.int32: ("recalls_last_stage",),
    np.bool_: ("guarded", "exempt", "protected", "exact_source", "model_source"),
}


def _typed(columns: dict[str, Any], rows: int, rungs: int) -> dict[str, Any]:
    types = {name: dtype for dtype, names in _TYPES.items() for name in names}
    arrays: dict[str, Any] = {
        name: np.asarray(column, types.get(name, np.float32)) for name, column in columns.items()
    }
    for name in ("size_bytes", "tokens", "draft_tokens"):
        if name in arrays:
            arrays[name] = arrays[name].reshape(rows, rungs)
    return arrays


@st.composite
def sizes(draw: st.DrawFn, ladder: Ladder, position: int) -> list[float]:
    """Any positive sizes, in no order, some rungs not offered, the present one always."""
    row = draw(st.lists(st.integers(1, 400), min_size=len(ladder.rungs), max_size=len(ladder.rungs)))
    if draw(st.booleans()):
        row.sort(reverse=True)
    absent = draw(st.sets(st.integers(0, len(row) - 1), max_size=2)) - {position}
    return [NOT_OFFERED if k in absent else float(size) for k, size in enumerate(row)]


@st.composite
def stores(draw: st.DrawFn, ladder: Ladder, *, most: int = 6, marks: bool = True) -> SweepColumns:
    """Random stores: prices not convex, many ties, tokens nondecreasing down the ladder.

    `marks` adds guarded, exempt and acked rows.
    """
    n = draw(st.integers(1, most))
    rungs = len(ladder.rungs)
    position = [draw(st.integers(0, rungs - 1)) for _ in range(n)]

    def column(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(strategy, min_size=n, max_size=n))

    flags = st.booleans() if marks else st.just(False)
    exempt, protected = column(flags), column(flags)
    return sweep_columns(
        [draw(sizes(ladder, at)) for at in position],
        position=position,
        tokens=[
            sorted(draw(st.lists(st.sampled_from([0, 0, 32, 64, 160, 320]), min_size=rungs, max_size=rungs)))
            for _ in range(n)
        ],
        value=column(st.sampled_from([0.0, 0.0, 0.125, 0.25, 0.5, 2.0])),
        recalls_last_stage=column(st.integers(0, 2)),
        last_recall=column(st.integers(0, 2)),
        created=column(st.integers(-1, 1)),
        id_rank=draw(st.permutations(range(n))),
        guarded=column(flags),
        exempt=[a or b for a, b in zip(exempt, protected, strict=True)],
        protected=protected,
        stub_bytes=column(st.integers(0, 24) if marks else st.just(0)),
    )


def bytes_at(columns: SweepColumns, position: Sequence[int] | np.ndarray[Any, Any]) -> float:
    """What the rows come to at these positions; one past the last rung = evicted."""
    total = 0.0
    for row, at in enumerate(position):
        if at < columns.size_bytes.shape[1]:
            total += float(columns.size_bytes[row, at])
        else:
            total += float(columns.stub_bytes[row])
    return total
