"""Every environment by name. Each is imported when it is asked for, so one missing engine stops no other."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from bench.environments.contract import Environment
from shared.errors import Code, InputError

_CLASSES = {
    "sf": "Sf",
    "ttl": "Ttl",
    "locomo": "Locomo",
    "longmemeval": "LongMemEval",
    "alfworld": "AlfWorld",
    "webarena": "WebArena",
    "syndrift": "SynDrift",
    "babyai": "BabyAi",
    "miniwob": "MiniWob",
    "zsre": "Zsre",
}
NAMES: tuple[str, ...] = tuple(_CLASSES)
SEVEN: tuple[str, ...] = NAMES[:7]
"""The paper's seven, in the order of its Table II."""
HELD_OUT: tuple[str, ...] = ("babyai",)
"""Run once all settings are frozen; nothing is tuned on it."""


def make(name: str, data: Path | None) -> Environment:
    """The environment of this name over the data directory (None: what needs no data).

    InputError(BAD_REQUEST) for an unknown name; an environment raises its own where something is missing.
    """
    if name not in _CLASSES:
        raise InputError(
            Code.BAD_REQUEST, "no such environment", environment=name, hint=f"one of {', '.join(NAMES)}"
        )
    module = import_module(f"bench.environments.{name}")
    environment: Environment = getattr(module, _CLASSES[name])(data)
    return environment
