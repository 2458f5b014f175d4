"""Recall of LoCoMo evidence: does the turn that answers a question come back among the first 5 and 10?

Peers are computed here; the rows of "ours" come from the product's own store and retrieval. Needs LoCoMo
(not shipped: --data) and an embedder (`crystalmem models prepare minilm`); says what is missing and what
therefore did not run. `python -m bench.recall [--data DIR] [--models DIR] [--model NAME]`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from bench import embedding_cache
from bench.datasets import ABSENT, ADVERSARIAL, Conversation, Question, data_directory, locomo
from bench.recall_house import House, opened, shed_half
from bench.recall_peers import Vectors, fused, int8, rotated_signs
from bench.report import Aim, at_least, at_most, write
from edge_agent.embedder import EmbedderOptions, OnnxEmbedder, load_embedder
from edge_agent.embedder_spec import read_spec
from edge_agent.fusion import fuse
from edge_agent.search import Scored, SearchResult
from shared.config import default_models_dir
from shared.errors import PermanentError
from shared.memory.vectors import Rotation, Signature

OUT = Path("out/bench/recall.json")
CUTS = (5, 10)
# On all ten conversations, with the same peers; seven of them are what we measure on.
REFERENCE = {"BM25": 0.571, "BM25 + f32": 0.600, "BM25 + binary": 0.591}
AIM_FUSED, AIM_LOSS = 0.591, 0.01
_DEPTH = 100
_SHIPPED_TEXTS = 60

Ranking = Callable[["Asked"], Sequence[int]]


@dataclass(frozen=True)
class Asked:
    """A question of a conversation: its vector's row, and the places of its evidence."""

    row: int
    house: House
    text: str
    gold: frozenset[int]


