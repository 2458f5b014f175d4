"""The distiller measured: answers kept on LoCoMo beside two peers, facts of household episodes, CPU time.

LoCoMo is not shipped (--data DIR, see bench/datasets.py); without it the rest runs, and the report says so.
Bytes are those of the text as it is read, the spans and the blanks between them, over every turn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import distill_alfworld, distill_locomo, distill_speed
from bench.datasets import ABSENT, Conversation, data_directory, locomo
from bench.distill_locomo import TUNED_ON, Keep, Kept, turn_texts
from bench.report import Aim, at_least, at_most, write
from edge_agent.distill import PlainDistiller
from shared.memory import spans
from shared.memory.model import LADDERS

OUT = Path("out/bench/distill.json")
_RUNGS = {spec.rung.name: spec.text_fraction for spec in LADDERS["product"].lossy}
_STRICT_AIMS = {"COMPRESSED": 0.82, "SKELETAL": 0.50, "TRACE": 0.22}
_STRICT_TO_BEAT = {"COMPRESSED": 0.74, "SKELETAL": 0.35, "TRACE": 0.12}
_FACT_AIMS = {"COMPRESSED": 0.99, "SKELETAL": 0.95, "TRACE": 0.80}
_MS_PER_KB_AIM = 1.0
_EPISODES_TIMED = 120
_TURNS_TIMED = 1500


class _Report:
    """Figures and aims by name, as they come."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self.aims: dict[str, Aim] = {}

    def put(self, name: str, figure: float, aim: Aim | None = None) -> None:
        self.figures[name] = round(figure, 4)
        if aim is not None:
            self.aims[name] = aim


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and write the report."""
    parser = argparse.ArgumentParser(prog="bench.distill", description=__doc__)
    parser.add_argument("--data", help="folder with locomo/; default $CRYSTALMEM_DATA, else ../shared/data")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    directory = data_directory(options.data)
    conversations = locomo(directory) if directory else []
    report = _Report()
    if conversations:
        for captions in (True, False):
            _answers(report, conversations, captions=captions)
    else:
        print(f"LoCoMo did not run: {ABSENT}")
    _episodes(report)
    _speed(report, conversations)
    write(options.out, report.figures, report.aims)
    missed = [
        f"{name} {report.figures[name]} ({aim.aim})" for name, aim in report.aims.items() if not aim.met
    ]
    print(f"\naims missed: {', '.join(missed) or 'none'}\nreport: {options.out}")
    return 0


def _answers(report: _Report, conversations: Sequence[Conversation], *, captions: bool) -> None:
    asked = distill_locomo.eligible(conversations, captions=captions)
    apart = {conversation.id for conversation in conversations} - TUNED_ON
    texts = {
        conversation.id: list(turn_texts(conversation, captions=captions).values())
        for conversation in conversations
    }
    label = "turns with what their pictures show" if captions else "turns, words only"
    print(f"\nLoCoMo, {label}: {len(conversations)} conversations, {sum(map(len, texts.values()))} turns")
    print(
        f"{len(asked)} questions; {sum(one.conversation in apart for one in asked)} of them in conversations"
    )
    print(f"that nothing was fitted on ({', '.join(sorted(apart)) or 'none here'})\n")
    print(f"{'':22}{'':12}{'strict':>8}{'soft':>8}{'bytes':>8}")
    for rung, share in _RUNGS.items():
        for who, keep in _keepers(texts).items():
            for part, names in (("all", set(texts)), ("apart", apart)):
                if not names or (part == "apart" and who != "ours"):
                    continue
                got = _over(names, asked, texts, keep, share)
                name = f"locomo{'' if captions else '_words'}_{rung.lower()}_{who}_{part}".replace(" ", "_")
                aim = None
                if captions and who == "ours":
                    aim = at_least(got.strict, (_STRICT_AIMS if part == "all" else _STRICT_TO_BEAT)[rung])
                report.put(f"{name}_strict", got.strict, aim)
                report.put(f"{name}_soft", got.soft)
                report.put(f"{name}_bytes", got.share, at_most(got.share, share) if who == "ours" else None)
                row = f"{rung if who == 'ours' and part == 'all' else '':12}{who + ', ' + part:22}"
                print(f"{row}{got.strict:>8.3f}{got.soft:>8.3f}{got.share:>8.3f}")


def _keepers(texts: dict[str, list[str]]) -> dict[str, dict[str, Keep]]:
    """For each way to keep: by conversation, since the peers count words in one."""
    mine = distill_locomo.ours()
    return {
        "ours": dict.fromkeys(texts, mine),
        "key words": {name: distill_locomo.key_words(said) for name, said in texts.items()},
        "sentences": {name: distill_locomo.sentences(said) for name, said in texts.items()},
    }


def _over(
    names: set[str],
    asked: Sequence[distill_locomo.Asked],
    texts: dict[str, list[str]],
    keep: dict[str, Keep],
    share: float,
) -> Kept:
    """One figure over conversations: by question, and by byte."""
    strict = soft = kept = 0.0
    questions = size = 0
    for name in sorted(names):
        own = [one for one in asked if one.conversation == name]
        got = distill_locomo.grade(own, texts[name], keep[name], share)
        bytes_there = sum(len(text.encode()) for text in texts[name])
        strict, soft = strict + got.strict * len(own), soft + got.soft * len(own)
        questions, size, kept = questions + len(own), size + bytes_there, kept + got.share * bytes_there
    return Kept(strict / questions, soft / questions, kept / size)


def _episodes(report: _Report) -> None:
    texts, asked = distill_alfworld.recorded()
    ladder, distiller = LADDERS["product"], PlainDistiller()
    whole = {text: spans.whole(distiller.distil(text, ladder), 1) for text in texts}
    print(f"\nALFWorld, {len(texts)} recorded episodes: facts that can still be read off")
    print(f"{'':12}{'facts':>8}{'step':>8}{'place':>8}{'outcome':>8}{'seen':>8}{'gold':>8}{'bytes':>8}")
    for rung in ladder.lossy:
        kept = {text: spans.render(spans.lower(base, rung.rung)) for text, base in whole.items()}
        shares = distill_alfworld.read_off(texts, kept.__getitem__)
        shares["gold"] = distill_alfworld.gold_kept(asked, kept)
        shares["bytes"] = sum(len(text.encode()) for text in kept.values()) / sum(
            len(text.encode()) for text in texts
        )
        name = rung.rung.name
        for what, figure in shares.items():
            aim = at_least(figure, _FACT_AIMS[name]) if what == "facts" else None
            aim = at_most(figure, rung.text_fraction) if what == "bytes" else aim
            report.put(f"alfworld_{name.lower()}_{what}", figure, aim)
        columns = ("facts", "step", "place", "outcome", "seen", "gold", "bytes")
        print(f"{name:12}" + "".join(f"{shares[column]:>8.3f}" for column in columns))


def _speed(report: _Report, conversations: Sequence[Conversation]) -> None:
    episodes = distill_alfworld.recorded()[0][:_EPISODES_TIMED]
    turns = [turn.said for conversation in conversations for turn in conversation.turns][:_TURNS_TIMED]
    sessions = [
        "\n".join(turn.said for turn in conversation.turns if turn.session == 1)
        for conversation in conversations
    ]
    kinds = {
        "episodes": episodes,
        "turns": turns,
        "sessions": sessions,
        "logs": distill_speed.LOGS,
        "json": distill_speed.JSONS,
    }
    kinds = {name: texts for name, texts in kinds.items() if texts}
    print("\nCPU time, levels and invariants, ms a KB")
    for name, texts in kinds.items():
        figure = distill_speed.ms_per_kb(texts)
        report.put(f"ms_per_kb_{name}", figure)
        print(f"{name:12}{figure:>8.2f}  ({sum(map(len, texts)) // len(texts)} characters a text)")
    mixed = distill_speed.ms_per_kb([text for texts in kinds.values() for text in texts])
    report.put("ms_per_kb", mixed, at_most(mixed, _MS_PER_KB_AIM, "ms"))
    print(f"{'all of them':12}{mixed:>8.2f}")
    print("\nodd texts: time for twice the bytes over time for them (2 = linear)")
    for name, make in distill_speed.ODD.items():
        figure = distill_speed.twice(make)
        report.put(f"twice_{name.replace(' ', '_')}", figure, at_most(figure, 3.0))
        print(f"{name:14}{figure:>6.2f}")
    seconds = distill_speed.one_long_line()
    report.put("one_line_of_5_mb_seconds", seconds)
    print(f"one line of 5 MB: {seconds:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
