"""The vocabulary of the memory plane: kinds, rungs, ladders, columns and plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum

import numpy as np
from numpy.typing import NDArray


class Kind(IntEnum):
    """What an entry is. One enum for store, wire and door."""

    MESSAGE = 0
    MEMORY = 1
    EPISODE = 2
    SKILL = 3
    WORKFLOW = 4
    MOTION = 5
    KNOWLEDGE = 6
    ASSET = 7


class MemoryClass(IntEnum):
    """Class of a `memory`; NONE for every other kind."""

    NONE = 0
    FACT = 1
    PREFERENCE = 2
    RULE = 3
    DECISION = 4
    PERSON = 5
    LESSON = 6
    EVENT = 7


class Rung(IntEnum):
    """Fidelity state, deepest last. CONDENSED and OUTLINE exist only on the six-rung ablation ladder."""

    FULL = 0
    PACKED = 1
    CONDENSED = 2
    COMPRESSED = 3
    OUTLINE = 4
    SKELETAL = 5
    TRACE = 6
    EVICTED = 7

    @property
    def lossy(self) -> bool:
        """True where the base is a subset of the original's spans."""
        return Rung.CONDENSED <= self <= Rung.TRACE


class Provenance(str, Enum):
    """Where the text that a hit shows came from."""

    ORIGINAL = "original"
    EXACT = "exact"
    REGENERATED = "regenerated"


@dataclass(frozen=True)
class RungSpec:
    """One rung of a ladder.

    text_fraction: byte aim of the rung as a share of the original's text.
    utility: r of Eq. 6. regeneration_tokens: fallback c of Eq. 6 where no source is priced.
    coded: whether bytes of this rung are losslessly packed.
    """

    rung: Rung
    text_fraction: float
    utility: float
    regeneration_tokens: float
    coded: bool


@dataclass(frozen=True)
class Ladder:
    """The ordered rungs in use, FULL first. Every report names the ladder that ran."""

    name: str
    number: int
    rungs: tuple[RungSpec, ...]
    min_saving: float
    """A lossy rung is offered only where it is this share smaller than the packed form (0 = always)."""
    calibrated: bool = False
    """r as measured by kind (shared.memory.calibrated) in the place of the rungs' own."""

    def index(self, rung: Rung) -> int:
        """Position of `rung` on this ladder; KeyError when the ladder lacks it."""
        for position, spec in enumerate(self.rungs):
            if spec.rung is rung:
                return position
        raise KeyError(f"ladder {self.name} has no rung {rung.name}")

    @property
    def lossy(self) -> tuple[RungSpec, ...]:
        """The lossy rungs, shallowest first."""
        return tuple(spec for spec in self.rungs if spec.rung.lossy)


def _ladder(
    name: str,
    number: int,
    min_saving: float,
    *rows: tuple[Rung, float, float, float, bool],
    calibrated: bool = False,
) -> Ladder:
    return Ladder(name, number, tuple(RungSpec(*row) for row in rows), min_saving, calibrated)


