"""A base's record and an original's layers, as bytes; every layer together is the original, bit for bit.

Record (a lossy base): version 1 B, levelling varint, rung 1 B, invariants, then UTF-8 where one control
character before each span says its level and what was dropped there. Layer: version 1 B, levelling varint,
rung 1 B, then UTF-8 where the marker before each piece counts the spans of the rung below that lie before it.
Markers in the text pack far better than tables of positions. The last layer is the TRACE record itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.memory import varint
from shared.memory.invariants import get_invariants, put_invariants
from shared.memory.model import Ladder, Rung
from shared.memory.spans import Base, Gap, Span, lower

VERSION = 1
_FIRST_MARKER = 0x0E  # C0 controls that no text editor, tab or line ending uses
_GAPS = 3
_MARKERS = "".join(map(chr, range(_FIRST_MARKER, _FIRST_MARKER + _GAPS * (Rung.TRACE - Rung.CONDENSED + 1))))
_SKIP = len(_MARKERS) - 1  # in a layer: this many spans of the rung below, and no piece yet
_ESCAPE = chr(_FIRST_MARKER + len(_MARKERS))
_RESERVED = f"[{_MARKERS[0]}-{_ESCAPE}]"
_PLAIN = f"[^{_MARKERS[0]}-{_ESCAPE}]*"
_NEEDS_ESCAPE = re.compile(_RESERVED)
_ESCAPED = re.compile(f"{_ESCAPE}({_RESERVED})")
_SPAN = re.compile(f"([{_MARKERS[0]}-{_MARKERS[-1]}])({_PLAIN}(?:{_ESCAPE}{_RESERVED}{_PLAIN})*)")


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
    spans: list[Span] = []
    for code, text in _marked(_utf8(reader.rest())):
        level = Rung(Rung.CONDENSED + code // _GAPS)
        if not text or level < rung:
            raise varint.corrupt("record has an impossible span")
        spans.append(Span(text, level, Gap(code % _GAPS)))
    if spans and spans[0].gap is not Gap.NONE:
        raise varint.corrupt("record has a gap before its first span")
    base = Base(rung, levelling, tuple(spans), invariants)
    traces = len(base.trace)
    if any(index >= traces for invariant in invariants for index in invariant.spans):
        raise varint.corrupt("record has an invariant without its span")
    return base


# --- layers ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """The pieces that `rung_above` has and the next rung down has not.

    gaps[i]: how many spans of the rung below lie between piece i and the piece before it.
    """

    rung_above: Rung
    levelling: int
    gaps: tuple[int, ...]
    pieces: tuple[str, ...]


def split(base: Base, ladder: Ladder) -> tuple[Layer, ...]:
    """Every layer between `base` and TRACE, shallowest first; a layer without a span is left out."""
    layers = []
    deeper = [spec.rung for spec in ladder.lossy if spec.rung > base.rung] or [Rung.TRACE]
    for below in deeper:
        layer = _between(base, below)
        if layer.pieces:
            layers.append(layer)
        base = lower(base, below)
    return tuple(layers)


def merge(spans: Sequence[Span], layer: Layer) -> tuple[Span, ...]:
    """Put a layer's pieces back among the spans of the rung below; what was dropped between is not known."""
    out: list[Span] = []
    below = [Span(span.text, span.level) for span in spans]
    at = 0
    for gap, piece in zip(layer.gaps, layer.pieces, strict=True):
        if gap > len(below) - at:
            raise varint.corrupt("layer does not fit its base", rung=layer.rung_above.name)
        out.extend(below[at : at + gap])
        out.append(Span(piece, layer.rung_above))
        at += gap
    out.extend(below[at:])
    return tuple(out)


def encode_layer(layer: Layer) -> bytes:
    """Canonical bytes of a layer."""
    out = bytearray((VERSION,))
    varint.put(out, layer.levelling)
    out.append(layer.rung_above)
    body = []
    for gap, piece in zip(layer.gaps, layer.pieces, strict=True):
        skips, steps = divmod(gap, _SKIP)
        body.append(_MARKERS[_SKIP] * skips + _MARKERS[steps] + _escape(piece))
    return bytes(out) + "".join(body).encode()


def decode_layer(plaintext: bytes) -> Layer:
    """A layer from its bytes."""
    reader = varint.Reader(plaintext)
    levelling, rung = _header(reader, layer=True)
    gaps: list[int] = []
    pieces: list[str] = []
    skipped = 0
    for code, text in _marked(_utf8(reader.rest())):
        if code == _SKIP and not text:
            skipped += _SKIP
        elif code == _SKIP or not text:
            raise varint.corrupt("layer has an impossible piece")
        else:
            gaps.append(skipped + code)
            pieces.append(text)
            skipped = 0
    if skipped:
        raise varint.corrupt("layer ends in a gap")
    return Layer(rung, levelling, tuple(gaps), tuple(pieces))


def _between(base: Base, below: Rung) -> Layer:
    """Pieces of `base` that go at `below`; neighbours in an exact base become one: no rung needs the edge."""
    gaps: list[int] = []
    pieces: list[str] = []
    gap = 0
    for span in base.spans:
        if span.level >= below:
            gap += 1
        elif not base.rung.lossy and pieces and gap == 0:
            pieces[-1] += span.text
        else:
            gaps.append(gap)
            pieces.append(span.text)
            gap = 0
    return Layer(base.rung, base.levelling, tuple(gaps), tuple(pieces))


# --- what records and layers share ------------------------------------------------------------------


def _marked(body: str) -> Iterator[tuple[int, str]]:
    """(marker, text behind it) all through `body`."""
    read = 0
    for match in _SPAN.finditer(body):
        if match.start() != read:
            break
        read = match.end()
        text = match[2]
        yield ord(match[1]) - _FIRST_MARKER, _ESCAPED.sub(r"\1", text) if _ESCAPE in text else text
    if read != len(body):
        raise varint.corrupt("text stands outside its markers")


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
