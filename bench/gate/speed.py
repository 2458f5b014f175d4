"""What a verdict on a draft of 2 KB costs: CPU time, with nothing remembered and with everything."""

from __future__ import annotations

import random

from bench.gate import runner
from bench.gate.cases import Case, exact_base
from bench.gate.rewrites import synonyms_tuned
from bench.gate.texts import Text, episodes, own
from shared.memory import gate

_DRAFTS = 40
_BYTES = 2048


def measure() -> dict[str, float]:
    """Median ms by mode: cold forgets every text seen before, warm judges it a second time."""
    drafts = list(_drafts())
    found = {}
    for mode in runner.MODES:
        found[f"{mode}_cold_ms"] = runner.cpu_ms(drafts, mode, gate.REMEMBERED)
        runner.cpu_ms(drafts, mode)
        found[f"{mode}_warm_ms"] = runner.cpu_ms(drafts, mode)
    return found


def _drafts() -> list[Case]:
    """Half prose of our own in which every text has a word replaced, half transcripts with lists turned."""
    rng = random.Random(1)
    cases = []
    for at in range(_DRAFTS):
        if at % 2:
            text = rng.choice(episodes())[:_BYTES]
            draft = "\n".join(sorted(text.splitlines()))
            cases.append(Case("speed", True, exact_base(text), draft))
            continue
        said: list[str] = []
        other: list[str] = []
        while sum(map(len, said)) < _BYTES:
            one = own(rng)
            said.append(one.plain)
            other.append(synonyms_tuned(Text(one.source, one.plain), rng) or one.plain)
        cases.append(Case("speed", True, exact_base("\n".join(said)), "\n".join(other)))
    return cases
