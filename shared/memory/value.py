"""What an entry is worth: Eq. 8 influence, Eq. 9 coupling, the store's scale and the prior (spec.md 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

GAMMA = 0.95
LAMBDA = 0.3
WINDOW = 100
"""|Q| of Eq. 8: how many recent outcomes an outcome is compared with."""

PAPER_TAU = 0.001
PRIOR_VALUE = 0.05
"""v0 of a store in which nothing is worth anything yet."""

# Fewer positive values than this say too little about their 90th percentile.
_SCALE_FROM = 20
_SCALE_TARGET = 0.5
_SCALE_PERCENTILE = 90.0
_PRIOR_STAGES = 7.0
_PRIOR_FLOOR = 0.1
_PRIOR_RECALLS = 5.0
# An influence that is not positive is believed only from this many grades on: with equal outcomes it is 0.
_TRUSTED_GRADES = 5
# How fast an entry that nobody touches is forgotten, in halvings a turn of the store.
_FADING = 0.3
_MOST_HALVINGS = 8.0
# Outcomes closer together than this are equal: the window is kept to three digits, and rounding alone would
# make an advantage of +-1.
_EQUAL_OUTCOMES = 1e-3
# Influence fades for ever without reaching 0; less than this is not "positive", or 1 / P90 overflows.
_LEAST_POSITIVE = 1e-9
# Skeletal on the tutorial's constants: 1 - r = .35 of the value, bought back for 160 tokens.
_SKELETAL_LOSS = 0.35
_SKELETAL_TOKENS = 160.0


class ValueMode(str, Enum):
    """`product` scales values per store; `paper` leaves them as Eq. 9 gives them."""

    PRODUCT = "product"
    PAPER = "paper"


@dataclass(frozen=True)
class Edges:
    """The dependency graph as CSR: row e's neighbours are neighbour[indptr[e]:indptr[e + 1]]."""

    indptr: NDArray[np.int64]
    neighbour: NDArray[np.int64]
    count: Floats
    """x(e, e') of Eq. 9: co-retrievals plus references."""

    @classmethod
    def symmetric(cls, rows: int, first: ArrayLike, second: ArrayLike, count: ArrayLike) -> Edges:
        """From undirected pairs of rows; repeated pairs add up, self loops and zero counts go."""
        a = np.asarray(first, np.int64)
        b = np.asarray(second, np.int64)
        x = np.asarray(count, np.float64)
        keep = (a != b) & (x > 0)
        a, b, x = a[keep], b[keep], x[keep]
        keys, inverse = np.unique(np.concatenate([a * rows + b, b * rows + a]), return_inverse=True)
        total = np.bincount(inverse.ravel(), weights=np.concatenate([x, x]), minlength=len(keys))
        indptr = np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) * rows)
        return cls(indptr.astype(np.int64), keys % max(rows, 1), total.astype(np.float64))


@dataclass(frozen=True)
class ValueColumns:
    """What the value of n entries is made of, one row an entry.

    influence: raw I of Eq. 8 when it was last written (0 where never graded).
    idle_stages: whole stages since then in which the entry was not retrieved.
    grades: how many outcomes were attributed. recalls: h. age_stages: stages since it was written.
    """

    influence: Floats
    idle_stages: NDArray[np.int32]
    grades: NDArray[np.int32]
    recalls: NDArray[np.int32]
    age_stages: Floats
    edges: Edges
    idle_turns: Floats
    text_bytes: Floats


