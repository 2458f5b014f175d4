"""What a person reads at the end: a table per arm, the aims and the statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crystalmem.demo.results import Aim, ArmResult, CycleResult, Report, StageRow

_RUNG_LETTERS = {
    "full": "F",
    "packed": "P",
    "condensed": "Cd",
    "compressed": "C",
    "outline": "O",
    "skeletal": "S",
    "trace": "T",
}
_HEAD = (
    f"{'st':>2} {'b':>5} {'budget':>7} {'packed':>7} {'logical':>7} {'du':>7} {'floor':>6} {'C':>6}  "
    f"{'entries per rung':<24} {'gone':>5} {'lostx':>5} {'prom':>5} {'rej':>4} {'tokens':>6} "
    f"{'up':>6} {'down':>6} {'s':>5}"
)


def report_lines(report: Report) -> Iterator[str]:
    """The whole closing text, line by line."""
    for cycle, result in report.cycles.items():
        yield ""
        yield f"== {cycle}: b = {', '.join(f'{b:g}' for b in result.schedule)}   (sizes in KiB) =="
        for name, arm in result.arms.items():
            yield ""
            yield from arm_lines(name, arm)
    for cycle, result in report.cycles.items():
        yield ""
        yield from summary_lines(cycle, result)
    yield ""
    yield from _aim_lines(report.aims)
    yield ""
    link = report.link
    yield (
        f"link: {link.acked} deltas acked, {link.lost} lost, {link.applied_twice} applied twice, "
        f"{link.hub_kills} hub kills (by a separate checker, from the files)"
    )
    yield f"budget violations: {len(report.violations)}"
    yield from (f"  {violation}" for violation in report.violations)
    yield from (f"BROKEN: {fault}" for fault in report.broken)
    yield from (f"note: {statement}" for statement in report.statements)


def arm_lines(name: str, arm: ArmResult) -> Iterator[str]:
    """Title, a row a stage, H and D."""
    yield f"{name}: {arm.title}"
    yield _HEAD
    yield from (_stage_line(row) for row in arm.stages)
    loop = "undefined" if arm.H is None else f"{arm.H:.4f}"
    same = f"byte-identical at the end: {arm.identical} of {arm.entries}"
    yield f"   H = {loop}   D = {arm.D:+.2f} points   {same}"


def summary_lines(cycle: str, result: CycleResult) -> Iterator[str]:
    """A line an arm: C along the cycle, H, D, and what is byte-identical at the end."""
    path = "".join(f"{b:>7g}" for b in result.schedule)
    yield f"{cycle + ': C at b =':<24}{path} {'H':>8} {'D':>7}  identical"
    for name, arm in result.arms.items():
        capabilities = "".join(f"{row.C:>7.1f}" for row in arm.stages)
        loop = "-" if arm.H is None else f"{arm.H:.4f}"
        yield f"  {name:<22}{capabilities} {loop:>8} {arm.D:>+7.2f}  {arm.identical} of {arm.entries}"


def _stage_line(row: StageRow) -> str:
    up, down = _kib(row.link_up_bytes), _kib(row.link_down_bytes)
    return (
        f"{row.stage:>2} {row.b:>5.2f} {_kib(row.budget_bytes):>7} {_kib(row.packed_bytes):>7} "
        f"{_kib(row.logical_bytes):>7} {_kib(row.disk_bytes):>7} {_kib(row.floor_bytes):>6} {row.C:>6.2f}  "
        f"{_rungs(row.rungs):<24} {row.evicted:>5} {row.lost_exact:>5} {row.promoted:>5} "
        f"{sum(row.rejected.values()):>4} {row.tokens:>6} {up:>6} {down:>6} {row.seconds:>5.1f}"
    )


def _rungs(rungs: Mapping[str, int]) -> str:
    return " ".join(f"{letter}{rungs[name]}" for name, letter in _RUNG_LETTERS.items() if rungs.get(name))


def _kib(size_bytes: int) -> str:
    return f"{size_bytes / 1024:.0f}" if size_bytes < 1 << 30 else "none"


def _aim_lines(aims: tuple[Aim, ...]) -> Iterator[str]:
    yield "aims:"
    for aim in aims:
        verdict = "met   " if aim.met else "MISSED"
        yield f"  {verdict} {aim.cycle}: {aim.aim}: {aim.measured} (aim {aim.wanted})"
