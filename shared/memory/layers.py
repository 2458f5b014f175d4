"""Spans, levels and layers: one original, nested lossy bases, and the layers that restore it bit for bit.

Record (a lossy base): version 1 B, levelling varint, rung 1 B, invariants, then UTF-8 where one control
character before each span says its level and what was dropped there: markers in the text pack better than a table
of lengths. Layer: version 1 B, levelling varint, rung 1 B, count, gaps, lengths, UTF-8 text; positions count code
points of the next rung up. The last layer is the TRACE record itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from shared.memory import varint
from shared.memory.invariants import Invariant, get_invariants, put_invariants
from shared.memory.model import Ladder, Rung

VERSION = 1
_FIRST_MARKER = 0x0E  # C0 controls that no text editor, tab or line ending uses
_GAPS = 3
_MARKERS = "".join(map(chr, range(_FIRST_MARKER, _FIRST_MARKER + _GAPS * (Rung.TRACE - Rung.CONDENSED + 1))))
_ESCAPE = chr(_FIRST_MARKER + len(_MARKERS))
_RESERVED = f"[{_MARKERS[0]}-{_ESCAPE}]"
_PLAIN = f"[^{_MARKERS[0]}-{_ESCAPE}]*"
_NEEDS_ESCAPE = re.compile(_RESERVED)
_ESCAPED = re.compile(f"{_ESCAPE}({_RESERVED})")
_SPAN = re.compile(f"([{_MARKERS[0]}-{_MARKERS[-1]}])({_PLAIN}(?:{_ESCAPE}{_RESERVED}{_PLAIN})*)")
_LINE_BREAK = re.compile(r"[\n\r\u2028\u2029]")


class Gap(IntEnum):
    """What was dropped between a span and the one before it; only rendering looks at it."""

    NONE = 0
    INLINE = 1
    LINE = 2


@dataclass(frozen=True)
class Levelled:
    """An original cut into spans.

    ends: code point offsets, the last is len(text).
    levels: the deepest rung at which each span is still there, FULL for one that only the original has.
    invariants: index the TRACE spans in text order.
    """

    text: str
    ends: tuple[int, ...]
    levels: tuple[Rung, ...]
    invariants: tuple[Invariant, ...] = ()

    def __post_init__(self) -> None:
        previous = 0
        for end in self.ends:
            if end <= previous:
                raise ValueError("span ends must increase")
            previous = end
        if previous != len(self.text) or len(self.levels) != len(self.ends):
            raise ValueError("spans must cover the text, one level each")
        if any(level is not Rung.FULL and not level.lossy for level in self.levels):
            raise ValueError("a level is FULL or a lossy rung")
        traces = sum(level is Rung.TRACE for level in self.levels)
        if any(index >= traces for invariant in self.invariants for index in invariant.spans):
            raise ValueError("an invariant names a TRACE span that is not there")


@dataclass(frozen=True)
class Span:
    """A verbatim piece of the original, its level, and the gap before it."""

    text: str
    level: Rung
    gap: Gap = Gap.NONE


@dataclass(frozen=True)
class Base:
    """The spans an entry has at `rung` (FULL: all of them)."""

    rung: Rung
    levelling: int
    spans: tuple[Span, ...]
    invariants: tuple[Invariant, ...] = ()

    @property
    def text(self) -> str:
        """The verbatim spans end to end: what layers are positioned in, not what people read."""
        return "".join(span.text for span in self.spans)

    @property
    def trace(self) -> tuple[str, ...]:
        """Texts of the TRACE spans, as invariants index them."""
        return tuple(span.text for span in self.spans if span.level is Rung.TRACE)


def whole(levelled: Levelled, levelling: int) -> Base:
    """The original as a base at FULL."""
    starts = (0, *levelled.ends)
    spans = (
        Span(levelled.text[start:end], level)
        for start, end, level in zip(starts, levelled.ends, levelled.levels, strict=False)
    )
    return Base(Rung.FULL, levelling, tuple(spans), levelled.invariants)


def lower(base: Base, to: Rung) -> Base:
    """The base at a deeper rung: dropping in steps or at once gives the same base."""
    kept: list[Span] = []
    gap = Gap.NONE
    for span in base.spans:
        gap = max(gap, span.gap)
        if span.level >= to:
            kept.append(replace(span, gap=gap if kept else Gap.NONE) if gap is not span.gap else span)
            gap = Gap.NONE
        else:
            gap = Gap.LINE if _LINE_BREAK.search(span.text) else max(gap, Gap.INLINE)
    if kept and kept[0].gap is not Gap.NONE:
        kept[0] = replace(kept[0], gap=Gap.NONE)
    return Base(to, base.levelling, tuple(kept), base.invariants)


def render(base: Base) -> str:
    """Readable text: a space or a line break stands where something was dropped between two spans."""
    pieces: list[str] = []
    last = " "
    for span in base.spans:
        if span.gap is Gap.LINE and last != "\n":
            pieces.append("\n")
        elif span.gap is Gap.INLINE and not last.isspace() and not span.text[0].isspace():
            pieces.append(" ")
        pieces.append(span.text)
        last = span.text[-1]
    return "".join(pieces)


# --- records ---------------------------------------------------------------------------------------


def encode_record(base: Base) -> bytes:
    """The canonical bytes of a lossy base."""
    if not base.rung.lossy:
        raise ValueError("only a lossy base has a record")
    out = bytearray((VERSION,))
    varint.put(out, base.levelling)
    out.append(base.rung)
    put_invariants(out, base.invariants)
    body = "".join(_marker(span) + _escape(span.text) for span in base.spans)
    return bytes(out) + body.encode()


def decode_record(record: bytes) -> Base:
    """A base from its record; IntegrityError when it is not one that `encode_record` writes."""
    reader = varint.Reader(record)
    levelling, rung = _header(reader)
    invariants = get_invariants(reader)
    body = _utf8(reader.rest())
    spans: list[Span] = []
    read = 0
    for match in _SPAN.finditer(body):
        code, escaped = ord(match[1]) - _FIRST_MARKER, match[2]
        level = Rung(Rung.CONDENSED + code // _GAPS)
        if not escaped or level < rung or match.start() != read:
            raise varint.corrupt("record has an impossible span")
        text = _ESCAPED.sub(r"\1", escaped) if _ESCAPE in escaped else escaped
        spans.append(Span(text, level, Gap(code % _GAPS)))
        read = match.end()
    if read != len(body) or (spans and spans[0].gap is not Gap.NONE):
        raise varint.corrupt("record has text outside its spans")
    base = Base(rung, levelling, tuple(spans), invariants)
    traces = len(base.trace)
    if any(index >= traces for invariant in invariants for index in invariant.spans):
        raise varint.corrupt("record has an invariant without its span")
    return base


# --- layers ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """The pieces that `rung_above` has and the next rung down has not.

    gaps[i]: how many code points of the rung below lie between piece i and the piece before it.
    """

    rung_above: Rung
    levelling: int
    gaps: tuple[int, ...]
    pieces: tuple[str, ...]


def split(base: Base, ladder: Ladder) -> tuple[Layer, ...]:
    """Every layer between `base` and TRACE, shallowest first; a layer without a span is left out."""
    layers = []
    deeper = [spec.rung for spec in ladder.lossy if spec.rung > base.rung]
    for below in deeper:
        layer = _between(base, below)
        if layer.pieces:
            layers.append(layer)
        base = lower(base, below)
    return tuple(layers)


def merge(spans: Sequence[Span], layer: Layer) -> tuple[Span, ...]:
    """Put a layer's pieces back between the spans of the rung below; gaps are not known any more."""
    level = layer.rung_above
    out: list[Span] = []
    queue = iter(spans)
    for gap, piece in zip(layer.gaps, layer.pieces, strict=True):
        left = gap
        while left > 0:
            span = next(queue, None)
            if span is None or len(span.text) > left:
                raise varint.corrupt("layer does not fit its base", rung=level.name)
            out.append(Span(span.text, span.level))
            left -= len(span.text)
        out.append(Span(piece, level))
    out.extend(Span(span.text, span.level) for span in queue)
    return tuple(out)


