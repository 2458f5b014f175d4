"""Run cases through the gate and count: wrong verdicts by kind and mode, with Wilson's 95 % bounds."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.gate.cases import Case
from shared.memory import gate
from shared.memory.spans import render
from shared.ports import Verdict

MODES = ("strict", "paper")
_Z = 1.959964  # 95 %


@dataclass(frozen=True)
class Result:
    """One case with what the gate said, by mode."""

    case: Case
    verdicts: dict[str, Verdict]

    def wrong(self, mode: str) -> bool:
        return self.verdicts[mode].admitted is not self.case.admit


@dataclass(frozen=True)
class Rate:
    """Wrong verdicts among some cases."""

    wrong: int
    cases: int

    @property
    def share(self) -> float:
        return self.wrong / self.cases if self.cases else 0.0

    def bounds(self) -> tuple[float, float]:
        """Wilson's interval."""
        if not self.cases:
            return 0.0, 1.0
        n, p = self.cases, self.share
        middle = (p + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
        half = _Z * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n)) / (1 + _Z * _Z / n)
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.bounds()
        counts = f"{self.wrong:3d}/{self.cases:<5d}"
        return f"{counts} {100 * self.share:5.1f} % [{100 * low:4.1f}, {100 * high:4.1f}]"


def run(cases: Iterable[Case], modes: Sequence[str] = MODES) -> list[Result]:
    """Every case, judged in every mode."""
    return [
        Result(
            case,
            {
                mode: gate.judge(case.base, case.draft, case.neighbours, strict=mode == "strict")
                for mode in modes
            },
        )
        for case in cases
    ]


def rate(results: Iterable[Result], mode: str) -> Rate:
    found = list(results)
    return Rate(sum(result.wrong(mode) for result in found), len(found))


def print_table(title: str, results: Sequence[Result], modes: Sequence[str]) -> None:
    """A row a kind: what should be rejected first (false admissions), then what should be admitted."""
    print(f"\n{title}")
    print(f"  {'kind':24s}" + "".join(f"{mode:>14s} wrong/cases, Wilson 95 %" for mode in modes))
    for admit, heading in (
        (False, "must be rejected: false admissions"),
        (True, "must be admitted: false rejections"),
    ):
        part = [result for result in results if result.case.admit is admit]
        if not part:
            continue
        print(f"  -- {heading}")
        for kind in dict.fromkeys(result.case.kind for result in part):
            row = [result for result in part if result.case.kind == kind]
            print(f"  {kind:24s}" + "".join(f"   {rate(row, mode)!s:>36s}" for mode in modes))
        for name, some in (("all", part), ("  of these, fresh", [r for r in part if r.case.fresh])):
            print(f"  {name:24s}" + "".join(f"   {rate(some, mode)!s:>36s}" for mode in modes))


def write_errors(path: Path, results: Iterable[Result]) -> int:
    """Every wrong verdict as a line of JSON, for study."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for result in results:
            for mode, verdict in result.verdicts.items():
                if result.wrong(mode):
                    count += 1
                    row = {
                        "mode": mode, "kind": result.case.kind, "table": result.case.table,
                        "expected": "admit" if result.case.admit else "reject", "reason": verdict.reason,
                        "invariant": verdict.invariant, "offending": verdict.offending,
                        "residue": render(result.case.base), "draft": result.case.draft,
                        "invariants": gate.describe(result.case.base),
                    }  # fmt: skip
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def cpu_ms(cases: Sequence[Case], mode: str, forget: Sequence[object] = ()) -> float:
    """Median CPU time of one verdict, caches emptied before each."""
    spent = []
    for case in cases:
        for cached in forget:
            cached.cache_clear()  # type: ignore[attr-defined]
        before = time.thread_time_ns()
        gate.judge(case.base, case.draft, case.neighbours, strict=mode == "strict")
        spent.append(time.thread_time_ns() - before)
    return median(spent) / 1e6 if spent else 0.0
