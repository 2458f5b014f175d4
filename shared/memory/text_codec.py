"""The text kind's RungCodec: a distiller's levels, turned into records, layers and renderings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from shared.errors import Code, IntegrityError, PermanentError
from shared.memory import codec, gate, layers, spans, varint
from shared.memory.layers import Layer
from shared.memory.model import Ladder, Rung
from shared.memory.spans import Base, Levelled, Span
from shared.ports import DroppedLayer, RungRecord, Verdict

# A squeeze asks for an entry's base and its layers, an estimate for every rung: one distilling serves all.
_RECENT_ORIGINALS = 256
_LONGEST_RECENT = 8192
# Bit of a levelling id (16 bits) that says: the levels follow a choice that the edge keeps for this entry.
CHOSEN = 0x8000


class Distiller(Protocol):
    """Chooses spans and finds invariants. Pure: the same text and ladder give the same levels."""

    @property
    def version(self) -> int: ...

    def distil(self, text: str, ladder: Ladder, chosen: Collection[int] = ()) -> Levelled: ...


@dataclass(frozen=True)
class OfferedRung:
    """A lossy rung that an entry has: it holds less than the rung above."""

    rung: Rung
    record_bytes: int
    text_bytes: int


class TextCodec:
    """Implements ports.RungCodec for entries that are text."""

    def __init__(self, distiller: Distiller) -> None:
        self._distiller = distiller
        self._recent = lru_cache(maxsize=_RECENT_ORIGINALS)(self._distilled)

    @property
    def levelling(self) -> int:
        """The distiller's version: it names the rule that chose the levels."""
        return self._distiller.version

    def level(self, original: str, ladder: Ladder) -> bytes:
        """The record at the ladder's top lossy rung: every deeper rung is `lower` of it."""
        return self.drop(original, ladder, ladder.lossy[0].rung).record

    def offered(self, original: str, ladder: Ladder) -> tuple[OfferedRung, ...]:
        """The lossy rungs this text has, each less than the one above, with sizes before packing."""
        base, found = self._whole(original, ladder), []
        for spec in ladder.lossy:
            below = spans.lower(base, spec.rung)
            if len(below.spans) < len(base.spans):
                record = layers.encode_record(below)
                found.append(OfferedRung(spec.rung, len(record), len(below.text.encode())))
            base = below
        return tuple(found)

    def drop(self, original: str, ladder: Ladder, to: Rung, chosen: tuple[int, ...] = ()) -> RungRecord:
        """The base at `to`, from verified original text; `chosen`: clauses that a model would rather keep."""
        ladder.index(to)
        return _record(spans.lower(self._whole(original, ladder, chosen), to))

    def lower(self, record: bytes, ladder: Ladder, to: Rung) -> RungRecord:
        """The base at a deeper rung; the same bytes as dropping from the original."""
        ladder.index(to)
        base = layers.decode_record(record)
        if to < base.rung:
            raise PermanentError(
                Code.INTERNAL, "a base cannot be lowered upwards", base=base.rung.name, to=to.name
            )
        return _record(spans.lower(base, to))

    def layers(self, original: str, ladder: Ladder, chosen: tuple[int, ...] = ()) -> tuple[DroppedLayer, ...]:
        """Every layer of an original, shallowest first; the last is TRACE itself."""
        return _payloads(self._whole(original, ladder, chosen), ladder)

    def layers_below(self, record: bytes, ladder: Ladder) -> tuple[DroppedLayer, ...]:
        """The layers that a lossy base still has, byte for byte as `layers(original)` gives them."""
        return _payloads(layers.decode_record(record), ladder)

    def join(self, dropped: Sequence[DroppedLayer], ladder: Ladder) -> str:
        """The original from all its layers, in any order; the caller checks the entry's digest."""
        return self._join_all(dropped).text

    def join_base(self, record: bytes, dropped: Sequence[DroppedLayer], ladder: Ladder) -> str:
        """The original from a lossy base and the layers above it; the caller checks the digest."""
        base = layers.decode_record(record)
        above = [_unpack_layer(layer) for layer in _shallower(dropped, base.rung)]
        return "".join(span.text for span in _merge(base, above))

    def rebase(self, dropped: Sequence[DroppedLayer], ladder: Ladder, to: Rung) -> RungRecord:
        """The base at `to` from all layers, with the levels they were made with: no distilling."""
        ladder.index(to)
        return _record(spans.lower(self._join_all(dropped), to))

    def render(self, record: bytes) -> str:
        """What recall shows and the index reads of a lossy base."""
        return spans.render(layers.decode_record(record))

    def invariants(self, record: bytes) -> tuple[str, ...]:
        """The invariants in words, for a generative source's prompt."""
        return gate.describe(layers.decode_record(record))

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        """Judge a draft against the base and its invariants."""
        return gate.judge(layers.decode_record(record), draft, neighbours, strict=strict)

    def _whole(self, original: str, ladder: Ladder, chosen: tuple[int, ...] = ()) -> Base:
        if len(original) > _LONGEST_RECENT:
            return self._distilled(original, ladder, chosen)
        return self._recent(original, ladder, chosen)

    def _distilled(self, original: str, ladder: Ladder, chosen: tuple[int, ...]) -> Base:
        levelled = self._distiller.distil(original, ladder, chosen)
        return spans.whole(levelled, levelling_id(self._distiller.version, chosen=bool(chosen)))

    def _join_all(self, dropped: Sequence[DroppedLayer]) -> Base:
        deepest = [layer for layer in dropped if layer.rung_above is Rung.TRACE]
        if len(deepest) != 1:
            raise IntegrityError(Code.CORRUPT, "joining needs the TRACE layer, once", found=len(deepest))
        trace = layers.decode_record(codec.decode(deepest[0].payload))
        above = [_unpack_layer(layer) for layer in _shallower(dropped, Rung.TRACE)]
        merged = _merge(trace, above)
        # As they were when split: the gaps of an original are all none.
        return Base(Rung.FULL, trace.levelling, merged, trace.invariants)


