"""What passes between one endpoint's client and those who watch over several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from hub.engine import Load
from shared.ports import Draft, DraftRequest

ASK_S = 40.0
"""One deadline for an ask, queue, draft and judge together: an edge waits 45 s, then its answer is lost."""
QUEUE_S = 10.0
"""Of that, what an ask may wait for a free place; a draft takes 30 s at most by default."""


@dataclass(frozen=True)
class Call:
    """What one call came to. `answered`: the engine finished it, whatever we think of the answer."""

    draft: Draft
    answered: bool = False
    down: bool = False
    """The endpoint would fail any ask now."""
    rest_s: float = 0.0
    """It asked to be left alone for so long."""


class Caller(Protocol):
    """One endpoint's client (hub.model.OpenAIGenerator)."""

    @property
    def model(self) -> str: ...

    async def call(self, request: DraftRequest) -> Call: ...

    async def judge(self, evidence: str, claim: str) -> Call: ...

    def given_up(self, most: int) -> Draft: ...

    async def load(self) -> Load | None: ...

    async def aclose(self) -> None: ...


class EndpointStatus(Struct, frozen=True):
    """One endpoint, in the order of the configuration."""

    health: str
    flying: int
    limit: int
    stalls: int
