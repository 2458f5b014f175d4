"""What the local door answers, one struct a verb. Byte sums are integers, rungs and sources by name."""

from __future__ import annotations

import msgspec


class Remembered(msgspec.Struct, frozen=True):
    """The entry's id, local number, what the admission port decided, and links that name nothing live."""

    id: str
    number: int
    decision: str
    unresolved_links: tuple[str, ...] = ()


class Hit(msgspec.Struct, frozen=True):
    """One entry at the fidelity it has now; `model` names who regenerated it."""

    id: str
    text: str
    rung: str
    provenance: str
    model: str
    score: float
    truncated: bool
    kind: str
    created: str


class Recalled(msgspec.Struct, frozen=True):
    """Hits, best first. degraded: what was missing. over_budget: a squeeze is not finished."""

    recall_id: str | None
    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    shortcut: bool
    over_budget: bool


class Graded(msgspec.Struct, frozen=True):
    """How many entries the outcome was attributed to, and the tokens it was counted with."""

    graded: int
    tokens: int
    estimated_tokens: bool


class EntryView(msgspec.Struct, frozen=True):
    """One entry. `overlay` is the rung of a regenerated text above the exact base, if any."""

    id: str
    number: int
    text: str
    rung: str
    overlay: str | None
    provenance: str
    model: str
    kind: str
    memory_class: str | None = msgspec.field(name="class")
    created: str
    version: int
    links: tuple[str, ...]
    digest: str
    text_bytes: int
    size_bytes: int
    archived: bool


class Account(msgspec.Struct, frozen=True):
    """The byte account. disk_bytes <= budget_bytes + empty_bytes and logical_bytes <= budget_bytes hold."""

    stage: int
    budget_bytes: int
    provision_bytes: int
    logical_bytes: int
    shared_bytes: int
    disk_bytes: int
    empty_bytes: int
    floor_bytes: int
    packed_bytes: int
    entries: int
    evicted: int
    stubs: int
    overlays: int
    rungs: dict[str, int]
    over_budget: bool


class Budgeted(Account, frozen=True):
    """A budget change: the account after it, and what it took."""

    moved: int = 0
    evicted_now: int = 0
    lost_exact: int = 0
    guard_yielded: int = 0
    rounds: int = 0
    seconds: float = 0.0


class PlannedMoves(msgspec.Struct, frozen=True):
    """Moves of one kind in a dry run."""

    origin: str
    to: str
    count: int


class DryRun(msgspec.Struct, frozen=True):
    """What a budget would do; sizes are estimates."""

    feasible: bool
    budget_bytes: int
    before_bytes: int
    after_bytes: int
    floor_bytes: int
    moved: int
    evicted: int
    water_level: float
    by_rung: tuple[PlannedMoves, ...]


class Settled(msgspec.Struct, frozen=True):
    """Why it returned (settled, bytes, tokens, archive_cap, link_down, timed_out) and what happened since the
    settle before: idle windows in between are counted in."""

    state: str
    promoted: int
    by_source: dict[str, int]
    rejected: dict[str, int]
    tokens: int
    archived: int
    lost_exact: int
    link_up_bytes: int
    link_down_bytes: int
    seconds: float


class NextMove(msgspec.Struct, frozen=True):
    """A step further down: what it frees and what it costs per byte."""

    to: str
    frees_bytes: int
    price: float


class Explained(msgspec.Struct, frozen=True):
    """Why an entry is where it is, in one sentence and in numbers."""

    id: str
    number: int
    rung: str
    shown_rung: str
    summary: str
    value: float
    influence: float
    grades: int
    recalls: int
    recalls_last_stage: int
    guarded: bool
    exempt: bool
    archived: bool
    size_bytes: int
    moves: tuple[NextMove, ...]
    way_back: str


class EvictedRow(msgspec.Struct, frozen=True):
    """One evicted entry; restorable where a stub is left and the hub can be asked."""

    number: int
    id: str | None
    kind: str
    memory_class: str | None = msgspec.field(name="class")
    value: float
    reason: str
    restorable: bool


class EvictedPage(msgspec.Struct, frozen=True):
    """A page of evicted entries; `next_cursor` is None on the last one."""

    evicted: tuple[EvictedRow, ...]
    total: int
    next_cursor: int | None


class Restored(msgspec.Struct, frozen=True):
    """Where the entry is now."""

    id: str
    number: int
    rung: str


class LinkView(msgspec.Struct, frozen=True):
    """The link to the hub: `none` where no hub is configured."""

    state: str
    endpoint: str
    acked_seq: int
    waiting: int
    generation: int
    last_error: str


class LoopPointView(msgspec.Struct, frozen=True):
    """A finished stage: budget fraction, mean graded outcome x 100, how many, and its 95 % interval."""

    b: float
    capability: float
    n: int
    low: float
    high: float


class LostRow(msgspec.Struct, frozen=True):
    """An entry that went below exact before the hub had its layers; `id` where it is still here."""

    number: int
    id: str | None


class LostPage(msgspec.Struct, frozen=True):
    """Entries that lost exactness and did not get it back, by number."""

    lost: tuple[LostRow, ...]
    total: int


class EmbedderView(msgspec.Struct, frozen=True):
    """The embedder and its vectors. why: why there is none. embedded + pending + without = live entries.

    without: entries below COMPRESSED, lossy or damaged ones. failed: texts that the model could not take.
    """

    state: str
    why: str
    model: str
    width: int
    provider: str
    embedded: int
    pending: int
    without: int
    failed: int


class OnDeviceView(msgspec.Struct, frozen=True):
    """The board's own model. problem: why it is not there; relevelled: entries asked about, by outcome."""

    state: str
    model: str
    folder: str
    problem: str
    available: bool
    resident_bytes: int
    calls: int
    tokens: int
    cancelled: int
    deaths: int
    restarts: int
    relevelled: dict[str, int]


class Status(msgspec.Struct, frozen=True):
    """The whole daemon."""

    version: str
    tenant: str
    ladder: str
    policy: str
    archive_mode: str
    gate: str
    state: str
    stage: int
    budget: Account
    link: LinkView
    sources: dict[str, str]
    degraded: tuple[str, ...]
    damaged: int
    serving_tokens: int
    stage_capability: float | None
    loop: tuple[LoopPointView, ...]
    lost_exact: int
    ledger: dict[str, float]
    notes: tuple[str, ...]
    ondevice: OnDeviceView
    embedder: EmbedderView
