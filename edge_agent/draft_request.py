"""What a draft is asked from: the exact base, its facts and neighbours, no more than a message holds."""

from __future__ import annotations

from collections.abc import Iterable

from edge_agent.entries import StoredEntry
from edge_agent.state import State
from edge_agent.store import Store
from shared.errors import CrystalError
from shared.memory.model import Promotion
from shared.ports import DraftRequest
from shared.units import KIB
from shared.wire import MAX_MESSAGE_BYTES

# What shared.wire lets a DraftAsk hold.
MOST_FACTS = 1024
# A prompt of 3,072 tokens holds a fifth of it: a neighbour gives wording, nothing else.
MOST_NEIGHBOUR_BYTES = 64 * KIB
# Everything of the message but its texts and the record, and five bytes for each text's length.
_FRAME_BYTES = 16 * KIB
_NEIGHBOURS = 3
_BYTES_PER_TOKEN = 4
# JSON framing and a model that words things longer than the original did.
_ANSWER_ROOM = 2.0
_LEAST_ANSWER_TOKENS = 64


def draft_request(
    store: Store, state: State, promotion: Promotion
) -> tuple[StoredEntry, DraftRequest] | None:
    """None where the entry moved since the plan was made, or nothing can be drafted from it."""
    if promotion.number not in store.table:
        return None
    entry = store.read(promotion.number)
    if entry.shown_rung is not promotion.origin or not entry.record:
        return None
    codec, ladder = store.plane.codecs[entry.kind], store.plane.ladder
    fraction = ladder.rungs[ladder.index(promotion.to)].text_fraction
    answer = _ANSWER_ROOM * fraction * entry.text_bytes / _BYTES_PER_TOKEN
    room = MAX_MESSAGE_BYTES - _FRAME_BYTES - len(entry.record) - len(entry.base_text.encode())
    facts = _fitting(codec.invariants(entry.record)[:MOST_FACTS], room)
    room -= sum(len(fact.encode()) for fact in facts)
    return entry, DraftRequest(
        number=entry.number,
        version=entry.version,
        base_digest=entry.base_digest,
        origin=promotion.origin,
        target=promotion.to,
        residue=entry.base_text,
        invariants=facts,
        neighbours=_fitting(_neighbours(store, entry.number), min(room, MOST_NEIGHBOUR_BYTES)),
        max_tokens=max(round(answer), _LEAST_ANSWER_TOKENS),
        kind=entry.kind,
        record=entry.record,
        stage=store.meta.stage,
        serving_tokens=state.serving_tokens(store.meta.stage - 1),
    )


def _neighbours(store: Store, number: int) -> Iterable[str]:
    """Nearest first. Their bases: what a model wrote over one never words another (spec.md 2)."""
    graph = store.plane.graph
    by_count = sorted(graph.neighbours(number).items(), key=lambda edge: (-edge[1], edge[0]))
    near = dict.fromkeys((*graph.references(number), *(other for other, _ in by_count)))
    for other in [other for other in near if other in store.table][:_NEIGHBOURS]:
        try:
            yield store.read(other).base_text
        except CrystalError:
            # Damaged: it is marked, and words nothing.
            continue


def _fitting(texts: Iterable[str], room_bytes: int) -> tuple[str, ...]:
    """Whole texts in their order; what is too long is left out, the others stay."""
    fitting = []
    for text in texts:
        size = len(text.encode())
        if size <= room_bytes:
            room_bytes -= size
            fitting.append(text)
    return tuple(fitting)
