"""edge_agent.distill: any text gets a valid split; key spans outlive function words; the cost is linear."""

from __future__ import annotations

import base64
import itertools
import re
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edge_agent import looks
from edge_agent.distill import PlainDistiller, sentences
from shared.memory import spans
from shared.memory.invariants import InvariantType
from shared.memory.lexicon import STOP_WORDS
from shared.memory.model import LADDERS, Ladder, Rung
from shared.memory.text_codec import TextCodec
from tests.texts import DIALOGUE, TRANSCRIPT, any_text, ladders

PRODUCT = LADDERS["product"]
DISTILLER = PlainDistiller()
CODEC = TextCodec(DISTILLER)

ODD_TEXTS = {
    "one char": "x",
    "one emoji": "👩‍👩‍👧‍👦",
    "blank": " \n\t ",
    "stop words": "and so it is that we are of the to in on at by for " * 5,
    "marks": "?!... --- ***" * 10,
    "cjk": "東京都は日本の首都です。人口は1400万人。" * 20,
    "arabic": "ذهبت أحمد إلى السوق يوم ٣ مايو ولم يشتر شيئا. " * 10,
    "hebrew": "דנה לא הלכה לשוק ביום 5 במאי. " * 10,
    "hindi": "मैंने 3 सेब खरीदे और राम को दिए। " * 10,
    "emoji": "🍎🍏 apple 🇵🇹 1️⃣ done ✅ " * 10,
    "mixed line ends": "one 1\r\ntwo 2\rthree 3\nfour 4\u2028five 5\x0b six",
    "one long word": "a" * 5000,
    "long token with digits": "x9" * 4000,
    "our markers": "".join(map(chr, range(1, 32))) * 4,
    "not composed": "Cafe\u0301 Zu\u0308rich №5 ﬁve " * 10,
    "only numbers": " ".join(str(at * 7919 % 5003) for at in range(400)),
    "base64": base64.b64encode(bytes(at * 31 % 251 for at in range(3000))).decode(),
    "upper case": "THE TASK IS: PUT APPLE 1 IN FRIDGE 2 " * 5,
}


def kept(text: str, rung: Rung, ladder: Ladder = PRODUCT) -> str:
    return CODEC.render(CODEC.drop(text, ladder, rung).record)


def check(text: str, ladder: Ladder) -> None:
    """What every split promises."""
    levelled = DISTILLER.distil(text, ladder)
    assert levelled == DISTILLER.distil(text, ladder)
    assert levelled.text == text
    base = spans.whole(levelled, 1)
    size = len(text.encode())
    floor = min(len(span.text.encode()) for span in base.spans if span.level is Rung.TRACE)
    assert floor <= 48 * 4  # a token of any length is cut before it can swallow the text
    for spec in ladder.lossy:
        base = spans.lower(base, spec.rung)
        kept_bytes = len(base.text.encode())
        assert kept_bytes > 0
        assert kept_bytes <= max(int(size * spec.text_fraction), floor)
    assert CODEC.join(CODEC.layers(text, ladder), ladder) == text


@pytest.mark.parametrize("name", list(ODD_TEXTS))
@pytest.mark.parametrize(
    "ladder", [ladder for ladder in LADDERS.values() if ladder.lossy], ids=lambda ladder: ladder.name
)
def test_odd_texts_have_a_valid_split(name: str, ladder: Ladder) -> None:
    check(ODD_TEXTS[name], ladder)


def test_a_line_of_a_megabyte_comes_back_whole() -> None:
    """`make bench-distill` times one of five."""
    line = "".join(f"crate {at} moved to bay {at % 97}, " for at in range(36_000))
    assert len(line) > 1_000_000
    layers = CODEC.layers(line, PRODUCT)
    assert {layer.rung_above for layer in layers} >= {Rung.FULL, Rung.TRACE}
    assert CODEC.join(layers, PRODUCT) == line


@given(any_text, ladders)
@settings(max_examples=150, deadline=None)
def test_any_text_has_a_valid_split(text: str, ladder: Ladder) -> None:
    assume(text)
    check(text, ladder)


def test_an_empty_text_is_no_span_at_all() -> None:
    assert DISTILLER.distil("", PRODUCT) == spans.Levelled("", (), ())
    assert CODEC.join(CODEC.layers("", PRODUCT), PRODUCT) == ""


@given(st.sampled_from([TRANSCRIPT, DIALOGUE]), st.integers(1, 400))
@settings(max_examples=40, deadline=None)
def test_prefixes_have_a_valid_split(text: str, length: int) -> None:
    check(text[:length], PRODUCT)


def test_a_transcript_keeps_things_task_and_outcome_first() -> None:
    trace = kept(TRANSCRIPT, Rung.TRACE)
    for key in ("home-07", "e0042", "heat apple 17 microwave 1", "move apple 17 garbagecan 1", "won 9 steps"):
        assert key in trace
    skeleton = kept(TRANSCRIPT, Rung.SKELETAL)
    for key in (
        "fridge 1",
        "egg 204 lettuce 31",
        "take apple 17",
        "drawer 2",
        "spoon 658",
        "heat",
        "hot",
        "garbagecan",
    ):
        assert key in skeleton
    words = {word.strip(".,:>").casefold() for word in skeleton.split()}
    assert not words & (STOP_WORDS - {"not", "no", "nor"})


