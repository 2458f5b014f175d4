"""Whatever the bytes: a message, or SecurityError with one of three codes, quickly and in bounded memory."""

from __future__ import annotations

import math
import tracemalloc

import msgpack
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared import wire
from shared.errors import Code, PermanentError, SecurityError
from shared.memory.model import Rung
from tests.wire import examples

DECODERS = (wire.decode_from_edge, wire.decode_from_hub, wire.decode_batch)
V1 = bytes([wire.PROTOCOL])
HOSTILE = {
    "empty": b"",
    "version only": V1,
    "not an array": V1 + b"\xc0",
    "a map": V1 + b"\x81\xa1a\x01",
    "array of 4 billion": V1 + b"\xdd\xff\xff\xff\xff",
    "array of 4 billion arrays": V1 + b"\xdd\xff\xff\xff\xff" * 1000,
    "string of 4 GB": V1 + b"\x92\x14\xdb\xff\xff\xff\xff",
    "bytes of 4 GB": V1 + b"\x94\x11\xa1t\xc6\xff\xff\xff\xff",
    "deep nesting": V1 + b"\x91" * 100_000,
    "unknown tag": V1 + b"\x92\x7f\xa1t",
    "invalid UTF-8": V1 + b"\x92\x14\xa2\xff\xfe",
    "surrogate": V1 + b"\x92\x14\xa3\xed\xa0\x80",
    "extension type": V1 + b"\x92\x14\xd4\x05\x00",
    "2^64-1 as a number": V1 + b"\x95\x12\xa1t\x01\xcf" + b"\xff" * 8 + b"\x01",
    "trailing bytes": wire.encode(wire.Ping("t")) + b"\x00",
}


def refused(frame: bytes) -> set[Code]:
    """The codes with which every decoder refuses a frame."""
    codes = set()
    for decode in DECODERS:
        with pytest.raises(SecurityError) as caught:
            decode(frame)
        codes.add(caught.value.code)
    return codes


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_bytes_are_refused_in_bounded_memory(name: str) -> None:
    tracemalloc.start()
    try:
        assert refused(HOSTILE[name]) == {Code.MALFORMED}
        assert tracemalloc.get_traced_memory()[1] < 2 * wire.MAX_MESSAGE_BYTES
    finally:
        tracemalloc.stop()


def test_another_protocol_is_named_as_such() -> None:
    assert refused(b"\x02\x91\x25") == {Code.UNSUPPORTED_VERSION}


def test_an_oversized_message_is_refused_before_it_is_read() -> None:
    assert refused(V1 + bytes(wire.MAX_MESSAGE_BYTES)) == {Code.TOO_LARGE}


def _mutated(frame: bytes, cut: int, place: int, value: int) -> bytes:
    changed = bytearray(frame[: len(frame) - cut % len(frame)])
    if changed:
        changed[place % len(changed)] = value
    return bytes(changed)


_FRAMES = [examples.frame(name, message) for name, message in sorted(examples.ALL.items())]


@settings(max_examples=150)
@given(
    st.one_of(
        st.binary(max_size=400),
        st.binary(max_size=400).map(lambda tail: V1 + tail),
        st.builds(
            _mutated,
            st.sampled_from(_FRAMES),
            st.integers(0, 40),
            st.integers(0, 10_000),
            st.integers(0, 255),
        ),
    )
)
@example(V1 + b"\x93\x21" + b"\xc1")
def test_decoding_never_raises_anything_else(frame: bytes) -> None:
    for decode in DECODERS:
        code = None
        try:
            assert isinstance(decode(frame), msgspec.Struct)
        except SecurityError as error:
            code = error.code
        assert code in {None, Code.MALFORMED, Code.UNSUPPORTED_VERSION}


@pytest.mark.parametrize(
    "change",
    [
        {"number": 2**32},
        {"number": -1},
        {"version": 0},
        {"request": 0},
        {"tenant": "Tenant-1"},
        {"tenant": "../tenant"},
        {"tenant": "tenant-1\n"},
        {"tenant": ""},
        {"tenant": "a" * 65},
    ],
)
def test_a_field_outside_its_bounds_is_neither_sent_nor_taken(change: dict[str, object]) -> None:
    fetch = msgspec.structs.replace(examples.FROM_EDGE["fetch"], **change)
    with pytest.raises(PermanentError) as caught:
        wire.encode(fetch)
    assert caught.value.code is Code.MALFORMED
    fields = [18, fetch.tenant, fetch.request, fetch.number, fetch.version]
    with pytest.raises(SecurityError):
        wire.decode_from_edge(V1 + msgpack.packb(fields))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_refused(value: float) -> None:
    fields = msgspec.to_builtins(examples.BODIES["state"], builtin_types=(bytes,))
    fields[3][0][-1] = value
    with pytest.raises(SecurityError):
        wire.decode_batch(V1 + msgpack.packb(fields))


@pytest.mark.parametrize(
    ("prev_seq", "last_seq", "seqs"), [(0, 2, (2, 1)), (0, 2, (1, 1)), (1, 1, (1,)), (0, 3, (1, 2))]
)
def test_a_batch_out_of_order_is_refused(prev_seq: int, last_seq: int, seqs: tuple[int, ...]) -> None:
    deltas = tuple(msgspec.structs.replace(examples.FORGOTTEN, seq=seq) for seq in seqs)
    with pytest.raises(ValueError, match="seq"):
        wire.Batch(examples.EPOCH, prev_seq, last_seq, deltas)


def test_layers_go_down_the_ladder_each_once() -> None:
    twice = (wire.Layer(Rung.TRACE, b"a"), wire.Layer(Rung.TRACE, b"b"))
    with pytest.raises(ValueError, match="ladder"):
        wire.Layers(1, 2, 3, 1, twice)


def test_the_largest_legal_delta_fits_a_message() -> None:
    delta = msgspec.structs.replace(examples.RESIDUE, payload=bytes(wire.MAX_PAYLOAD_BYTES))
    body = wire.encode_batch(wire.Batch(examples.EPOCH, 1, 2, (delta,)))
    assert wire.decode_from_edge(wire.encode(wire.batch_message("t", body)))


def test_what_the_hub_would_refuse_is_not_encoded() -> None:
    delta = msgspec.structs.replace(examples.RESIDUE, payload=bytes(wire.MAX_PAYLOAD_BYTES + 1))
    with pytest.raises(PermanentError) as caught:
        wire.encode_batch(wire.Batch(examples.EPOCH, 1, 2, (delta,)))
    assert caught.value.code is Code.MALFORMED
    layers = tuple(wire.Layer(rung, bytes(wire.MAX_PAYLOAD_BYTES)) for rung in (Rung.FULL, Rung.TRACE))
    with pytest.raises(PermanentError) as caught:
        wire.encode_batch(wire.Batch(examples.EPOCH, 2, 3, (wire.Layers(3, 1, 1, 1, layers),)))
    assert caught.value.code is Code.TOO_LARGE


def test_only_an_ack_can_be_kept_as_an_ack() -> None:
    assert wire.decode_ack(wire.encode(examples.FROM_HUB["ack"])) == examples.FROM_HUB["ack"]
    with pytest.raises(SecurityError):
        wire.decode_ack(wire.encode(wire.Pong()))
