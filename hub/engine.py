"""What an engine's /metrics page tells: who runs, who waits, and whether tokens move. vLLM and SGLang."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{[^\n]*\})?\s+(\S+)", re.MULTILINE)
_RUNNING = frozenset({"vllm:num_requests_running", "sglang:num_running_reqs"})
_WAITING = frozenset({"vllm:num_requests_waiting", "sglang:num_queue_reqs"})
# Prompts count too: an engine that reads a long one moves, and answers nothing for seconds.
_MOVED = frozenset(
    {
        "vllm:generation_tokens_total",
        "vllm:prompt_tokens_total",
        "sglang:generation_tokens_total",
        "sglang:prompt_tokens_total",
    }
)


@dataclass(frozen=True)
class Load:
    """One moment of an engine, summed over its parts. `moved`: tokens so far, read and written."""

    running: float
    waiting: float
    moved: float


def load_of(page: str) -> Load | None:
    """None where the page is not that of an engine we know."""
    sums: dict[frozenset[str], float] = {}
    for name, text in _SAMPLE.findall(page):
        for names in (_RUNNING, _WAITING, _MOVED):
            if name in names:
                value = _number(text)
                if value is None:
                    return None
                sums[names] = sums.get(names, 0.0) + value
    if _RUNNING not in sums or _WAITING not in sums:
        return None
    return Load(sums[_RUNNING], sums[_WAITING], sums.get(_MOVED, 0.0))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
