"""The reader-free grade depends on the text that came back and on nothing else."""

from __future__ import annotations

from crystalmem.demo.answerer import content_tokens, grade


def test_content_tokens_drop_function_words_and_keep_numbers() -> None:
    assert content_tokens("The Mug 1 was in the fridge-2!") == {"mug", "1", "fridge", "2"}


def test_tokens_are_folded_over_width_and_case() -> None:
    assert content_tokens("ＭＵＧ Straße") == content_tokens("mug STRASSE")


def test_grade_is_the_share_of_the_golds_tokens_found() -> None:
    assert grade("mug 1 in fridge 2", ["mug 1", "nothing"]) == 0.5
    assert grade("mug in fridge", ["you see a mug", "the fridge is open"]) == 1.0
    assert grade("mug in fridge", ["you see a mug"]) == 0.5
    assert grade("mug in fridge", []) == 0.0


def test_whole_tokens_count_not_parts() -> None:
    assert grade("12", ["112 mugs"]) == 0.0


def test_repeated_gold_words_count_once() -> None:
    assert grade("mug mug mug fridge", ["mug"]) == 0.5


def test_a_gold_without_content_is_never_right() -> None:
    assert grade("it is the", ["it is the"]) == 0.0
