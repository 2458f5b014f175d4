"""bench.gate: a sample of every kind stays within the bounds; anyone's cases come in through one door."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.gate import cases, jsonl, rewrites, runner
from bench.gate.__main__ import main
from bench.gate.corruptions import DETAILS, near_synonyms
from bench.gate.forgeries import WHOLE
from bench.gate.rewrites import REWRITES
from shared.memory import gate
from shared.memory.gate import Reason
from shared.memory.spans import render
from shared.memory.surface import MOST_CHARACTERS
from shared.memory.vocabulary import SYNONYMS, stem

SEED = 20_260_101
PER_KIND = 12
KEY = "Ana gave Bob the key to room 214 on 8 May 2023 at 7 pm, and he returned it."
PAIRS = (
    ("On May 8th, 2023 at 19:00 Ana gave Bob the key to room 214, and he returned it.", True),
    ("Bob was given the key to room 214 by Ana on 2023-05-08 at 7:00 p.m., and he returned it.", True),
    ("Ana gave the key to room 214 to Bob on 8 May 2023 at 7 pm, and he gave it back.", True),
    ("Bob gave Ana the key to room 214 on 8 May 2023 at 7 pm, and he returned it.", False),
    ("Ana was given the key to room 214 by Bob on 8 May 2023 at 7 pm, and he returned it.", False),
    ("Ana gave Bob the key to room 214 on 8 May 2023 at 7 am, and he returned it.", False),
    ("Ana gave Bob the key to room 241 on 8 May 2023 at 7 pm, and he returned it.", False),
    ("Ana may have given Bob the key to room 214 on 8 May 2023 at 7 pm, and he returned it.", False),
    ("If Ana gave Bob the key to room 214 on 8 May 2023 at 7 pm, he returned it.", False),
    ("Ana gave Bob the key to room 214 on 8 May 2023 at 7 pm.", True),  # half of it, and no more than it
    ("Ana gave Bob the key to room 214 on 8 May 2023, and he returned it.", False),  # half a statement
    (KEY, True),
)


@pytest.mark.slow
@pytest.mark.parametrize("make", [cases.exact_cases, cases.lossy_cases])
def test_a_sample_of_every_kind_stays_within_the_bounds(
    make: Callable[[int, int], Iterator[cases.Case]],
) -> None:
    per_kind = PER_KIND if make is cases.exact_cases else 3 * PER_KIND
    results = runner.run(make(SEED, per_kind))
    for admit, most_of_all, most_of_a_kind in ((False, 0.005, 1), (True, 0.05, 3)):
        part = [result for result in results if result.case.admit is admit]
        kinds = {result.case.kind for result in part}
        assert len(kinds) >= (6 if admit else 18)
        for kind in kinds:
            wrong = [result for result in part if result.case.kind == kind and result.wrong("strict")]
            assert len(wrong) <= most_of_a_kind, (kind, wrong[0].case.draft)
        assert runner.rate(part, "strict").share <= most_of_all
    for result in results:
        assert result.verdicts["paper"].admitted or not result.verdicts["strict"].admitted


def test_the_kinds_and_counts_that_are_promised() -> None:
    assert len({*DETAILS, *WHOLE, "neighbour"}) >= 14
    assert len(REWRITES) >= 7
    assert cases.PER_KIND >= 100
    held = [pair for pair in rewrites.synonyms() if pair[2]]
    assert 0.3 < len(held) / len(rewrites.synonyms()) < 0.4


def test_one_seed_gives_the_same_cases_and_another_other_fresh_ones() -> None:
    def drafts(seed: int, *, fresh: bool) -> list[str]:
        return [case.draft for case in cases.exact_cases(seed, 4) if case.fresh is fresh]

    assert drafts(1, fresh=True) == drafts(1, fresh=True)
    assert drafts(1, fresh=False) == drafts(2, fresh=False)
    assert drafts(1, fresh=True) != drafts(2, fresh=True)


@pytest.mark.parametrize(("draft", "admitted"), PAIRS)
def test_one_fact_in_many_wordings(draft: str, admitted: bool) -> None:
    verdict = gate.judge(cases.exact_base(KEY), draft)
    assert verdict.admitted is admitted, verdict


def test_what_only_a_judge_could_decide_is_open_and_rejected() -> None:
    base = cases.exact_base("Ana repaired the boiler.")
    unknown = gate.judge(base, "Ana refurbished the boiler.")
    assert (unknown.admitted, unknown.open, unknown.offending) == (False, True, "refurbished")
    for draft in (
        "Bob repaired the boiler.",
        "Ana never repaired the boiler.",
        "Ana repaired 2 boilers.",
        "",
    ):
        verdict = gate.judge(base, draft)
        assert (verdict.admitted, verdict.open) == (False, False), draft


BOILER = "Ana repaired the boiler in the garage on Friday. Bob paid 40 euros to Elena. The pump test failed."


@pytest.mark.parametrize(
    ("said", "other", "is_open"),
    [
        ("repaired", "refurbished", True),
        # Turned round by a verb that nobody knows: the order rule cannot follow.
        ("Ana repaired the boiler", "the boiler was refurbished by Ana", False),
        ("Bob paid", "Bob gleefully paid", True),
        ("Bob paid 40", "Bob gleefully paid 97", False),
        ("Bob paid 40 euros to Elena", "Elena gleefully paid 40 euros to Bob", False),
        ("repaired the boiler in the garage", "refurbished the boiler", False),
        ("40 euros", "40 dollars", False),
        ("Ana repaired the boiler", "the boiler refurbished Ana", False),
        ("Ana repaired", "Someone danced. Ana repaired", False),
    ],
)
@pytest.mark.parametrize("behind", ["failed", "never failed", "may have failed"])
def test_open_means_that_no_rule_failed(said: str, other: str, *, is_open: bool, behind: str) -> None:
    draft = BOILER.replace(said, other).replace("failed", behind)
    verdict = gate.judge(cases.exact_base(BOILER), draft)
    assert not verdict.admitted
    assert verdict.open is (is_open and behind == "failed"), verdict


@pytest.mark.parametrize("word", ["gleefully", "oddball"])
@pytest.mark.parametrize("make", [cases.exact_cases, cases.lossy_cases])
def test_an_unknown_word_never_opens_what_a_rule_rejects(
    make: Callable[[int, int], Iterator[cases.Case]], word: str
) -> None:
    """Anywhere in a corrupted draft; those that are an unknown word themselves stay as they were."""
    rng = random.Random(word)
    for case in make(SEED, 12 if make is cases.lossy_cases else 6):
        if case.admit or case.kind in ("echo", "markup"):  # the word would break the form
            continue
        if gate.judge(case.base, case.draft, case.neighbours).open:
            continue
        gaps = [match.end() for match in re.finditer(r"(?<=[a-z]) (?=[a-z])", case.draft)]
        for at in rng.sample(gaps, min(2, len(gaps))):
            draft = f"{case.draft[:at]}{word} {case.draft[at:]}"
            verdict = gate.judge(case.base, draft, case.neighbours)
            assert not verdict.admitted
            assert not verdict.open, (case.kind, verdict, draft)


REPORTED = (
    "retired=resigned mailed=emailed saw=found travelled=walked ordered=requested damaged=broke "
    "rents=hires visits=sees lasts=continues released=deployed"
)


def test_no_near_synonym_is_a_synonym() -> None:
    pairs = [*near_synonyms(), *(tuple(pair.split("=")) for pair in REPORTED.split())]
    assert len(pairs) >= 60
    for said, other in pairs:
        assert stem(other) not in (stem(said), *SYNONYMS.get(stem(said), ())), (said, other)
        base = cases.exact_base(f"On 8 May Ana {said} Bob.")
        assert not gate.judge(base, f"On 8 May Ana {other} Bob.").admitted


def test_a_draft_without_end_is_not_read() -> None:
    verdict = gate.judge(cases.exact_base(KEY), "x" * (MOST_CHARACTERS + 1))
    assert verdict.reason == Reason.TOO_LONG


@pytest.mark.parametrize(
    "unit",
    [
        "two hundred ",
        "two million ",
        "8 May ",
        "pick it up ",
        "and ran ",
        "a, ",
        "9",
        "\n> go",
        "[",
        "not ",
        f"{KEY} ",
    ],
)
def test_a_draft_that_repeats_itself_is_rejected_and_costs_no_more_than_its_length(unit: str) -> None:
    base = cases.exact_base(f"> go\n{KEY}")
    draft = (unit * 40_000)[:40_000]
    gate.judge(base, draft, strict=False)  # to say it twice is no contradiction on paper
    assert not gate.judge(base, draft).admitted


@given(st.sampled_from([text for text, admitted in PAIRS if admitted]), st.data())
@settings(max_examples=60)
def test_any_other_digit_and_any_stranger_is_rejected(draft: str, data: st.DataObject) -> None:
    base = cases.exact_base(KEY)
    at = data.draw(st.sampled_from([at for at, letter in enumerate(draft) if letter.isdigit()]))
    digit = data.draw(st.sampled_from([digit for digit in "123456789" if digit != draft[at]]))
    assert not gate.judge(base, draft[:at] + digit + draft[at + 1 :]).admitted
    extra = data.draw(
        st.sampled_from(["It rained.", "Carl saw it.", "Bob was happy.", "The key is made of iron."])
    )
    for added in (f"{extra} {draft}", f"{draft} {extra}"):
        assert not gate.judge(base, added).admitted


# --- the door ---------------------------------------------------------------------------------------


def test_anyones_cases_with_and_without_invariants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"original": KEY, "invariants": None, "draft": PAIRS[0][0], "expected": "admit", "kind": "mine"},
        {"original": KEY, "draft": PAIRS[3][0], "expected": False},
        {"original": KEY, "invariants": ["room 214", "8 May 2023"], "draft": KEY, "expected": True},
        {
            "original": KEY,
            "invariants": [{"type": "tuple", "spans": ["Ana", "gave", "Bob", "key"]}, {"text": "7 pm"}],
            "draft": "Bob gave Ana the key to room 214 on 8 May 2023 at 7 pm, and he returned it.",
            "expected": "reject",
            "neighbours": ["Carl left."],
        },
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
    results = runner.run(jsonl.read(path))
    assert [result.wrong("strict") for result in results] == [False] * 4
    assert results[3].verdicts["paper"].reason == Reason.TUPLE_SWAPPED
    assert main(["--cases", str(path), "--mode", "strict"]) == 0
    assert "mine" in capsys.readouterr().out


def test_invariants_given_by_hand_are_where_they_stand() -> None:
    base = jsonl.based_on(KEY, ["room 214", {"type": "tuple", "spans": ["Ana", "Bob"], "positive": False}])
    assert render(base) == KEY
    assert gate.describe(base) == ("number: room 214", "not tuple: Ana / Bob")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[]", "is no object"),
        ('{"original": "x", "draft": "y", "expected": "maybe"}', "expected is 'maybe'; write \"admit\""),
        ('{"original": "", "draft": "y", "expected": "admit"}', "original is empty"),
        ('{"original": 5, "draft": "y", "expected": "admit"}', "original is 5"),
        ('{"original": "x", "draft": null, "expected": "admit"}', "draft is None"),
        ('{"original": "x", "draft": "y", "expected": "admit", "invariants": ["z"]}', "'z' does not stand"),
        ('{"original": "x", "draft": "y", "expected": "admit", "invariants": "z"}', "write null or a list"),
        ('{"original": "x", "draft": "y", "expected": "admit", "rung": "LOW"}', "rung is 'LOW'"),
        ('{"original": "x", "draft": "y", "expected": "admit", "oops": 1}', "unknown key 'oops'"),
        ('{"original": "x", "draft": "y", "expected": "admit", "neighbours": [1]}', "write a list of texts"),
        (
            '{"original": "x", "draft": "", "expected": true, "invariants": [{"text": "x", "type": "q"}]}',
            "known are",
        ),
    ],
)
def test_a_bad_line_is_named_with_its_fix(
    line: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    assert main(["--cases", str(path)]) == 2
    printed = capsys.readouterr().err
    assert f"{path}:2: " in printed
    assert says in printed


def test_wilson_bounds_hold_the_share() -> None:
    low, high = runner.Rate(0, 120).bounds()
    assert (low, round(high, 3)) == (0.0, 0.031)
    low, high = runner.Rate(6, 120).bounds()
    assert round(low, 3) == 0.023
    assert round(high, 3) == 0.105
