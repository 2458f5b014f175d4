"""`python -m bench.gate`: the gate's verdicts on corrupted and faithful drafts, strict beside paper."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import report
from bench.gate import cases, jsonl, runner, speed
from bench.gate.runner import MODES, Result

OUT = Path("out/bench")
_MOST_ADMISSIONS, _MOST_REJECTIONS = 0.005, 0.05
_WORST_ADMISSIONS, _WORST_REJECTIONS, _WORST_OPEN_KINDS = 0.02, 0.15, 0.10
_OPEN_KINDS = ("condition", "extra")
_MOST_MS = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, write the report and every wrong verdict; 0 when it ran."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate", description=__doc__)
    parser.add_argument("--cases", type=Path, help="JSONL of your own: original, invariants, draft, expected")
    parser.add_argument("--mode", choices=(*MODES, "both"), default="both")
    parser.add_argument("--seed", type=int, help="of the fresh quarter; default: the commit's date")
    parser.add_argument("--per-kind", type=int, default=cases.PER_KIND)
    asked = parser.parse_args(arguments)
    modes = MODES if asked.mode == "both" else (asked.mode,)
    if asked.cases is not None:
        return _given(asked.cases, modes)
    seed = asked.seed if asked.seed is not None else commit_date()
    print(f"fresh quarter: seed {seed}")
    exact = runner.run(cases.exact_cases(seed, asked.per_kind), modes)
    lossy = runner.run(cases.lossy_cases(seed, asked.per_kind), modes)
    runner.print_table("entries of which nothing was dropped", exact, modes)
    runner.print_table("residues at COMPRESSED, SKELETAL and TRACE", lossy, modes)
    count = runner.write_errors(OUT / "gate_errors.jsonl", [*exact, *lossy])
    print(f"\n{count} wrong verdicts: {OUT / 'gate_errors.jsonl'}")
    _report(exact, lossy, modes)
    return 0


def commit_date() -> int:
    """YYYYMMDD of the commit that runs; the suite's own date outside a clone."""
    git = shutil.which("git")
    if git is None:
        return cases.FIXED_SEED
    asked = subprocess.run(
        [git, "log", "-1", "--format=%cs"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    digits = asked.stdout.strip().replace("-", "")
    return int(digits) if digits.isdigit() else cases.FIXED_SEED


def _given(path: Path, modes: Sequence[str]) -> int:
    try:
        results = runner.run(jsonl.read(path), modes)
    except (jsonl.BadCaseError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    runner.print_table(str(path), results, modes)
    count = runner.write_errors(OUT / "gate_errors.jsonl", results)
    print(f"\n{count} wrong verdicts: {OUT / 'gate_errors.jsonl'}")
    return 0


def _report(exact: Sequence[Result], lossy: Sequence[Result], modes: Sequence[str]) -> None:
    figures: dict[str, float] = {}
    aims: dict[str, report.Aim] = {}
    for table, results in (("exact", exact), ("lossy", lossy)):
        for mode in modes:
            for admit, name in ((False, "false_admissions"), (True, "false_rejections")):
                part = [result for result in results if result.case.admit is admit]
                key = f"{table}_{mode}_{name}"
                figures[key] = runner.rate(part, mode).share
                figures[f"{key}_fresh"] = runner.rate([r for r in part if r.case.fresh], mode).share
                worst = _worst(part, mode, admit=admit)
                figures[f"{key}_worst"], figures[f"{key}_worst_open"] = worst
                if mode == "strict":
                    most = _MOST_REJECTIONS if admit else _MOST_ADMISSIONS
                    aims[key] = report.at_most(figures[key], most)
                    aims[f"{key}_worst"] = report.at_most(
                        worst[0], _WORST_REJECTIONS if admit else _WORST_ADMISSIONS
                    )
                    if not admit:
                        aims[f"{key}_worst_open"] = report.at_most(worst[1], _WORST_OPEN_KINDS)
    for name, ms in speed.measure().items():
        figures[name] = ms
        print(f"{name}: {ms:.2f} ms")
    aims["strict_cold_ms"] = report.at_most(figures["strict_cold_ms"], _MOST_MS, "ms")
    print()
    for name, aim in aims.items():
        print(f"{'met   ' if aim.met else 'MISSED'} {name} {figures[name]:.4f} {aim.aim}")
    report.write(OUT / "gate.json", figures, aims)


def _worst(results: Sequence[Result], mode: str, *, admit: bool) -> tuple[float, float]:
    """The worst kind's share, and the worst among those with a bound of their own."""
    shares = {
        kind: runner.rate([result for result in results if result.case.kind == kind], mode).share
        for kind in {result.case.kind for result in results}
    }
    apart = {kind: share for kind, share in shares.items() if kind in _OPEN_KINDS and not admit}
    rest = [share for kind, share in shares.items() if kind not in apart]
    return max(rest, default=0.0), max(apart.values(), default=0.0)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
