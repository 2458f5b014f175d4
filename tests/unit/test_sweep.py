"""edge_agent.sweep: lossless first, archived before lost, resumable, both budgets, retention policies."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from edge_agent.columns import Pricing
from edge_agent.entries import ArchiveMode, EvictionReason, NewEntry, Overlay
from edge_agent.store import Store
from edge_agent.sweep import WAL_CHUNK_BYTES, Sweep
from edge_agent.sweep_report import SweepPhase
from shared.errors import Code, InputError
from shared.memory.crystallize import aim_bytes
from shared.memory.model import EvictionMode, Kind, MemoryClass, Rung
from shared.ports import EvictionReport, RetainedEntry
from tests.planes import acknowledge_all, fill, flat_pricing, made_text, open_store, scattered_pricing


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "memory")) as opened:
        yield opened


class OldestFirst:
    """ports.Retention: oldest created first; remembers what it was asked."""

    name = "oldest"

    def __init__(self, *, budget_exempt: bool = False) -> None:
        self.budget_exempt = budget_exempt
        self.asked: list[tuple[float, int]] = []
        self.seen: Sequence[RetainedEntry] = ()

    def on_write(self, entry: RetainedEntry, now: int) -> None: ...

    def on_read(self, query: str, hits: Sequence[int], now: int) -> None: ...

    def enforce(self, entries: Sequence[RetainedEntry], excess_bytes: float, now: int) -> EvictionReport:
        self.asked.append((excess_bytes, now))
        self.seen = entries
        freed, chosen = 0.0, []
        for entry in sorted(entries, key=lambda entry: entry.created):
            if freed >= excess_bytes:
                break
            chosen.append(entry.number)
            freed += entry.size_bytes
        return EvictionReport(evicted=tuple(chosen))


def squeeze(store: Store, budget: int, **options: object) -> Sweep:
    store.set_budget(budget)
    sweep = Sweep(store, lambda: scattered_pricing(store), **options)
    sweep.run()
    return sweep


def test_a_budget_that_holds_the_packed_content_loses_nothing(store: Store) -> None:
    texts = fill(store, 600, 900)
    packed = store.usage().packed_bytes + 80 * len(texts)
    budget = int(1.12 * packed)
    assert budget < 0.6 * store.account.logical_bytes()
    sweep = squeeze(store, budget)
    usage = store.usage()
    assert usage.holds
    assert set(usage.rungs) <= {Rung.FULL, Rung.PACKED}
    assert dict(store.texts(texts)) == texts
    assert not sweep.report.lost_exact
    assert not sweep.report.evicted
    assert not store.meta.target_pending


@pytest.mark.parametrize("ladder", ["product", "paper", "k2", "k6", "packed"])
@pytest.mark.parametrize("share", [0.6, 0.3, 0.08])
def test_both_budgets_hold_on_every_ladder(tmp_path: Path, ladder: str, share: float) -> None:
    with closing(open_store(tmp_path / "memory", ladder=ladder)) as store:
        fill(store, 800, 300)
        budget = int(share * store.account.logical_bytes())
        sweep = squeeze(store, budget)
        usage = store.usage()
        assert usage.holds
        assert usage.logical_bytes > 0.6 * budget
        assert sweep.report.usage == usage
        assert len(store) + len(sweep.report.evicted) == 800


def test_a_crystallize_aims_a_little_under_the_budget(store: Store) -> None:
    fill(store, 1500, 400)
    budget = store.account.logical_bytes() // 2
    squeeze(store, int(budget))
    assert store.account.logical_bytes() <= budget
    assert store.account.logical_bytes() >= 0.8 * aim_bytes(budget)


def test_cheaper_entries_sink_first(store: Store) -> None:
    texts = fill(store, 400, 800)
    worth = scattered_pricing(store).values
    squeeze(store, int(0.35 * store.account.logical_bytes()))
    rungs = store.table.rows()["facts"]["rung"]
    shallow, deep = worth[rungs <= Rung.PACKED], worth[rungs > Rung.PACKED]
    assert len(deep) > 20
    assert len(shallow) > 20
    assert deep.mean() < shallow.mean() - 0.2
    assert len(texts) == 400


def test_a_sweep_under_budget_moves_nothing(store: Store) -> None:
    fill(store, 50, 300)
    sweep = squeeze(store, 10_000_000)
    assert not sweep.report.moves
    assert set(store.usage().rungs) == {Rung.FULL}


def test_a_dry_run_changes_nothing(store: Store) -> None:
    fill(store, 100, 300)
    before = store.table.rows().tobytes(), store.meta
    plan = Sweep(store, lambda: flat_pricing(store)).plan(15_000)
    assert plan.moves
    assert (store.table.rows().tobytes(), store.meta) == before


def test_recalls_are_served_between_steps_and_every_step_is_durable(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory")
    texts = fill(store, 3000, 300)
    budget = int(0.5 * store.account.logical_bytes())
    store.set_budget(budget)
    steps = Sweep(store, lambda: scattered_pricing(store)).steps()
    changed = set(next(steps).changed)
    assert changed
    assert dict(store.texts(texts)) == texts
    assert store.meta.target_pending
    store.plane.db.close()
    with closing(open_store(tmp_path / "memory", seed=9)) as again:
        assert dict(again.texts(texts)) == texts
        assert again.meta.target_pending
        packed = again.table.rows()["number"][again.table.rows()["facts"]["rung"] == Rung.PACKED]
        assert set(packed.tolist()) == changed
        resumed = Sweep(again, lambda: scattered_pricing(again))
        assert list(resumed.resume())
        assert again.usage().holds
        assert not again.meta.target_pending
        assert list(resumed.resume()) == []


def test_a_chunk_never_writes_more_wal_than_its_limit(store: Store) -> None:
    fill(store, 4000, 500)
    store.shrink()
    store.set_budget(int(0.3 * store.account.logical_bytes()))
    before = store.account.disk_bytes()
    seen = []
    for _ in Sweep(store, lambda: scattered_pricing(store)).steps():
        seen.append(store.account.disk_bytes())
        assert store.account.wal_bytes() == 0
    assert max(seen) <= before + WAL_CHUNK_BYTES


def test_archived_entries_go_before_those_the_hub_lacks(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as store:
        texts = fill(store, 300, 500)
        acknowledge_all(store)
        archived = set(list(texts)[::2])
        store.link.ship(archived)
        acknowledge_all(store)
        store.set_budget(int(0.25 * store.account.logical_bytes()))
        sweep = Sweep(store, lambda: flat_pricing(store, archive=True))
        order = [step for step in sweep.steps() if step.phase in {SweepPhase.DEMOTE, SweepPhase.GRACE}]
        grace = [step.phase for step in order].index(SweepPhase.GRACE)
        before = {number for step in order[:grace] for number in step.changed}
        assert before <= archived
        assert set(order[grace].changed).isdisjoint(archived)
        lossy = {number for number in store.table if store.read(number).rung.lossy}
        assert set(sweep.report.lost_exact) == lossy - archived


def test_the_grace_lets_layers_arrive_so_that_nothing_is_lost(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as store:
        fill(store, 200, 500)
        acknowledge_all(store)
        store.set_budget(int(0.3 * store.account.logical_bytes()))
        sweep = Sweep(store, lambda: flat_pricing(store, archive=True))
        graces = 0
        for step in sweep.steps():
            if step.phase is SweepPhase.GRACE:
                graces += 1
                acknowledge_all(store)
        assert graces >= 1
        assert sweep.report.lost_exact == []
        assert any(store.read(number).rung.lossy for number in store.table)


def test_with_the_link_down_there_is_no_grace_and_the_loss_is_listed(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as store:
        fill(store, 200, 500)
        acknowledge_all(store)
        store.set_budget(int(0.3 * store.account.logical_bytes()))
        sweep = Sweep(store, lambda: flat_pricing(store, archive=False))
        assert SweepPhase.GRACE not in [step.phase for step in sweep.steps()]
        lossy = [number for number in store.table if store.read(number).rung.lossy]
        assert sorted(sweep.report.lost_exact) == lossy
        assert lossy


def test_priced_eviction_leaves_stubs_only_of_archived_entries(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as store:
        texts = fill(store, 200, 400)
        acknowledge_all(store)
        store.link.ship(list(texts)[:100])
        acknowledge_all(store)
        store.begin_stage(1.0)
        store.begin_stage(1.0)
        sweep = squeeze(store, int(0.2 * store.account.logical_bytes()), mode=EvictionMode.PRICED)
        assert sweep.report.evicted
        assert {gone.reason for gone in sweep.report.evicted} == {EvictionReason.PRICED}
        assert all(gone.stub == (gone.number in set(list(texts)[:100])) for gone in sweep.report.evicted)
        assert store.usage().holds


def test_last_resort_spares_the_exempt_while_others_are_left(store: Store) -> None:
    rng = random.Random(3)
    rules = {
        store.add(NewEntry(made_text(rng, 300), Kind.MEMORY, MemoryClass.RULE)),
        store.add(NewEntry(made_text(rng, 300), core=True)),
    }
    cited = store.add(NewEntry(made_text(rng, 300)))
    store.add(NewEntry(made_text(rng, 300), references=(cited,), core=True))
    fill(store, 300, 300)
    store.begin_stage(1.0)
    store.begin_stage(1.0)
    fresh = set(fill(store, 5, 300, seed=8))
    sweep = squeeze(store, int(0.12 * store.account.logical_bytes()))
    gone = {entry.number for entry in sweep.report.evicted}
    assert len(gone) > 100
    assert gone.isdisjoint(rules | fresh | {cited})


def test_what_a_recalled_exact_entry_cites_stops_at_skeletal(store: Store) -> None:
    rng = random.Random(6)
    cited = [store.add(NewEntry(made_text(rng, 400))) for _ in range(30)]
    others = fill(store, 200, 400)
    citing = [store.add(NewEntry(made_text(rng, 400), references=(number,), core=True)) for number in cited]
    store.record_recall([(number, 0.1) for number in citing])
    store.begin_stage(1.0)
    worth = {number: 1.0 if number in citing else 0.01 for number in store.table}
    pricing = Pricing(np.array([worth[n] for n in store.table.numbers().tolist()], np.float32), 1e-6)
    store.set_budget(int(0.29 * store.account.logical_bytes()))
    sweep = Sweep(store, lambda: pricing)
    sweep.run()
    rungs = {number: store.read(number).rung for number in store.table}
    assert Rung.TRACE in {rungs[number] for number in others}
    assert max(rungs[number] for number in cited) <= Rung.SKELETAL
    assert sweep.report.guard_yielded == 0


def test_a_crash_before_the_first_step_leaves_the_target_pending(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory")
    fill(store, 300, 300)
    store.set_budget(int(0.5 * store.account.logical_bytes()))
    store.plane.db.close()
    with closing(open_store(tmp_path / "memory", seed=9)) as again:
        assert again.meta.target_pending
        assert list(Sweep(again, lambda: scattered_pricing(again)).resume())
        assert again.usage().holds


def test_survivors_are_rewritten_before_more_is_given_up(store: Store) -> None:
    """Every other text row goes: without a rewrite the rest sit in half-empty pages."""
    texts = fill(store, 4000, 150)
    store.evict(list(texts)[::2], EvictionReason.BUDGET, {})
    store.shrink()
    sparse = store.usage().phi
    squeeze(store, int(1.2 * store.account.logical_bytes()))
    assert sparse > 1.4
    assert store.usage().holds
    assert store.usage().phi < 1.2
    assert dict(store.texts(store.table)) == {number: texts[number] for number in list(texts)[1::2]}
    assert set(store.usage().rungs) == {Rung.FULL}


def test_an_overlay_goes_before_its_base(store: Store) -> None:
    texts = fill(store, 100, 600)
    store.apply_moves(dict.fromkeys(texts, Rung.SKELETAL))
    store.rewrite(list(texts))
    for number in texts:
        digest = store.read(number).base_digest
        store.put_overlay(number, 1, digest, Overlay(Rung.COMPRESSED, "draft " * 60, "m", 1))
    covered = store.account.logical_bytes()
    store.set_budget(int(0.6 * covered))
    sweep = Sweep(store, lambda: flat_pricing(store))
    sweep.run()
    assert store.usage().holds
    assert {store.read(number).rung for number in store.table} == {Rung.SKELETAL}
    assert {(move.origin, move.to) for move in sweep.report.moves.values()} == {
        (Rung.COMPRESSED, Rung.SKELETAL)
    }


def test_half_dead_and_small_blocks_are_rewritten_by_a_sweep(store: Store) -> None:
    texts = fill(store, 256, 200)
    numbers = list(texts)
    for start in range(0, len(numbers), 4):
        store.apply_moves(dict.fromkeys(numbers[start : start + 4], Rung.PACKED))
    assert len(store.plane.bodies.blocks) == 64
    squeeze(store, 10_000_000)
    assert len(store.plane.bodies.blocks) == 4
    store.evict(numbers[::2], EvictionReason.BUDGET, {})
    assert store.plane.bodies.dead_bytes() > 0
    squeeze(store, 10_000_000)
    assert store.plane.bodies.dead_bytes() == pytest.approx(0, abs=1e-6)
    assert dict(store.texts(numbers[1::2])) == {number: texts[number] for number in numbers[1::2]}


def test_a_write_at_a_full_budget_finds_room_by_a_sweep(store: Store) -> None:
    fill(store, 300, 300)
    squeeze(store, int(0.4 * store.account.logical_bytes()))
    text = made_text(random.Random(4), 5000)
    sweep = Sweep(store, lambda: flat_pricing(store))
    assert not sweep.has_room(len(text) + 20_000)
    sweep.run(headroom_bytes=len(text) + 200)
    assert sweep.has_room(len(text))
    store.add(NewEntry(text))
    assert store.account.logical_bytes() <= store.meta.budget_bytes


def test_a_policy_packs_first_where_its_ladder_can_then_evicts(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", ladder="packed")) as store:
        texts = fill(store, 400, 600)
        policy = OldestFirst()
        budget = int(0.6 * store.account.logical_bytes())
        squeeze(store, budget, retention=policy)
        assert policy.asked == []
        assert set(store.usage().rungs) == {Rung.PACKED}
        budget = int(0.3 * store.account.logical_bytes())
        sweep = squeeze(store, budget, retention=policy)
        assert store.usage().holds
        gone = [entry.number for entry in sweep.report.evicted]
        assert gone == list(texts)[: len(gone)]
        assert {entry.reason for entry in sweep.report.evicted} == {EvictionReason.POLICY}
        assert policy.asked[0][1] == store.meta.event


def test_a_policy_sees_last_access_of_writes_and_recalls(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", ladder="verbatim")) as store:
        first, second, third = fill(store, 3, 300)
        store.record_recall([(first, 1.0)])
        policy = OldestFirst()
        squeeze(store, int(0.9 * store.account.logical_bytes()), retention=policy)
        access = {entry.number: entry.last_access for entry in policy.seen}
        assert access[first] > access[third] > access[second]
        assert first not in store.table


def test_a_policy_that_is_exempt_is_left_alone(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", ladder="verbatim")) as store:
        fill(store, 50, 300)
        squeeze(store, 5_000, retention=OldestFirst(budget_exempt=True))
        assert len(store) == 50
        assert not store.meta.target_pending


def test_the_floor_is_what_is_left_when_everything_is_gone(store: Store) -> None:
    fill(store, 200, 300)
    squeeze(store, 3_000)
    assert store.usage().holds
    with pytest.raises(InputError) as refused:
        store.add(NewEntry("y" * 4_000))
    assert refused.value.code is Code.ENTRY_OVER_BUDGET


def test_stubs_give_way_where_evictions_leave_more_than_the_budget_holds(tmp_path: Path) -> None:
    store = open_store(tmp_path, archive=ArchiveMode.DEMOTED)
    fill(store, 200, 200)
    store.link.ship(store.table.numbers().tolist())
    acknowledge_all(store)
    store.set_budget(6_000)
    report = Sweep(store, lambda: flat_pricing(store, archive=True)).run()
    assert report.usage is not None
    assert report.usage.holds
    assert report.stubs_dropped > 0
    assert 0 < len(store.stubs(limit=1000)) == 200 - report.stubs_dropped - len(store)
    assert not store.meta.target_pending
    store.close()