def test_a_dialogue_keeps_names_numbers_dates_and_negations_first() -> None:
    outline = kept(DIALOGUE, Rung.COMPRESSED)
    for key in (
        "Lisbon",
        "8 May 2023",
        "Melanie",
        "never",
        "1,250.50",
        "Bruno",
        "AB-1234",
        "14:30",
        "nothing",
    ):
        assert key in outline


@pytest.mark.parametrize("text", [TRANSCRIPT, DIALOGUE, TRANSCRIPT.replace("\n", "\r\n")])
def test_rendering_has_only_words_of_the_original(text: str) -> None:
    words = set(re.findall(r"\w+", text))
    for spec in PRODUCT.lossy:
        assert set(re.findall(r"\w+", kept(text, spec.rung))) <= words


def test_invariants_are_claims_over_trace_spans() -> None:
    levelled = DISTILLER.distil(TRANSCRIPT, PRODUCT)
    trace = spans.whole(levelled, 1).trace
    claims = {
        (claim.type, " ".join(trace[index] for index in claim.spans), claim.positive)
        for claim in levelled.invariants
    }
    assert (InvariantType.OUTCOME, "Outcome e0042 won 9 steps", True) in claims
    assert (InvariantType.ID, "home-07", True) in claims
    assert (InvariantType.NUMBER, "9", True) in claims
    spoken = DISTILLER.distil(DIALOGUE * 3, LADDERS["k3"])
    assert {claim.type for claim in spoken.invariants} >= {
        InvariantType.SPAN,
        InvariantType.DATE,
        InvariantType.TUPLE,
    }
    assert any(not claim.positive for claim in spoken.invariants)


def test_a_chosen_clause_is_ranked_higher_and_writes_nothing() -> None:
    text = "The old lighthouse keeper paints shells. The baker on Mill Street sells rye loaves. " * 2
    for start, end, number in sentences(text)[:2]:
        levelled = DISTILLER.distil(text, PRODUCT, chosen=(number,))
        base = spans.whole(levelled, 1)
        assert base.text == text
        for spec in PRODUCT.lossy:
            base = spans.lower(base, spec.rung)
            assert len(base.text.encode()) <= len(text.encode()) * spec.text_fraction
        assert base.trace
        assert all(span in text[start:end] for span in base.trace)


@given(any_text, st.sets(st.integers(-2, 40)))
@settings(max_examples=60, deadline=None)
def test_any_choice_is_a_valid_split(text: str, chosen: set[int]) -> None:
    levelled = DISTILLER.distil(text, PRODUCT, chosen)
    assert levelled.text == text
    assert levelled == DISTILLER.distil(text, PRODUCT, sorted(chosen))


@given(any_text)
def test_sentences_are_in_order_and_apart(text: str) -> None:
    found = sentences(text)
    assert all(start < end for start, end, _ in found)
    assert all(one[1] <= other[0] and one[2] < other[2] for one, other in itertools.pairwise(found))


def lines_run(text: str) -> int:
    """How many lines of Python a distilling runs: a count, not a clock."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., object]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        DISTILLER.distil(text, PRODUCT)
    finally:
        sys.settrace(before)
    return count


def test_the_cost_is_linear_in_distinct_things() -> None:
    small, large = (" ".join(f"thing {number}" for number in range(count)) for count in (150, 600))
    DISTILLER.distil(small, PRODUCT)
    assert lines_run(large) < 6 * lines_run(small)


@pytest.mark.parametrize(
    "unit",
    [
        DIALOGUE.replace("\n", " "),
        "fridge 1 apple 1 ",
        "a",
        "Ana met Bob on 3 May. ",
        "not ",
        "https://",
        "don't-",
        "1.1",
        "東",
        "我把钥匙放在抽屉里。",
        "鍵は引き出しの中にあります。",
        "and so it is ",
        "7919 ",
        "QmFzZTY0IHRleHQ",
        "status: failed 3 of 5\n",
        "one 1\r\ntwo 2\rthree 3\n",
        "> move mug 3 to shelf 1\n",
        "is it? ",
        "a/b@c ",
        "weighs 32 kg ",
    ],
)
def test_the_cost_is_linear(unit: str) -> None:
    """Four times the text on one line is about four times the work; sixteen would be a square."""
    small, large = unit * (1_600 // len(unit)), unit * (6_400 // len(unit))
    DISTILLER.distil(small, PRODUCT)
    assert lines_run(large) < 6 * lines_run(small)


def test_the_memory_of_words_is_bounded() -> None:
    DISTILLER.distil(" ".join(f"w{number:x}y" for number in range(20_000)), PRODUCT)
    assert looks.remembered() <= looks.MOST_LOOKS
    text = "Ana keeps 12 jars of fig jam."
    before = DISTILLER.distil(text, PRODUCT)
    DISTILLER.distil(" ".join(f"w{number:x}z" for number in range(20_000)), PRODUCT)
    assert DISTILLER.distil(text, PRODUCT) == before
