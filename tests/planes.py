"""Memory planes for tests: stores in temporary directories, a codec without a distiller, made-up entries."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edge_agent.columns import Pricing
from edge_agent.entries import ArchiveMode, NewEntry, StoredEntry
from edge_agent.opening import StoreOptions
from edge_agent.store import Store
from shared.memory.model import LADDERS, Kind, Ladder, Rung
from shared.messages import Delta
from shared.ports import ArchivedEntry, DroppedLayer, RungCodec, RungRecord, Verdict
from shared.units import MIB
from shared.wire import Ack, decode_batch, next_chain
from tests.fakes import FakeClock, SeededRng

_WORDS = random.Random(7).choices(
    [f"{a}{b}{c}" for a in "bdfklmn" for b in ("a", "e", "ito", "our") for c in ("", "s", "ner", "ly", "x")],
    k=400,
)

_ADDED_AT_ONCE = 2000


class PrefixCodec:
    """ports.RungCodec whose base is a prefix of the original: fast, so that tests measure the store."""

    def __init__(self, levelling: int = 1) -> None:
        self._levelling = levelling

    @property
    def levelling(self) -> int:
        return self._levelling

    def level(self, original: str, ladder: Ladder) -> bytes:
        return self.drop(original, ladder, ladder.lossy[0].rung).record

    def drop(self, original: str, ladder: Ladder, to: Rung, chosen: tuple[int, ...] = ()) -> RungRecord:
        return RungRecord(to, self._record(len(original), original, ladder, to))

    def lower(self, record: bytes, ladder: Ladder, to: Rung) -> RungRecord:
        length, text = self._parts(record)
        return RungRecord(to, self._record(length, text, ladder, to))

    def layers(self, original: str, ladder: Ladder, chosen: tuple[int, ...] = ()) -> tuple[DroppedLayer, ...]:
        cuts = [len(original), *(self._kept(len(original), ladder, spec.rung) for spec in ladder.lossy), 0]
        above = [
            ladder.rungs[ladder.index(ladder.lossy[0].rung) - 1].rung,
            *(spec.rung for spec in ladder.lossy),
        ]
        return tuple(
            DroppedLayer(rung, original[end:start].encode() or b"-")
            for rung, start, end in zip(above, cuts, cuts[1:], strict=False)
        )

    def join(self, layers: Sequence[DroppedLayer], ladder: Ladder) -> str:
        deepest_first = sorted(layers, key=lambda layer: -layer.rung_above)
        return "".join(layer.payload.decode() for layer in deepest_first)

    def render(self, record: bytes) -> str:
        return self._parts(record)[1]

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        return Verdict(draft.startswith(self.render(record)))

    def _record(self, length: int, text: str, ladder: Ladder, to: Rung) -> bytes:
        return f"{length}:{text[: self._kept(length, ladder, to)]}".encode()

    def _kept(self, length: int, ladder: Ladder, to: Rung) -> int:
        return max(1, int(length * ladder.rungs[ladder.index(to)].text_fraction))

    def _parts(self, record: bytes) -> tuple[int, str]:
        length, text = record.decode().split(":", 1)
        return int(length), text


def open_store(
    directory: Path,
    *,
    ladder: str = "product",
    archive: ArchiveMode | None = None,
    provision_bytes: int = 256 * MIB,
    codec: RungCodec | None = None,
    tenant: str = "home",
    seed: int = 0,
) -> Store:
    """A store whose every kind goes down by prefixes."""
    codecs = dict.fromkeys(Kind, codec or PrefixCodec())
    options = StoreOptions(tenant, LADDERS[ladder], provision_bytes, archive)
    return Store.open(directory, options, codecs=codecs, clock=FakeClock(), rng=SeededRng(seed))


def made_text(rng: random.Random, size: int) -> str:
    """About `size` bytes of made-up sentences, compressible like notes."""
    words = rng.choices(_WORDS, k=size // 4 + 1)
    words[::9] = [f"{number}.\n" for number in rng.choices(range(10_000), k=len(words[::9]))]
    return " ".join(words)[:size].strip() or "x"


def fill(store: Store, count: int, size: int, seed: int = 1) -> dict[int, str]:
    """Add `count` entries of half to one and a half `size`; number to text."""
    rng = random.Random(seed)
    texts = [made_text(rng, rng.randint(size // 2, size * 3 // 2)) for _ in range(count)]
    numbers: list[int] = []
    for start in range(0, count, _ADDED_AT_ONCE):
        numbers += store.add_many([NewEntry(text) for text in texts[start : start + _ADDED_AT_ONCE]])
    return dict(zip(numbers, texts, strict=True))


def flat_pricing(store: Store, value: float = 0.1, *, archive: bool = False) -> Pricing:
    """The same worth for every entry."""
    return Pricing(np.full(len(store), value, np.float32), 0.35 * value / 160, archive)


def scattered_pricing(store: Store, seed: int = 3, *, archive: bool = False) -> Pricing:
    """Worth by number at random, the same every time: price order is then not storage order."""
    numbers = store.table.numbers()
    highest = int(numbers[-1]) + 1 if len(numbers) else 1
    worth = np.random.default_rng(seed).random(highest, np.float32)
    return Pricing(worth[numbers], 0.35 * 0.5 / 160, archive)


def acknowledge_all(store: Store, *, not_archived: frozenset[int] = frozenset()) -> list[Delta]:
    """Play a hub that keeps everything but the layers of `not_archived`; every delta it was sent."""
    seen: list[Delta] = []
    while (body := store.link.sealed()) is not None:
        batch = decode_batch(body)
        seen.extend(batch.deltas)
        refused = tuple(delta.seq for delta in batch.deltas if delta.number in not_archived)
        chain = next_chain(store.meta.chain, body)
        store.link.acked(Ack(store.meta.tenant, batch.epoch, batch.last_seq, chain, 1, refused))
    return seen


def archived_entry(entry: StoredEntry) -> ArchivedEntry:
    """What an archive would answer for an entry."""
    return ArchivedEntry(
        number=entry.number,
        public_id=entry.public_id,
        version=entry.version,
        kind=entry.kind,
        memory_class=entry.memory_class,
        created_wall_ns=entry.created_wall_ns,
        digest=entry.digest,
        links=entry.references,
        layers=(),
        levelling=entry.levelling or 1,
    )
