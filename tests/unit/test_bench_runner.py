"""The bench's runner: cells, paths, the row store, and a pool that outlives a dead worker."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench.environments.contract import Item, cut
from bench.runner import paths
from bench.runner.cell import Cell, run_cell
from bench.runner.pool import LocalPool
from bench.runner.rows import RowStore, code_fingerprint
from shared.errors import InputError
from shared.memory.cycle import DEFINITION_1
from shared.memory.model import Kind
from tests.unit.bench_worlds import Drawers, make


def lived(policy: str, path: str = "definition1", seed: int = 0) -> list[dict[str, Any]]:
    environment = Drawers()
    worlds = environment.worlds(seed, environment.size("quick"))
    cell = Cell("drawers", policy, seed, path, "quick")
    return run_cell(cell, paths.path(path), environment, worlds, make, None)


def test_a_cycle_has_a_row_a_stage_and_keep_all_stays_where_it_was() -> None:
    rows = lived("keep_all")
    assert [row["stage"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["b"] for row in rows] == list(DEFINITION_1)
    assert [row["C"] for row in rows] == [100.0] * 7
    assert all(row["violations"] == 0 for row in rows)


def test_a_binary_policy_loses_and_never_gets_back() -> None:
    rows = lived("oldest")
    capability = [row["C"] for row in rows]
    assert capability[0] == 100.0
    assert capability[3] < 50.0
    assert capability[6] <= capability[3]
    assert all(row["held_bytes"] <= row["budget_bytes"] for row in rows)
    assert sum(row["promoted"] for row in rows) == 0


def test_a_policy_that_breaks_its_budget_is_counted_every_time() -> None:
    rows = lived("greedy")
    # Over after the budget event and again after the writes, from the first squeeze on.
    assert [row["violations"] for row in rows[1:4]] == [2, 2, 2]


def test_a_cell_is_decided_by_its_seed() -> None:
    def figures(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{k: v for k, v in row.items() if not k.endswith("_s")} for row in rows]

    assert figures(lived("oldest")) == figures(lived("oldest"))


def test_constant_provisions_are_measured_at_their_end_and_ten_cycles_at_their_turns() -> None:
    assert [row["C"] is not None for row in lived("oldest", "constant-30")] == [False] * 6 + [True]
    steps = paths.path("cycles10").steps
    assert len(steps) == 61
    assert [step.b for step in steps if step.measured] == [1.0] + [0.25, 1.0] * 10
    assert sum(step.written > 0 for step in steps) == 6


@pytest.mark.parametrize("name", ["", "definition2", "constant-0", "constant-101", "constant-x"])
def test_an_unknown_path_is_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match="no such path"):
        paths.path(name)


def test_grid_is_every_constant_provision_once() -> None:
    assert paths.stage_sets("grid,constant-50") == tuple(
        f"constant-{p}" for p in (10, 20, 30, 40, 50, 60, 80, 100)
    )


@pytest.mark.parametrize("count", [0, 1, 2, 9, 10, 101])
def test_a_stream_is_cut_in_seven_without_loss(count: int) -> None:
    items = [Item(str(n), "x", Kind.MEMORY, float(n)) for n in range(count)]
    stages = cut(items)
    assert len(stages) == 7
    assert [item for stage in stages for item in stage] == items
    assert len(stages[0]) == min(count, max(1, round(0.7 * count)))


def test_a_cell_is_done_only_by_the_same_code_and_a_whole_file(tmp_path: Path) -> None:
    store, cell = RowStore(tmp_path), Cell("drawers", "oldest", 0, "definition1", "quick")
    assert not store.done(cell, "a")
    store.put(cell, [{"stage": 1, "code": "a"}])
    assert store.done(cell, "a")
    assert not store.done(cell, "b")
    torn = tmp_path / "rows" / f"{cell.id}.jsonl"
    torn.write_text(torn.read_text()[:-5])
    assert not store.done(cell, "a")
    with pytest.raises(InputError, match="line=1"):
        store.rows()


def test_a_failed_cell_is_told_and_kept_apart(tmp_path: Path) -> None:
    store, cell = RowStore(tmp_path), Cell("drawers", "oldest", 0, "definition1", "quick")
    store.failed(cell, "it broke")
    assert store.failures() == [{"cell": cell.id, "error": "it broke"}]
    assert store.rows() == []
    store.put(cell, [{"stage": 1, "code": "a"}])
    assert store.failures() == []


def test_a_cells_file_name_holds_no_path_of_its_own() -> None:
    cell = Cell("a/../b", "ablate:rho 5%", 1, "definition1", "quick", "model:org/name")
    assert "/" not in cell.id
    assert ":" not in cell.id


def test_the_code_fingerprint_names_this_code() -> None:
    assert code_fingerprint() == code_fingerprint()
    assert len(code_fingerprint()) == 16


def work(cell: Cell) -> list[dict[str, Any]]:
    """Dies, fails or works, as the policy's name says."""
    if cell.policy == "dies":
        os._exit(9)
    if cell.policy == "fails":
        raise ValueError("no luck")
    return [{"stage": 1, "policy": cell.policy}]


@pytest.mark.slow
def test_a_dead_worker_loses_its_own_cell_only() -> None:
    names = ("a", "dies", "b", "fails", "c")
    cells = [Cell("e", name, 0, "definition1", "quick") for name in names]
    ended = {cell.policy: (rows, problem) for cell, rows, problem in LocalPool(2).run(work, cells)}
    assert {name for name, (rows, _) in ended.items() if rows} == {"a", "b", "c"}
    assert "died" in ended["dies"][1]
    assert ended["fails"][1] == "ValueError: no luck"


def test_rows_are_json_lines_that_anyone_reads(tmp_path: Path) -> None:
    store, cell = RowStore(tmp_path), Cell("drawers", "oldest", 0, "definition1", "quick")
    store.put(cell, lived("oldest"))
    lines = (tmp_path / "rows" / f"{cell.id}.jsonl").read_text().splitlines()
    assert [json.loads(line)["stage"] for line in lines] == [1, 2, 3, 4, 5, 6, 7]