def encode_layer(layer: Layer) -> bytes:
    """Canonical bytes of a layer."""
    out = bytearray((VERSION,))
    varint.put(out, layer.levelling)
    out.append(layer.rung_above)
    varint.put(out, len(layer.pieces))
    for gap in layer.gaps:
        varint.put(out, gap)
    for piece in layer.pieces:
        varint.put(out, len(piece))
    return bytes(out) + "".join(layer.pieces).encode()


def decode_layer(plaintext: bytes) -> Layer:
    """A layer from its bytes."""
    reader = varint.Reader(plaintext)
    levelling, rung = _header(reader, layer=True)
    count = reader.unsigned()
    if count > reader.left:
        raise varint.corrupt("layer has an impossible piece count")
    gaps = tuple(reader.unsigned() for _ in range(count))
    lengths = [reader.unsigned() for _ in range(count)]
    text = _utf8(reader.rest())
    if sum(lengths) != len(text) or 0 in lengths:
        raise varint.corrupt("layer has lengths that do not add up")
    pieces, start = [], 0
    for length in lengths:
        pieces.append(text[start : start + length])
        start += length
    return Layer(rung, levelling, gaps, tuple(pieces))


def _between(base: Base, below: Rung) -> Layer:
    """Pieces of `base` that go at `below`; neighbours in an exact base become one: no rung needs the edge."""
    gaps: list[int] = []
    pieces: list[str] = []
    gap = 0
    for span in base.spans:
        if span.level >= below:
            gap += len(span.text)
        elif not base.rung.lossy and pieces and gap == 0:
            pieces[-1] += span.text
        else:
            gaps.append(gap)
            pieces.append(span.text)
            gap = 0
    return Layer(base.rung, base.levelling, tuple(gaps), tuple(pieces))


def _header(reader: varint.Reader, *, layer: bool = False) -> tuple[int, Rung]:
    version, levelling, number = reader.byte(), reader.unsigned(), reader.byte()
    highest = Rung.SKELETAL if layer else Rung.TRACE
    lowest = Rung.FULL if layer else Rung.CONDENSED
    if version != VERSION or not lowest <= number <= highest:
        raise varint.corrupt("unknown record or layer", version=version, rung=number)
    return levelling, Rung(number)


def _marker(span: Span) -> str:
    return _MARKERS[(span.level - Rung.CONDENSED) * _GAPS + span.gap]


def _escape(text: str) -> str:
    return _NEEDS_ESCAPE.sub(lambda match: _ESCAPE + match[0], text)


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise varint.corrupt("text is not UTF-8") from error
