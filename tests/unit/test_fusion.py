"""Reciprocal rank fusion of words and vectors."""

from __future__ import annotations

from edge_agent.fusion import DEPTH, RANK_OFFSET, fuse
from edge_agent.search import Scored, SearchResult


def ranked(*numbers: int) -> tuple[Scored, ...]:
    return tuple(Scored(number, 1.0 / place) for place, number in enumerate(numbers, 1))


def order(result: SearchResult) -> list[int]:
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    return [hit.number for hit in result.hits]


def everyone(_: int) -> bool:
    return True


def test_what_both_lists_put_first_is_first() -> None:
    assert order(fuse(SearchResult(ranked(7, 1, 2)), ranked(7, 3, 1), everyone)) == [7, 1, 3, 2]


def test_either_list_may_be_empty() -> None:
    assert order(fuse(SearchResult(()), ranked(3, 1), everyone)) == [3, 1]
    assert order(fuse(SearchResult(ranked(3, 1)), (), everyone)) == [3, 1]
    assert order(fuse(SearchResult(()), (), everyone)) == []


def test_the_scores_are_reciprocal_ranks() -> None:
    result = fuse(SearchResult(ranked(1, 2)), ranked(2), everyone)
    assert {hit.number: hit.score for hit in result.hits} == {
        1: 1 / RANK_OFFSET + 1 / (RANK_OFFSET + DEPTH),
        2: 1 / (RANK_OFFSET + 1) + 1 / RANK_OFFSET,
    }


def test_equal_scores_go_by_number() -> None:
    assert order(fuse(SearchResult(ranked(9, 4)), ranked(4, 9), everyone)) == [4, 9]


def test_an_entry_that_shed_its_vector_is_not_buried() -> None:
    lexical, near = SearchResult(ranked(1, 2)), ranked(3, 2)
    assert order(fuse(lexical, near, everyone)) == [2, 1, 3]
    assert order(fuse(lexical, near, lambda number: number != 1))[0] == 1


def test_without_any_vector_the_order_is_the_lexical_one() -> None:
    assert order(fuse(SearchResult(ranked(5, 2, 9, 1)), (), lambda _: False)) == [5, 2, 9, 1]


def test_what_an_identifier_named_stays_in_front() -> None:
    result = fuse(SearchResult(ranked(8, 1, 2), named=1), ranked(2, 1), everyone)
    assert order(result) == [8, 2, 1]
    assert result.shortcut
