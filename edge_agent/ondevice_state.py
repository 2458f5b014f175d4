"""The on-device model in words: its options, where it stands, what it is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from edge_agent.ondevice_wire import End
from shared.errors import Code, PermanentError

# No vocabulary has longer tokens than this for usual text.
_LONGEST_TOKEN_BYTES = 32


class Phase(str, Enum):
    """Where the model stands."""

    ABSENT = "absent"
    ASLEEP = "asleep"
    LOADING = "loading"
    READY = "ready"
    BUSY = "busy"
    WAITING = "waiting"
    """Refused or crashed: tried again later."""
    GIVEN_UP = "given_up"


@dataclass(frozen=True)
class OnDeviceOptions:
    """See the `ondevice` table of the configuration."""

    folder: Path | None
    threads: int = 1
    memory_bytes: int = 0
    max_prompt_tokens: int = 1024
    idle_unload_s: float = 300.0
    why_absent: str = "not configured"


@dataclass(frozen=True)
class Prompt:
    """What one call asks: (role, text) by turns. schema (JSON) or pattern (regular expression): its form."""

    turns: tuple[tuple[str, str], ...]
    max_tokens: int
    schema: str = ""
    pattern: str = ""

    def surely_over(self, tokens: int) -> bool:
        """Whether it is longer than so many tokens, whatever the vocabulary: not even sent to be counted."""
        told_bytes = sum(len(text.encode("utf-8", "replace")) for _, text in self.turns)
        return told_bytes > _LONGEST_TOKEN_BYTES * tokens


@dataclass(frozen=True)
class Answer:
    """What came of a call; the tokens were computed whatever the end."""

    end: End
    text: str = ""
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """What the ledger is charged."""
        return self.prompt_tokens + self.completion_tokens


@dataclass
class Counts:
    """Since the daemon started."""

    calls: int = 0
    tokens: int = 0
    cancelled: int = 0
    deaths: int = 0
    restarts: int = 0
    ends: dict[str, int] = field(default_factory=dict)


def check_memory(model: str, needed_bytes: int, free_bytes: int | None) -> None:
    """PermanentError(NOT_ENOUGH_MEMORY) where the kernel tells of less; None = it does not tell."""
    if free_bytes is not None and free_bytes < needed_bytes:
        raise PermanentError(
            Code.NOT_ENOUGH_MEMORY,
            "the board lacks the memory for this model",
            hint="Free memory, choose a smaller model, or set ondevice.memory_bytes if you measured less",
            needed_bytes=needed_bytes,
            available_bytes=free_bytes,
            model=model,
        )
