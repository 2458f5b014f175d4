"""shared.memory.blocks: members come back under their own numbers, or not at all."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import IntegrityError, PermanentError
from shared.memory import blocks, codec
from shared.memory.blocks import BlockMember, pack_block, runs, unpack_block
from shared.memory.codec import Codec, Dictionary
from tests.texts import DIALOGUE, TRANSCRIPT

MEMBERS = (
    BlockMember(7, TRANSCRIPT.encode()[:700]),
    BlockMember(3, b""),
    BlockMember(2**32 - 1, DIALOGUE.encode()),
)
DICTIONARY = Dictionary.of(5, TRANSCRIPT.encode()[:900])
HELD = {5: DICTIONARY}

members = st.lists(
    st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=60)),
    min_size=1,
    max_size=blocks.MAX_MEMBERS,
    unique_by=lambda member: member[0],
).map(lambda rows: tuple(BlockMember(number, record) for number, record in rows))


@given(members, st.booleans(), st.booleans())
@settings(max_examples=80)
def test_members_come_back(held: tuple[BlockMember, ...], coded: bool, with_dictionary: bool) -> None:
    made = pack_block(held, dictionary=DICTIONARY if with_dictionary else None, coded=coded)
    assert unpack_block(made.body, HELD) == held
    assert made.verify_failures == 0


def test_a_block_has_these_bytes() -> None:
    held = (BlockMember(5, b"ab"), BlockMember(4, b""), BlockMember(300, b"c"))
    plaintext = "01030a020100d00401616263"
    assert blocks.block_plaintext(held).hex() == plaintext
    assert pack_block(held).body.hex() == "01000c" + codec.digest(bytes.fromhex(plaintext)).hex() + plaintext


@pytest.mark.parametrize("dictionary", [None, DICTIONARY])
@pytest.mark.parametrize("coded", [True, False])
def test_no_flipped_byte_ever_gives_other_members(dictionary: Dictionary | None, coded: bool) -> None:
    body = pack_block(MEMBERS, dictionary=dictionary, coded=coded).body
    for position in range(len(body)):
        damaged = bytearray(body)
        damaged[position] ^= 1 << position % 8
        try:
            assert unpack_block(bytes(damaged), HELD) == MEMBERS
        except IntegrityError:
            continue
    for length in range(0, len(body), 7):
        with pytest.raises(IntegrityError):
            unpack_block(body[:length], HELD)


def _verified(plaintext: str) -> bytes:
    return codec.encode(bytes.fromhex(plaintext)).body


@pytest.mark.parametrize(
    "plaintext",
    [
        "0201000061",  # another version
        "0100",  # no member
        "0141" + "0200" * 65,  # too many
        "01010a0261",  # a member that ends early
        "01010a0061",  # bytes left over
        "01010100",  # a number below zero
        "0101808080802000",  # a number above 32 bits
    ],
)
def test_a_verified_block_that_makes_no_sense_is_refused(plaintext: str) -> None:
    with pytest.raises(IntegrityError):
        unpack_block(_verified(plaintext))


@pytest.mark.parametrize(
    "held",
    [
        (),
        tuple(BlockMember(number, b"") for number in range(65)),
        (BlockMember(1, b"a" * 40_000), BlockMember(2, b"a" * 40_000)),
        (BlockMember(1, b"a"), BlockMember(1, b"b")),
    ],
)
def test_what_is_no_block_is_not_packed(held: tuple[BlockMember, ...]) -> None:
    with pytest.raises(PermanentError):
        pack_block(held)


def test_one_large_member_is_a_block_of_its_own() -> None:
    held = (BlockMember(1, TRANSCRIPT.encode() * 100),)
    made = pack_block(held)
    assert made.codec is Codec.ZSTD
    assert unpack_block(made.body) == held


@given(st.lists(st.integers(0, 70_000), max_size=300))
def test_runs_keep_both_limits_and_lose_nobody(sizes: list[int]) -> None:
    cuts = runs(sizes)
    assert [index for cut in cuts for index in range(*cut.indices(len(sizes)))] == list(range(len(sizes)))
    for cut in cuts:
        assert 1 <= cut.stop - cut.start <= blocks.MAX_MEMBERS
        assert cut.stop - cut.start == 1 or sum(sizes[cut]) <= blocks.MAX_TEXT_BYTES
    for before, after in pairwise(cuts):
        more = sum(sizes[before]) + sizes[after.start]
        assert before.stop - before.start == blocks.MAX_MEMBERS or more > blocks.MAX_TEXT_BYTES
