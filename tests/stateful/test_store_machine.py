"""The store against a dict of originals: any order of writes, sweeps, lifts, evictions and crashes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from edge_agent.entries import ArchiveMode, EvictionReason, ExactText, NewEntry, Overlay, StoredEntry
from edge_agent.search import Scored
from edge_agent.store import Store
from edge_agent.sweep import Sweep
from shared.memory.codec import digest
from shared.memory.model import LADDERS, Kind, Rung
from shared.memory.vectors import Floats, Signature
from tests.planes import PrefixCodec, acknowledge_all, archived_entry, fill, open_store, scattered_pricing

_TEXTS = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), min_size=1, max_size=400
).filter(lambda text: text.strip())
_KINDS = st.sampled_from([Kind.MESSAGE, Kind.MEMORY, Kind.EPISODE])


_MODELS = (Signature("one", 64, "mean"), Signature("two", 128, "cls"))


def _vectors(model: Signature, numbers: list[int]) -> Floats:
    """Unit vectors seeded by number, (n, width)."""
    rows = [np.random.default_rng(number).standard_normal(model.width) for number in numbers]
    made = np.array(rows, np.float32).reshape(-1, model.width)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


class StoreMachine(RuleBasedStateMachine):
    """One store, one ladder, an archive that keeps what it is sent."""

    numbers: Bundle[int] = Bundle("numbers")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="store-machine-"))
        self.originals: dict[int, str] = {}
        self.entries: dict[int, StoredEntry] = {}
        self.bases: dict[tuple[int, int, Rung], str] = {}
        self.opened = 0

    @initialize(ladder=st.sampled_from(["product", "paper", "k3", "packed"]), linked=st.booleans())
    def open(self, ladder: str, linked: bool) -> None:
        self.ladder = ladder
        self.archive = ArchiveMode.DEMOTED if linked else None
        self.store = self._open()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        shutil.rmtree(self.directory)

    # --- rules ----------------------------------------------------------------------------------------

    @rule(
        target=numbers, texts=st.lists(_TEXTS, min_size=1, max_size=6), kind=_KINDS, repeat=st.integers(1, 4)
    )
    def add(self, texts: list[str], kind: Kind, repeat: int) -> object:
        added = []
        for text in texts * repeat:
            number = self.store.add(NewEntry(text, kind))
            self.originals[number] = text
            self.entries[number] = self.store.read(number)
            added.append(number)
        return multiple(*added)

    @rule(target=numbers, count=st.integers(10, 90), size=st.integers(20, 600), seed=st.integers(0, 99))
    def add_many(self, count: int, size: int, seed: int) -> object:
        added = fill(self.store, count, size, seed)
        self.originals.update(added)
        self.entries.update({number: self.store.read(number) for number in added})
        return multiple(*list(added)[:5])

    @rule(share=st.floats(0.05, 1.0))
    def squeeze(self, share: float) -> None:
        usage = self.store.usage()
        budget = int(max(share * usage.logical_bytes, usage.floor_bytes + 4_000))
        self.store.set_budget(budget)
        self._swept(Sweep(self.store, lambda: scattered_pricing(self.store)), budget)

    @rule(share=st.floats(0.05, 0.9), steps=st.integers(0, 4))
    def squeeze_and_crash(self, share: float, steps: int) -> None:
        usage = self.store.usage()
        budget = int(max(share * usage.logical_bytes, usage.floor_bytes + 4_000))
        self.store.set_budget(budget)
        running = Sweep(self.store, lambda: scattered_pricing(self.store)).steps()
        for _ in range(steps):
            if next(running, None) is None:
                break
        self.crash()
        resumed = Sweep(self.store, lambda: scattered_pricing(self.store))
        pending = bool(self.store.meta.target_pending)
        for _ in resumed.resume():
            pass
        if pending:
            self._holds(budget)
        self._forget_evicted()

    @rule()
    def widen(self) -> None:
        self.store.set_budget(64 << 20)
        self.store.budget_met()

    @rule(number=numbers, to=st.sampled_from([Rung.FULL, Rung.PACKED]))
    def restore(self, number: int, to: Rung) -> None:
        if number not in self.store.table or to not in self._rungs():
            return
        held = self.store.read(number)
        if held.rung.lossy:
            self.store.restore_exact([ExactText(number, self.originals[number])], to)
            assert self.store.read(number).rung is to

    @rule(number=numbers)
    def unpack(self, number: int) -> None:
        if number in self.store.table and self.store.read(number).rung is Rung.PACKED:
            self.store.apply_moves({number: Rung.FULL})
            assert self.store.read(number).text == self.originals[number]

    @rule(number=numbers, text=_TEXTS)
    def cover(self, number: int, text: str) -> None:
        if number not in self.store.table:
            return
        held = self.store.read(number)
        above = [rung for rung in self._rungs() if rung < held.rung and rung is not Rung.PACKED]
        if held.rung.lossy and above:
            self.store.put_overlay(number, held.version, held.base_digest, Overlay(above[-1], text, "m", 5))
            shown = self.store.read(number)
            assert (shown.text, shown.base_text, shown.shown_rung) == (text, held.base_text, above[-1])

    @rule(number=numbers)
    def uncover(self, number: int) -> None:
        if number in self.store.table and self.store.read(number).overlay is not None:
            self.store.drop_overlay(number)
            assert self.store.read(number).overlay is None

    @rule(number=consumes(numbers))
    def evict(self, number: int) -> None:
        if number in self.store.table:
            gone = self.store.evict([number], EvictionReason.BUDGET, {})[0]
            assert gone.stub == (
                self.entries[number].number in {stub.number for stub in self.store.stubs(0, 10**6)}
            )
            self._forget_evicted()

    @rule(number=consumes(numbers))
    def forget(self, number: int) -> None:
        if number in self.store.table:
            self.store.forget(number)
            self._forget_evicted()

    @rule(chosen=st.lists(numbers, min_size=1, max_size=5, unique=True), g=st.floats(0, 1))
    def recall_and_grade(self, chosen: list[int], g: float) -> None:
        hits = [(number, 1 / len(chosen)) for number in chosen]
        recall_id = self.store.record_recall(hits)
        if self.store.open_recall(recall_id) is not None:
            self.store.record_outcome(recall_id, g, dict.fromkeys(chosen, g / 2), 10)
            assert self.store.open_recall(recall_id) is None

    @rule()
    def next_stage(self) -> None:
        self.store.begin_stage(1.0)

    @precondition(lambda self: self.archive is not None)
    @rule(chosen=st.lists(numbers, max_size=5, unique=True))
    def ship_and_ack(self, chosen: list[int]) -> None:
        self.store.link.ship(chosen)
        acknowledge_all(self.store)
        for number in chosen:
            exact = number in self.store.table and not self.store.read(number).rung.lossy
            if exact and LADDERS[self.ladder].lossy:
                assert self.store.read(number).archived

    @rule()
    def revive(self) -> None:
        stubs = self.store.stubs(0, 3)
        texts = [
            ExactText(stub.number, self.originals[stub.number], archived_entry(self.entries[stub.number]))
            for stub in stubs
        ]
        if texts:
            self.store.restore_exact(texts, self._rungs()[-1] if self.ladder == "packed" else Rung.FULL)
            for text in texts:
                assert self.store.read(text.number).text == text.text

    @rule(most=st.integers(1, 60))
    def embed(self, most: int) -> None:
        model = self.store.vectors.signature or _MODELS[0]
        entries = self.store.vectors.wanting(model, most, 10**6)
        kept = self.store.vectors.keep(model, entries, _vectors(model, [entry.number for entry in entries]))
        assert kept == len(entries)

    @rule(model=st.sampled_from(_MODELS))
    def reembed(self, model: Signature) -> None:
        """Another model takes over: no code of the one before stays."""
        changed = model != self.store.vectors.signature
        self.store.vectors.adopt(model)
        assert not changed or len(self.store.vectors) == 0

    @rule()
    def crash(self) -> None:
        """Lose everything that is not on disk."""
        before = self.store.table.rows()
        nearest = self._nearest()
        self.store.plane.db.close()
        self.store = self._open()
        after = self.store.table.rows()
        for column in before.dtype.names or ():
            assert before[column].tobytes() == after[column].tobytes(), column
        assert self._nearest() == nearest

    # --- what always holds ------------------------------------------------------------------------------

    @invariant()
    def every_entry_gives_its_digest_at_its_rung(self) -> None:
        for number in self.store.table:
            held = self.store.read(number)
            if held.rung.lossy:
                key = number, held.levelling, held.rung
                expected = self.bases.setdefault(key, PrefixCodec().render(self._dropped(number, held.rung)))
                assert held.base_text == expected
            else:
                assert digest(held.base_text.encode()) == held.digest
                assert held.base_text == self.originals[number]
            assert held.public_id == self.entries[number].public_id

    @invariant()
    def bulk_reads_agree(self) -> None:
        shown = dict(self.store.texts(self.store.table))
        assert shown == {number: self.store.read(number).text for number in self.store.table}

    @invariant()
    def the_account_adds_up(self) -> None:
        bodies = self.store.plane.bodies
        rows = self.store.table.rows()
        packed = rows[rows["facts"]["rung"] != Rung.FULL]
        live = float(packed["body_bytes"].sum(dtype=float))
        total = sum(block.body_bytes for block in bodies.blocks.values())
        assert abs(live + bodies.dead_bytes() - total) <= 1 + total * 1e-5

    @invariant()
    def vectors_are_where_they_may_be(self) -> None:
        rows = self.store.table.rows()
        held = rows[rows["vector_bytes"] > 0]
        numbers = set(held["number"].tolist())
        assert set(self.store.plane.vectors.numbers().tolist()) == numbers
        on_disk = self.store.plane.db.query("SELECT number, length(code) FROM vector")
        assert {number for number, _ in on_disk} == numbers
        assert (held["facts"]["rung"] <= Rung.COMPRESSED).all()
        model = self.store.vectors.signature
        if model is not None:
            assert {size for _, size in on_disk} <= {model.width // 8}
            assert set(held["vector_bytes"].tolist()) <= {model.width // 8 + 12}

    # --- helpers ----------------------------------------------------------------------------------------

    def _open(self) -> Store:
        self.opened += 1
        return open_store(
            self.directory / "memory", ladder=self.ladder, archive=self.archive, seed=self.opened
        )

    def _nearest(self) -> list[list[Scored]]:
        model = self.store.vectors.signature
        asked: list[Floats] = list(_vectors(model, [10**6, 10**6 + 1])) if model is not None else []
        return [self.store.vectors.search(query, 20) for query in asked]

    def _rungs(self) -> list[Rung]:
        return [spec.rung for spec in LADDERS[self.ladder].rungs]

    def _dropped(self, number: int, rung: Rung) -> bytes:
        return PrefixCodec().drop(self.originals[number], LADDERS[self.ladder], rung).record

    def _swept(self, sweep: Sweep, budget: int) -> None:
        sweep.run()
        self._holds(budget)
        self._forget_evicted()

    def _holds(self, budget: int) -> None:
        usage = self.store.usage()
        assert usage.logical_bytes <= budget
        assert usage.disk_bytes <= budget + usage.empty_bytes
        assert usage.holds
        assert not self.store.meta.target_pending

    def _forget_evicted(self) -> None:
        assert set(self.store.table) <= set(self.originals)


StoreMachine.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
TestStore = StoreMachine.TestCase
