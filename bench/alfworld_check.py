"""Say what a recorded data set holds, and how much its questions depend on what a store keeps.

    python -m bench.alfworld_check FILE

Plain BM25 over plain text, reader-free grade, measuring questions: keep-all against the newest, and a random,
quarter of the bytes.
"""

from __future__ import annotations

import json
import lzma
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.reader_free import Index, share_found

KEPT = 0.25  # share of the bytes, the trough of Definition 1


def main() -> None:
    path = Path(sys.argv[1])
    rows = read_rows(path)
    episodes = [row for row in rows if row["type"] == "episode"]
    questions = [row for row in rows if row["type"] == "question"]
    texts = [str(row["text"]) for row in episodes]
    sizes = sorted(len(text.encode()) for text in texts)
    print(f"{len(texts)} episodes, {len({text.split()[0] for text in texts})} homes, {sum(sizes)} bytes,")
    print(f"mean {sum(sizes) // len(sizes)}, from {sizes[0]} to {sizes[-1]}; file {path.stat().st_size}")
    print(f"won: {sum(': won after' in text for text in texts)}")
    for split in ("measure", "serve"):
        asked = [row for row in questions if row["split"] == split]
        print(f"{split}: {len(asked)} questions {dict(Counter(row['kind'] for row in asked))}")
        arms = {"keep all": texts, "newest quarter": newest(texts), "random quarter": scattered(texts)}
        for name, kept in arms.items():
            print(f"  {name:15s} {100 * score(kept, asked):6.2f}")


def read_rows(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    data = lzma.decompress(data) if path.suffix == ".xz" else data
    return [json.loads(line) for line in data.decode().splitlines()]


def newest(texts: Sequence[str]) -> list[str]:
    """The newest texts that fit into KEPT of the bytes."""
    left, kept = KEPT * sum(len(text.encode()) for text in texts), []
    for text in reversed(texts):
        left -= len(text.encode())
        if left < 0:
            break
        kept.append(text)
    return kept[::-1]


def scattered(texts: Sequence[str]) -> list[str]:
    """A seeded random choice of the same size."""
    mixed = list(texts)
    random.Random(0).shuffle(mixed)
    return newest(mixed)


def score(kept: Sequence[str], questions: Sequence[dict[str, Any]]) -> float:
    index = Index(kept)
    return sum(share_found(q["gold"], index.hits(q["question"])) for q in questions) / max(1, len(questions))


if __name__ == "__main__":
    main()
