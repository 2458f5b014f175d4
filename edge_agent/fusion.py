"""Words and vectors ranked together: reciprocal rank fusion over two lists of candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edge_agent.search import Scored, SearchResult

# How flat the ranks are. On LoCoMo evidence recall@10 is .644, .646, .641 at 5, 10, 20, and falls from there
# (docs/recall.md): a candidate that one list puts first must beat those that both put in the middle.
RANK_OFFSET = 10
# Candidates of each list; an entry that a list lacks counts as the next one down in it.
DEPTH = 100


def fuse(lexical: SearchResult, near: Sequence[Scored], has_vector: Callable[[int], bool]) -> SearchResult:
    """Both lists as one, best first; what an identifier named stays in front.

    An entry without a vector takes its lexical rank for both: a squeeze must not bury what it made shed.
    """
    by_words = {hit.number: rank for rank, hit in enumerate(lexical.hits)}
    by_vector = {hit.number: rank for rank, hit in enumerate(near)}

    def score(number: int) -> float:
        words = by_words.get(number, DEPTH)
        missing = DEPTH if has_vector(number) else words
        return 1 / (RANK_OFFSET + words) + 1 / (RANK_OFFSET + by_vector.get(number, missing))

    fused = {number: score(number) for number in (*by_words, *by_vector)}
    ranked = sorted(fused, key=lambda number: (-fused[number], number))
    lead = [hit.number for hit in lexical.hits[: lexical.named]]
    top = fused[ranked[0]] if ranked else 0.0
    hits = [Scored(number, top + fused[number]) for number in lead]
    hits += [Scored(number, fused[number]) for number in ranked if number not in lead]
    return SearchResult(tuple(hits), lexical.named)
