"""The board's own language model and what the daemon uses it for, as configured."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from edge_agent import answers
from edge_agent.elastic import Elastic
from edge_agent.ondevice import OnDevice
from edge_agent.ondevice_engine import INSTALL, PACKAGE
from edge_agent.ondevice_generator import OnDeviceGenerator
from edge_agent.ondevice_state import OnDeviceOptions, Phase
from edge_agent.parts import Parts
from edge_agent.relevel import Relevelling
from shared.config import OnDeviceConfig
from shared.ports import Clock

HOW_TO = "crystalmem models prepare smollm2, then ondevice.folder (docs/ondevice.md)"


class Board:
    """One model, two uses. Implements idle.Board; without a model every use is a no."""

    def __init__(self, config: OnDeviceConfig, clock: Clock, *, installed: bool | None = None) -> None:
        self._config = config
        known = importlib.util.find_spec(PACKAGE) is not None if installed is None else installed
        self.model = OnDevice(_options(config, installed=known), clock)
        self._relevelling: Relevelling | None = None

    @property
    def generator(self) -> OnDeviceGenerator | None:
        """The generative source of last resort, where it is wanted."""
        wanted = self._config.regenerate and self.model.phase is not Phase.ABSENT
        return OnDeviceGenerator(self.model) if wanted else None

    def level(self, parts: Parts, elastic: Elastic, rho: float) -> None:
        """Let it choose among sentences, where that is wanted."""
        if self._config.relevel and self.model.phase is not Phase.ABSENT:
            self._relevelling = Relevelling(parts, elastic, self.model, rho)

    def interrupt(self) -> None:
        """A recall needs the board."""
        self.model.interrupt()

    async def relevel(self, give_way: Callable[[], bool], most: int | None = None) -> bool:
        """True when a choice was kept."""
        return self._relevelling is not None and await self._relevelling.run(give_way, most)

    def view(self) -> answers.OnDeviceView:
        """What `status` shows."""
        model, counts = self.model, self.model.counts
        return answers.OnDeviceView(
            state=model.phase.value,
            model=model.model,
            folder=self._config.folder,
            problem=model.problem,
            available=model.available,
            resident_bytes=model.resident_bytes,
            calls=counts.calls,
            tokens=counts.tokens,
            cancelled=counts.cancelled,
            deaths=counts.deaths,
            restarts=counts.restarts,
            relevelled=dict(self._relevelling.outcomes) if self._relevelling is not None else {},
        )


def _options(config: OnDeviceConfig, *, installed: bool) -> OnDeviceOptions:
    if not config.folder:
        folder, why = None, f"not configured: {HOW_TO}"
    elif not installed:
        folder, why = None, f"{PACKAGE} is not installed: {INSTALL}"
    else:
        folder, why = Path(config.folder).expanduser(), ""
    return OnDeviceOptions(
        folder=folder,
        threads=config.threads,
        memory_bytes=config.memory_bytes,
        max_prompt_tokens=config.max_prompt_tokens,
        idle_unload_s=config.idle_unload_s,
        why_absent=why,
    )
