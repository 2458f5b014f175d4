"""The comparisons that grade texts and answers."""

from __future__ import annotations

import pytest

from bench.environments import answering
from bench.environments.contract import Question
from tests.unit.bench_env_checks import Parrot


def test_words_are_compared_without_case_punctuation_and_articles() -> None:
    assert answering.normalised("The  U.S. of A., ①!") == ("u", "s", "of", "1")
    assert answering.contains("She lives in NEW YORK, I think", "the new york")
    assert not answering.contains("A newer York", "New York")
    assert not answering.contains("112 apples", "12")
    assert not answering.contains("anything", "...")
    assert not answering.contains("", "word")
    assert answering.contains_any("el idioma inglés", ("English", "inglés"))
    assert not answering.contains_any("anything", ())


def test_token_f1_compares_stems() -> None:
    assert answering.token_f1("she went walking", "walked") == pytest.approx(0.5)
    assert answering.token_f1("3 walks", "three walk") == 1.0
    assert (
        answering.token_f1("", "dog")
        == answering.token_f1("dog", "")
        == answering.token_f1("cat", "dog")
        == 0.0
    )
    assert answering.token_f1("the", "the") == 0.0


def test_the_share_of_a_gold_answer_that_texts_tell() -> None:
    assert answering.share_told("7 May 2023", ["(8 May, 2023) hello"]) == pytest.approx(2 / 3)
    assert answering.share_told("painting and pottery", ["I paint.", "some pottery"]) == 1.0
    assert answering.share_told("Yes", ["well, yes"]) == 1.0
    assert answering.share_told("Yes", ["no"]) == answering.share_told("...", ["x"]) == 0.0
    assert answering.share_told("dog", []) == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        "Not mentioned.",
        "No information available",
        "I do not know",
        "It is not stated",
        "You did not mention it",
    ],
)
def test_an_answer_may_decline(answer: str) -> None:
    assert answering.declines(answer)


@pytest.mark.parametrize("answer", ["She knows Bob", "not that I like it", "Notre Dame", ""])
def test_other_answers_do_not_decline(answer: str) -> None:
    assert not answering.declines(answer)


def test_a_model_reads_the_texts_and_its_last_line_counts() -> None:
    parrot = Parrot("Let me think.\n\n  blue \n")
    asked = Question("q", "Which colour?")
    assert answering.ask(parrot, "Be short.", asked, ["the door is blue", "x"], 8) == "blue"
    (prompt,) = parrot.prompts
    assert prompt.index("Be short.") < prompt.index("- the door is blue\n- x") < prompt.index("Which colour?")
    assert answering.ask(Parrot("  \n"), "Be short.", asked, [], 8) == ""
