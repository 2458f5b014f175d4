"""Levels that a hub has are frozen: what a newer distiller does to a store that an older one has levelled."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from edge_agent.distill import PlainDistiller
from edge_agent.entries import ArchiveMode, ExactText, NewEntry
from edge_agent.store import Store
from shared.errors import Code, PermanentError
from shared.memory import layers
from shared.memory.model import LADDERS, Ladder, Rung
from shared.memory.spans import Levelled
from shared.memory.text_codec import TextCodec
from tests.planes import acknowledge_all, flat_pricing, open_store
from tests.texts import DIALOGUE, TRANSCRIPT

PRODUCT = LADDERS["product"]
TEXTS = [TRANSCRIPT, DIALOGUE * 3, TRANSCRIPT.replace("apple", "potato"), DIALOGUE.upper() * 3]


class NextDistiller(PlainDistiller):
    """The rule after this one: other levels for the same text."""

    version = PlainDistiller.version + 1

    def distil(self, text: str, ladder: Ladder, chosen: Collection[int] = ()) -> Levelled:
        return super().distil(text, ladder, {*chosen, *range(0, 400, 3)})


def opened(tmp_path: Path, distiller: PlainDistiller) -> Store:
    return open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED, codec=TextCodec(distiller))


def test_the_next_distiller_gives_other_levels() -> None:
    """Otherwise nothing here could fail."""
    for text in TEXTS:
        old, new = (
            TextCodec(made).drop(text, PRODUCT, Rung.SKELETAL) for made in (PlainDistiller(), NextDistiller())
        )
        assert old.record != new.record
        assert TextCodec(PlainDistiller()).render(old.record) != TextCodec(PlainDistiller()).render(
            new.record
        )


def test_releveling_after_a_layer_was_acknowledged_is_refused(tmp_path: Path) -> None:
    with closing(opened(tmp_path, PlainDistiller())) as store:
        shipped, kept = store.add_many([NewEntry(text) for text in TEXTS[:2]])
        store.link.ship([shipped])
        acknowledge_all(store)
        assert store.read(shipped).archived
    with closing(opened(tmp_path, NextDistiller())) as store:
        for rung in (Rung.COMPRESSED, Rung.SKELETAL, Rung.TRACE):
            with pytest.raises(PermanentError) as refused:
                store.apply_moves({shipped: rung})
            assert refused.value.code is Code.LEVELS_FROZEN
        assert store.read(shipped).text == TEXTS[0]
        sizes = store.sweep_columns(flat_pricing(store)).size_bytes
        lossy = [PRODUCT.index(spec.rung) for spec in PRODUCT.lossy]
        # A sweep is not even offered what would be refused.
        assert np.isinf(sizes[0, lossy]).all()
        assert np.isfinite(sizes[1, lossy]).any()
        store.apply_moves({shipped: Rung.PACKED, kept: Rung.SKELETAL})
        assert store.read(kept).levelling == NextDistiller.version
        assert store.read(shipped).rung is Rung.PACKED


def test_a_lossy_entry_keeps_its_old_levels_for_life(tmp_path: Path) -> None:
    old, new = TextCodec(PlainDistiller()), TextCodec(NextDistiller())
    with closing(opened(tmp_path, PlainDistiller())) as store:
        numbers = store.add_many([NewEntry(text) for text in TEXTS])
        store.apply_moves(dict.fromkeys(numbers, Rung.COMPRESSED))
        acknowledge_all(store)
    with closing(opened(tmp_path, NextDistiller())) as store:
        store.apply_moves(dict.fromkeys(numbers, Rung.TRACE))
        for number, text in zip(numbers, TEXTS, strict=True):
            entry = store.read(number)
            assert entry.levelling == PlainDistiller.version
            # By the old rule, in two steps, under another daemon: the same bytes.
            assert entry.text == old.render(old.drop(text, PRODUCT, Rung.TRACE).record)
        store.restore_exact([ExactText(numbers[0], TEXTS[0])], Rung.PACKED)
        assert store.read(numbers[0]).text == TEXTS[0]
    # Layers of the old rule join, lower and rebase under the new one; the levels are those of the bytes.
    for text in TEXTS:
        shipped = old.layers(text, PRODUCT)
        record = old.drop(text, PRODUCT, Rung.COMPRESSED).record
        assert new.join(shipped, PRODUCT) == text
        assert new.lower(record, PRODUCT, Rung.TRACE) == old.drop(text, PRODUCT, Rung.TRACE)
        assert new.join_base(record, shipped, PRODUCT) == text
        assert new.rebase(shipped, PRODUCT, Rung.SKELETAL) == old.drop(text, PRODUCT, Rung.SKELETAL)
        assert (
            layers.decode_record(new.rebase(shipped, PRODUCT, Rung.TRACE).record).levelling == old.levelling
        )
