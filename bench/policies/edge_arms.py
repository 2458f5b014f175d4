"""CrystalMem's rows of the tables and the ablations: each is a configuration of the edge agent, no code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from bench.policies.edge_regen import at_hand
from bench.policies.edge_signals import RandomInfluence, recency_influence
from edge_agent.valuation import Signal
from shared.errors import Code, InputError
from shared.memory import energy, schedules
from shared.memory.crystallize import Moves
from shared.memory.model import SweepColumns, SweepPlan

Witness = Callable[[SweepColumns, float, float, SweepPlan], None]
"""(columns, tau, budget of the rows, what was planned)."""


@dataclass(frozen=True)
class EdgeSpec:
    """What an arm's edge agent is configured with.

    generator: who drafts ("" = nobody; see edge_regen.KINDS). archive: a real hub keeps dropped layers.
    gate: False admits every draft. moves, signal: None = CrystalMem's own. witness: sees every plan.
    """

    ladder: str = "product"
    valuation: Literal["scaled", "paper"] = "scaled"
    coupling: float = 0.3
    rho: float = 0.10
    eviction: Literal["last_resort", "priced"] = "priced"
    generator: str = ""
    archive: bool = False
    gate: bool = True
    moves: Moves | None = None
    signal: Signal | None = None
    witness: Witness | None = None


# The paper's method: its ladder and its raw values, drafts by the model at hand, no archive.
_PAPERS = EdgeSpec(ladder="paper", valuation="paper", eviction="last_resort", generator="at_hand")
# What we ship, alone on its board: nothing is rebuilt that cannot be rebuilt exactly.
_OURS = EdgeSpec()
_INVENTING = replace(_PAPERS, generator="hallucinating")


def spec(name: str, seed: int) -> EdgeSpec:
    """The configuration of a row; InputError(BAD_REQUEST) for a name that is none of these."""
    table = {
        "crystalmem": _PAPERS,
        "crystalmem_lite": replace(_PAPERS, coupling=0.0),
        "paper": replace(_PAPERS, valuation="scaled"),
        "paper_archive": replace(_PAPERS, valuation="scaled", archive=True),
        "product": _OURS,
        "product_archive": replace(_OURS, archive=True),
        # Table IV, around the paper's method.
        "ablate:size_greedy": replace(_PAPERS, moves=schedules.size_greedy),
        "ablate:random_schedule": replace(_PAPERS, moves=schedules.Shuffled(seed)),
        "ablate:recency_influence": replace(_PAPERS, signal=recency_influence),
        "ablate:random_influence": replace(_PAPERS, signal=RandomInfluence(seed)),
        "ablate:no_coupling": replace(_PAPERS, coupling=0.0),
        # Only a regenerator that makes things up shows what the gate is for: with it, and without it.
        "ablate:hallucinating": _INVENTING,
        "ablate:no_gate": replace(_INVENTING, gate=False),
        "ablate:rho_0": replace(_PAPERS, rho=0.0),
        "ablate:rho_5": replace(_PAPERS, rho=0.05),
        "ablate:rho_20": replace(_PAPERS, rho=0.20),
        "ablate:k2": replace(_PAPERS, ladder="k2"),
        "ablate:k3": replace(_PAPERS, ladder="k3"),
        "ablate:k6": replace(_PAPERS, ladder="k6"),
        "ablate:exact": replace(_PAPERS, generator="exact", rho=1.0),
        # Ours, around what we ship.
        "ablate:no_packed": replace(_OURS, ladder="unpacked"),
        "ablate:last_resort": replace(_OURS, eviction="last_resort"),
        "ablate:paper_values": replace(_OURS, valuation="paper"),
        "ablate:paper_utilities": replace(_OURS, ladder="uncalibrated"),
        "ablate:rung_by_rung": replace(_OURS, moves=schedules.rung_by_rung),
        "ablate:extractive": replace(_OURS, generator="extractive"),
    }
    if name not in table:
        raise InputError(Code.BAD_REQUEST, "no such policy", name=name, hint=f"One of: {', '.join(table)}")
    found = table[name]
    return replace(found, generator=at_hand()) if found.generator == "at_hand" else found


def moves_of(found: EdgeSpec) -> Moves:
    """The schedule of an arm: the hulls of Eq. 7 unless it names another."""
    return energy.hull if found.moves is None else found.moves
