"""Why a memory is on its rung, in numbers and in one sentence. Belongs to the store's thread."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from edge_agent import answers
from edge_agent.entries import StoredEntry
from edge_agent.parts import Parts
from edge_agent.state import SweptMove
from shared.memory.crystallize import competing
from shared.memory.energy import hull
from shared.memory.model import EvictionMode, Rung, SweepColumns


def explain(parts: Parts, number: int, link_up: bool, mode: EvictionMode) -> answers.Explained:
    """Value, what the last sweep did, the hull that the next one would descend, and the way back up."""
    store = parts.store
    entry = store.read(number)
    pricing = parts.valuation.pricing(archive=link_up)
    columns = _one_row(store.sweep_columns(pricing), number)
    value, guarded = float(columns.value[0]), bool(columns.guarded[0])
    swept = parts.state.last_move(number)
    way_back = _way_back(entry, link_up)
    return answers.Explained(
        id=entry.public_id.hex(),
        number=number,
        rung=entry.rung.name.lower(),
        shown_rung=entry.shown_rung.name.lower(),
        summary=_summary(entry, value, guarded, swept, way_back),
        value=value,
        influence=entry.heat.influence,
        grades=entry.heat.grades,
        recalls=entry.heat.recalls,
        recalls_last_stage=entry.heat.recalls_last_stage,
        guarded=guarded,
        exempt=bool(columns.exempt[0]),
        archived=entry.archived,
        size_bytes=round(entry.size_bytes),
        moves=_moves(parts, columns, pricing.tau, mode),
        way_back=way_back,
    )


def _one_row(columns: SweepColumns, number: int) -> SweepColumns:
    row = int(np.searchsorted(columns.number, number))
    return replace(
        columns, **{field.name: getattr(columns, field.name)[row : row + 1] for field in fields(columns)}
    )


def _moves(
    parts: Parts, columns: SweepColumns, tau: float, mode: EvictionMode
) -> tuple[answers.NextMove, ...]:
    """The hull that a sweep descends: its steps in order, at the prices that decide."""
    ladder = parts.store.plane.ladder
    evictable = competing(columns) if mode is EvictionMode.PRICED else None
    steps = hull(columns, ladder, tau, guarded=columns.guarded, evictable=evictable)
    rungs = [*(spec.rung for spec in ladder.rungs[1:]), Rung.EVICTED]
    return tuple(
        answers.NextMove(rung.name.lower(), round(freed), price)
        for rung, freed, price in zip(
            rungs, steps.freed_bytes[:, 0].tolist(), steps.price[:, 0].tolist(), strict=False
        )
        if freed > 0 and np.isfinite(price)
    )


def _summary(entry: StoredEntry, value: float, guarded: bool, swept: SweptMove | None, way_back: str) -> str:
    shown = entry.shown_rung
    if shown is Rung.FULL and entry.overlay is None:
        state = "It is whole, as plain text"
    elif shown is Rung.PACKED:
        state = "It is whole, packed: every byte is there"
    elif entry.overlay is not None:
        state = f"It shows a text that {entry.overlay.model} rebuilt above its {entry.rung.name.lower()} base"
    else:
        state = f"It holds its {shown.name.lower()} spans"
    if swept is not None and swept.to is entry.rung:
        state += (
            f"; the squeeze of stage {swept.stage} took it down from {swept.origin.name.lower()},"
            f" its bytes being among the cheapest up to {swept.price:.3g} a byte"
        )
    grades = entry.heat.grades
    worth = f"graded {grades} times" if grades else "never graded, so its value is the store's prior"
    guard = "; an entry in use cites it, so it is kept above trace" if guarded else ""
    return f"{state} (value {value:.4f}: {worth}; recalled {entry.heat.recalls} times{guard}). {way_back}."


def _way_back(entry: StoredEntry, link_up: bool) -> str:
    if not entry.rung.lossy:
        return "Nothing has to come back"
    if entry.archived:
        hub = "" if link_up else ", once the link is up"
        return f"The hub holds every layer: it comes back bit for bit when the budget allows{hub}"
    return "The hub does not hold its layers: only a model's draft that passes the gate could lift it"