# Token fallbacks 64/160/320 are the tutorial's constants (spec.md 9); K = 6 interpolates.
LADDERS: dict[str, Ladder] = {
    ladder.name: ladder
    for ladder in (
        _ladder(
            "product",
            1,
            0.15,
            (Rung.FULL, 1.0, 1.0, 0.0, False),
            (Rung.PACKED, 1.0, 1.0, 0.0, True),
            (Rung.COMPRESSED, 0.50, 0.85, 64.0, True),
            (Rung.SKELETAL, 0.25, 0.65, 160.0, True),
            (Rung.TRACE, 0.08, 0.40, 320.0, True),
            calibrated=True,
        ),
        _ladder(
            "paper",
            2,
            0.0,
            (Rung.FULL, 1.0, 1.0, 0.0, False),
            (Rung.COMPRESSED, 0.50, 0.85, 64.0, False),
            (Rung.SKELETAL, 0.25, 0.65, 160.0, False),
            (Rung.TRACE, 0.08, 0.40, 320.0, False),
        ),
        _ladder(
            "k2",
            3,
            0.0,
            (Rung.FULL, 1.0, 1.0, 0.0, False),
            (Rung.TRACE, 0.08, 0.40, 320.0, False),
        ),
        _ladder(
            "k3",
            4,
            0.0,
            (Rung.FULL, 1.0, 1.0, 0.0, False),
            (Rung.COMPRESSED, 0.50, 0.85, 64.0, False),
            (Rung.TRACE, 0.08, 0.40, 320.0, False),
        ),
        _ladder(
            "k6",
            5,
            0.0,
            (Rung.FULL, 1.0, 1.0, 0.0, False),
            (Rung.CONDENSED, 0.70, 0.93, 32.0, False),
            (Rung.COMPRESSED, 0.50, 0.85, 64.0, False),
            (Rung.OUTLINE, 0.35, 0.75, 110.0, False),
            (Rung.SKELETAL, 0.25, 0.65, 160.0, False),
            (Rung.TRACE, 0.08, 0.40, 320.0, False),
        ),
        # What the product's ladder is without its lossless rung, for comparison.
        _ladder(
            "unpacked",
            8,
            0.0,
            (Rung.FULL, 1.0, 1.0, 0.0, False),
            (Rung.COMPRESSED, 0.50, 0.85, 64.0, True),
            (Rung.SKELETAL, 0.25, 0.65, 160.0, True),
            (Rung.TRACE, 0.08, 0.40, 320.0, True),
            calibrated=True,
        ),
        # The product's with the paper's r for every kind, for comparison.
        _ladder(
            "uncalibrated",
            9,
            0.15,
            (Rung.FULL, 1.0, 1.0, 0.0, False),
            (Rung.PACKED, 1.0, 1.0, 0.0, True),
            (Rung.COMPRESSED, 0.50, 0.85, 64.0, True),
            (Rung.SKELETAL, 0.25, 0.65, 160.0, True),
            (Rung.TRACE, 0.08, 0.40, 320.0, True),
        ),
        # Binary arms: an entry is kept verbatim, or kept packed, or gone.
        _ladder("verbatim", 6, 0.0, (Rung.FULL, 1.0, 1.0, 0.0, False)),
        _ladder(
            "packed",
            7,
            0.0,
            (Rung.FULL, 1.0, 1.0, 0.0, False),
            (Rung.PACKED, 1.0, 1.0, 0.0, True),
        ),
    )
}


@dataclass(frozen=True)
class SweepColumns:
    """Everything a Crystallize decision looks at, one row an entry (n rows, R rungs of the ladder).

    kind: Kind, for r of Eq. 6.
    size_bytes[i, k]: mu of entry i at ladder position k; inf where the rung is not offered.
    tokens[i, k]: c of Eq. 6, the cheapest source that exists now for buying entry i back from k.
    stub_bytes: what an eviction leaves of entry i (0 where it leaves nothing).
    exempt: evicted last. protected: evicted by price never, by last resort like the others.
    """

    number: NDArray[np.int64]
    kind: NDArray[np.uint8]
    position: NDArray[np.int8]
    size_bytes: NDArray[np.float32]
    tokens: NDArray[np.float32]
    value: NDArray[np.float32]
    recalls_last_stage: NDArray[np.int32]
    last_recall: NDArray[np.int64]
    created: NDArray[np.int64]
    id_rank: NDArray[np.int64]
    guarded: NDArray[np.bool_]
    exempt: NDArray[np.bool_]
    protected: NDArray[np.bool_]
    stub_bytes: NDArray[np.float32]


class EvictionMode(str, Enum):
    """When eviction may compete (spec.md 5)."""

    LAST_RESORT = "last_resort"
    PRICED = "priced"


@dataclass(frozen=True)
class Move:
    """One entry's move in a plan. `to` EVICTED with stub_bytes > 0 leaves a stub."""

    number: int
    origin: Rung
    to: Rung
    price: float


@dataclass(frozen=True)
class SweepPlan:
    """What Crystallize decided: moves in storage-independent price order, and what they come to."""

    moves: tuple[Move, ...]
    water_level: float
    size_before_bytes: float
    size_after_bytes: float
    feasible: bool
    guard_yielded: int = 0
    details: dict[str, float] = field(default_factory=dict)


class Source(str, Enum):
    """Regenerators, cheapest first."""

    UNPACK = "unpack"
    ARCHIVE = "archive"
    MODEL = "model"


@dataclass(frozen=True)
class Promotion:
    """One entry's step up in a recovery plan."""

    number: int
    origin: Rung
    to: Rung
    source: Source
    growth_bytes: float
    tokens: float
