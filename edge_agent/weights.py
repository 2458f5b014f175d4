"""What the distiller's choices weigh, in tenths of a natural logarithm of the odds that somebody asks for it.

OWN to LENGTH, VOCATIVE and ASKED were fitted (docs/distiller.md: how, and on what): they know which sorts of
word are asked about, and no word. The rest is ours, for what a dialogue hardly has.
"""

from __future__ import annotations


def _row(numbers: str) -> tuple[int, ...]:
    return tuple(map(int, numbers.split()))


# One number a words.Group: of the word itself, of the two words before it, of the two behind.
OWN = _row(
    "0 0 0 0 0 0 0 -7 -4 -3 -1 -1 -1 -2 -2 -4 -6 -3 -6 1 -2 -5 -2 -3 4 -2 -2 -17 -4 8 13 5 10 8 4 4 "
    "2 4 7 -2 0"
)
LAST = _row(
    "-4 1 0 0 0 1 -1 -4 -3 2 3 0 0 0 -1 0 -4 -2 2 0 -5 -1 -1 -3 -4 -4 4 -3 1 -4 4 1 2 1 -1 1 2 1 7 0 0"
)
BEFORE = _row(
    "-2 2 0 0 0 -1 -10 -3 -2 3 0 -3 1 -2 2 3 -5 -7 2 -5 -4 -4 -5 -6 1 -4 0 -5 2 5 1 5 5 2 3 5 4 5 6 1 0"
)
AFTER = _row(
    "0 4 -1 3 -4 -2 -4 -3 3 2 -10 -3 -1 -1 1 -1 -2 -1 -2 -1 2 -2 -1 -1 -1 -3 -2 -1 -2 0 10 3 5 5 5 3 "
    "0 -3 -3 -1 0"
)
BEYOND = _row(
    "-3 6 -2 -3 -6 -1 -2 -4 2 2 7 -1 3 0 1 1 0 -2 0 -2 0 0 1 -3 -3 -7 -1 4 -1 6 -8 0 1 3 -1 0 3 -1 4 -1 0"
)
# How common a word is: 0 for one that the table lacks, 15 for "the".
COMMON = _row("5 5 7 10 4 5 6 2 2 1 -2 -5 -7 -16 -11 -15")
# By UTF-8 bytes, the cost of keeping it included.
LENGTH = _row("0 -11 -19 -7 -7 -10 -9 -8 -10 -13 -12 -10 -8 -16 -11 -14 -13 -15 -14 -15")
# MARK, STOP, SIGN, PIECE, GLYPH, WORD, ACTION, NEGATION, INTEGER, NUMBER, ID, DATE, NAME, ENTITY
KIND = (-90, -20, -20, -5, -10, -1, 25, 12, 6, 10, 14, 8, 14, 30)
GLYPHS = 6  # each more in a run of them
SHORT = -18
BYTES_A_POINT = 4  # an entity's size counts against it
VOCATIVE = -15  # "Thanks, Ana!"
SPEAKER = -12  # who says it, ahead of a colon
HEAD = 22  # an entry's own date, in brackets ahead of it, goes before what was said
ASKED = -3
PULL = 10  # the most that a better neighbour lifts a word

REPEATED = 30
FAMILIAR = 3  # each time that a thing is named again it is less news
MOST_TIMES = 6
DENIES = 1  # a negation ranks right behind what it turns round

RELATION = 5  # a clause that ties two things together says more than one that names a thing
ANCHOR = 10  # its first thing, the place, ranks this much behind its best
DEED = 40  # an action that ties them together
INVENTORY = 25  # "you see a cabinet 6, a cabinet 5, ..." repeats what visits will name
TASK = 12
TASK_THING = 25  # an entry is found by them
OUTCOME = 75
CHOSEN = 35  # more than most differences between ordinary words, less than an outcome
