"""shared.memory.order: the same words in another order are another statement, few moves aside."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shared.memory import gate
from shared.memory.model import Rung
from shared.memory.spans import Base, Gap, Span

SWAPPED = [
    ("The spanner went from tray 2 to tray 7.", "The spanner went from tray 7 to tray 2."),
    ("Forklift B follows forklift A into the yard.", "Forklift A follows forklift B into the yard."),
    ("Shelf 1 holds paint, shelf 2 holds nails.", "Shelf 1 holds nails, shelf 2 holds paint."),
    (
        "Elif borrowed 40 lira from Can and 60 lira from Ece.",
        "Elif borrowed 60 lira from Can and 40 lira from Ece.",
    ),
    ("The alarm rings if the door is open.", "The door is open if the alarm rings."),
    ("The heater runs when the fan stops.", "The fan stops when the heater runs."),
    ("Wash the pan before you dry the plates.", "Dry the plates before you wash the pan."),
    ("First unscrew the lid, then empty the flask.", "First empty the flask, then unscrew the lid."),
    ("Unplug the saw. Then change the blade.", "Change the blade. Then unplug the saw."),
    ("My neighbour's dog bit the postman.", "The postman's dog bit my neighbour."),
    (
        "The captain of the Vega called the pilot of the Orion.",
        "The captain of the Orion called the pilot of the Vega.",
    ),
    (
        "The dog with the collar chased the cat with the bell.",
        "The dog with the bell chased the cat with the collar.",
    ),
    ("The man in the boat saw the dog.", "The man saw the dog in the boat."),
    ("cp /srv/a/new /srv/b/old", "cp /srv/b/old /srv/a/new"),
    ("open C:\\a\\b", "open C:\\b\\a"),
    ("robot_a: idle, robot_b: moving", "robot_a: moving, robot_b: idle"),
    (
        "Gus: did you feed the hens? Hana: yes. Gus: did you lock the barn? Hana: no.",
        "Gus: did you feed the hens? Hana: no. Gus: did you lock the barn? Hana: yes.",
    ),
    (
        "Is the gas off? Yes. Is the window shut? No.",
        "Is the gas off? No. Is the window shut? Yes.",
    ),
    ("Ulf is tired, so he goes home.", "Ulf goes home, so he is tired."),
    ("pick(bolt, tray)", "pick(tray, bolt)"),
    ("x -> y", "y -> x"),
    ("My boss fired your cousin.", "Your boss fired my cousin."),
    ("Ana fell. She was tired. Bo laughed.", "Bo laughed. She was tired. Ana fell."),
    ("Old Bo and Ana sang.", "Old Ana and Bo sang."),
    ("At 10:00 Kim and on Monday Bo.", "On Monday Kim and at 10:00 Bo."),
    ("You see a mug 3, a plate 1 and a fork 2.", "You see a mug 1, a plate 3 and a fork 2."),
    ("The letter was sent to Kira by Otto.", "Otto was sent the letter by Kira."),
]
MOVED = [
    ("On Monday Ana gave Otto the spare key.", "Ana gave Otto the spare key on Monday."),
    ("Ana found my wallet in the library.", "In the library Ana found my wallet."),
    ("Ana gave Otto the spare key.", "Ana gave the spare key to Otto."),
    ("Ana gave the spare key to Otto.", "The spare key was given to Otto by Ana."),
    ("Ana gave the spare key to Otto on Monday.", "Otto was given the spare key by Ana on Monday."),
    ("In 2011 the council closed it.", "It was closed by the council in 2011."),
    ("The tests were run by the runner blue-1.", "The runner blue-1 ran the tests."),
    ("Ana, Bo and Cy came.", "Cy, Ana and Bo came."),
    ("Ana bought apples and pears.", "Ana bought pears and apples."),
    ("You see a mug 3, a plate 1 and a fork 2.", "You see a fork 2, a mug 3 and a plate 1."),
    ("Ana paints doors. Bo mends roofs.", "Bo mends roofs. Ana paints doors."),
    ("Yesterday Ana sold the car.", "Ana sold the car yesterday."),
    ("The train departs at 13:20 on 19 May.", "On 19 May at 13:20 the train departs."),
]


def whole(text: str) -> Base:
    """An entry of which nothing was dropped."""
    return Base(Rung.FULL, 1, (Span(text, Rung.FULL, Gap.NONE),), ())


def admitted(original: str, draft: str) -> bool:
    return gate.judge(whole(original), draft).admitted


@pytest.mark.parametrize(("original", "draft"), SWAPPED)
def test_what_changed_places_is_rejected_both_ways(original: str, draft: str) -> None:
    assert admitted(original, original)
    assert not admitted(original, draft)
    assert not admitted(draft, original)


@pytest.mark.parametrize(("original", "draft"), MOVED)
def test_a_move_that_keeps_the_meaning_is_admitted_both_ways(original: str, draft: str) -> None:
    assert admitted(original, draft)
    assert admitted(draft, original)


def test_a_condition_moves_with_its_conjunction() -> None:
    said = "Do not open the hatch while the pump runs."
    assert admitted(said, "While the pump runs, do not open the hatch.")
    assert not admitted(said, "The pump runs while you do not open the hatch.")


@pytest.mark.parametrize("draft", ["Drive dock 6, dock 4.", "drive from dock 6 to dock 4"])
def test_a_lossy_residue_keeps_its_order_too(draft: str) -> None:
    words = ("drive", "dock", "4", "dock", "6")
    spans = (Span(word, Rung.TRACE, Gap.INLINE if at else Gap.NONE) for at, word in enumerate(words))
    base = Base(Rung.TRACE, 1, tuple(spans), ())
    assert gate.judge(base, "Drive from dock 4 to dock 6.").admitted
    assert not gate.judge(base, draft).admitted


NAMES = ("Ines", "Otto", "Kira", "Bo", "Farid")
THINGS = ("ladder", "lamp", "drill", "kettle", "rope")
FRAMES = (
    "{n0} lent {n1} the {t0} for {d0} days and the {t1} for {d1} days.",
    "{n0} carried the {t0} from room {d0} to room {d1} with {n1}.",
    "{n0} painted the {t0} of {n1} and the {t1} of {n2}.",
    "{n0} has {d0} red {t0}s, {n1} has {d1} blue {t1}s.",
    "{n0}: shelf {d0} holds the {t0}, shelf {d1} holds the {t1}.",
    "If {n0} sells the {t0}, {n1} buys the {t1}.",
    "{n0} wants the {t0}, so {n1} gets the {t1}.",
    "The {t0} near the {t1} belongs to {n0}.",
)
WORD = re.compile(r"\b(?:" + "|".join((*NAMES, *THINGS)) + r"|\d+)")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_two_words_exchanged_are_never_admitted(data: st.DataObject) -> None:
    names, things = data.draw(st.permutations(NAMES)), data.draw(st.permutations(THINGS))
    numbers = data.draw(st.lists(st.integers(2, 99), min_size=2, max_size=2, unique=True))
    slots = {f"n{at}": name for at, name in enumerate(names)}
    slots |= {f"t{at}": thing for at, thing in enumerate(things)}
    slots |= {f"d{at}": str(number) for at, number in enumerate(numbers)}
    text = data.draw(st.sampled_from(FRAMES)).format(**slots)
    found = list(WORD.finditer(text))
    low, high = sorted(
        data.draw(st.lists(st.integers(0, len(found) - 1), min_size=2, max_size=2, unique=True))
    )
    one, other = found[low], found[high]
    assume(one[0] != other[0])
    draft = text[: one.start()] + other[0] + text[one.end() : other.start()] + one[0] + text[other.end() :]
    assert admitted(text, text)
    assert not admitted(text, draft)


def test_a_long_clause_takes_no_square_of_time() -> None:
    def spent(words: int) -> float:
        said = [f"w{at}q" for at in range(words)]
        text = "Ana saw by " + " by ".join(said) + "."
        draft = "Ana saw by " + " by ".join([*said[1:], said[0]]) + "."
        start = time.process_time()
        gate.judge(whole(text), draft)
        return time.process_time() - start

    spent(200)
    assert spent(8000) < 40 * max(spent(800), 0.01)
