"""The on-device model in words: its options, where it stands, what it is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from edge_agent.ondevice_wire import End


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
