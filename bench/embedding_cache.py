"""Vectors of a bench's texts, kept under out/ by model and texts: LoCoMo alone costs a minute of CPU."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edge_agent.embedder import OnnxEmbedder

DIRECTORY = Path("out/vectors")
_STEP = 64


@dataclass(frozen=True)
class Embedded:
    """Unit vectors, (texts, width), and the CPU seconds they took; 0 where they were kept."""

    vectors: NDArray[np.float32]
    cpu_s: float


def passages(embedder: OnnxEmbedder, weights: str, texts: Sequence[str]) -> Embedded:
    """Of what is remembered. `weights`: what names the model's bytes."""
    return _kept(embedder, weights, "passages", texts)


def queries(embedder: OnnxEmbedder, weights: str, texts: Sequence[str]) -> Embedded:
    """Of what is asked."""
    return _kept(embedder, weights, "queries", texts)


def _kept(embedder: OnnxEmbedder, weights: str, side: str, texts: Sequence[str]) -> Embedded:
    name = hashlib.sha256(repr((weights, embedder.signature, side, list(texts))).encode()).hexdigest()[:24]
    path = DIRECTORY / f"{name}.npy"
    if path.exists():
        return Embedded(np.load(path), 0.0)
    started = time.process_time()
    if side == "queries":
        rows = [embedder.query(text) for text in texts]
    else:
        steps = range(0, len(texts), _STEP)
        rows = [row for start in steps for row in embedder.passages(texts[start : start + _STEP])]
    found = Embedded(np.array(rows, np.float32), time.process_time() - started)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(name + ".part.npy")
    np.save(part, found.vectors)
    part.replace(path)
    return found
