"""Every Prometheus object, declared once. Label values come from closed enums, never from an entry or a peer.

Use: `REQUESTS.labels(verb="recall", code="ok").inc()`, `SWEEP_SECONDS.observe(1.2)`.
"""

from __future__ import annotations

from enum import Enum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from shared.memory.model import Rung, Source

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# Our own: a library that registers in the default registry does not end up on our door.
REGISTRY = CollectorRegistry()
# From one indexed lookup to a hybrid query on a slow board.
_RECALL_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
# From a dry decision to a million entries with writes (runtime figure: at most 60 s).
_SWEEP_BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0)


class Direction(str, Enum):
    """Which way link bytes went, seen from the edge."""

    UP = "up"
    DOWN = "down"


class BatchResult(str, Enum):
    """What became of a batch of deltas."""

    APPLIED = "applied"
    REPLAYED = "replayed"
    REFUSED = "refused"


class DraftResult(str, Enum):
    """What became of an ask for a draft, at the hub."""

    ADMITTED = "admitted"
    REJECTED = "rejected"
    FAILED = "failed"
    KEPT = "kept"
    """Answered from the drafts that were kept: nothing was generated."""
    REFUSED = "refused"
    """Nothing was asked of a model: cap, queue, no model, charged before."""


class CountedBy(str, Enum):
    """Where a number of tokens comes from."""

    ENGINE = "engine"
    ESTIMATE = "estimate"


def rung_label(rung: Rung) -> str:
    """`Rung.TRACE` -> `trace`."""
    return rung.name.lower()


REQUESTS = Counter("crystal_requests", "Requests at the local door.", ("verb", "code"), registry=REGISTRY)
RECALL_SECONDS = Histogram(
    "crystal_recall_seconds", "Time to answer a recall.", buckets=_RECALL_BUCKETS_S, registry=REGISTRY
)

ENTRIES = Gauge(
    "crystal_memory_entries", "Live entries by the rung of their base.", ("rung",), registry=REGISTRY
)
LOGICAL_BYTES = Gauge(
    "crystal_memory_logical_bytes", "Sum of mu over all entries plus shared bytes.", registry=REGISTRY
)
DISK_BYTES = Gauge("crystal_memory_disk_bytes", "Sum of the file sizes under memory/.", registry=REGISTRY)
BUDGET_BYTES = Gauge("crystal_memory_budget_bytes", "Budget in force, b x B0.", registry=REGISTRY)

MOVES = Counter("crystal_moves", "Moves of entries between rungs.", ("origin", "to"), registry=REGISTRY)
EVICTIONS = Counter("crystal_evictions", "Entries that left the store.", ("reason",), registry=REGISTRY)
LOST_EXACT = Counter(
    "crystal_lost_exact_entries",
    "Entries whose layers were dropped before the hub had them.",
    registry=REGISTRY,
)
SWEEP_SECONDS = Histogram(
    "crystal_sweep_seconds", "Time of a Crystallize sweep.", buckets=_SWEEP_BUCKETS_S, registry=REGISTRY
)
PACK_VERIFY_FAILURES = Counter(
    "crystal_pack_verify_failures", "Packings that did not decode to their original.", registry=REGISTRY
)

PROMOTIONS = Counter(
    "crystal_promotions", "Entries lifted, by what lifted them.", ("source",), registry=REGISTRY
)
REJECTED_DRAFTS = Counter(
    "crystal_rejected_drafts", "Drafts that the gate or the store refused.", ("reason",), registry=REGISTRY
)
REGENERATION_TOKENS = Counter(
    "crystal_regeneration_tokens", "Model tokens spent on drafts, admitted or not.", registry=REGISTRY
)

ONDEVICE_CALLS = Counter(
    "crystal_ondevice_calls", "Calls of the on-device model by how they ended.", ("end",), registry=REGISTRY
)
ONDEVICE_TOKENS = Counter(
    "crystal_ondevice_tokens", "Tokens that the on-device model computed.", registry=REGISTRY
)
ONDEVICE_DEATHS = Counter(
    "crystal_ondevice_deaths", "Model processes that crashed or were ended.", ("how",), registry=REGISTRY
)
ONDEVICE_RESIDENT_BYTES = Gauge(
    "crystal_ondevice_resident_bytes", "Memory of the model process; 0 while none runs.", registry=REGISTRY
)

DRAFTS = Counter("crystal_hub_drafts", "Drafts at the hub by outcome.", ("result",), registry=REGISTRY)
DRAFT_TOKENS = Counter(
    "crystal_hub_draft_tokens",
    "Tokens charged to drafts at the hub, by who counted.",
    ("by",),
    registry=REGISTRY,
)
ENDPOINTS = Gauge("crystal_hub_endpoints", "Model endpoints by health.", ("state",), registry=REGISTRY)
DRAFTS_IN_FLIGHT = Gauge("crystal_hub_drafts_in_flight", "Requests at the engines now.", registry=REGISTRY)
ENDPOINT_STALLS = Counter(
    "crystal_hub_endpoint_stalls", "Endpoints drained because nothing moved.", registry=REGISTRY
)

VECTORS = Gauge(
    "crystal_memory_vectors", "Live entries by whether they have a vector.", ("state",), registry=REGISTRY
)
EMBEDDED = Counter("crystal_embedded_texts", "Texts whose vector was kept.", registry=REGISTRY)
QUERY_EMBEDDINGS = Counter(
    "crystal_query_embeddings", "Queries put to the embedder by how it ended.", ("end",), registry=REGISTRY
)

LINK_BYTES = Counter("crystal_link_bytes", "Payload bytes on the link.", ("direction",), registry=REGISTRY)
BATCHES = Counter("crystal_link_batches", "Batches of deltas by result.", ("result",), registry=REGISTRY)
LINK_REFUSALS = Counter("crystal_link_refusals", "Peers and messages refused.", ("code",), registry=REGISTRY)


def exposition() -> bytes:
    """All metrics in the Prometheus text format."""
    return generate_latest(REGISTRY)


def _start_at_zero() -> None:
    """A series that appears with its first event hides that event from rate()."""
    for rung in Rung:
        ENTRIES.labels(rung=rung_label(rung))
    for source in Source:
        PROMOTIONS.labels(source=source.value)
    for direction in Direction:
        LINK_BYTES.labels(direction=direction.value)
    for result in BatchResult:
        BATCHES.labels(result=result.value)
    for outcome in DraftResult:
        DRAFTS.labels(result=outcome.value)
    for counted in CountedBy:
        DRAFT_TOKENS.labels(by=counted.value)


_start_at_zero()
