"""shared.memory.layers: any text, any split, comes back; every base depends on its spans alone."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import Code, IntegrityError
from shared.memory import layers, spans, varint
from shared.memory.invariants import Invariant, InvariantType
from shared.memory.layers import Layer
from shared.memory.model import LADDERS, Ladder, Rung
from shared.memory.spans import Base, Gap, Levelled, Span
from tests.texts import ladders, levelled_texts

PRODUCT = LADDERS["product"]
CASE = Levelled(
    "Ana took 12 figs,\nnot pears.",
    (3, 9, 11, 12, 16, 18, 21, 28),
    (
        Rung.TRACE,
        Rung.FULL,
        Rung.TRACE,
        Rung.FULL,
        Rung.SKELETAL,
        Rung.FULL,
        Rung.COMPRESSED,
        Rung.FULL,
    ),
    (
        Invariant(InvariantType.SPAN, (0,)),
        Invariant(InvariantType.NUMBER, (1,)),
        Invariant(InvariantType.TUPLE, (0, 1), positive=False),
        Invariant(InvariantType.OUTCOME, (1, 0)),
    ),
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Ladder, Levelled]:
    """A ladder and a levelled text on it."""
    ladder = draw(ladders)
    return ladder, draw(levelled_texts(ladder))


def through_bytes(layer: Layer) -> Layer:
    return layers.decode_layer(layers.encode_layer(layer))


def stored(base: Base) -> Base:
    return layers.decode_record(layers.encode_record(base))


@given(cases())
@settings(max_examples=150, deadline=None)
def test_all_layers_together_are_the_original(case: tuple[Ladder, Levelled]) -> None:
    ladder, levelled = case
    whole = spans.whole(levelled, 9)
    pieces: tuple[Span, ...] = stored(spans.lower(whole, Rung.TRACE)).spans
    for layer in reversed(layers.split(whole, ladder)):
        pieces = layers.merge(pieces, through_bytes(layer))
    assert "".join(span.text for span in pieces) == levelled.text


@given(cases(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_base_and_the_layers_above_it_are_the_original(
    case: tuple[Ladder, Levelled], data: st.DataObject
) -> None:
    ladder, levelled = case
    rung = data.draw(st.sampled_from([spec.rung for spec in ladder.lossy]))
    whole = spans.whole(levelled, 9)
    pieces: tuple[Span, ...] = stored(spans.lower(whole, rung)).spans
    for layer in reversed(layers.split(whole, ladder)):
        if layer.rung_above < rung:
            pieces = layers.merge(pieces, through_bytes(layer))
    assert "".join(span.text for span in pieces) == levelled.text


@given(cases())
@settings(max_examples=100, deadline=None)
def test_every_lossy_rung_is_a_part_of_the_one_above(case: tuple[Ladder, Levelled]) -> None:
    ladder, levelled = case
    above = spans.whole(levelled, 1)
    for spec in ladder.lossy:
        below = spans.lower(above, spec.rung)
        rest = iter((span.text, span.level) for span in above.spans)
        assert all((span.text, span.level) in rest for span in below.spans)
        assert len(below.spans) <= len(above.spans)
        if len(below.spans) == len(above.spans):
            assert below.text == above.text
        else:
            assert len(below.text.encode()) < len(above.text.encode())
        assert below.invariants == levelled.invariants
        above = below


@given(cases())
@settings(max_examples=100, deadline=None)
def test_a_base_is_the_same_bytes_by_any_way_down(case: tuple[Ladder, Levelled]) -> None:
    ladder, levelled = case
    whole = spans.whole(levelled, 3)
    rungs = [spec.rung for spec in ladder.lossy]
    for length in range(1, len(rungs) + 1):
        for way in itertools.combinations(rungs, length):
            base = whole
            for rung in way:
                base = stored(spans.lower(base, rung))
            direct = layers.encode_record(spans.lower(whole, way[-1]))
            assert layers.encode_record(base) == direct


def test_a_record_has_these_bytes() -> None:
    base = spans.lower(spans.whole(CASE, 300), Rung.COMPRESSED)
    assert layers.encode_record(base).hex() == (
        "01" "ac02" "03"  # version, levelling, COMPRESSED
        "04" "100001" "110201" "0c0102" "25020001"  # SPAN 0; NUMBER 1; not TUPLE 0..1; OUTCOME 1, 0
        "1a416e61" "1b3132" "1866696773" "136e6f74"  # Ana, 12, figs; not, behind a line break
    )  # fmt: skip
    assert stored(base) == base


def test_a_layer_has_these_bytes() -> None:
    above = layers.split(spans.whole(CASE, 300), PRODUCT)
    assert [layer.rung_above for layer in above] == [Rung.FULL, Rung.COMPRESSED, Rung.SKELETAL]
    assert layers.encode_layer(above[0]).hex() == (
        "01" "ac02" "00"  # version, levelling, FULL
        "0f" "20746f6f6b20" "0f" "20" "0f" "2c0a" "0f" "2070656172732e"
    )  # fmt: skip
    assert layers.encode_layer(above[1]).hex() == "01ac020311" + "6e6f74"
    far = Layer(Rung.COMPRESSED, 1, (0, 13, 14, 29), ("a", "b", "\x0e", "d"))
    assert layers.encode_layer(far).hex() == "0101030e611b621c0e1d0e1c1c0f64"
    assert through_bytes(far) == far


def test_rendering_shows_gaps_and_never_glues_words() -> None:
    whole = spans.whole(CASE, 1)
    assert spans.render(spans.lower(whole, Rung.COMPRESSED)) == "Ana 12 figs\nnot"
    assert spans.render(spans.lower(whole, Rung.TRACE)) == "Ana 12"
    assert spans.render(whole) == CASE.text
    glued = Levelled("a-b c", (1, 2, 3, 4, 5), (Rung.TRACE, Rung.FULL, Rung.TRACE, Rung.SKELETAL, Rung.TRACE))
    assert spans.render(spans.lower(spans.whole(glued, 1), Rung.TRACE)) == "a b c"
    assert spans.render(spans.lower(spans.whole(glued, 1), Rung.SKELETAL)) == "a b c"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Levelled("ab", (1,), (Rung.FULL,)),
        lambda: Levelled("ab", (1, 1, 2), (Rung.FULL,) * 3),
        lambda: Levelled("ab", (2,), (Rung.FULL, Rung.TRACE)),
        lambda: Levelled("ab", (2,), (Rung.PACKED,)),
        lambda: Levelled("ab", (2,), (Rung.SKELETAL,), (Invariant(InvariantType.SPAN, (0,)),)),
        lambda: Invariant(InvariantType.SPAN, ()),
        lambda: Invariant(InvariantType.SPAN, (-1,)),
        lambda: layers.encode_record(spans.whole(CASE, 1)),
    ],
)
def test_levels_that_make_no_sense_are_refused(make: object) -> None:
    with pytest.raises(ValueError):
        make()  # type: ignore[operator]


RECORD = layers.encode_record(spans.lower(spans.whole(CASE, 300), Rung.COMPRESSED))
HEAD = bytes.fromhex("01010600")


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\x02" + RECORD[1:],  # another version
        HEAD[:2] + b"\x01" + HEAD[3:],  # a rung that has no record
        HEAD[:2] + b"\x07" + HEAD[3:],
        HEAD + b"text before a marker",
        HEAD + b"\x1a",  # an empty span
        HEAD + b"\x1aA\x1d",  # an escape of nothing
        HEAD + b"\x11not TRACE",  # shallower than the record's rung
        HEAD + b"\x1bgap before the first span",
        HEAD + b"\x1a\xff",
        HEAD + b"x\x1aA",
        HEAD[:3] + bytes.fromhex("01100001"),  # an invariant where no span can be
        HEAD[:3] + bytes.fromhex("01100201") + b"\x1aA",  # an invariant without its span
        HEAD[:3] + bytes.fromhex("01100081808080808080808001") + b"\x1aA",  # a varint of ten bytes
        HEAD[:3] + bytes.fromhex("018000") + b"\x1aA",  # a varint that is not the shortest
        HEAD[:3] + bytes.fromhex("01160001") + b"\x1aA",  # unknown type
        HEAD[:3] + bytes.fromhex("01400001") + b"\x1aA",  # unknown form
        HEAD[:3] + bytes.fromhex("01300001") + b"\x1aA",  # a list of singles
        HEAD[:3] + bytes.fromhex("01100101") + b"\x1aA",  # a span before the first
        HEAD[:3] + bytes.fromhex("0110007f") + b"\x1aA",  # more spans than bytes
        HEAD[:3] + bytes.fromhex("0124010000") + b"\x1aA",  # a list of one
        HEAD[:3] + bytes.fromhex("0124020001") + b"\x1aA",  # a list with a span before the first
    ],
)
def test_bytes_that_are_no_record_are_refused(record: bytes) -> None:
    with pytest.raises(IntegrityError) as refused:
        layers.decode_record(record)
    assert refused.value.code is Code.CORRUPT


@pytest.mark.parametrize(
    "plaintext",
    ["", "010106", "020100", "0101000e", "0101001c", "0101001c61", "01010061", "0101000eff", "010107"],
)
def test_bytes_that_are_no_layer_are_refused(plaintext: str) -> None:
    with pytest.raises(IntegrityError):
        layers.decode_layer(bytes.fromhex(plaintext))


def test_a_layer_that_does_not_fit_its_base_is_refused() -> None:
    with pytest.raises(IntegrityError):
        layers.merge([Span("a", Rung.TRACE)], Layer(Rung.FULL, 1, (2,), ("b",)))


@given(st.binary(max_size=60))
@settings(max_examples=150)
def test_no_bytes_make_a_decoder_fail_otherwise(noise: bytes) -> None:
    for decode in (layers.decode_record, layers.decode_layer):
        for data in (noise, HEAD + noise, bytes.fromhex("010100") + noise):
            with suppress(IntegrityError):
                decode(data)


@given(st.integers(0, 2**63 - 1), st.integers(-(2**61), 2**61))
def test_varints_come_back(unsigned: int, signed: int) -> None:
    out = bytearray()
    varint.put(out, unsigned)
    varint.put_signed(out, signed)
    reader = varint.Reader(bytes(out))
    assert (reader.unsigned(), reader.signed(), reader.left) == (unsigned, signed, 0)


def test_gaps_are_ordered_by_what_they_hide() -> None:
    assert Gap.NONE < Gap.INLINE < Gap.LINE
