"""What the store takes and gives: entries, overlays, stubs and the byte account, as frozen structs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from shared.memory.model import Kind, MemoryClass, Provenance, Rung
from shared.ports import ArchivedEntry


class ArchiveMode(str, Enum):
    """What the hub may hold beyond residues (spec.md 5)."""

    NEVER = "never"
    DEMOTED = "demoted"
    ALWAYS = "always"


class EvictionReason(str, Enum):
    """Why an entry went; closed, and on every eviction event."""

    BUDGET = "budget"
    PRICED = "priced"
    POLICY = "policy"
    FORGOTTEN = "forgotten"
    INTERNALISED = "internalised"


@dataclass(frozen=True)
class NewEntry:
    """One thing to remember; `public_id` and `created_wall_ns` are made up where they are not given."""

    text: str
    kind: Kind = Kind.MEMORY
    memory_class: MemoryClass = MemoryClass.NONE
    references: tuple[int, ...] = ()
    public_id: bytes | None = None
    created_wall_ns: int | None = None
    core: bool = False


@dataclass(frozen=True)
class Overlay:
    """An admitted draft above the exact base."""

    rung: Rung
    text: str
    model: str
    created_wall_ns: int


@dataclass(frozen=True)
class Heat:
    """What recalls and outcomes left on an entry."""

    influence: float = 0.0
    influence_stage: int = 0
    grades: int = 0
    recalls: int = 0
    recalls_this_stage: int = 0
    recalls_last_stage: int = 0
    last_recall_event: int = 0


@dataclass(frozen=True)
class StoredEntry:
    """One entry: `text` is what recall shows, `base_text` what is exact, `record` a lossy base's bytes."""

    number: int
    public_id: bytes
    kind: Kind
    memory_class: MemoryClass
    version: int
    rung: Rung
    overlay: Overlay | None
    text: str
    base_text: str
    record: bytes
    provenance: Provenance
    digest: bytes
    base_digest: bytes
    text_bytes: int
    size_bytes: float
    created_wall_ns: int
    created_stage: int
    levelling: int
    archived: bool
    core: bool
    references: tuple[int, ...]
    heat: Heat

    @property
    def shown_rung(self) -> Rung:
        """The rung that recall shows: the overlay's where there is one."""
        return self.overlay.rung if self.overlay is not None else self.rung


@dataclass(frozen=True)
class Stub:
    """What is left of an evicted entry whose every layer the hub acknowledged."""

    number: int
    version: int
    kind: Kind
    memory_class: MemoryClass
    digest_prefix: bytes
    value: float


@dataclass(frozen=True)
class EvictedEntry:
    """One eviction, for the audit."""

    number: int
    public_id: bytes
    kind: Kind
    memory_class: MemoryClass
    value: float
    reason: EvictionReason
    stub: bool


@dataclass(frozen=True)
class OpenRecall:
    """A recall that may still be graded: (number, weight) of its hits."""

    recall_id: bytes
    created_wall_ns: int
    hits: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Usage:
    """The byte account. logical = entries + dead block bytes + shared; disk = sum of files under memory/."""

    logical_bytes: float
    shared_bytes: float
    disk_bytes: int
    empty_bytes: int
    floor_bytes: float
    budget_bytes: int
    provision_bytes: int
    packed_bytes: float
    entries: int
    stubs: int
    rungs: Mapping[Rung, int] = field(default_factory=dict)
    overlays: int = 0

    @property
    def phi(self) -> float:
        """Measured factor between disk (less an empty store) and the logical account."""
        return (
            max(self.disk_bytes - self.empty_bytes, 0) / self.logical_bytes if self.logical_bytes > 0 else 1.0
        )

    @property
    def holds(self) -> bool:
        """Both budgets: logical, and physical with the allowance of an empty store."""
        return (
            self.logical_bytes <= self.budget_bytes
            and self.disk_bytes <= self.budget_bytes + self.empty_bytes
        )


@dataclass(frozen=True)
class Moved:
    """One move that was applied."""

    number: int
    origin: Rung
    to: Rung


@dataclass(frozen=True)
class Applied:
    """What a chunk did. lost_exact: demoted before the hub had their layers. damaged: left as they are."""

    moved: tuple[Moved, ...] = ()
    evicted: tuple[EvictedEntry, ...] = ()
    lost_exact: tuple[int, ...] = ()
    damaged: tuple[int, ...] = ()


@dataclass(frozen=True)
class ExactText:
    """A verified-to-be original: of a live lossy entry, or (with `archived`) of an evicted one."""

    number: int
    text: str
    archived: ArchivedEntry | None = None


@dataclass(frozen=True)
class StageTally:
    """What a stage saw: graded outcomes, their sum, and serving tokens (n of Eq. 10)."""

    stage: int
    grades: int
    outcome_sum: float
    tokens: int

    @property
    def capability(self) -> float | None:
        """C: mean graded outcome x 100; None while nothing was graded."""
        return 100.0 * self.outcome_sum / self.grades if self.grades else None
