"""The lexical index: what is found, what hostile queries do, and that history leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.search import LexicalIndex, terms


@pytest.fixture
def index() -> Iterator[LexicalIndex]:
    opened = LexicalIndex()
    yield opened
    opened.close()


def numbers(index: LexicalIndex, query: str, limit: int = 10) -> list[int]:
    return [hit.number for hit in index.search(query, limit).hits]


def test_the_entry_that_shares_rare_words_comes_first(index: LexicalIndex) -> None:
    index.put_many([(1, "the mug is on the table"), (2, "the valve opens left"), (3, "the table is clean")])
    assert numbers(index, "which way does the valve open?")[0] == 2


def test_what_only_makes_a_question_is_not_searched_while_more_is_asked(index: LexicalIndex) -> None:
    index.put_many([(1, "what did she do, and where was it?"), (2, "the valve opens left"), (3, "who is it")])
    assert numbers(index, "what did the valve do?") == [2]
    assert numbers(index, "who is it?")[0] == 3
    assert numbers(index, "what was where?")[0] == 1


def test_an_identifier_names_its_entry(index: LexicalIndex) -> None:
    index.put_many([(n, f"parcel zyxq-{n} lies on shelf 4 with others") for n in range(40)])
    result = index.search("where is parcel zyxq-17 of the others", 5)
    assert result.shortcut
    assert result.hits[0].number == 17
    assert not index.search("where is the parcel", 5).shortcut


def test_unspaced_scripts_are_found(index: LexicalIndex) -> None:
    index.put_many([(1, "赤い弁は左に開く"), (2, "青い箱は棚にある")])
    assert numbers(index, "弁はどちらに開く")[0] == 1


@pytest.mark.parametrize(
    "query", ["", " ", '"', "a OR", "NEAR(", "*", "\0", "(", "terms:x", "-", "😀", "x" * 5000]
)
def test_hostile_queries_find_nothing_and_raise_nothing(index: LexicalIndex, query: str) -> None:
    index.put(1, "plain words")
    assert index.search(query, 5).hits == ()


def test_an_empty_store_finds_nothing(index: LexicalIndex) -> None:
    assert index.search("anything", 5).hits == ()


def test_a_removed_entry_is_found_no_more(index: LexicalIndex) -> None:
    index.put_many([(1, "zebra crossing"), (2, "zebra stripes")])
    index.remove(1)
    index.remove(99)
    assert numbers(index, "zebra") == [2]
    assert len(index) == 1


_TEXTS = st.lists(st.text("abc d12-", min_size=1, max_size=20), min_size=1, max_size=8)


@given(_TEXTS, _TEXTS, st.text("abc d12-", max_size=12))
def test_results_are_a_function_of_what_is_held_now(first: list[str], second: list[str], query: str) -> None:
    """Re-indexing leaves no trace: the same recalls before and after a restart."""
    travelled, fresh = LexicalIndex(), LexicalIndex()
    travelled.put_many(enumerate(first))
    for number in range(len(first)):
        travelled.remove(number) if number >= len(second) else None
    travelled.put_many(enumerate(second))
    fresh.put_many(enumerate(second))
    assert travelled.search(query, 8) == fresh.search(query, 8)
    travelled.close()
    fresh.close()


def test_terms_split_compounds_and_keep_them_whole() -> None:
    assert terms("Apples in home-07") == ["appl", "in", "hom", "07", "home_07"]
    assert terms("opens opened opening") == ["open"] * 3
    assert terms("place places placed") == ["plac"] * 3


def test_what_was_looked_up_before_a_write_is_looked_up_again(index: LexicalIndex) -> None:
    assert numbers(index, "zebra") == []
    index.put(1, "a zebra")
    assert numbers(index, "zebra") == [1]
    index.remove(1)
    assert numbers(index, "zebra") == []
