"""edge_agent.levels and choices: a choice is kept once, before any layer is made, and used for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from edge_agent.distill import PlainDistiller, sentences
from edge_agent.entries import ArchiveMode, EvictionReason, NewEntry
from edge_agent.levels import changes_levels, choose, open_to_choice, room_for_choice
from edge_agent.store import Store
from shared.errors import Code, PermanentError
from shared.memory import codec
from shared.memory.layers import decode_record
from shared.memory.model import Kind, Rung
from shared.memory.text_codec import CHOSEN, TextCodec
from shared.messages import Layers
from tests.planes import acknowledge_all, flat_pricing, open_store

TEXT = (
    "The old lighthouse keeper paints shells at dawn. The baker on Mill Street sells rye loaves."
    " Anna moved to Providence in May and works at the harbour. The cat sleeps under the green sofa."
    " Tom lost his grey umbrella near the station. The well behind the barn is dry in August."
)
LOSSY = (Rung.COMPRESSED, Rung.SKELETAL, Rung.TRACE)
CODEC = TextCodec(PlainDistiller())


def clause(words: str) -> int:
    """The number of the clause that holds these words."""
    at = TEXT.index(words)
    return next(number for start, end, number in sentences(TEXT) if start <= at < end)


CHOSEN_CLAUSES = (clause("The well"), clause("Tom lost"))


@contextmanager
def opened(directory: Path, archive: ArchiveMode | None = None) -> Iterator[Store]:
    store = open_store(directory, archive=archive, codec=CODEC)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    return tmp_path / "memory"


def record_at(store: Store, number: int, rung: Rung) -> bytes:
    store.apply_moves({number: rung})
    return store.read(number).record


def test_the_choice_is_used_at_the_first_lossy_demotion_and_named_by_its_levelling(directory: Path) -> None:
    with opened(directory) as store:
        plain, chosen = store.add_many([NewEntry(TEXT), NewEntry(TEXT)])
        choose(store.plane, chosen, CHOSEN_CLAUSES)
        records = {number: record_at(store, number, Rung.SKELETAL) for number in (plain, chosen)}
        assert "barn" in store.read(chosen).text
        assert "barn" not in store.read(plain).text
        assert store.read(plain).levelling == CODEC.levelling
        assert store.read(chosen).levelling == CODEC.levelling | CHOSEN
        assert decode_record(records[chosen]).levelling == CODEC.levelling | CHOSEN
        assert decode_record(records[plain]).levelling == CODEC.levelling


def test_only_spans_of_the_original_reach_a_layer(directory: Path) -> None:
    with opened(directory) as store:
        number = store.add(NewEntry(TEXT))
        choose(store.plane, number, (*CHOSEN_CLAUSES, 9999))
        for rung in LOSSY:
            base = decode_record(record_at(store, number, rung))
            assert all(span.text in TEXT for span in base.spans)


def test_the_same_bytes_after_a_restart_and_one_rung_at_a_time(directory: Path) -> None:
    with opened(directory) as store:
        early, late = store.add_many([NewEntry(TEXT), NewEntry(TEXT)])
        for number in (early, late):
            choose(store.plane, number, CHOSEN_CLAUSES)
        expected = [record_at(store, early, rung) for rung in LOSSY]
    for rung, record in zip(LOSSY, expected, strict=True):
        with opened(directory) as store:
            assert store.plane.choices.of(late) == tuple(sorted(CHOSEN_CLAUSES))
            assert record_at(store, late, rung) == record


def test_an_entry_is_levelled_once(directory: Path) -> None:
    with opened(directory) as store:
        number = store.add(NewEntry(TEXT))
        choose(store.plane, number, CHOSEN_CLAUSES)
        with pytest.raises(PermanentError) as caught:
            choose(store.plane, number, (0,))
        assert caught.value.code is Code.LEVELS_FROZEN
        assert store.plane.choices.of(number) == tuple(sorted(CHOSEN_CLAUSES))


def test_no_choice_after_the_levels_are_made(directory: Path) -> None:
    with opened(directory) as store:
        number = store.add(NewEntry(TEXT))
        store.apply_moves({number: Rung.COMPRESSED})
        assert open_to_choice(store.plane, [number, 999]) == ()
        with pytest.raises(PermanentError):
            choose(store.plane, number, CHOSEN_CLAUSES)


def test_no_choice_once_the_layers_are_sent_or_acknowledged(directory: Path) -> None:
    with opened(directory, ArchiveMode.DEMOTED) as store:
        waiting, sent = store.add_many([NewEntry(TEXT), NewEntry(TEXT)])
        store.link.ship([sent])
        # Not built yet: the choice would be in them.
        assert open_to_choice(store.plane, [waiting, sent]) == (waiting, sent)
        store.link.sealed()
        assert open_to_choice(store.plane, [waiting, sent]) == (waiting,)
        acknowledge_all(store)
        assert open_to_choice(store.plane, [waiting, sent]) == (waiting,)
        for state in ("acknowledged", "restarted"):
            with pytest.raises(PermanentError) as caught:
                choose(store.plane, sent, CHOSEN_CLAUSES)
            assert caught.value.code is Code.LEVELS_FROZEN, state
            store.link.resync(7)


def test_layers_shipped_with_a_choice_join_to_the_original_and_freeze_it(directory: Path) -> None:
    with opened(directory, ArchiveMode.DEMOTED) as store:
        number = store.add(NewEntry(TEXT))
        choose(store.plane, number, CHOSEN_CLAUSES)
        store.link.ship([number])
        layers = [delta for delta in acknowledge_all(store) if isinstance(delta, Layers)]
        assert [delta.levelling for delta in layers] == [CODEC.levelling | CHOSEN]
        dropped = CODEC.layers(TEXT, store.plane.ladder, tuple(sorted(CHOSEN_CLAUSES)))
        assert [layer.payload for layer in layers[0].layers] == [layer.payload for layer in dropped]
        assert CODEC.join(dropped, store.plane.ladder) == TEXT
        # The entry may still go down, and a sweep knows it: its own levels are the frozen ones.
        sizes = store.sweep_columns(flat_pricing(store)).size_bytes[0]
        assert all(np.isfinite(sizes[store.plane.ladder.index(rung)]) for rung in LOSSY)
        assert record_at(store, number, Rung.TRACE) == codec.decode(dropped[-1].payload)


def test_a_choice_is_charged_stays_with_a_stub_and_goes_with_the_entry(directory: Path) -> None:
    with opened(directory, ArchiveMode.DEMOTED) as store:
        kept, gone, forgotten = store.add_many([NewEntry(TEXT)] * 3)
        before = store.account.shared_bytes()
        for number in (kept, gone, forgotten):
            choose(store.plane, number, CHOSEN_CLAUSES)
        charged = store.plane.choices.charged_bytes()
        assert 0 < charged <= 3 * 24
        assert store.account.shared_bytes() == before + charged
        store.link.ship([kept])
        acknowledge_all(store)
        store.evict([kept, gone], EvictionReason.BUDGET, {})
        store.forget(forgotten)
        assert [number in store.plane.choices for number in (kept, gone, forgotten)] == [True, False, False]
        assert store.plane.choices.charged_bytes() == charged // 3
        store.drop_stubs(1000.0)
        assert (len(store.plane.choices), store.plane.choices.charged_bytes()) == (0, 0)


def test_only_a_choice_that_changes_something_is_worth_keeping(directory: Path) -> None:
    with opened(directory) as store:
        assert changes_levels(store.plane, Kind.MEMORY, TEXT, CHOSEN_CLAUSES)
        assert not changes_levels(store.plane, Kind.MEMORY, TEXT, ())
        assert not changes_levels(store.plane, Kind.MEMORY, "One clause only.", (0,))


def test_choices_take_a_hundredth_of_the_budget_at_most(directory: Path) -> None:
    with opened(directory) as store:
        assert room_for_choice(store.plane, CHOSEN_CLAUSES)
        store.set_budget(1500)
        assert not room_for_choice(store.plane, CHOSEN_CLAUSES)


def test_an_evicted_entry_with_a_choice_comes_back_and_goes_down_again(directory: Path) -> None:
    from edge_agent.entries import ExactText
    from tests.planes import archived_entry

    with opened(directory, ArchiveMode.DEMOTED) as store:
        number = store.add(NewEntry(TEXT))
        choose(store.plane, number, CHOSEN_CLAUSES)
        store.link.ship([number])
        acknowledge_all(store)
        held = archived_entry(store.read(number))
        store.evict([number], EvictionReason.BUDGET, {})
        store.restore_exact([ExactText(number, TEXT, held)], Rung.PACKED)
        assert store.read(number).levelling == CODEC.levelling | CHOSEN
        expected = CODEC.drop(TEXT, store.plane.ladder, Rung.SKELETAL, tuple(sorted(CHOSEN_CLAUSES)))
        assert record_at(store, number, Rung.SKELETAL) == expected.record
