"""The sweep benchmark in small: both ways decide the same, and the report has the promised shape."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench import report
from bench.sweep import BUDGETS, main, measure


def test_the_heap_and_the_decision_move_the_same_entries() -> None:
    rows = measure(2_000, runs=1)
    assert len(rows) == len(BUDGETS) + 1
    assert all(row.identical for row in rows)
    assert [row.moves for row in rows] == sorted(row.moves for row in rows)
    # Nearly every one of four moves an entry, less what the hulls and the guard leave out.
    assert rows[-1].moves > 3.4 * 2_000


def test_the_report_is_written_whether_or_not_the_aims_are_met(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bench" / "sweep.json"
    assert main(out, entries=500) == 0
    written = json.loads(out.read_text())
    assert set(written) == {"figures", "aims", "environment", "commit"}
    assert written["figures"]["identical"] == 1.0
    assert set(written["aims"]) == {"decision_s", "ratio", "identical"}
    assert all(set(aim) == {"aim", "met"} for aim in written["aims"].values())
    assert written["environment"]["cores"] >= 1
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?|unknown", written["commit"])
    assert "identical" in capsys.readouterr().out


def test_aims_say_their_bound_and_whether_it_was_kept() -> None:
    assert report.at_most(0.3, 0.3, "s") == report.Aim("<= 0.3 s", met=True)
    assert report.at_most(0.31, 0.3) == report.Aim("<= 0.3", met=False)
    assert report.at_least(50, 50, "x") == report.Aim(">= 50 x", met=True)
    assert report.at_least(49, 50) == report.Aim(">= 50", met=False)


def test_figures_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        report.write(tmp_path / "x.json", {"ratio": float("nan")}, {})
