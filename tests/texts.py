"""Texts for tests: a household transcript, a dialogue, and strategies for any text and any way to cut it."""

from __future__ import annotations

from hypothesis import strategies as st

from shared.memory.invariants import Invariant, InvariantType
from shared.memory.model import LADDERS, Ladder, Rung
from shared.memory.spans import Levelled

TRANSCRIPT = """home-07 episode e0042, task: put a hot apple in garbagecan.
You are in the middle of a room. Looking quickly around you, you see a cabinet 4, a cabinet 3, a \
cabinet 2, a cabinet 1, a countertop 1, a drawer 2, a drawer 1, \
a fridge 1, a garbagecan 1, a microwave 1, and a toaster 1.
Your task is to: put a hot apple in garbagecan.
> go to fridge 1
You arrive at fridge 1. The fridge 1 is closed.
> open fridge 1
You open the fridge 1. The fridge 1 is open. In it, you see a apple 17, a egg 204, and a lettuce 31.
> take apple 17 from fridge 1
You pick up the apple 17 from the fridge 1.
> go to cabinet 3
On the cabinet 3, you see nothing.
> go to drawer 2
You arrive at drawer 2. The drawer 2 is closed.
> open drawer 2
You open the drawer 2. The drawer 2 is open. In it, you see a spoon 658, and a spraybottle 989.
> go to microwave 1
You arrive at microwave 1. The microwave 1 is closed.
> heat apple 17 with microwave 1
You heat the apple 17 using the microwave 1.
> go to garbagecan 1
On the garbagecan 1, you see a tomato 12.
> move apple 17 to garbagecan 1
You move the apple 17 to the garbagecan 1.
Outcome of e0042: won after 9 steps.
"""

DIALOGUE = """Caroline: I went to Lisbon on 8 May 2023 with Melanie, but I never liked the trams.
Melanie: You lent me 1,250.50 euros there. Bruno lent Dora 7 books, order AB-1234.
Caroline: I'm not going back before 14:30 tomorrow; the doctor said nothing was broken.
"""

# What breaks naive cutting: joiners, marks, no blanks, right-to-left, our own markers, odd line ends.
_ODD = st.sampled_from(
    [
        "👩‍👩‍👧‍👦", "🇵🇹", "e\u0301", "ﬁ", "１２", "東京都は", "مرحبا ٣", "שלום", "नमस्ते", "\u200b", "\r\n",
        "\r", "\u2028", "\x0e", "\x1b", "\x1c", "\x1d", "\x1d\x0e", "\x00", "don't", "3.50", "1,000",
        "https://a.b/c?d=1.", "fridge 1", " ", "\n",
    ]
)  # fmt: skip
any_text = st.lists(
    st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), _ODD), max_size=30
).map("".join)
ladders = st.sampled_from([ladder for ladder in LADDERS.values() if ladder.lossy])


@st.composite
def levelled_texts(draw: st.DrawFn, ladder: Ladder) -> Levelled:
    """Any text, cut anywhere, at any levels of the ladder, with any well-formed invariants."""
    text = draw(any_text.filter(bool))
    cuts = draw(st.sets(st.integers(1, len(text)), max_size=24))
    ends = (*sorted(cut for cut in cuts if cut < len(text)), len(text))
    rungs = [Rung.FULL, *(spec.rung for spec in ladder.lossy)]
    levels = draw(st.lists(st.sampled_from(rungs), min_size=len(ends), max_size=len(ends)))
    traces = levels.count(Rung.TRACE)
    indexes = st.lists(st.integers(0, max(traces - 1, 0)), min_size=1, max_size=5).map(tuple)
    claims = st.builds(Invariant, st.sampled_from(InvariantType), indexes, st.booleans())
    invariants = draw(st.lists(claims, max_size=6)) if traces else []
    return Levelled(text, ends, tuple(levels), tuple(invariants))
