"""shared.memory.text_codec: records and layers as the store and the hub see them, after any history."""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edge_agent.distill import PlainDistiller
from shared.errors import CrystalError, IntegrityError
from shared.memory import codec, layers
from shared.memory.blocks import BlockMember, pack_block, unpack_block
from shared.memory.model import LADDERS, Ladder, Rung
from shared.memory.spans import Levelled
from shared.memory.text_codec import TextCodec, pack_layer, unpack_layer
from shared.ports import DroppedLayer, RungCodec
from tests.texts import TRANSCRIPT, any_text, ladders

PRODUCT = LADDERS["product"]


class RandomCuts:
    """Cuts any text anywhere, the same way each time."""

    version = 7

    def distil(self, text: str, ladder: Ladder, chosen: Collection[int] = ()) -> Levelled:
        dice = random.Random(text)
        ends = sorted({*(dice.randint(1, len(text)) for _ in range(len(text) // 4)), len(text)} - {0})
        rungs = [Rung.FULL, *(spec.rung for spec in ladder.lossy)]
        return Levelled(text, tuple(ends), tuple(dice.choice(rungs) for _ in ends))


CODEC: RungCodec = TextCodec(RandomCuts())
TEXTS = TextCodec(RandomCuts())


@given(any_text, ladders, st.randoms(use_true_random=False))
@settings(max_examples=120, deadline=None)
def test_all_layers_in_any_order_are_the_original(text: str, ladder: Ladder, dice: random.Random) -> None:
    dropped = list(TEXTS.layers(text, ladder))
    assert dropped[-1].rung_above is Rung.TRACE
    assert [layer.rung_above for layer in dropped] == sorted(layer.rung_above for layer in dropped)
    dice.shuffle(dropped)
    assert TEXTS.join(dropped, ladder) == text


@given(any_text, ladders, st.data())
@settings(max_examples=120, deadline=None)
def test_a_base_depends_only_on_original_levelling_and_rung(
    text: str, ladder: Ladder, data: st.DataObject
) -> None:
    """Any walk down by `lower`, up by joining layers, down by `drop` or `rebase`: one record per rung."""
    assume(text)
    rungs = [spec.rung for spec in ladder.lossy]
    direct = {rung: TEXTS.drop(text, ladder, rung).record for rung in rungs}
    assert TEXTS.level(text, ladder) == direct[rungs[0]]
    dropped = TEXTS.layers(text, ladder)
    record, at = direct[rungs[0]], rungs[0]
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.sampled_from(rungs))
        if at >= layers.decode_record(record).rung:
            record = TEXTS.lower(record, ladder, at).record
        elif data.draw(st.booleans()):
            record = TEXTS.rebase(dropped, ladder, at).record
        else:
            record = TEXTS.drop(TEXTS.join_base(record, dropped, ladder), ladder, at).record
        stored = pack_block([BlockMember(1, record)]).body
        record = unpack_block(stored)[0].record
        assert record == direct[at]
        assert TEXTS.render(record) == TEXTS.render(direct[at])
        assert TEXTS.join_base(record, dropped, ladder) == text


@given(any_text, ladders)
@settings(max_examples=80, deadline=None)
def test_offered_rungs_shrink_strictly(text: str, ladder: Ladder) -> None:
    above = len(text.encode())
    for rung in TEXTS.offered(text, ladder):
        assert rung.text_bytes < above
        assert rung.record_bytes == len(TEXTS.drop(text, ladder, rung.rung).record)
        above = rung.text_bytes


def test_a_ladder_without_lossy_rungs_still_has_its_layers() -> None:
    dropped = TextCodec(PlainDistiller()).layers(TRANSCRIPT, LADDERS["packed"])
    assert TEXTS.join(dropped, LADDERS["packed"]) == TRANSCRIPT


def test_a_long_text_comes_back_like_a_short_one() -> None:
    text = TRANSCRIPT * 8
    record = TEXTS.level(text, PRODUCT)
    assert TEXTS.join_base(record, TEXTS.layers(text, PRODUCT), PRODUCT) == text


def test_layers_from_a_base_are_the_layers_of_its_original() -> None:
    whole = TEXTS.layers(TRANSCRIPT, PRODUCT)
    for spec in PRODUCT.lossy:
        record = TEXTS.drop(TRANSCRIPT, PRODUCT, spec.rung).record
        assert TEXTS.layers_below(record, PRODUCT) == tuple(
            layer for layer in whole if layer.rung_above >= spec.rung
        )


def _payload(rung: Rung, plaintext: str) -> DroppedLayer:
    return DroppedLayer(rung, pack_layer(bytes.fromhex(plaintext)))


def test_layers_that_do_not_belong_together_are_refused() -> None:
    whole = TEXTS.layers(TRANSCRIPT, PRODUCT)
    trace, top = whole[-1], whole[0]
    wrong: list[list[DroppedLayer]] = [
        list(whole[:-1]),  # no TRACE
        [*whole, trace],  # TRACE twice
        [*whole, top],  # a layer twice
        [DroppedLayer(Rung.FULL, whole[1].payload), *whole[1:]],  # filed under another rung
        [_payload(Rung.FULL, "0108000e61"), trace],  # of another levelling
        [_payload(Rung.FULL, "0107001c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c0e61"), trace],  # too far out
        [DroppedLayer(Rung.FULL, b""), trace],
    ]
    for layer_set in wrong:
        with pytest.raises(IntegrityError):
            TEXTS.join(layer_set, PRODUCT)


def test_a_missing_layer_is_never_taken_for_the_original() -> None:
    whole = TEXTS.layers(TRANSCRIPT, PRODUCT)
    digest = codec.digest(TRANSCRIPT.encode())
    for missing in whole[:-1]:
        rest = [layer for layer in whole if layer is not missing]
        try:
            joined = TEXTS.join(rest, PRODUCT)
        except IntegrityError:
            continue
        assert codec.digest(joined.encode()) != digest


def test_no_flipped_byte_of_a_layer_ever_joins_to_the_original_unseen() -> None:
    whole = TEXTS.layers(TRANSCRIPT[:300], PRODUCT)
    digest = codec.digest(TRANSCRIPT[:300].encode())
    for index, layer in enumerate(whole):
        for position in range(len(layer.payload)):
            damaged = bytearray(layer.payload)
            damaged[position] ^= 0x11
            changed = [*whole]
            changed[index] = DroppedLayer(layer.rung_above, bytes(damaged))
            try:
                joined = TEXTS.join(changed, PRODUCT)
            except IntegrityError:
                continue
            assert codec.digest(joined.encode()) == digest


def test_a_base_is_never_lowered_upwards_or_off_its_ladder() -> None:
    record = TEXTS.drop(TRANSCRIPT, PRODUCT, Rung.SKELETAL).record
    with pytest.raises(CrystalError):
        TEXTS.lower(record, PRODUCT, Rung.COMPRESSED)
    with pytest.raises(KeyError):
        TEXTS.lower(record, LADDERS["k3"], Rung.SKELETAL)
    with pytest.raises(KeyError):
        TEXTS.drop(TRANSCRIPT, PRODUCT, Rung.OUTLINE)


def test_it_is_a_rung_codec() -> None:
    assert CODEC.levelling == 7
    record = CODEC.level(TRANSCRIPT, PRODUCT)
    assert CODEC.gate(record, "", (), strict=True).reason == "empty"
    assert TEXTS.invariants(record) == ()
    assert unpack_layer(pack_layer(record)) == record
