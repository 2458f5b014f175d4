"""The seams: every port that a composition root fills in. Small on purpose (3-6 methods each)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shared.memory.model import Kind, Ladder, Rung
from shared.memory.vectors import Signature


class Clock(Protocol):
    """Wall time is for people, monotonic time for decisions; they are never subtracted."""

    def wall_ns(self) -> int: ...

    def mono_ns(self) -> int: ...

    async def sleep(self, seconds: float) -> None: ...


class Rng(Protocol):
    """Randomness, passed in."""

    def random(self) -> float: ...

    def bytes(self, count: int) -> bytes: ...


class IdSource(Protocol):
    """Public ids of new entries and recalls: 16 bytes each."""

    def new_id(self) -> bytes: ...


# --- a kind's codec -----------------------------------------------------------------------------


@dataclass(frozen=True)
class RungRecord:
    """The exact base of an entry at a lossy rung, as stored bytes, and what its rendering is."""

    rung: Rung
    record: bytes


@dataclass(frozen=True)
class DroppedLayer:
    """The spans that `rung_above` has and the next rung down has not, as self-contained bytes."""

    rung_above: Rung
    payload: bytes


@dataclass(frozen=True)
class Verdict:
    """What the gate said. `reason` is empty when admitted (see shared.memory.gate.Reason)."""

    admitted: bool
    reason: str = ""
    invariant: str = ""
    offending: str = ""
    open: bool = False
    """Rejected only because the rules cannot decide: wording they do not know, and no rule failed."""


class RungCodec(Protocol):
    """How entries of a kind go down and up the ladder. Registered per kind at the composition root."""

    @property
    def levelling(self) -> int:
        """Version of the level rule; travels with every layer and freezes when a layer is acked."""
        ...

    def level(self, original: str, ladder: Ladder) -> bytes:
        """Levels and invariants of a verified original, as a canonical record at the top lossy rung."""
        ...

    def drop(self, original: str, ladder: Ladder, to: Rung, chosen: tuple[int, ...] = ()) -> RungRecord:
        """The base at `to`, from verified original text; `chosen`: clauses that a model would rather keep."""
        ...

    def lower(self, record: bytes, ladder: Ladder, to: Rung) -> RungRecord:
        """The base at a deeper rung, from the base above it: same bytes as `drop` would give."""
        ...

    def layers(self, original: str, ladder: Ladder, chosen: tuple[int, ...] = ()) -> tuple[DroppedLayer, ...]:
        """Every layer of an original, shallowest first; the last is TRACE itself."""
        ...

    def join(self, layers: Sequence[DroppedLayer], ladder: Ladder) -> str:
        """The original from all its layers (in any order given), bit for bit."""
        ...

    def render(self, record: bytes) -> str:
        """What recall shows and the index reads of a lossy base."""
        ...

    def invariants(self, record: bytes) -> tuple[str, ...]:
        """The invariants of a lossy base in words, for a generative source."""
        ...

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        """Judge a draft against the base and its invariants."""
        ...


# --- models -------------------------------------------------------------------------------------


class Embedder(Protocol):
    """Text to unit vectors. Absent = everything works lexically and says so."""

    @property
    def signature(self) -> Signature:
        """Which vectors may be compared with these."""
        ...

    @property
    def provider(self) -> str:
        """Where it runs."""
        ...

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Of what is remembered, (len(texts), width); PermanentError(MODEL_BROKEN)."""
        ...

    def query(self, text: str) -> NDArray[np.float32]:
        """Of what is asked, (width,); PermanentError(MODEL_BROKEN)."""
        ...


@dataclass(frozen=True)
class DraftRequest:
    """What a generative source sees: the exact base, never an overlay."""

    number: int
    version: int
    base_digest: bytes
    origin: Rung
    target: Rung
    residue: str
    invariants: tuple[str, ...]
    neighbours: tuple[str, ...]
    max_tokens: int
    kind: Kind = Kind.MESSAGE
    record: bytes = b""
    """The base's record, which the gate reads: the hub may not hold it."""
    stage: int = 0
    serving_tokens: int = 0
    """n of Eq. 10 so far; the hub caps the stage at rho times this."""
    cap_tokens: int = 0


