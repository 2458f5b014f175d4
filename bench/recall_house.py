"""One LoCoMo conversation in the product's own store and retrieval, beside its plain texts and vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.datasets import Conversation
from bench.recall_peers import Bm25, Vectors
from edge_agent.distill import PlainDistiller
from edge_agent.entries import NewEntry
from edge_agent.opening import StoreOptions
from edge_agent.retrieval import Retrieval
from edge_agent.store import Store
from edge_agent.vector_keeper import Wanting
from shared.errors import Code, PermanentError
from shared.host.clock import SystemClock, SystemRng
from shared.memory.model import LADDERS, Kind
from shared.memory.text_codec import TextCodec
from shared.memory.vectors import Signature
from shared.units import MIB

_SHED_SEED = 11


@dataclass(frozen=True)
class House:
    """One conversation in the product's store, and beside it as plain texts and vectors."""

    texts: list[str]
    store: Store
    retrieval: Retrieval
    bm25: Bm25
    vectors: Vectors


@contextmanager
def opened(
    directory: Path, talk: Conversation, vectors: Vectors, signature: Signature | None
) -> Iterator[House]:
    """`signature` None: without vectors."""
    options = StoreOptions("bench", LADDERS["product"], 64 * MIB)
    codecs = dict.fromkeys((Kind.MESSAGE,), TextCodec(PlainDistiller()))
    texts = [turn.said for turn in talk.turns]
    directory.mkdir(parents=True)
    opened = Store.open(directory, options, codecs=codecs, clock=SystemClock(), rng=SystemRng())
    with closing(opened) as store:
        store.add_many([NewEntry(text, Kind.MESSAGE) for text in texts])
        if signature is not None:
            wanting = [Wanting(place + 1, 1, text) for place, text in enumerate(texts)]
            if store.vectors.keep(signature, wanting, vectors) != len(texts):
                raise PermanentError(Code.INTERNAL, "the bench's store had no room for its vectors")
        with closing(Retrieval(store)) as retrieval:
            yield House(texts, store, retrieval, Bm25(texts), vectors)


def shed_half(store: Store) -> None:
    """Half of the vectors go, by a seed: what a squeeze leaves, with every text as it was."""
    numbers = store.table.numbers()
    chosen = np.random.default_rng(_SHED_SEED).permutation(len(numbers))[: len(numbers) // 2]
    store.vectors.shed(numbers[np.sort(chosen)].tolist())
