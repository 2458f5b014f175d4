"""`crystalmem reembed`: the vectors of a stopped edge's store, made anew by the configured embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from crystalmem.run_edge import find_embedder
from edge_agent.assembly import text_codecs
from edge_agent.embedding import make_vectors
from edge_agent.opening import FILE_NAME, StoreOptions
from edge_agent.store import Store
from edge_agent.vectors import named
from shared.config import EdgeConfig, load
from shared.errors import Code, InputError, PermanentError
from shared.host.clock import SystemClock, SystemRng
from shared.host.files import lock_directory
from shared.memory.model import LADDERS
from shared.ports import Embedder

# One commit: what a kill costs is made again in seconds.
_STEP_TEXTS = 64
_STEP_CHARACTERS = 64 * 1024

Say = Callable[[str], None]


def reembed_store(config_file: Path | None, overrides: Mapping[str, object], say: Say) -> None:
    """Delete the vectors of any other model, then make what is missing; resumable after any end.

    PermanentError where there is no embedder, InputError where there is no store, STORE_LOCKED while a
    daemon has it open. The store names one model at any time and never holds vectors of two.
    """
    config = load(config_file, EdgeConfig, overrides)
    embedder, why = find_embedder(config.embedder)
    if embedder is None:
        raise PermanentError(
            Code.MODEL_ABSENT, f"there is no embedder to make vectors with: {why}", hint="See docs/recall.md"
        )
    if not (config.directory / "memory" / FILE_NAME).exists():
        raise InputError(
            Code.NOT_FOUND, "no store is here", path=str(config.directory), hint="Name it with --data-dir"
        )
    with lock_directory(config.directory), closing(_open(config)) as store:
        _fill(store, embedder, say)


def _open(config: EdgeConfig) -> Store:
    """Whatever model its vectors are of. Nothing is queued for a hub: entries stay as they are."""
    options = StoreOptions(config.tenant, LADDERS[config.memory.ladder], config.memory.provision_bytes)
    memory = config.directory / "memory"
    return Store.open(memory, options, codecs=text_codecs(), clock=SystemClock(), rng=SystemRng())


def _fill(store: Store, embedder: Embedder, say: Say) -> None:
    signature, before = embedder.signature, store.vectors.signature
    if before is not None and before != signature:
        say(f"from {named(before)}: {len(store.vectors)} vectors go")
    store.vectors.adopt(signature)
    store.shrink()
    say(f"to {named(signature)}: {store.vectors.counts().pending} entries to embed")
    failed: set[int] = set()
    while entries := store.vectors.wanting(signature, _STEP_TEXTS, _STEP_CHARACTERS, failed):
        made = make_vectors(embedder, entries)
        failed |= made.failed.keys()
        for number, problem in made.failed.items():
            say(f"entry {number} has no vector: {problem}")
        if not store.vectors.keep(signature, made.entries, made.vectors) and not made.failed:
            break
        store.shrink()
        counts = store.vectors.counts()
        say(f"{counts.embedded} embedded, {counts.pending} to go")
    counts = store.vectors.counts()
    waiting = counts.pending - len(failed)
    say(
        f"done: {counts.embedded} vectors, {counts.without} entries go without, {len(failed)} failed"
        + (f"; {waiting} wait for room in the budget" if waiting else "")
    )
