"""The host that every baseline lives in: one meter, one retriever, one read path (baselines.md 0)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from bench.environments.contract import Item
from bench.policies import meter
from bench.policies.contract import Held, Hit, HostPolicy, Recalled, Report, Spending
from bench.policies.similarity import Similarity
from edge_agent.retrieval import cut
from edge_agent.search import LexicalIndex
from shared.errors import Code, InputError
from shared.memory.model import Kind

_OPEN_RECALLS = 10_000
_AGE = attrgetter("created", "number")


@dataclass
class Row:
    """One stored thing. `item` is the write it came from (for diagnostics); merged rows name their first."""

    number: int
    item: str
    text: str
    kind: Kind
    created: int
    time: float
    source: str = "own"
    last_access: int = 0
    hits: int = 0
    recalled_s: float | None = None
    """Stream time of the last recall. Like `hits` and `outcome`, in the columns of a recalled entry."""
    outcome: float | None = None
    links: list[int] = field(default_factory=list)
    rung: str = "full"
    searchable: bool = True
    metadata: dict[str, str] = field(default_factory=dict)
    """Keywords, tags, summaries, levels ...: keys and values are charged."""
    record: bytes = b""
    """A base of the product's codec, of which `text` is the rendering: charged in place of the text."""

    def text_bytes(self) -> int:
        return len(self.record) if self.record else meter.text_bytes(self.text)

    def metadata_bytes(self) -> int:
        """Columns, row overhead, links and attributes."""
        told = sum(len(name.encode()) + len(value.encode()) for name, value in self.metadata.items())
        return meter.row_bytes(recalled=self.hits > 0) + meter.links_bytes(len(self.links)) + told

    def size_bytes(self) -> int:
        return self.text_bytes() + self.metadata_bytes()


class Host:
    """Rows by number, the index over their texts, and side tables that are charged like everything else."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.rows: dict[int, Row] = {}
        self.side: dict[str, str] = {}
        """Profiles, histories, recall logs: name to text; charged as text."""
        self._index = LexicalIndex()
        self._similar = Similarity()
        self._sizes: dict[int, int] = {}
        self._total = 0
        self._next = 1
        self._of_item: dict[str, int] = {}

    def bytes(self) -> int:
        """The only byte count: rows and side tables."""
        return self._total + sum(
            len(name.encode()) + meter.text_bytes(text) for name, text in self.side.items()
        )

    def size_bytes(self, number: int) -> int:
        """What a row costs now."""
        return self._sizes[number]

    def held(self) -> Held:
        """The split of `bytes()`."""
        residue = sum(len(row.record) for row in self.rows.values())
        text = sum(row.text_bytes() for row in self.rows.values()) - residue
        side = self.bytes() - self._total
        return Held(text, self._total - text - residue, 0.0, residue, side)

    def add(self, item: Item, now: int, *, text: str | None = None, kind: Kind | None = None) -> Row:
        """Store a write (or what a policy made of it); links go to rows that are there."""
        links = [self._of_item[name] for name in item.links if self._of_item.get(name) in self.rows]
        row = Row(
            number=self._next,
            item=item.id,
            text=item.text if text is None else text,
            kind=item.kind if kind is None else kind,
            created=now,
            time=item.time,
            source=item.source,
            last_access=now,
            links=links,
        )
        self._next += 1
        self.rows[row.number] = row
        self._of_item.setdefault(item.id, row.number)
        self.touched(row.number)
        return row

    def touched(self, number: int) -> None:
        """A row's text, links, attributes or access count changed: re-index and re-measure."""
        row = self.rows[number]
        if row.searchable:
            text = self.text(number)
            self._index.put(number, text)
            self._similar.put(number, text)
        else:
            self._index.remove(number)
            self._similar.remove(number)
        self._measure(number)

    def remove(self, number: int) -> Row:
        """A row goes, and every link to it."""
        row = self.rows.pop(number)
        self._total -= self._sizes.pop(number)
        self._index.remove(number)
        self._similar.remove(number)
        if self._of_item.get(row.item) == number:
            del self._of_item[row.item]
        for other in self.rows.values():
            if number in other.links:
                other.links = [link for link in other.links if link != number]
                self._measure(other.number)
        return row

    def text(self, number: int) -> str:
        """What a row shows."""
        return self.rows[number].text

    def search(self, query: str, k: int, max_bytes: int) -> list[tuple[int, str, float]]:
        """(number, text that fits, score), best first: the real edge's lexical retriever."""
        found: list[tuple[int, str, float]] = []
        left = max_bytes
        for candidate in self._index.search(query, k).hits:
            text = cut(self.text(candidate.number), left)
            if not text:
                break
            found.append((candidate.number, text, candidate.score))
            left -= len(text.encode())
            if left <= 0:
                break
        return found

    def nearest(self, text: str, k: int, *, without: frozenset[int] = frozenset()) -> list[tuple[int, float]]:
        """(number, cosine), best first, among searchable rows."""
        return self._similar.nearest(text, k, without=without)

    def by_age(self) -> Iterator[Row]:
        """Rows, oldest first."""
        return iter(sorted(self.rows.values(), key=_AGE))

    def read(self, number: int, now: int) -> None:
        """A row was given to the agent."""
        row = self.rows[number]
        row.hits += 1
        row.last_access = now
        self._measure(number)

    def close(self) -> None:
        self._index.close()

    def _price(self, row: Row) -> int:
        return row.size_bytes()

    def _measure(self, number: int) -> None:
        size = self._price(self.rows[number])
        self._total += size - self._sizes.get(number, 0)
        self._sizes[number] = size


