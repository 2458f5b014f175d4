"""`make test-ondevice`: what an on-device model costs here, what it chooses, and which of its drafts get in.

The model runs as the daemon runs it: in its own process, one call at a time, cancelled as a recall would.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from bench import report
from bench.datasets import ABSENT, ADVERSARIAL, data_directory, locomo
from bench.regen.cases import cases, dialogue, episodes, stems
from bench.regen.drafts import make
from bench.regen.measure import tallies
from crystalmem.demo.episodes import DATA_FILE, load
from edge_agent.distill import PlainDistiller, sentences
from edge_agent.ondevice import OnDevice
from edge_agent.ondevice_generator import OnDeviceGenerator
from edge_agent.ondevice_state import OnDeviceOptions, Phase, Prompt
from edge_agent.relevel import LEAST_SENTENCES, MOST_SENTENCES, choice_prompt, most_chosen, parse_choice
from shared.host.clock import SystemClock
from shared.memory.model import LADDERS, Rung
from shared.memory.text_codec import TextCodec
from shared.units import MIB

_OUT = Path("out/bench")
_TICKS = os.sysconf("SC_CLK_TCK")
_PROSE_BYTES = 2_600  # about a thousand tokens of ALFWorld
_ANSWER_TOKENS = 96
# Half of them while the prompt is read, half while the answer is made.
_CANCELS = 16
_SPREAD_S = 4.0
# Turns around the one that answers: an entry as long as an agent would write it.
_TURNS = 5
_LADDER = LADDERS["product"]


def main() -> None:
    """Measure, print, write the report."""
    options = _options()
    figures: dict[str, float] = {}
    name = anyio.run(_measure, options, figures)
    aims = {"cancel_ms_most": report.at_most(figures["cancel_ms_most"], 100, "ms")}
    report.write(_OUT / f"ondevice_{name}.json", figures, aims)


async def _measure(options: argparse.Namespace, figures: dict[str, float]) -> str:
    clock = SystemClock()
    settings = OnDeviceOptions(options.model, threads=options.threads, max_prompt_tokens=2048)
    board = OnDevice(settings, clock)
    try:
        await _cost(board, figures)
        await _cancels(board, figures)
        if options.choices:
            await _choices(board, options, figures)
        if options.drafts:
            await _drafts(board, options, figures)
        return board.model
    finally:
        await board.aclose()


# --- cost ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Usage:
    """Of the model process: CPU seconds so far, memory now and at most."""

    cpu_s: float
    resident_bytes: int
    peak_bytes: int


def usage(pid: int) -> Usage:
    """Read from /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    told = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
    )
    resident, peak = (int(told[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return Usage((int(fields[11]) + int(fields[12])) / _TICKS, resident, peak)


async def _cost(board: OnDevice, figures: dict[str, float]) -> None:
    started = time.perf_counter()
    await board.generate(Prompt((("user", "Hi."),), 1))
    if board.phase is not Phase.READY:
        raise SystemExit(f"no model: {board.problem}")
    pid = board._process.pid if board._process is not None else 0  # noqa: SLF001 - the bench looks behind
    loaded = usage(pid)
    figures |= {
        "load_s": time.perf_counter() - started,
        "load_cpu_s": loaded.cpu_s,
        "loaded_mib": loaded.resident_bytes / MIB,
    }
    prose = " ".join(episode.text for episode in load(DATA_FILE).episodes)[:_PROSE_BYTES]
    before = usage(pid)
    prompt_only = await board.generate(Prompt((("user", prose),), 1))
    after_prompt = usage(pid)
    whole = await board.generate(Prompt((("user", prose),), _ANSWER_TOKENS, pattern="[a-z ]{4000}"))
    after = usage(pid)
    prompt_s = after_prompt.cpu_s - before.cpu_s
    decode_s = max(after.cpu_s - after_prompt.cpu_s - prompt_s, 1 / _TICKS)
    figures |= {
        "prompt_tokens": prompt_only.prompt_tokens,
        "prompt_tokens_per_cpu_s": prompt_only.prompt_tokens / prompt_s,
        "decode_tokens_per_cpu_s": (whole.completion_tokens - 1) / decode_s,
        "peak_mib": after.peak_bytes / MIB,
        "resident_mib": after.resident_bytes / MIB,
    }
    print(f"{board.model}: load {figures['load_s']:.1f} s ({loaded.cpu_s:.1f} CPU s), {_mib(figures)}")
    print(
        f"  a CPU second: {figures['prompt_tokens_per_cpu_s']:.0f} prompt tokens (of"
        f" {prompt_only.prompt_tokens}), {figures['decode_tokens_per_cpu_s']:.0f} decoded"
    )


def _mib(figures: dict[str, float]) -> str:
    return (
        f"{figures['loaded_mib']:.0f} MiB loaded, {figures['resident_mib']:.0f} after long calls,"
        f" {figures['peak_mib']:.0f} at most"
    )


async def _cancels(board: OnDevice, figures: dict[str, float]) -> None:
    """From the recall to the moment at which the board is free."""
    prose = " ".join(episode.text for episode in load(DATA_FILE).episodes)[:_PROSE_BYTES]
    reading = Prompt((("user", prose),), 8, pattern="[a-z ]{4000}")
    answering = Prompt((("user", "Tell me."),), 1500, pattern="[a-z ]{4000}")
    took: list[float] = []
    for number in range(_CANCELS):
        asked = reading if number % 2 else answering
        recalled, ended = 0.0, 0.0

        async def call(prompt: Prompt) -> None:
            nonlocal ended
            await board.generate(prompt)
            ended = time.perf_counter()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, asked)
            await anyio.sleep(0.3 + _SPREAD_S * number / _CANCELS)
            recalled = time.perf_counter()
            board.interrupt()
        if recalled < ended:
            took.append(1000 * (ended - recalled))
    figures |= {
        "cancel_ms_median": statistics.median(took),
        "cancel_ms_most": max(took),
        "cancels": len(took),
    }
    print(
        f"  cancelled in {figures['cancel_ms_median']:.0f} ms (median of {len(took)}),"
        f" {figures['cancel_ms_most']:.0f} ms at most"
    )


# --- choices -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """A stretch of dialogue and what of it is asked later; the model sees the text alone."""

    text: str
    gold: frozenset[str]


def passages(directory: Path, count: int) -> list[Passage]:
    """Turns around the one that holds a gold answer; the same for the same data."""
    found = []
    for conversation in locomo(directory):
        place = {turn.id: number for number, turn in enumerate(conversation.turns)}
        for question in conversation.questions:
            if question.category == ADVERSARIAL or len(question.evidence) != 1:
                continue
            at, gold = place[question.evidence[0]], stems(question.answer)
            if gold and gold <= stems(conversation.turns[at].said):
                first = max(at - _TURNS // 2, 0)
                said = [turn.said for turn in conversation.turns[first : first + _TURNS]]
                found.append(Passage("\n".join(said), gold))
    fitting = [one for one in found if LEAST_SENTENCES <= len(sentences(one.text)) <= MOST_SENTENCES]
    step = max(len(fitting) // count, 1)
    return fitting[::step][:count]


async def _choices(board: OnDevice, options: argparse.Namespace, figures: dict[str, float]) -> None:
    directory = data_directory(options.data)
    if directory is None:
        print(f"  whether choices keep answers: not measured, {ABSENT}")
        entries = [Passage(episode.text, frozenset()) for episode in load(DATA_FILE).episodes]
        chosen_from = [one for one in entries if len(sentences(one.text)) <= MOST_SENTENCES][
            : options.choices
        ]
    else:
        chosen_from = passages(directory, options.choices)
    codec = TextCodec(PlainDistiller())
    outcomes: Counter[str] = Counter()
    kept: Counter[tuple[str, Rung]] = Counter()
    tokens = 0
    for passage in chosen_from:
        found = sentences(passage.text)
        asked = choice_prompt([passage.text[start:end] for start, end, _ in found])
        free = await board.generate(replace(asked, pattern=""))
        outcomes["parsable_unguided"] += bool(parse_choice(free.text, len(found), most_chosen(len(found))))
        answer = await board.generate(asked)
        tokens += answer.tokens
        picked = parse_choice(answer.text, len(found), most_chosen(len(found)))
        outcomes["parsable"] += bool(picked)
        outcomes["first_ones"] += picked == tuple(range(1, len(picked) + 1))
        clauses = tuple(sorted(found[position - 1][2] for position in picked))
        first = tuple(sorted(clause for _, _, clause in found[: len(picked)]))
        ways = {"plain": (), "chosen": clauses, "first": first}
        for way, choice in ways.items():
            for spec in _LADDER.lossy:
                text = codec.render(codec.drop(passage.text, _LADDER, spec.rung, choice).record)
                kept[way, spec.rung] += passage.gold <= stems(text)
    count = len(chosen_from)
    figures |= {
        f"choice.{name}": outcomes[name] / count for name in ("parsable", "parsable_unguided", "first_ones")
    }
    figures |= {"choice.entries": count, "choice.tokens_per_entry": tokens / count}
    print(
        f"  choices over {count} entries: parsable {outcomes['parsable'] / count:.2f} (unguided"
        f" {outcomes['parsable_unguided'] / count:.2f}), the first sentences in order"
        f" {outcomes['first_ones'] / count:.2f}, {tokens / count:.0f} tokens each"
    )
    if directory is None:
        return
    print(f"  {'answers kept':>14} {'plain':>6} {'chosen':>6} {'first':>6}")
    for spec in _LADDER.lossy:
        label = spec.rung.name.lower()
        shares = {way: kept[way, spec.rung] / count for way in ("plain", "chosen", "first")}
        figures |= {f"choice.{label}.{way}": share for way, share in shares.items()}
        print(f"  {label:>14} " + " ".join(f"{share:6.3f}" for share in shares.values()))


# --- drafts --------------------------------------------------------------------------------------------


async def _drafts(board: OnDevice, options: argparse.Namespace, figures: dict[str, float]) -> None:
    directory = data_directory(options.data)
    entries = dialogue(directory, options.drafts) if directory else episodes(options.drafts)
    wanted = cases(entries)
    path = _OUT / f"ondevice_drafts_{board.model}.jsonl"
    made = await make(wanted, OnDeviceGenerator(board), path, 1, 0)
    print(f"  drafts of {len(entries)} entries of {'locomo' if directory else 'alfworld'}, admitted by rung:")
    for mode in ("strict", "paper"):
        found = tallies(wanted, made, mode)
        for rung, tally in sorted(found.items(), key=lambda item: item[0] or 0):
            label = "all" if rung is None else rung.name.lower()
            figures |= {
                f"drafts.{mode}.{label}.admitted": tally.admitted / tally.drafts,
                f"drafts.{mode}.{label}.answers_gained": tally.gained,
                f"drafts.{mode}.{label}.drafts": tally.drafts,
            }
            reasons = ", ".join(f"{reason} {count}" for reason, count in tally.reasons.most_common(4))
            print(
                f"    {mode:>6} {label:>10} {tally.admitted}/{tally.drafts}, answers gained {tally.gained},"
                f" {tally.tokens / tally.drafts:.0f} tokens, {tally.seconds / tally.drafts:.1f} s; {reasons}"
            )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.ondevice", description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of `crystalmem models prepare`")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data", default=None, help="folder with locomo/; default $CRYSTALMEM_DATA")
    parser.add_argument("--choices", type=int, default=60, help="entries to choose in; 0 = none")
    parser.add_argument("--drafts", type=int, default=12, help="entries to draft from each rung; 0 = none")
    return parser.parse_args()


if __name__ == "__main__":
    main()
