"""`make bench-regen`: what a real model's drafts are worth under the strict gate, the paper's, and none."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from bench import report
from bench.datasets import ABSENT, data_directory
from bench.regen.cases import Case, Entry, cases, dialogue, episodes
from bench.regen.drafts import Made, make, read
from bench.regen.measure import MODES, Tally, tallies
from hub.model import OpenAIGenerator
from shared.memory.model import Rung

_OUT = Path("out/bench")
# The paper's share of drafts admitted from each rung, by its own model and gate.
_PAPER = {Rung.COMPRESSED: 0.93, Rung.SKELETAL: 0.84, Rung.TRACE: 0.73}
_TIMEOUT_S = 600.0
_SHOWN_REASONS = 4


def main() -> None:
    """Draft what is not drafted yet, judge everything, print and write the report."""
    options = _options()
    entries, source = _entries(options)
    wanted = cases(entries)
    name = "".join(char if char.isalnum() or char in ".-" else "_" for char in options.model)
    run = f"{name}_{source}" + (f"_n{options.neighbours}" if options.neighbours else "")
    path = _OUT / f"regen_drafts_{run}.jsonl"
    made = anyio.run(_made, options, wanted, path) if options.llm else read(path)
    if not made:
        raise SystemExit(f"no drafts in {path}: give --llm http://127.0.0.1:PORT/v1 (see `make vllm`)")
    figures: dict[str, float] = {}
    modes = options.modes.split(",")
    print(f"model {options.model}, {len(entries)} entries of {source}, {len(made)} drafts, one a case")
    for mode in modes:
        _show(mode, tallies(wanted, made, mode), figures)
    aims = {
        f"strict.{rung.name.lower()}.admitted": report.at_least(
            figures[f"strict.{rung.name.lower()}.admitted"], share
        )
        for rung, share in _PAPER.items()
        if f"strict.{rung.name.lower()}.admitted" in figures
    }
    report.write(_OUT / f"regen_{run}.json", figures, aims)


async def _made(options: argparse.Namespace, wanted: Sequence[Case], path: Path) -> dict[str, Made]:
    generator = OpenAIGenerator(options.llm, options.model, "none", _TIMEOUT_S)
    try:
        return await make(wanted, generator, path, options.concurrency, options.neighbours)
    finally:
        await generator.aclose()


def _entries(options: argparse.Namespace) -> tuple[list[Entry], str]:
    directory = data_directory(options.data)
    found = dialogue(directory, options.entries) if directory and not options.episodes else []
    if found:
        return found, "locomo"
    if not options.episodes:
        print(f"not run on dialogue: {ABSENT}")
    return episodes(options.entries), "alfworld"


def _show(mode: str, found: Mapping[Rung | None, Tally], figures: dict[str, float]) -> None:
    print(f"\n{mode}: what was let in")
    print(
        f"{'from':>11} {'drafts':>6} {'admitted':>8} {'paper':>6} {'worded':>7} {'gained':>7} {'/draft':>7}"
        f" {'lost':>5} {'polluted':>8} {'tokens':>6} {'s':>6}  reasons"
    )
    for rung, tally in sorted(found.items(), key=lambda item: item[0] or 0):
        label = rung.name.lower() if rung is not None else "all"
        admitted = tally.admitted / tally.drafts
        each = tally.gained / tally.admitted if tally.admitted else 0.0
        polluted = tally.polluted / tally.admitted if tally.admitted else 0.0
        paper = f"{_PAPER[rung]:.2f}" if rung is not None else ""
        reasons = ", ".join(
            f"{reason} {count}" for reason, count in tally.reasons.most_common(_SHOWN_REASONS)
        )
        print(
            f"{label:>11} {tally.drafts:>6} {admitted:>8.3f} {paper:>6} {tally.worded:>7} {tally.gained:>7}"
            f" {each:>7.3f} {tally.lost:>5} {polluted:>8.3f} {tally.tokens / tally.drafts:>6.0f}"
            f" {tally.seconds / tally.drafts:>6.1f}  {reasons}"
        )
        prefix = f"{mode}.{label}"
        figures |= {
            f"{prefix}.drafts": tally.drafts,
            f"{prefix}.admitted": admitted,
            f"{prefix}.worded": tally.worded,
            f"{prefix}.answers_gained": tally.gained,
            f"{prefix}.answers_gained_per_admitted": each,
            f"{prefix}.answers_lost": tally.lost,
            f"{prefix}.answers_gainable": tally.gainable,
            f"{prefix}.polluted_share": polluted,
            f"{prefix}.foreign_number_drafts": tally.foreign_numbers,
            f"{prefix}.foreign_name_drafts": tally.foreign_names,
            f"{prefix}.tokens_per_draft": tally.tokens / tally.drafts,
            f"{prefix}.seconds_per_draft": tally.seconds / tally.drafts,
        }
        figures |= {f"{prefix}.rejected.{reason}": count for reason, count in tally.reasons.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.regen", description=__doc__)
    parser.add_argument(
        "--llm", default="", help="an OpenAI-compatible endpoint; without it only judge again"
    )
    parser.add_argument("--model", required=True, help="the model's name at that endpoint")
    parser.add_argument("--entries", type=int, default=200)
    parser.add_argument("--data", default=None, help="folder with locomo/; default $CRYSTALMEM_DATA")
    parser.add_argument("--episodes", action="store_true", help="the shipped ALFWorld episodes instead")
    parser.add_argument("--modes", default=",".join(MODES), help="of strict, paper, none")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--neighbours", type=int, default=0, help="texts of the turns before, 0 to 2")
    return parser.parse_args()


if __name__ == "__main__":
    main()
