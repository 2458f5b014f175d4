"""The bytes of protocol 1 never change: a field may only be appended, with a default."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared import wire
from tests.wire import examples

GOLDEN = Path(__file__).parent / "golden_v1.txt"


def golden() -> dict[str, bytes]:
    """Name and frame of every message, as the first release wrote them."""
    lines = (line.split() for line in GOLDEN.read_text("ascii").splitlines())
    return {name: bytes.fromhex(frame) for name, frame in lines}


def decoded(name: str, frame: bytes) -> object:
    if name in examples.BODIES:
        return wire.decode_batch(frame)
    return wire.decode_from_edge(frame) if name in examples.FROM_EDGE else wire.decode_from_hub(frame)


@pytest.mark.parametrize("name", sorted(examples.ALL))
def test_every_message_has_its_golden_bytes(name: str) -> None:
    assert examples.frame(name, examples.ALL[name]).hex() == golden()[name].hex()


@pytest.mark.parametrize("name", sorted(examples.ALL))
def test_golden_bytes_decode_to_the_message(name: str) -> None:
    assert decoded(name, golden()[name]) == examples.ALL[name]


@pytest.mark.parametrize("name", sorted(name for name in golden() if "_before_" in name))
def test_what_an_earlier_release_sent_still_decodes(name: str) -> None:
    """The field that was appended since has its default."""
    known = name.partition("_before_")[0]
    assert decoded(known, golden()[name]) == examples.ALL[known]


def test_every_message_of_the_schema_has_an_example() -> None:
    shown = {type(message).__name__ for message in examples.ALL.values()}
    deltas = {type(batch.deltas[0]).__name__ for batch in examples.BODIES.values()}
    named = {item.__name__ for item in wire._SCHEMA}
    assert shown | deltas | {"Layer"} == named


def test_the_schema_hash_is_that_of_protocol_1() -> None:
    assert wire.schema_hash().hex() == golden()["schema_hash"].hex()


def test_a_later_release_may_append_a_field() -> None:
    ping = bytearray(wire.encode(wire.Ping("tenant-1")))
    assert ping[1] == 0x92  # an array of two
    ping[1] = 0x93
    assert wire.decode_from_edge(bytes(ping) + b"\x2a") == wire.Ping("tenant-1")
