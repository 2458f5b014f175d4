"""The columns that decisions look at: SweepColumns and ValueColumns from the rows in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edge_agent.estimates import Estimates
from edge_agent.plane import (
    STUB_BYTES,
    Plane,
    beside_body_bytes,
    keeps_vector,
    size_bytes,
    text_row_bytes,
)
from edge_agent.table import NO_LEVELS, NO_OVERLAY, Flag, Structured, recalls_last_stage, shown_rungs
from shared.memory.energy import offered_sizes
from shared.memory.model import Ladder, MemoryClass, Rung, SweepColumns
from shared.memory.value import ValueColumns

_PROTECTED = (MemoryClass.RULE, MemoryClass.DECISION)


@dataclass(frozen=True)
class Pricing:
    """What a sweep is told about worth: v of Eq. 6 for the live entries in ascending number order, and tau.

    `archive`: the hub can be asked, so an archived entry is bought back for no tokens.
    """

    values: NDArray[np.float32]
    tau: float
    archive: bool = False


def sweep_columns(plane: Plane, pricing: Pricing, estimates: Estimates) -> SweepColumns:
    """One row a live entry, ascending by number."""
    rows = plane.table.rows()
    stage = plane.journal.meta.stage
    facts, heat = rows["facts"], rows["heat"]
    numbers = rows["number"].astype(np.int64)
    position = positions(plane.ladder, shown_rungs(rows))
    last_stage = recalls_last_stage(heat, stage)
    archived = (facts["flags"] & Flag.ARCHIVED) != 0
    exact = facts["rung"] <= Rung.PACKED
    protected = (facts["flags"] & Flag.CORE != 0) | np.isin(facts["memory_class"], _PROTECTED)
    everything = np.ones(len(rows), np.bool_)
    return SweepColumns(
        number=numbers,
        kind=facts["kind"].copy(),
        position=position,
        size_bytes=_sizes(plane, rows, position, estimates),
        tokens=_tokens(plane.ladder, archived & pricing.archive),
        value=pricing.values.astype(np.float32),
        recalls_last_stage=last_stage,
        last_recall=heat["last_recall_event"].astype(np.int64),
        created=facts["created_event"].astype(np.int64),
        id_rank=_id_ranks(rows),
        guarded=plane.graph.cited_by(numbers, exact & (last_stage > 0)),
        exempt=(facts["created_stage"].astype(np.int64) >= stage - 1)
        | protected
        | plane.graph.cited_by(numbers, everything),
        protected=protected,
        stub_bytes=np.where(archived, np.float32(STUB_BYTES), np.float32(0.0)),
    )


def packed_bytes(plane: Plane, estimates: Estimates) -> float:
    """All content packed, dictionaries included: what a lossless squeeze would come to."""
    if Rung.PACKED not in [spec.rung for spec in plane.ladder.rungs]:
        return 0.0
    facts = plane.table.rows()["facts"]
    ratio = estimates.ratios(facts["kind"], Rung.PACKED)
    return float((ratio * facts["text_bytes"]).sum()) + plane.dictionaries.charged_bytes()


def value_columns(plane: Plane) -> ValueColumns:
    """What Eq. 8 and 9 are computed from, in the same order as sweep_columns."""
    rows = plane.table.rows()
    stage = plane.journal.meta.stage
    heat = rows["heat"]
    graded = heat["grades"] > 0
    last_touch = np.maximum(rows["facts"]["created_event"], heat["last_recall_event"])
    touched = np.maximum(heat["influence_stage"], heat["recall_stage"]).astype(np.int64)
    return ValueColumns(
        influence=heat["influence"].astype(np.float64),
        idle_stages=np.where(graded, np.maximum(stage - 1 - touched, 0), 0).astype(np.int32),
        grades=heat["grades"].astype(np.int32),
        recalls=heat["recalls"].astype(np.int32),
        age_stages=(stage - rows["facts"]["created_stage"].astype(np.float64)),
        edges=plane.graph.edges(rows["number"].astype(np.int64)),
        idle_turns=(plane.journal.meta.event - last_touch.astype(np.float64)) / max(len(rows), 1),
        text_bytes=rows["facts"]["text_bytes"].astype(np.float64),
    )


def _sizes(
    plane: Plane, rows: Structured, position: NDArray[np.int8], estimates: Estimates
) -> NDArray[np.float32]:
    """mu at every rung: measured where the entry stands, estimated below, inf where it cannot go."""
    ladder, facts = plane.ladder, rows["facts"]
    bare = beside_body_bytes(rows)
    sizes = np.full((len(rows), len(ladder.rungs)), np.inf, np.float64)
    held = positions(ladder, facts["rung"])
    movable = (facts["flags"] & Flag.DAMAGED) == 0
    lowerable = movable & _lowerable(plane, rows)
    for k, spec in enumerate(ladder.rungs):
        beside = bare + rows["vector_bytes"] * keeps_vector(spec.rung)
        if spec.rung is Rung.FULL:
            sizes[:, k] = beside + text_row_bytes(facts["text_bytes"])
            continue
        allowed = (lowerable if spec.rung.lossy else movable) & (held < k)
        body = estimates.ratios(facts["kind"], spec.rung) * facts["text_bytes"]
        sizes[:, k] = np.where(allowed | (spec.rung is Rung.PACKED), beside + body, np.inf)
    everyone = np.arange(len(rows))
    sizes[everyone, held] = bare + rows["vector_bytes"] + rows["body_bytes"]
    covered = rows["overlay_rung"] != NO_OVERLAY
    for k in range(len(ladder.rungs)):
        sizes[covered & (position < k) & (held > k), k] = np.inf
    sizes[everyone[covered], position[covered]] = size_bytes(rows)[covered]
    offered = offered_sizes(sizes.astype(np.float32), ladder, position)
    # A damaged entry stays where it is until something can restore it.
    stuck = ~movable
    offered[stuck] = np.where(np.arange(len(ladder.rungs)) == position[stuck][:, None], sizes[stuck], np.inf)
    # The base under an overlay is always offered, whatever the ladder's least saving says.
    offered[everyone[covered], held[covered]] = np.ceil(sizes[everyone[covered], held[covered]])
    return offered


def _lowerable(plane: Plane, rows: Structured) -> NDArray[np.bool_]:
    """Rows that may go to a lossy rung: their kind has a codec, and frozen levels are its own."""
    facts = rows["facts"]
    able = np.zeros(len(rows), np.bool_)
    for kind in plane.codecs:
        frozen = (facts["flags"] & Flag.ARCHIVED != 0) & (facts["rung"] <= Rung.PACKED)
        own = plane.levellings(rows["number"], kind)
        foreign = (facts["levelling"] != NO_LEVELS) & (facts["levelling"] != own)
        able |= (facts["kind"] == kind) & ~(frozen & foreign)
    return able


def _tokens(ladder: Ladder, free: NDArray[np.bool_]) -> NDArray[np.float32]:
    """c of Eq. 6: the ladder's fallback, nothing where an exact source exists now."""
    price = np.array([spec.regeneration_tokens for spec in ladder.rungs], np.float32)
    return np.where(free[:, None], np.float32(0.0), price[None, :]).astype(np.float32)


def positions(ladder: Ladder, rungs: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Ladder positions of rung codes; -1 where the ladder lacks one."""
    where = np.full(256, -1, np.int8)
    for k, spec in enumerate(ladder.rungs):
        where[spec.rung] = k
    return where[rungs]


def _id_ranks(rows: Structured) -> NDArray[np.int64]:
    """Order of the public ids, as bytes."""
    halves = np.frombuffer(rows["id"].tobytes(), ">u8").reshape(-1, 2)
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    ranks = np.empty(len(rows), np.int64)
    ranks[order] = np.arange(len(rows))
    return ranks
