"""A model's say in an entry's levels: kept before the levels are made, never after. Store's thread."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from edge_agent.choices import choice_bytes
from edge_agent.plane import Plane
from edge_agent.table import NO_LEVELS, Flag, lossy
from shared.errors import Code, PermanentError
from shared.memory.model import Kind
from shared.messages import Layers
from shared.wire import decode_batch

# All choices together, of the budget in force: what they improve must not be what they cost.
CHOICES_SHARE = 0.01


def open_to_choice(plane: Plane, numbers: Collection[int]) -> tuple[int, ...]:
    """Those whose levels are not made: exact, undamaged, no choice yet, no layer sent or acknowledged.

    Layers that wait to be sealed are built then, with the choice that is there by then.
    """
    rows = plane.table.take([number for number in numbers if number in plane.table])
    facts = rows["facts"]
    fresh = (
        ~lossy(facts["rung"])
        & (facts["levelling"] == NO_LEVELS)
        & (facts["flags"] & Flag.DAMAGED == 0)
        & ~plane.choices.among(rows["number"].astype(np.int64))
    )
    flying = _layers_in_flight(plane)
    return tuple(number for number in rows["number"][fresh].tolist() if number not in flying)


def changes_levels(plane: Plane, kind: Kind, text: str, clauses: Collection[int]) -> bool:
    """Whether any lossy rung would hold other text with this choice."""
    codec, chosen = plane.codecs[kind], tuple(sorted(clauses))
    return any(
        codec.render(codec.drop(text, plane.ladder, spec.rung).record)
        != codec.render(codec.drop(text, plane.ladder, spec.rung, chosen).record)
        for spec in plane.ladder.lossy
    )


def room_for_choice(plane: Plane, clauses: Collection[int]) -> bool:
    """Whether one more choice stays within the share of the budget that choices may take."""
    budget = plane.journal.meta.budget_bytes
    return plane.choices.charged_bytes() + choice_bytes(clauses) <= CHOICES_SHARE * budget


def choose(plane: Plane, number: int, clauses: Collection[int]) -> None:
    """Keep a choice for good; PermanentError(LEVELS_FROZEN) once the levels are made or on their way."""
    if number not in open_to_choice(plane, [number]):
        raise PermanentError(
            Code.LEVELS_FROZEN,
            "the entry's levels are made, or its layers are on their way to the hub",
            number=number,
            hint="Nothing was changed; an entry is levelled once",
        )
    with plane.journal.write() as change:
        plane.choices.put(change, number, clauses)


def _layers_in_flight(plane: Plane) -> frozenset[int]:
    body = plane.outbox.in_flight
    if body is None:
        return frozenset()
    return frozenset(delta.number for delta in decode_batch(body).deltas if isinstance(delta, Layers))
