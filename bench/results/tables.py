"""Tables II, III, IV and BabyAI, the paper's figure beside each of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.policies.registry import ORDER, OUR_ABLATIONS, PAPER_ABLATIONS
from bench.results import paper
from bench.results.cycles import Cycle, Run
from bench.results.markdown import number, table
from bench.results.stats import Mean, mean_of, p_text, paired
from bench.runner.paths import FRONTIER

DEFINITION_1 = "definition1"
OURS = "product"
"""What we ship; `crystalmem` is the paper's own configuration."""
PAPERS = "crystalmem"
_NEAR_POINTS = 2.0
PACKED = ("lru_packed", "curator_packed")
BUDGETED = tuple(name for name in paper.TABLE_II if name != "keep_all" and not name.startswith(PAPERS))
"""Every baseline of Table II that a budget binds."""


def averages(cycles: Iterable[Cycle], value: str) -> Mean | None:
    """Mean over environments of the mean over seeds; its deviation is over seeds of the per-seed averages."""
    by_seed: dict[int, list[float]] = {}
    for cycle in cycles:
        figure = getattr(cycle, value)
        if figure is not None:
            by_seed.setdefault(cycle.seed, []).append(figure)
    return mean_of(sum(figures) / len(figures) for figures in by_seed.values())


def table_two(run: Run, path: str = DEFINITION_1, environments: Sequence[str] = paper.SEVEN) -> str:
    """Restored C by environment, average, H, D; the paper's average, H and D beside; paired with ours."""
    shown = [name for name in environments if name in run.environments(path)]
    header = ["policy", *(paper.ENVIRONMENT_LABELS[name] for name in shown), "average", "H", "D", "n"]
    header += ["paper: average", "H", "D", "ours less it", "p (t, Wilcoxon)"]
    ours = _restored(run.of(path, OURS), shown)
    rows = []
    for policy in (name for name in ORDER if name in run.policies(path)):
        cycles = [cycle for cycle in run.of(path, policy) if cycle.environment in shown]
        if not cycles:
            continue
        told = paper.TABLE_II.get(policy)
        compared = paired(ours, _restored(cycles, shown)) if policy != OURS else None
        rows.append(
            [
                paper.label(policy),
                *(_by_environment(cycles, name) for name in shown),
                _mean(averages(cycles, "restored")),
                _mean(averages(cycles, "hysteresis"), 3),
                _mean(averages(cycles, "deficit")),
                str(len(cycles)),
                *(_paper(told) if told is not None else ["", "", ""]),
                number(compared.difference, signed=True) if compared else "",
                f"{p_text(compared.p_t)}, {p_text(compared.p_wilcoxon)}" if compared else "",
            ]
        )
    return table(header, rows)


def differences(run: Run, path: str = DEFINITION_1) -> list[str]:
    """A sentence for each policy whose D or order differs from the paper's."""
    sentences = []
    for policy, told in paper.TABLE_II.items():
        cycles = [cycle for cycle in run.of(path, policy) if cycle.environment in paper.SEVEN]
        found = averages(cycles, "deficit")
        if found is None or told.deficit is None:
            continue
        gap = found.mean - told.deficit
        if abs(gap) > _NEAR_POINTS:
            word = "more" if gap > 0 else "less"
            sentences.append(
                f"{told.label} loses {found.mean:.1f} points here and {told.deficit:.1f} in the paper:"
                f" {abs(gap):.1f} {word}."
            )
    return sentences


def ranking(run: Run, path: str = DEFINITION_1) -> tuple[list[str], list[str]]:
    """Policies by restored average, best first: ours, and the paper's order of the same ones."""
    held = {
        policy: mean.mean
        for policy in paper.TABLE_II
        if policy != "keep_all"
        and (mean := averages((c for c in run.of(path, policy) if c.environment in paper.SEVEN), "restored"))
    }
    found = sorted(held, key=lambda policy: -held[policy])
    told = sorted(held, key=lambda policy: -paper.TABLE_II[policy].average)
    return [paper.label(policy) for policy in found], [paper.label(policy) for policy in told]


def table_three(run: Run) -> str:
    """b*: the smallest constant provision at which ours matches the best baseline at 100 %."""
    full = "constant-100"
    header = [
        "environment",
        "best baseline at 100 %",
        "C",
        *(f"ours at {round(100 * b)} %" for b in FRONTIER),
    ]
    header += ["b*", "paper's b*"]
    rows = []
    for name in (name for name in paper.SEVEN if name in run.environments(full)):
        best, reference = strongest(run, full, BUDGETED, name)
        if best is None:
            continue
        ours = [_restored_mean(run, f"constant-{round(100 * b)}", OURS, name) for b in FRONTIER]
        star = b_star(ours, reference)
        rows.append(
            [
                paper.ENVIRONMENT_LABELS[name],
                paper.label(best),
                number(reference),
                *(number(value) for value in ours),
                "not reached" if star is None else f"{100 * star:.0f} %",
                f"{paper.TABLE_III[name]:.0f} %",
            ]
        )
    return table(header, rows)


def b_star(ours: Sequence[float | None], reference: float) -> float | None:
    """The smallest provision of FRONTIER from which C is at or above the reference."""
    for b, value in zip(FRONTIER, ours, strict=True):
        if value is not None and value >= reference:
            return b
    return None


