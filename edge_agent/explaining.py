"""Why a memory is on its rung, in numbers and in one sentence. Belongs to the store's thread."""

from __future__ import annotations

import numpy as np

from edge_agent import answers
from edge_agent.entries import StoredEntry
from edge_agent.parts import Parts
from shared.memory.energy import energies
from shared.memory.model import Rung, SweepColumns


def explain(parts: Parts, number: int, link_up: bool) -> answers.Explained:
    """Value, what comes next on the way down at which price, and the way back up."""
    store = parts.store
    entry = store.read(number)
    pricing = parts.valuation.pricing(archive=link_up)
    columns = store.sweep_columns(pricing)
    row = int(np.searchsorted(columns.number, number))
    value = float(columns.value[row])
    moves = _moves(parts, columns, row, pricing.tau)
    cited = any(number in store.plane.graph.references(other) for other in store.table)
    way_back = _way_back(entry, link_up)
    return answers.Explained(
        id=entry.public_id.hex(),
        number=number,
        rung=entry.rung.name.lower(),
        shown_rung=entry.shown_rung.name.lower(),
        summary=_summary(entry, value, bool(columns.guarded[row]), way_back),
        value=value,
        influence=entry.heat.influence,
        grades=entry.heat.grades,
        recalls=entry.heat.recalls,
        recalls_last_stage=entry.heat.recalls_last_stage,
        cited=cited,
        guarded=bool(columns.guarded[row]),
        archived=entry.archived,
        size_bytes=round(entry.size_bytes),
        moves=moves,
        way_back=way_back,
    )


def _moves(parts: Parts, columns: SweepColumns, row: int, tau: float) -> tuple[answers.NextMove, ...]:
    ladder = parts.store.plane.ladder
    eta = energies(columns, ladder, tau)[:, row]
    sizes = columns.size_bytes[row]
    at = int(columns.position[row])
    moves = []
    for to in range(at + 1, len(ladder.rungs)):
        frees = float(sizes[at] - sizes[to])
        if np.isfinite(frees) and frees > 0:
            price = float(eta[to] - eta[at]) / frees
            moves.append(answers.NextMove(ladder.rungs[to].rung.name.lower(), round(frees), price))
    return tuple(moves)


def _summary(entry: StoredEntry, value: float, guarded: bool, way_back: str) -> str:
    shown = entry.shown_rung
    if shown is Rung.FULL and entry.overlay is None:
        state = "It is whole, as plain text"
    elif shown is Rung.PACKED:
        state = "It is whole, packed: a squeeze took its plain text and lost nothing"
    elif entry.overlay is not None:
        state = f"It shows a text that {entry.overlay.model} rebuilt above its {entry.rung.name.lower()} base"
    else:
        state = f"A squeeze left its {shown.name.lower()} spans, because its bytes were among the cheapest"
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
