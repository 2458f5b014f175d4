"""The demo's stated aims against what was measured, and the hard promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crystalmem.demo.arms import REFERENCE
from crystalmem.demo.results import Aim, ArmResult, CycleResult, LinkTotals

# Points of C. The product ladder loses nothing while packed content fits, so its gap is rounding only.
EXACT_GAP = 0.1
LRU_GAP = 5.0
ARCHIVE_GAP = 0.5


def aims(cycles: Mapping[str, CycleResult]) -> tuple[Aim, ...]:
    """Every aim that the arms which ran can be held to."""
    return tuple(aim for name, cycle in cycles.items() for aim in _cycle_aims(name, cycle.arms))


def _cycle_aims(cycle: str, arms: Mapping[str, ArmResult]) -> Iterator[Aim]:
    reference = arms[REFERENCE]
    if "lru" in arms:
        gap = reference.stages[-1].C - arms["lru"].stages[-1].C
        yield Aim(
            cycle=cycle,
            aim="LRU ends under keep-all",
            wanted=f">= {LRU_GAP:g} points",
            measured=f"{gap:.2f} points",
            met=gap >= LRU_GAP,
        )
    product = arms.get("product")
    if product is not None and all(row.packed_bytes <= row.budget_bytes for row in product.stages):
        yield from _exact_aims(cycle, reference, product)
    archive = arms.get("product_archive")
    if archive is not None:
        gap = reference.stages[-1].C - archive.stages[-1].C
        yield Aim(
            cycle=cycle,
            aim="the archive arm ends at keep-all",
            wanted=f"within {ARCHIVE_GAP:g} points",
            measured=f"{gap:+.2f} points",
            met=gap <= ARCHIVE_GAP,
        )


def _exact_aims(cycle: str, reference: ArmResult, product: ArmResult) -> Iterator[Aim]:
    """Where packed content fits every budget of the cycle, nothing may change at all."""
    yield Aim(
        cycle=cycle,
        aim="packed content fits: every entry of the product arm is byte-identical",
        wanted=f"{product.entries}",
        measured=f"{product.identical}",
        met=product.byte_identical,
    )
    tokens = sum(row.tokens for row in product.stages)
    yield Aim(
        cycle=cycle,
        aim="packed content fits: model tokens",
        wanted="0",
        measured=f"{tokens}",
        met=tokens == 0,
    )
    gap = max(abs(ours.C - theirs.C) for ours, theirs in zip(product.stages, reference.stages, strict=True))
    yield Aim(
        cycle=cycle,
        aim="packed content fits: largest gap to keep-all at any stage",
        wanted=f"<= {EXACT_GAP:g} points",
        measured=f"{gap:.3f} points",
        met=gap <= EXACT_GAP,
    )


def link_totals(cycles: Mapping[str, CycleResult]) -> LinkTotals:
    """The checker's findings over all arms; `lost` counts edge and hub."""
    checks = [arm.check for arm in _runs(cycles)]
    return LinkTotals(
        acked=sum(check.acked for check in checks),
        lost=sum(check.lost + check.hub_lost for check in checks),
        applied_twice=sum(check.applied_twice for check in checks),
        hub_kills=sum(arm.hub_kills for arm in _runs(cycles)),
    )


def violations(cycles: Mapping[str, CycleResult]) -> tuple[str, ...]:
    """Every broken byte budget, with its place."""
    return tuple(
        f"{cycle}/{name}, stage {row.stage}, {violation}"
        for cycle, result in cycles.items()
        for name, arm in result.arms.items()
        for row in arm.stages
        for violation in row.violations
    )


def broken_promises(cycles: Mapping[str, CycleResult]) -> tuple[str, ...]:
    """What makes the exit code non-zero besides violations: anything lost, changed or applied twice."""
    return tuple(
        f"{cycle}/{name}: {'; '.join(arm.check.details) or 'see report.json'}"
        for cycle, result in cycles.items()
        for name, arm in result.arms.items()
        if arm.check.broken
    )


def _runs(cycles: Mapping[str, CycleResult]) -> Iterator[ArmResult]:
    """Each run once: keep-all stands in every cycle but runs a single time."""
    for position, result in enumerate(cycles.values()):
        for name, arm in result.arms.items():
            if position == 0 or name != REFERENCE:
                yield arm
