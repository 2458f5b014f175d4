"""`msgpack`, which knows nothing of our structs, reads the same values from our bytes."""

from __future__ import annotations

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import wire
from shared.memory.model import Kind, MemoryClass, Rung
from tests.wire import examples

_BYTES16 = st.binary(min_size=16, max_size=16)
_FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("name", sorted(examples.ALL))
def test_the_other_library_reads_every_message(name: str) -> None:
    message = examples.ALL[name]
    frame = examples.frame(name, message)
    assert frame[0] == wire.PROTOCOL
    read = msgpack.unpackb(frame[1:], use_list=False)
    assert read == _tuples(msgspec.to_builtins(message, builtin_types=(bytes,)))


def _tuples(value: object) -> object:
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


@given(
    st.builds(
        wire.Created,
        seq=st.integers(1, 2**63 - 1),
        number=st.integers(0, 2**32 - 1),
        public_id=_BYTES16,
        version=st.integers(1, 2**31 - 1),
        kind=st.sampled_from(Kind),
        memory_class=st.sampled_from(MemoryClass),
        created_wall_ns=st.integers(0, 2**63 - 1),
        digest=_BYTES16,
        value=_FINITE,
        text_bytes=st.integers(0, 2**40),
        links=st.lists(st.integers(0, 2**32 - 1), max_size=20).map(tuple),
        original=st.binary(max_size=300),
    )
)
def test_created_round_trips_and_reads_the_same(delta: wire.Created) -> None:
    body = wire.encode_batch(wire.Batch(examples.EPOCH, delta.seq - 1, delta.seq, (delta,)))
    assert wire.decode_batch(body).deltas == (delta,)
    tag, *fields = msgpack.unpackb(body[1:])[3][0]
    assert tag == 1
    assert fields == [
        delta.seq, delta.number, delta.public_id, delta.version, delta.kind, delta.memory_class,
        delta.created_wall_ns, delta.digest, delta.value, delta.text_bytes, list(delta.links), delta.original,
    ]  # fmt: skip


@given(st.text(max_size=200), st.binary(min_size=1, max_size=100), st.sampled_from(Rung))
def test_a_draft_request_round_trips(residue: str, record: bytes, rung: Rung) -> None:
    ask = msgspec.structs.replace(
        examples.FROM_EDGE["draft_ask"], residue=residue, record=record, origin=rung
    )
    assert wire.decode_from_edge(wire.encode(ask)) == ask
