"""Means, deviations and paired tests over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True)
class Mean:
    """mean and sample standard deviation (0 for one value) of n values."""

    mean: float
    deviation: float
    n: int

    def text(self, digits: int = 1) -> str:
        """As the paper prints it, with n."""
        return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"


@dataclass(frozen=True)
class Paired:
    """A paired comparison: mean difference, p of the paired t and of the Wilcoxon signed-rank test.

    p is None where a test is not defined (fewer than two pairs, or every difference 0).
    """

    difference: float
    n: int
    p_t: float | None
    p_wilcoxon: float | None


def mean_of(values: Iterable[float | None]) -> Mean | None:
    """None of nothing; missing values are left out."""
    held = [value for value in values if value is not None]
    if not held:
        return None
    mean = math.fsum(held) / len(held)
    square = math.fsum((value - mean) ** 2 for value in held)
    return Mean(mean, math.sqrt(square / (len(held) - 1)) if len(held) > 1 else 0.0, len(held))


def paired(ours: Mapping[object, float], theirs: Mapping[object, float]) -> Paired | None:
    """Compare what both have under the same key (environment and seed); None where they share none."""
    keys = [key for key in ours if key in theirs]
    if not keys:
        return None
    differences = [ours[key] - theirs[key] for key in keys]
    mean = math.fsum(differences) / len(differences)
    spread = max(differences) - min(differences)
    if len(keys) < 2 or max(abs(difference) for difference in differences) == 0.0:
        return Paired(mean, len(keys), None, None)
    p_t = float(stats.ttest_1samp(differences, 0.0).pvalue) if spread > 0 else None
    p_wilcoxon = float(stats.wilcoxon(differences, zero_method="zsplit").pvalue)
    return Paired(mean, len(keys), p_t, p_wilcoxon)


def p_text(p: float | None) -> str:
    """p for a table."""
    if p is None:
        return "–"
    return "< .001" if p < 0.001 else f"{p:.3f}"[1:] if p < 1 else "1"
