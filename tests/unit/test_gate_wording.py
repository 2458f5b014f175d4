"""shared.memory.wording: small words and signs that turn a statement."""

from __future__ import annotations

import pytest

from bench.gate.cases import exact_base
from shared.memory import gate, spans
from shared.memory.model import Rung

CHANGED = (
    ("Mikkel didn't know that the pier was open.", "Mikkel knew that the pier wasn't open."),
    ("Not all of the lamps work.", "All of the lamps do not work."),
    ("Ana promised not to call Bob.", "Ana did not promise to call Bob."),
    ("The door is locked.", "The door was locked."),
    ("Ana works in Graz.", "Ana worked in Graz."),
    ("I have finished the report.", "I had finished the report."),
    ("Ana could open the safe.", "Ana can open the safe."),
    ("Ana may not come on Friday.", "Ana might not come on Friday."),
    ("You don't have to wear a helmet.", "You must not wear a helmet."),
    ("The offset is y=-0.45 now.", "The offset is y=0.45 now."),
    ("Stop if a != b holds.", "Stop if a == b holds."),
    ("Alarm when load > 5 holds.", "Alarm when load < 5 holds."),
    ("Set !enabled in the file.", "Set enabled in the file."),
    ("It took ~5 tries.", "It took 5 tries."),
    ("The area is 5² here.", "The area is 52 here."),
    ("Ben opened the gate.", "𝐁en opened the gate."),
    ("Take 7 pills.", "Take ⑦ pills."),
    ("Ana left. Bob came.", "Ana left.\u2028Bob came."),
    ("My bicycle was stolen.", "Your bicycle was stolen."),
    ("My bicycle was stolen.", "Her bicycle was stolen."),
    ("She gave me his umbrella.", "She gave me her umbrella."),
    ("My boss fired your cousin.", "Your boss fired my cousin."),
    ("The key is under the mat.", "The key is on the mat."),
    ("Ana called before lunch.", "Ana called after lunch."),
    ("Ana walked from the pier.", "Ana walked to the pier."),
)


@pytest.mark.parametrize(("original", "draft"), CHANGED)
def test_a_small_word_that_changes_a_statement_is_rejected(original: str, draft: str) -> None:
    base = exact_base(original)
    assert gate.judge(base, original).admitted
    verdict = gate.judge(base, draft)
    assert not verdict.admitted
    assert not verdict.open


@pytest.mark.parametrize(
    ("original", "draft"),
    [
        ("I lent Bob my drill.", "My drill was lent to Bob by me."),
        ("Ana gave Bob the key.", "Ana gave the key to Bob."),
        ("The pump did not start on Friday.", "On Friday the pump didn't start."),
    ],
)
def test_what_says_the_same_is_admitted(original: str, draft: str) -> None:
    verdict = gate.judge(exact_base(original), draft)
    assert verdict.admitted, verdict


def test_what_one_line_of_a_residue_denies_is_not_stated_from_another() -> None:
    lines = (
        "Dinner: Greta and Bob do not eat meat at table 5.\nKira baked 30 rolls and Luca will eat the rest."
    )
    base = spans.lower(exact_base(lines), Rung.COMPRESSED)
    shown = spans.render(base)
    if " not " in shown:
        assert not gate.judge(base, shown.replace(" not ", " ")).admitted


def test_a_verdict_gives_the_invariant_and_the_text_where_it_knows_both() -> None:
    base = exact_base("Ana lent Bob 40 euros on Friday. Carla came.")
    verdict = gate.judge(base, "Ana lent Bob 41 euros on Friday. Carla came.")
    assert verdict.reason
    assert verdict.invariant
    assert "41" in verdict.offending
    lacking = gate.judge(base, "Ana may have lent Bob 40 euros on Friday. Carla came.")
    assert (lacking.reason, bool(lacking.invariant), bool(lacking.offending)) == (
        "qualifier_changed",
        True,
        True,
    )