def weights(scores: ArrayLike, mode: ValueMode = ValueMode.PRODUCT) -> Floats:
    """w of Eq. 8 for the entries returned, sum 1.

    Paper: by score, clipped at 0; uniform when none is positive. Product: by the square of what the score is
    above the weakest hit's, which is about what would come in an entry's place (DECISIONS.md 35).
    """
    if mode is ValueMode.PAPER:
        return _shares(scores)
    score = np.nan_to_num(np.asarray(scores, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    margin = score - score.min(initial=np.inf) if score.size > 1 else np.abs(score)
    return _shares(_shares(margin) ** 2)


def _shares(scores: ArrayLike) -> Floats:
    score = np.nan_to_num(np.asarray(scores, np.float64), nan=0.0, posinf=0.0, neginf=0.0).clip(min=0.0)
    top = score.max(initial=0.0)
    if top <= 0.0:
        return np.full(score.shape, 1.0 / max(score.size, 1))
    # Divided by the largest first: tiny scores would lose their sum, huge ones overflow it.
    share = score / top
    normalised: Floats = share / share.sum()
    return normalised


def advantage(outcome: float, window: Sequence[float]) -> float:
    """Outcome against the last |Q| outcomes (the present one among them), in standard deviations."""
    recent = np.asarray(window, np.float64)[-WINDOW:]
    if recent.size < 2 or float(np.ptp(recent)) <= _EQUAL_OUTCOMES:
        return 0.0
    return float((outcome - recent.mean()) / recent.std())


def influence(
    previous: float, weight: float, outcome: float, window: Sequence[float], gamma: float = GAMMA
) -> float:
    """Eq. 8 for one retrieved entry."""
    return gamma * previous + (1.0 - gamma) * weight * advantage(outcome, window)


def decay(influence: ArrayLike, stages_elapsed: ArrayLike, gamma: float = GAMMA) -> Floats:
    """Influence after whole stages without a retrieval."""
    stages = np.maximum(np.asarray(stages_elapsed, np.float64), 0.0)
    faded: Floats = np.asarray(influence, np.float64) * gamma**stages
    return faded


def coupled(influence: ArrayLike, edges: Edges, lam: float = LAMBDA) -> Floats:
    """Eq. 9: own influence plus lambda times the neighbours' weighted mean; no neighbours, no change."""
    own = np.asarray(influence, np.float64)
    row = np.repeat(np.arange(own.size), np.diff(edges.indptr))
    total = np.bincount(row, weights=edges.count, minlength=own.size)
    inflow = np.bincount(row, weights=edges.count * own[edges.neighbour], minlength=own.size)
    return own + lam * np.divide(inflow, total, out=np.zeros_like(own), where=total > 0)


def scale(coupled_values: ArrayLike) -> float:
    """s: puts the 90th percentile of the positive coupled values at 0.5; 1 while fewer than 20 are."""
    positive = _positive(coupled_values)
    if positive.size < _SCALE_FROM:
        return 1.0
    return _SCALE_TARGET / float(np.percentile(positive, _SCALE_PERCENTILE))


def prior(coupled_values: ArrayLike, recalls: ArrayLike, age_stages: ArrayLike) -> Floats:
    """v0 * (1 + h / (h + 5)), unscaled: the paper mode's, where grades say nothing yet."""
    fading = np.exp(-np.maximum(np.asarray(age_stages, np.float64), 0.0) / _PRIOR_STAGES)
    used = np.maximum(np.asarray(recalls, np.float64), 0.0)
    return (
        _typical_value(coupled_values)
        * np.maximum(fading, _PRIOR_FLOOR)
        * (1.0 + used / (used + _PRIOR_RECALLS))
    )


def coupled_values(columns: ValueColumns, lam: float = LAMBDA) -> Floats:
    """Eq. 9 over the decayed raw influence; what `scale` is fitted on at a stage's end."""
    return coupled(decay(columns.influence, columns.idle_stages), columns.edges, lam)


def values(
    columns: ValueColumns,
    mode: ValueMode = ValueMode.PRODUCT,
    *,
    factor: float | None = None,
    lam: float = LAMBDA,
) -> NDArray[np.float32]:
    """The v of Eq. 6. `factor` is the scale fitted at the last stage's end; None fits it now.

    Product: what the entry may be expected to serve, and what it has been seen to serve on top of that.
    """
    tilde = coupled_values(columns, lam)
    if mode is ValueMode.PAPER:
        return _as_written(columns, tilde).astype(np.float32)
    s = scale(tilde) if factor is None else factor
    believed = np.where(tilde < 0, _TRUSTED_GRADES / (_TRUSTED_GRADES + columns.grades), 1.0)
    return (s * (expected(columns, tilde) * believed + np.maximum(tilde, 0.0))).astype(np.float32)


def expected(columns: ValueColumns, tilde: ArrayLike) -> Floats:
    """Unscaled: what an entry will serve, before grades say so (DECISIONS.md 35).

    As much as it was recalled, less the longer it was not touched, more the longer its text is: then equal
    expectations cost the same a byte, and the front takes of each entry what it can spare.
    """
    recency = np.exp2(-np.minimum(_FADING * np.maximum(columns.idle_turns, 0.0), _MOST_HALVINGS))
    size = np.maximum(columns.text_bytes, 1.0)
    typical = float(np.median(size)) if size.size else 1.0
    recalled: Floats = 1.0 + np.maximum(columns.recalls, 0).astype(np.float64)
    return _typical_value(tilde) * recalled * recency * size / typical


def _as_written(columns: ValueColumns, tilde: Floats) -> Floats:
    """Eq. 9 as it is, and a prior where there are no grades: without one nothing new could stay."""
    unproven = (columns.grades == 0) | ((columns.influence <= 0) & (columns.grades < _TRUSTED_GRADES))
    worth = np.where(unproven, prior(tilde, columns.recalls, columns.age_stages), np.maximum(tilde, 0.0))
    disproven = (columns.influence < 0) & (columns.grades >= _TRUSTED_GRADES)
    return np.where(disproven, 0.0, worth)


def default_tau(values: ArrayLike, mode: ValueMode = ValueMode.PRODUCT) -> float:
    """tau until `bench calibrate` has fitted it: skeletal tokens weigh as skeletal loss at the median."""
    if mode is ValueMode.PAPER:
        return PAPER_TAU
    value = np.asarray(values, np.float64)
    median = float(np.median(value)) if value.size else PRIOR_VALUE
    return _SKELETAL_LOSS * median / _SKELETAL_TOKENS


def _typical_value(coupled_values: ArrayLike) -> float:
    positive = _positive(coupled_values)
    return float(np.median(positive)) if positive.size else PRIOR_VALUE


def _positive(coupled_values: ArrayLike) -> Floats:
    value = np.asarray(coupled_values, np.float64)
    return value[value > _LEAST_POSITIVE]
