"""What a retention policy may do, on one host, under one meter (baselines.md 0).

`HostPolicy` is what the baselines implement over a `bench.policies.host.Host`; `Arm` is what the runner
drives: a `HostArm` around a policy, or the real edge agent's passes (`bench.policies.edge`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bench.environments.contract import Item

if TYPE_CHECKING:
    from bench.policies.host import Host


@dataclass(frozen=True)
class Traits:
    """What baselines.md's table says of a policy; tests assert each against what it does.

    calls_per_write / calls_in_enforce: model calls through the port (0, or the most that may happen).
    native_knob: what the system itself bounds, or `derived`.
    """

    shortens: bool = False
    lengthens: bool = False
    links: bool = False
    calls_per_write: int = 0
    calls_in_enforce: int = 0
    native_knob: str = "bytes"
    binary: bool = False
    """An entry is whole or gone: Prop. 3 applies."""


@dataclass(frozen=True)
class Origin:
    """Where a policy comes from, for the table of re-creations (baselines.md 6)."""

    system: str
    source: str
    official_code: str
    ours: str


@dataclass
class Report:
    """What one enforce or settle did (baselines.md 0, rule 8). Ids are Item ids."""

    evicted: list[str] = field(default_factory=list)
    demoted: list[tuple[str, str, str]] = field(default_factory=list)
    promoted: list[tuple[str, str, str]] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    rejected: dict[str, int] = field(default_factory=dict)
    """Drafts refused, by origin rung."""
    model_calls: int = 0
    model_tokens: int = 0
    bytes_before: float = 0.0
    bytes_after: float = 0.0


@dataclass(frozen=True)
class Hit:
    """What memory returned for a question. item: for diagnostics only, never for a grade."""

    item: str
    text: str
    score: float
    rung: str = "full"


@dataclass(frozen=True)
class Recalled:
    """ticket: what an outcome is attributed to; "" where the recall was not recorded."""

    ticket: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True)
class Held:
    """The meter's split, bytes; `total` is what the budget binds. disk: files, where there are some."""

    text: float
    metadata: float
    vectors: float
    residue: float
    shared: float
    disk: float = 0.0

    @property
    def total(self) -> float:
        return self.text + self.metadata + self.vectors + self.residue + self.shared


@dataclass(frozen=True)
class Spending:
    """Of the stage under way: tokens of regeneration and their cap (Eq. 10); seconds of planning in all."""

    regeneration_tokens: float = 0.0
    cap_tokens: float = 0.0
    scheduler_s: float = 0.0


class HostPolicy(Protocol):
    """A baseline. It changes nothing but the host and keeps no bytes that the host does not charge."""

    name: str
    budget_exempt: bool
    traits: Traits
    origin: Origin

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """Admission and consolidation of one write."""
        ...

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """The entries (host numbers) that were given to the agent."""
        ...

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """How well the answer from these entries did."""
        ...

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Afterwards host.bytes() <= budget_bytes, for every budget >= 0."""
        ...


class Arm(Protocol):
    """One policy over one world, driven by the runner. `now` is counted inside: events, never a clock."""

    name: str
    budget_exempt: bool
    traits: Traits

    def write(self, item: Item) -> Report: ...

    def recall(self, query: str, k: int, max_bytes: int, *, record: bool) -> Recalled:
        """record False changes nothing at all."""
        ...

    def outcome(self, ticket: str, g: float, tokens: int) -> None: ...

    def set_budget(self, budget_bytes: float) -> Report:
        """A budget event: the stage ends, the store fits, and what may rise has risen (settled)."""
        ...

    def settle(self) -> Report:
        """After a stage's writes: fit again, and finish what idle time would do."""
        ...

    def held(self) -> Held: ...

    def rungs(self) -> Mapping[str, int]:
        """Live entries by rung; baselines without a ladder have `full` only."""
        ...

    def spending(self) -> Spending:
        """Nothing, for what regenerates and plans nothing."""
        ...

    def close(self) -> None: ...