@dataclass(frozen=True)
class Row:
    """Evidence recall at each cut; bytes of a vector."""

    name: str
    bytes: int
    recall: tuple[float, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and write the report; a missed aim is reported, not an error."""
    options = _options(arguments)
    directory = data_directory(options.data)
    conversations = locomo(directory) if directory is not None else []
    embedder, weights, why = _embedder(options.models / options.model)
    if embedder is None:
        print(f"no embedder: {why}\n  not run: every row with a vector")
    if not conversations:
        print(f"{ABSENT}\n  not run: recall of evidence")
        return _speed_only(embedder)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        return _measure(conversations, embedder, weights, stack, Path(scratch))


def _measure(
    conversations: Sequence[Conversation],
    embedder: OnnxEmbedder | None,
    weights: str,
    stack: ExitStack,
    scratch: Path,
) -> int:
    texts = [turn.said for talk in conversations for turn in talk.turns]
    asked_texts = [question.text for talk in conversations for question in _asked_of(talk)]
    none = embedding_cache.Embedded(np.zeros((len(texts), 8), np.float32), 0.0)
    turns = none if embedder is None else embedding_cache.passages(embedder, weights, texts)
    queries = none if embedder is None else embedding_cache.queries(embedder, weights, asked_texts)
    signature = None if embedder is None else embedder.signature
    houses, start = [], 0
    for talk in conversations:
        vectors = turns.vectors[start : start + len(talk.turns)]
        houses.append(stack.enter_context(opened(scratch / talk.id, talk, vectors, signature)))
        start += len(talk.turns)
    questions = list(_questions(conversations, houses))
    print(f"{len(conversations)} conversations, {len(texts)} turns, {len(questions)} questions\n")
    rows = [_row("BM25", 0, questions, lambda asked: _best(asked.house.bm25.scores(asked.text)))]
    rows.append(_row("ours, by words", 0, questions, lambda asked: _ours(asked, None)))
    if signature is not None:
        rows += _vector_rows(questions, queries.vectors, signature)
    _print(rows)
    figures, aims = _figures(rows, signature is not None)
    figures |= {"turns": float(len(texts)), "questions": float(len(questions))}
    figures |= _speed(embedder, texts[:: max(len(texts) // 300, 1)])
    _print_aims(figures, aims)
    write(OUT, figures, aims)
    print(f"written to {OUT}")
    return 0


# --- rankings ---------------------------------------------------------------------------------------------


def _vector_rows(questions: Sequence[Asked], queries: Vectors, signature: Signature) -> list[Row]:
    width, rotation = signature.width, Rotation(signature.width)
    rotated = rotation.apply(queries)
    stored: dict[str, Callable[[Vectors], Vectors]] = {
        "f32": lambda vectors: vectors,
        "int8": int8,
        "binary": lambda vectors: rotated_signs(rotation, vectors),
    }
    size = {"f32": 4 * width, "int8": width + 4, "binary": width // 8}
    rows = []
    for name, form in stored.items():
        asked_with = rotated if name == "binary" else queries
        held = {id(asked.house): form(asked.house.vectors) for asked in questions}

        def near(asked: Asked, held: dict[int, Vectors] = held, with_: Vectors = asked_with) -> Vectors:
            return np.asarray(held[id(asked.house)] @ with_[asked.row], np.float32)

        rows.append(_row(name, size[name], questions, lambda asked, near=near: _best(near(asked))))  # type: ignore[misc]
        rows.append(
            _row(
                f"BM25 + {name}",
                size[name],
                questions,
                lambda asked, near=near: _best(fused(asked.house.bm25.scores(asked.text), near(asked))),  # type: ignore[misc]
            )
        )
    rows.append(
        _row("ours, by words + f32", 4 * width, questions, lambda asked: _ours_f32(asked, queries[asked.row]))
    )
    rows.append(_row("ours, hybrid", width // 8, questions, lambda asked: _ours(asked, queries[asked.row])))
    for asked in {id(asked.house): asked for asked in questions}.values():
        shed_half(asked.house.store)
    rows.append(
        _row("ours, hybrid, half shed", width // 8, questions, lambda asked: _ours(asked, queries[asked.row]))
    )
    return rows


def _ours(asked: Asked, query: Vectors | None) -> list[int]:
    """The product's ranking; entries are numbered from 1 in the order of the turns."""
    return [hit.number - 1 for hit in asked.house.retrieval.rank(asked.text, _DEPTH, query).hits]


def _ours_f32(asked: Asked, query: Vectors) -> list[int]:
    """The product's words and fusion with exact vectors in place of codes."""
    lexical: SearchResult = asked.house.retrieval.rank(asked.text, _DEPTH)
    scores = asked.house.vectors @ query
    near = [Scored(place + 1, float(scores[place])) for place in _best(scores)[:_DEPTH]]
    return [hit.number - 1 for hit in fuse(lexical, near, lambda _: True).hits]


def _best(scores: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> list[int]:
    return [int(place) for place in np.argsort(-scores, kind="stable")]


def _row(name: str, size: int, questions: Sequence[Asked], ranking: Ranking) -> Row:
    """Mean over questions of the share of its evidence among the first."""
    total = np.zeros(len(CUTS))
    for asked in questions:
        found = ranking(asked)
        total += [len(asked.gold.intersection(found[:cut])) / len(asked.gold) for cut in CUTS]
    return Row(name, size, tuple((total / len(questions)).tolist()))


def _asked_of(talk: Conversation) -> list[Question]:
    """The answerable questions whose evidence is known."""
    return [q for q in talk.questions if q.category != ADVERSARIAL and q.evidence]


def _questions(conversations: Sequence[Conversation], houses: Sequence[House]) -> Iterator[Asked]:
    row = 0
    for talk, house in zip(conversations, houses, strict=True):
        place = {turn.id: number for number, turn in enumerate(talk.turns)}
        for question in _asked_of(talk):
            yield Asked(row, house, question.text, frozenset(place[turn] for turn in question.evidence))
            row += 1


# --- embedder ---------------------------------------------------------------------------------------------


def _embedder(folder: Path) -> tuple[OnnxEmbedder | None, str, str]:
    """The embedder, what names its bytes, and why there is none."""
    try:
        return load_embedder(folder, EmbedderOptions()), read_spec(folder).weights_sha256, ""
    except PermanentError as problem:
        return None, "", str(problem)


def _speed(embedder: OnnxEmbedder | None, texts: Sequence[str]) -> dict[str, float]:
    if embedder is None:
        return {}
    wall, cpu = time.perf_counter(), time.process_time()
    embedder.passages(texts)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    figures = {"texts_per_s": len(texts) / wall, "texts_per_cpu_s": len(texts) / cpu}
    print(
        f"\n{embedder.signature.model}: {figures['texts_per_s']:.0f} texts/s,"
        f" {figures['texts_per_cpu_s']:.0f} a second of one core,"
        f" mean {sum(map(len, texts)) / len(texts):.0f} characters"
    )
    return figures


def _speed_only(embedder: OnnxEmbedder | None) -> int:
    """What can be measured on what is shipped: how fast the demo's episodes are embedded."""
    if embedder is None:
        return 0
    figures = _speed(embedder, _shipped_texts())
    write(OUT, figures, {})
    print(f"written to {OUT}")
    return 0


def _shipped_texts() -> list[str]:
    packed = (files("crystalmem") / "data" / "alfworld_episodes.jsonl.xz").read_bytes()
    rows = [json.loads(line) for line in lzma.decompress(packed).splitlines()]
    return [row["text"] for row in rows if row.get("type") == "episode"][:_SHIPPED_TEXTS]


# --- report -----------------------------------------------------------------------------------------------


def _figures(rows: Sequence[Row], with_vectors: bool) -> tuple[dict[str, float], dict[str, Aim]]:
    figures = {
        f"{row.name} @{cut}": value for row in rows for cut, value in zip(CUTS, row.recall, strict=True)
    }
    if not with_vectors:
        return figures, {}
    ours, exact = figures["ours, hybrid @10"], figures["ours, by words + f32 @10"]
    peer = figures["BM25 + f32 @10"] - figures["BM25 + binary @10"]
    figures |= {"loss of ours to f32": exact - ours, "loss of BM25 + binary to f32": peer}
    return figures, {
        "ours, hybrid @10": at_least(ours, AIM_FUSED),
        "loss of ours to f32": at_most(exact - ours, AIM_LOSS),
        "BM25 + binary @10": at_least(figures["BM25 + binary @10"], AIM_FUSED),
        "loss of BM25 + binary to f32": at_most(peer, AIM_LOSS),
    }


def _print(rows: Sequence[Row]) -> None:
    print(f"{'ranking':<26}{'B/entry':>8}{'recall@5':>10}{'@10':>8}   reference @10 (ten conversations)")
    for row in rows:
        reference = f"{REFERENCE[row.name]:.3f}" if row.name in REFERENCE else ""
        print(f"{row.name:<26}{row.bytes:>8}{row.recall[0]:>10.3f}{row.recall[1]:>8.3f}   {reference}")


def _print_aims(figures: dict[str, float], aims: dict[str, Aim]) -> None:
    print()
    for name, aim in aims.items():
        print(f"{name:<30}{figures[name]:>8.4f}   aim {aim.aim:<10}{'met' if aim.met else 'MISSED'}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=None, help="folder with locomo/locomo_*.json")
    parser.add_argument("--models", type=Path, default=default_models_dir(), help="where models lie")
    parser.add_argument("--model", default="minilm", help="which of them")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