class HostArm:
    """A baseline over a host of its own, driven like any other arm."""

    def __init__(self, policy: HostPolicy, seed: int = 0, host: Host | None = None) -> None:
        self.name = policy.name
        self.budget_exempt = policy.budget_exempt
        self.traits = policy.traits
        self.policy = policy
        self.stand_in = bool(getattr(policy, "stand_in", False))
        """A deterministic rule answers where the system would ask a model."""
        self.host = Host(seed) if host is None else host
        self._budget_bytes = float("inf")
        self._now = 0
        self._open: dict[str, tuple[int, ...]] = {}
        self._read = Report()
        """What recalls since the last report did: a recall returns hits only."""

    def write(self, item: Item) -> Report:
        """Admit; a store over its budget is enforced at once."""
        self._now += 1
        report = self.policy.on_write(self.host, item, self._now)
        if not self.budget_exempt and self.host.bytes() > self._budget_bytes:
            merge(report, self._enforce())
        return self._with_reads(report)

    def recall(self, query: str, k: int, max_bytes: int, *, record: bool) -> Recalled:
        """The best rows. Recorded: counters move, the policy is told, and an outcome may follow."""
        found = self.host.search(query, k, max_bytes)
        hits = tuple(
            Hit(row.item, text, score, row.rung)
            for number, text, score in found
            for row in (self.host.rows[number],)
        )
        if not record:
            return Recalled("", hits)
        self._now += 1
        numbers = tuple(number for number, _, _ in found)
        for number in numbers:
            self.host.read(number, self._now)
        merge(self._read, self.policy.on_read(self.host, query, numbers, self._now))
        ticket = str(self._now)
        self._open[ticket] = numbers
        while len(self._open) > _OPEN_RECALLS:
            del self._open[next(iter(self._open))]
        if not self.budget_exempt and self.host.bytes() > self._budget_bytes:
            merge(self._read, self._enforce())
        return Recalled(ticket, hits)

    def outcome(self, ticket: str, g: float, tokens: int) -> None:
        """Credit an open recall once; InputError for any other ticket or grade."""
        if ticket not in self._open:
            raise InputError(Code.UNKNOWN_RECALL, "no such open recall", recall=ticket)
        if not 0.0 <= g <= 1.0:
            raise InputError(Code.BAD_REQUEST, "a grade lies in 0..1", g=g)
        present = tuple(number for number in self._open.pop(ticket) if number in self.host.rows)
        self.policy.on_outcome(self.host, present, g, self._now)

    def set_budget(self, budget_bytes: float) -> Report:
        """A smaller or larger budget; nothing that went comes back by itself."""
        self._budget_bytes = budget_bytes
        return self._with_reads(self._enforce())

    def settle(self) -> Report:
        return self._with_reads(self._enforce())

    def held(self) -> Held:
        return self.host.held()

    def rungs(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for row in self.host.rows.values():
            counts[row.rung] = counts.get(row.rung, 0) + 1
        return counts

    def spending(self) -> Spending:
        return Spending()

    def close(self) -> None:
        self.host.close()

    def _with_reads(self, report: Report) -> Report:
        merge(report, self._read)
        self._read = Report()
        return report

    def _enforce(self) -> Report:
        before = self.host.bytes()
        if self.budget_exempt:
            return Report(bytes_before=before, bytes_after=before)
        report = self.policy.enforce(self.host, self._budget_bytes, self._now)
        report.bytes_before, report.bytes_after = before, self.host.bytes()
        return report


def merge(into: Report, other: Report) -> None:
    """Add what another pass did."""
    into.evicted += other.evicted
    into.demoted += other.demoted
    into.promoted += other.promoted
    into.merged += other.merged
    into.model_calls += other.model_calls
    into.model_tokens += other.model_tokens
    for origin, count in other.rejected.items():
        into.rejected[origin] = into.rejected.get(origin, 0) + count


def evict_in_order(host: Host, numbers: Sequence[int], budget_bytes: float) -> Report:
    """Delete rows strictly in this order until the host fits (no skip-and-continue)."""
    report = Report()
    for number in numbers:
        if host.bytes() <= budget_bytes:
            break
        report.evicted.append(host.remove(number).item)
    return report
