"""The columns that Recrystallize looks at: everything that could rise, and which source exists now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edge_agent.columns import Pricing, positions
from edge_agent.estimates import Estimates
from edge_agent.plane import ENTRY_ROW_BYTES, OVERLAY_ROW_BYTES, STUB_BYTES, Plane, beside_body_bytes
from edge_agent.table import NO_OVERLAY, STUB, Flag, Structured, recalls_last_stage
from shared.memory.model import Ladder, Rung
from shared.memory.recrystallize import RecoveryColumns

# An evicted entry's size is known to the hub only; until it is fetched it counts as its kind's mean.
_UNKNOWN_TEXT_BYTES = 1024.0
# Model text is mostly words: a token is about so many bytes.
_BYTES_PER_TOKEN = 4.0


@dataclass(frozen=True)
class Sources:
    """Which sources answer now, and what is backed off from them."""

    archive: bool
    model: bool
    backed_off: frozenset[int] = frozenset()
    absent: frozenset[int] = frozenset()
    """Entries that the archive was asked for and does not have."""


def recovery_columns(
    plane: Plane, pricing: Pricing, estimates: Estimates, sources: Sources
) -> RecoveryColumns:
    """Live entries ascending by number, then the stubs."""
    live = _live(plane, pricing, estimates, sources)
    if not plane.stubs:
        return live
    gone = _stubs(plane, estimates, sources)
    return RecoveryColumns(
        **{
            name: np.concatenate([getattr(live, name), getattr(gone, name)])
            for name in RecoveryColumns.__dataclass_fields__
        }
    )


def _live(plane: Plane, pricing: Pricing, estimates: Estimates, sources: Sources) -> RecoveryColumns:
    rows = plane.table.rows()
    ladder, facts, heat = plane.ladder, rows["facts"], rows["heat"]
    numbers = rows["number"].astype(np.int64)
    archived = (facts["flags"] & Flag.ARCHIVED) != 0
    text = facts["text_bytes"].astype(np.float64)
    exact = archived & sources.archive & ~_among(numbers, sources.absent)
    beside = beside_body_bytes(rows) + rows["vector_bytes"]
    sizes = _sizes(ladder, facts["kind"], text, estimates, drafted=~exact) + beside[:, None]
    held = positions(ladder, facts["rung"])
    everyone = np.arange(len(rows))
    sizes[everyone, held] = beside + rows["body_bytes"]
    covered = rows["overlay_rung"] != NO_OVERLAY
    damaged = (facts["flags"] & Flag.DAMAGED) != 0
    return RecoveryColumns(
        number=numbers,
        kind=facts["kind"].copy(),
        position=held,
        overlay_position=np.where(covered, positions(ladder, rows["overlay_rung"]), -1).astype(np.int8),
        size_bytes=sizes.astype(np.float32),
        stub_bytes=np.full(len(rows), STUB_BYTES, np.float32),
        overlay_bytes=rows["overlay_bytes"].astype(np.float32),
        value=pricing.values.astype(np.float32),
        recalls_last_stage=recalls_last_stage(heat, plane.journal.meta.stage),
        last_recall=heat["last_recall_event"].astype(np.int64),
        created=facts["created_event"].astype(np.int64),
        id_rank=numbers,
        exact_source=exact,
        model_source=np.full(len(rows), sources.model) & ~damaged & ~_among(numbers, sources.backed_off),
        draft_tokens=_draft_tokens(ladder, text),
        archive_bytes=_link_bytes(plane, facts["kind"], text, estimates),
    )


def _stubs(plane: Plane, estimates: Estimates, sources: Sources) -> RecoveryColumns:
    numbers = np.array(sorted(plane.stubs), np.int64)
    held = np.frombuffer(b"".join(plane.stubs[number] for number in numbers.tolist()), STUB)
    count, ladder = len(numbers), plane.ladder
    text = np.full(count, _mean_text_bytes(plane.table.rows()))
    sizes = _sizes(ladder, held["kind"], text, estimates, drafted=np.zeros(count, np.bool_))
    return RecoveryColumns(
        number=numbers,
        kind=held["kind"].copy(),
        position=np.full(count, len(ladder.rungs), np.int8),
        overlay_position=np.full(count, -1, np.int8),
        size_bytes=(sizes + ENTRY_ROW_BYTES).astype(np.float32),
        stub_bytes=np.full(count, STUB_BYTES, np.float32),
        overlay_bytes=np.zeros(count, np.float32),
        value=held["value"].astype(np.float32),
        recalls_last_stage=np.zeros(count, np.int32),
        last_recall=np.zeros(count, np.int64),
        created=numbers,
        id_rank=numbers,
        exact_source=np.full(count, sources.archive) & ~_among(numbers, sources.absent),
        model_source=np.zeros(count, np.bool_),
        draft_tokens=np.zeros((count, len(ladder.rungs)), np.float32),
        archive_bytes=_link_bytes(plane, held["kind"], text, estimates),
    )


def _sizes(
    ladder: Ladder,
    kinds: NDArray[np.uint8],
    text_bytes: NDArray[np.float64],
    estimates: Estimates,
    *,
    drafted: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Body bytes at every rung; a draft is plain text, so for `drafted` rows a lossy rung is an overlay's."""
    sizes = np.empty((len(kinds), len(ladder.rungs)))
    for k, spec in enumerate(ladder.rungs):
        base = estimates.ratios(kinds, spec.rung) * text_bytes
        overlay = spec.text_fraction * text_bytes + OVERLAY_ROW_BYTES
        if spec.rung is Rung.FULL:
            sizes[:, k] = text_bytes + OVERLAY_ROW_BYTES
        else:
            sizes[:, k] = np.where(drafted & spec.rung.lossy, overlay, base)
    return sizes


def _draft_tokens(ladder: Ladder, text_bytes: NDArray[np.float64]) -> NDArray[np.float32]:
    """A prompt of the residue and its frame, and an answer of the target's length."""
    answer = np.array([spec.text_fraction for spec in ladder.rungs])[None, :] * text_bytes[:, None]
    fallback = max(spec.regeneration_tokens for spec in ladder.rungs)
    return (2 * answer / _BYTES_PER_TOKEN + fallback).astype(np.float32)


def _link_bytes(
    plane: Plane, kinds: NDArray[np.uint8], text_bytes: NDArray[np.float64], estimates: Estimates
) -> NDArray[np.float32]:
    rung = Rung.PACKED if any(spec.rung is Rung.PACKED for spec in plane.ladder.rungs) else Rung.FULL
    ratio = np.minimum(estimates.ratios(kinds, rung), 1.0)
    return np.ceil(ratio * text_bytes).astype(np.float32)


def _mean_text_bytes(rows: Structured) -> float:
    return float(rows["facts"]["text_bytes"].mean()) if len(rows) else _UNKNOWN_TEXT_BYTES


def _among(numbers: NDArray[np.int64], chosen: frozenset[int]) -> NDArray[np.bool_]:
    return np.isin(numbers, np.fromiter(chosen, np.int64, len(chosen)))