@dataclass(frozen=True)
class Draft:
    """A generative source's answer; tokens are charged whatever the verdict."""

    text: str
    model: str
    tokens: int
    failure: str = ""
    estimated: bool = False
    """The endpoint did not say what it used: `tokens` is the most that it can have been."""
    judged: bool = False
    """The gate's rules could not decide, and the hub's judge said yes."""


class Generator(Protocol):
    """A model that rebuilds text from a residue."""

    @property
    def model(self) -> str: ...

    async def draft(self, request: DraftRequest) -> Draft: ...


class Features(Protocol):
    """Pooled hidden states of a model, apart from Generator (write routing comes later)."""

    async def features(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


# --- the link, seen from the edge -----------------------------------------------------------------


@dataclass(frozen=True)
class ArchivedEntry:
    """An exact restore: enough to rebuild an entry whose edge holds only a stub."""

    number: int
    public_id: bytes
    version: int
    kind: Kind
    memory_class: int
    created_wall_ns: int
    digest: bytes
    links: tuple[int, ...]
    layers: tuple[DroppedLayer, ...]
    levelling: int
    original: bytes = b""
    """The whole original as one self-contained payload, where the archive mode is `always`."""


class Link(Protocol):
    """What recovery may ask of the hub. Every call may raise TransientError."""

    @property
    def up(self) -> bool: ...

    @property
    def generates(self) -> bool:
        """True where the hub has a model endpoint."""
        ...

    async def fetch(self, number: int, version: int) -> ArchivedEntry: ...

    async def draft(self, request: DraftRequest) -> Draft: ...


class LedgerStore(Protocol):
    """What recrystallization spent and got. The hub's is the source, the edge's a copy."""

    def record(self, row: LedgerRow) -> None: ...

    def totals(self, tenant: str) -> Mapping[str, float]: ...

    def tokens_spent(self, tenant: str, stage: int) -> int: ...


@dataclass(frozen=True)
class LedgerRow:
    """One attempt to lift one entry."""

    tenant: str
    stage: int
    number: int
    version: int
    origin: Rung
    to: Rung
    source: str
    tokens: int
    link_bytes: int
    admitted: bool
    reason: str
    wall_ns: int


# --- policies in the real daemon -------------------------------------------------------------------


@dataclass(frozen=True)
class RetainedEntry:
    """One row of what a retention policy may look at."""

    number: int
    kind: Kind
    created: int
    last_access: int
    size_bytes: float
    value: float


@dataclass(frozen=True)
class EvictionReport:
    """What a policy wants gone or moved, in order (baselines.md 0)."""

    evicted: tuple[int, ...] = ()
    demoted: tuple[tuple[int, Rung, Rung], ...] = ()
    promoted: tuple[tuple[int, Rung, Rung], ...] = ()
    merged: tuple[int, ...] = ()
    model_calls: int = 0
    model_tokens: int = 0


class Retention(Protocol):
    """A retention policy (the `Policy` contract of baselines.md 0), run inside the real edge daemon.

    Time is a parameter: `now` counts events (writes and recalls), never a clock.
    """

    @property
    def name(self) -> str: ...

    @property
    def budget_exempt(self) -> bool: ...

    def on_write(self, entry: RetainedEntry, now: int) -> None: ...

    def on_read(self, query: str, hits: Sequence[int], now: int) -> None: ...

    def enforce(self, entries: Sequence[RetainedEntry], excess_bytes: float, now: int) -> EvictionReport:
        """What must go so that at least `excess_bytes` of the rows' sizes are freed."""
        ...


@dataclass(frozen=True)
class AdmissionDecision:
    """`write` stores the text as it is; other decisions come with write routing."""

    decision: str


class Admission(Protocol):
    """Decides what `remember` does with a text. Default: write."""

    def decide(self, text: str, kind: Kind) -> AdmissionDecision: ...


# --- hardware (filled in by the hardware part) ------------------------------------------------------


@dataclass(frozen=True)
class PowerSample:
    """One reading of all rails; None marks a rail that could not be read."""

    mono_ns: int
    rails_mw: Mapping[str, float | None]


class PowerSource(Protocol):
    """Rails by label."""

    def sample(self) -> PowerSample: ...


class Arm(Protocol):
    """An arm's joints; nothing moves on connect."""

    def positions_rad(self) -> Sequence[float]: ...

    def hold(self) -> None: ...
