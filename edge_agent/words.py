"""What a word is to the distiller: how common it is, and which part of speech, by a shipped English table.

The table (data/words_en.txt.xz, see data/README.md) holds a line per part of speech and frequency: a letter
and a number 1-15, each step 2.1 times as common; then the words. A word that it lacks is rare, and its ending
tells its part of speech; so it goes with the words of any other language.
"""

from __future__ import annotations

import lzma
from enum import IntEnum
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).parent / "data" / "words_en.txt.xz"


class Group(IntEnum):
    """What stands at a place, as its neighbours see it. From ADJECTIVE on: a part of speech."""

    EDGE = 0  # no word: the clause begins or ends here
    COMMA = 1
    END = 2
    ASKED = 3
    CALLED = 4  # !
    COLON = 5
    MARK = 6
    ARTICLE = 7
    POSSESSIVE = 8
    JOINER = 9  # and, or
    OF = 10
    PLACE = 11
    TO = 12
    FOR = 13
    WITH = 14
    PREPOSITION = 15
    BE = 16
    HAVE = 17
    DO = 18
    PRONOUN = 19
    VERY = 20
    THIS = 21
    QUESTION = 22
    NOT = 23
    QUANTITY = 24
    IF = 25
    MOVES = 26
    COURTESY = 27
    FUNCTION = 28
    CALENDAR = 29
    COUNT = 30
    ADJECTIVE = 31
    NOUN = 32
    NOUNS = 33
    NAME = 34
    VERB = 35
    PAST = 36
    GERUND = 37
    PARTICIPLE = 38
    ADVERB = 39
    PROMPT = 40  # >


_CLOSED = {
    Group.ARTICLE: "a an the",
    Group.POSSESSIVE: "my our his her their your its",
    Group.JOINER: "and or nor &",
    Group.OF: "of",
    Group.PLACE: "in at on inside near onto",
    Group.TO: "to into",
    Group.FOR: "for",
    Group.WITH: "with",
    Group.PREPOSITION: "from by about like as over under through around between after before during",
    Group.BE: "is are was were be been being am it's that's i'm you're they're we're he's she's there's",
    Group.HAVE: "have has had having i've we've they've you've",
    Group.DO: "do does did doing will would can could should may might must shall i'll we'll you'll i'd",
    Group.PRONOUN: "i you he she we they me him us them myself yourself everyone someone something anything",
    Group.VERY: "so really very super pretty such too quite just always still even also definitely totally",
    Group.THIS: "this that these those it there here",
    Group.QUESTION: "what who how when where why which whose whom what's how's",
    Group.NOT: "not no never none don't didn't can't won't isn't wasn't doesn't couldn't haven't without",
    Group.QUANTITY: "some any many few lots all every another other more most each both much lot",
    Group.IF: "if but because while since than then until though although",
    Group.MOVES: "got get getting gets go going went goes make made making take took taking let let's",
    Group.COURTESY: (
        "hey hi hello wow thanks thank yeah yep yes oh ok okay cool great awesome nice sure absolutely bye "
        "congrats congratulations sorry please glad haha well sounds amazing good hmm ah aw aww dear"
    ),
    Group.CALENDAR: (
        "january february march april june july august september october november december monday tuesday "
        "wednesday thursday friday saturday sunday yesterday today tomorrow tonight week weeks month months "
        "year years weekend last next ago day days jan feb mar apr jun jul aug sep sept oct nov dec"
    ),
    Group.COUNT: (
        "one two three four five six seven eight nine ten eleven twelve once twice dozen hundred thousand"
    ),
}
_PARTS = {
    "n": Group.NOUN,
    "s": Group.NOUNS,
    "p": Group.NAME,
    "v": Group.VERB,
    "d": Group.PAST,
    "g": Group.GERUND,
    "e": Group.PARTICIPLE,
    "j": Group.ADJECTIVE,
    "r": Group.ADVERB,
    "c": Group.COUNT,
    "f": Group.FUNCTION,
}
_ENDINGS = (
    ("ing", Group.GERUND),
    ("ly", Group.ADVERB),
    ("ed", Group.PAST),
    ("ful", Group.ADJECTIVE),
    ("ous", Group.ADJECTIVE),
    ("s", Group.NOUNS),
)
_BY_WORD = {word: group for group, words in _CLOSED.items() for word in words.split()}
COMMONEST = 15


def known(word: str) -> tuple[Group, int]:
    """Group of a case-folded word, and how common it is: 0 (not in the table) to COMMONEST."""
    part, common = _table().get(word, (None, 0))
    group = _BY_WORD.get(word)
    if group is None:
        group = part if part is not None else _by_ending(word)
    return group, common


def _by_ending(word: str) -> Group:
    for ending, group in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return group
    return Group.NOUN


@cache
def _table() -> dict[str, tuple[Group, int]]:
    table: dict[str, tuple[Group, int]] = {}
    for line in lzma.decompress(_TABLE.read_bytes()).decode("ascii").splitlines():
        head, *words = line.split(" ")
        entry = _PARTS[head[0]], int(head[1:])
        table.update(dict.fromkeys(words, entry))
    return table