def table_four(run: Run, path: str = DEFINITION_1) -> str:
    """Ablations over the seven; the drop in average relative to the variant that each is taken from."""
    header = ["variant", "of", "average", "H", "D", "drop", "n", "paper: average", "H", "D", "drop"]
    rows = []
    for policy in (PAPERS, *PAPER_ABLATIONS, OURS, *OUR_ABLATIONS):
        cycles = _seven(run.of(path, policy))
        average = averages(cycles, "restored")
        whole = _whole(policy)
        base = averages(_seven(run.of(path, whole)), "restored")
        if average is None or base is None:
            continue
        told = paper.TABLE_IV.get(policy)
        beside = ["", "", "", ""]
        if told is not None:
            drop = paper.TABLE_IV[PAPERS][1] - told[1]
            beside = [number(told[1]), number(told[2], 3), number(told[3]), number(drop)]
        rows.append(
            [
                paper.label(policy),
                paper.label(whole) if whole != policy else "",
                _mean(average),
                _mean(averages(cycles, "hysteresis"), 3),
                _mean(averages(cycles, "deficit")),
                number(base.mean - average.mean),
                str(len(cycles)),
                *beside,
            ]
        )
    return table(header, rows)


def _whole(policy: str) -> str:
    """The variant that an ablation takes one thing from."""
    if policy == "ablate:no_gate":
        return "ablate:hallucinating"
    return OURS if policy == OURS or policy in OUR_ABLATIONS else PAPERS


def table_babyai(run: Run, path: str = DEFINITION_1) -> str:
    """The held-out environment."""
    rows = []
    for policy in (name for name in ORDER if run.of(path, name, "babyai")):
        cycles = run.of(path, policy, "babyai")
        told = paper.BABYAI.get(policy)
        rows.append(
            [
                paper.label(policy),
                _mean(mean_of(cycle.first for cycle in cycles)),
                _mean(mean_of(cycle.trough for cycle in cycles)),
                _mean(mean_of(cycle.restored for cycle in cycles)),
                _mean(mean_of(cycle.hysteresis for cycle in cycles), 3),
                _mean(mean_of(cycle.deficit for cycle in cycles)),
                number(told[1], 3) if told else "",
                number(told[0]) if told else "",
            ]
        )
    return table(["policy", "C first", "C trough", "C restored", "H", "D", "paper: H", "D"], rows)


def table_bytes(run: Run, path: str = DEFINITION_1) -> str:
    """By environment and entry size: what ours keeps at the trough, and what is lost at the end."""
    header = [
        "environment",
        "bytes an entry",
        "C first",
        "retention at the trough",
        "D",
        "evicted",
        "packed LRU: D",
    ]
    rows = []
    for name in run.environments(path):
        ours, packed = run.of(path, OURS, name), run.of(path, "lru_packed", name)
        if not ours:
            continue
        sizes = [row["text_bytes"] / max(row["items"], 1) for cycle in ours for row in cycle.rows[:1]]
        rows.append(
            [
                paper.ENVIRONMENT_LABELS.get(name, name),
                number(sum(sizes) / len(sizes), 0),
                _mean(mean_of(cycle.first for cycle in ours)),
                _mean(mean_of(cycle.retention for cycle in ours), 3),
                _mean(mean_of(cycle.deficit for cycle in ours)),
                number(sum(cycle.total("evicted") for cycle in ours) / len(ours), 0),
                _mean(mean_of(cycle.deficit for cycle in packed)),
            ]
        )
    return table(header, rows)


def strongest(
    run: Run, path: str, policies: Sequence[str], environment: str | None = None
) -> tuple[str | None, float]:
    """The policy of these with the best restored average (or in one environment), and that figure."""
    best: tuple[str | None, float] = (None, float("-inf"))
    for policy in policies:
        if environment is None:
            average = averages(_seven(run.of(path, policy)), "restored")
            value = None if average is None else average.mean
        else:
            value = _restored_mean(run, path, policy, environment)
        if value is not None and value > best[1]:
            best = policy, value
    return best


def strongest_packed(run: Run, path: str = DEFINITION_1) -> tuple[str | None, float]:
    """The best baseline over packed text."""
    return strongest(run, path, PACKED)


def _seven(cycles: Iterable[Cycle]) -> list[Cycle]:
    return [cycle for cycle in cycles if cycle.environment in paper.SEVEN]


def _restored(cycles: Iterable[Cycle], shown: Sequence[str]) -> dict[object, float]:
    return {(c.environment, c.seed): c.restored for c in cycles if c.environment in shown}


def _restored_mean(run: Run, path: str, policy: str, environment: str) -> float | None:
    found = mean_of(cycle.restored for cycle in run.of(path, policy, environment))
    return None if found is None else found.mean


def _by_environment(cycles: Iterable[Cycle], name: str) -> str:
    return _mean(mean_of(cycle.restored for cycle in cycles if cycle.environment == name))


def _mean(mean: Mean | None, digits: int = 1) -> str:
    return "–" if mean is None else mean.text(digits)


def _paper(told: paper.TableTwoRow) -> list[str]:
    return [number(told.average), number(told.hysteresis, 3), number(told.deficit)]
