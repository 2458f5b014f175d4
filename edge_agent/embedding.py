"""Vectors in the daemon: queries under a time limit, entries in the background, a thread for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio
import numpy as np

from edge_agent import answers
from edge_agent.parts import Parts
from edge_agent.vector_keeper import Wanting
from shared import metrics
from shared.errors import CrystalError, PermanentError
from shared.host.log import clean, get_logger
from shared.host.worker import WorkerThread
from shared.memory.vectors import Floats
from shared.ports import Embedder

# One step is what a recall may have to wait for: about a tenth of a second on one core here.
_STEP_TEXTS = 8
_STEP_CHARACTERS = 1500
# Queries that nobody waits for any more; behind so many of them another is not even asked.
_MOST_LATE = 2
_log = get_logger("embedding")


@dataclass(frozen=True)
class QueryVector:
    """missing: what the recall goes without, as `degraded` names it; empty where there is a vector."""

    vector: Floats | None
    missing: str = ""


@dataclass(frozen=True)
class Made:
    """Vectors of the entries that the model could take, row by row, and what it said of the others."""

    entries: list[Wanting]
    vectors: Floats
    failed: dict[int, CrystalError]


class Embedding:
    """The configured embedder at work; without one every query is by words."""

    def __init__(
        self,
        parts: Parts,
        thread: WorkerThread,
        embedder: Embedder | None,
        *,
        absence: str = "",
        query_timeout_s: float = 1.0,
    ) -> None:
        """absence: why there is no embedder and what to do about it."""
        self._parts = parts
        self._thread = thread
        self._embedder = embedder
        self._absence = absence
        self._query_timeout_s = query_timeout_s
        self._asked: set[asyncio.Task[Floats]] = set()
        self._failed: set[int] = set()
        self._turn = anyio.Lock()
        self._awaited = 0

    # --- queries --------------------------------------------------------------------------------------

    async def query(self, text: str) -> QueryVector:
        """The query's vector, or why the recall must do without; never later than the limit."""
        if self._embedder is None:
            return QueryVector(None, "no_embedder")
        if len(self._asked) >= _MOST_LATE:
            return _without("embedder_timeout")
        task = asyncio.ensure_future(self._thread.run(self._embedder.query, text))
        self._asked.add(task)
        task.add_done_callback(self._answered)
        await asyncio.wait({task}, timeout=self._query_timeout_s)
        if not task.done():
            return _without("embedder_timeout")
        if task.cancelled() or task.exception() is not None:
            return _without("embedder_failed")
        metrics.QUERY_EMBEDDINGS.labels(end="ok").inc()
        return QueryVector(task.result())

    def _answered(self, task: asyncio.Task[Floats]) -> None:
        self._asked.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.warning("a query has no vector", reason=clean(str(problem), 300))

    # --- entries --------------------------------------------------------------------------------------

    async def fill(
        self, give_way: Callable[[], bool], most: int | None = None, *, awaited: bool = False
    ) -> int:
        """Make vectors for entries that want one and have room, `most` of them; how many were kept.

        One at a time: two would embed the same texts. awaited: somebody waits for it, idle work gives way.
        """
        if self._embedder is None:
            return 0
        self._awaited += awaited
        try:
            async with self._turn:
                return await self._filled(
                    self._embedder, lambda: give_way() or (self._awaited > 0 and not awaited), most
                )
        finally:
            self._awaited -= awaited

    async def _filled(self, embedder: Embedder, give_way: Callable[[], bool], most: int | None) -> int:
        kept = 0
        while not give_way() and (most is None or kept < most):
            step = _STEP_TEXTS if most is None else min(_STEP_TEXTS, most - kept)
            entries = await self._parts.thread.run(self._wanting, embedder, step)
            if not entries:
                break
            made = await self._thread.run(make_vectors, embedder, entries)
            self._note_failed(made)
            async with self._parts.lock:
                written = await self._parts.thread.run(self._keep, embedder, made)
            kept += written
            if not written and not made.failed:
                # The room went elsewhere meanwhile.
                break
        metrics.EMBEDDED.inc(kept)
        return kept

    def _wanting(self, embedder: Embedder, most: int) -> list[Wanting]:
        vectors = self._parts.store.vectors
        return vectors.wanting(embedder.signature, most, _STEP_CHARACTERS, self._failed)

    def _keep(self, embedder: Embedder, made: Made) -> int:
        store = self._parts.store
        kept = store.vectors.keep(embedder.signature, made.entries, made.vectors)
        # The log is budget too.
        store.shrink()
        return kept

    def _note_failed(self, made: Made) -> None:
        """A text that the model cannot take is not tried again by this process."""
        for number, problem in made.failed.items():
            _log.warning("an entry has no vector", number=number, reason=clean(str(problem), 300))
            self._failed.add(number)

    # --- telling ----------------------------------------------------------------------------------------

    def view(self) -> answers.EmbedderView:
        """What `status` shows. On the store's thread."""
        counts, embedder = self._parts.store.vectors.counts(), self._embedder
        held = self._parts.store.vectors.signature
        shown = embedder.signature if embedder is not None else held
        return answers.EmbedderView(
            state="absent" if embedder is None else "ready",
            why=self._absence if embedder is None else "",
            model=shown.model if shown is not None else "",
            width=shown.width if shown is not None else 0,
            provider=embedder.provider if embedder is not None else "",
            embedded=counts.embedded,
            pending=counts.pending,
            without=counts.without,
            failed=len(self._failed),
        )

    async def aclose(self) -> None:
        """Wait for queries under way and end the thread."""
        if self._asked:
            await asyncio.wait(set(self._asked))
        await self._thread.aclose()


def make_vectors(embedder: Embedder, entries: Sequence[Wanting]) -> Made:
    """All at once; where that fails one by one, so that one text costs no other its vector."""
    try:
        return Made(list(entries), embedder.passages([entry.text for entry in entries]), {})
    except PermanentError:
        pass
    kept: list[Wanting] = []
    rows: list[Floats] = []
    failed: dict[int, CrystalError] = {}
    for entry in entries:
        try:
            rows.append(embedder.passages([entry.text])[0])
            kept.append(entry)
        except PermanentError as problem:
            failed[entry.number] = problem
    return Made(kept, np.array(rows, np.float32), failed)


def _without(missing: str) -> QueryVector:
    metrics.QUERY_EMBEDDINGS.labels(end=missing.removeprefix("embedder_")).inc()
    return QueryVector(None, missing)