def levelling_id(version: int, *, chosen: bool) -> int:
    """Names the rule behind an entry's levels: the distiller alone, or with a model's choice kept beside."""
    return version | CHOSEN if chosen else version


def pack_layer(plaintext: bytes) -> bytes:
    """Self-contained bytes for the link and the archive."""
    return codec.encode_self_contained(plaintext).body


def unpack_layer(payload: bytes) -> bytes:
    """What `pack_layer` packed, verified."""
    return codec.decode(payload)


def _record(base: Base) -> RungRecord:
    return RungRecord(base.rung, layers.encode_record(base))


def _payloads(base: Base, ladder: Ladder) -> tuple[DroppedLayer, ...]:
    trace = layers.encode_record(spans.lower(base, Rung.TRACE))
    packed = [
        DroppedLayer(layer.rung_above, pack_layer(layers.encode_layer(layer)))
        for layer in layers.split(base, ladder)
    ]
    return (*packed, DroppedLayer(Rung.TRACE, pack_layer(trace)))


def _shallower(dropped: Sequence[DroppedLayer], rung: Rung) -> list[DroppedLayer]:
    """Layers above `rung`, deepest first."""
    above = sorted(
        (layer for layer in dropped if layer.rung_above < rung), key=lambda layer: -layer.rung_above
    )
    if len({layer.rung_above for layer in above}) != len(above):
        raise IntegrityError(Code.CORRUPT, "a layer is there twice")
    return above


def _unpack_layer(dropped: DroppedLayer) -> Layer:
    layer = layers.decode_layer(codec.decode(dropped.payload))
    if layer.rung_above is not dropped.rung_above:
        raise varint.corrupt("a layer is filed under another rung", filed=dropped.rung_above.name)
    return layer


def _merge(base: Base, above: Sequence[Layer]) -> tuple[Span, ...]:
    merged: tuple[Span, ...] = base.spans
    for layer in above:
        if layer.levelling != base.levelling:
            raise IntegrityError(
                Code.CORRUPT,
                "a layer belongs to another levelling",
                layer=layer.levelling,
                base=base.levelling,
            )
        merged = layers.merge(merged, layer)
    return merged
