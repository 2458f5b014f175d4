"""Number words as digits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.memory.grammar import DETERMINER
from shared.memory.lexicon import NUMBERS, UNITS
from shared.memory.words import Token

_TENS = {
    word: 10 * number
    for number, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2
    )
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_WORD_TENS = re.compile(r"(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)-([a-z]+)")
COUNTS = frozenset((*NUMBERS, *_TENS, *_SCALES, "one"))
"""What a number word ends in."""
_SMALL = {"one": 1, **{word: int(value) for word, value in NUMBERS.items()}}

Made = tuple[list[Token], int]
NOTHING: Made = ([], 0)
"""Tokens in the place of some, and of how many."""


def number(tokens: Sequence[Token], at: int, out: list[Token]) -> Made:
    """Number words as digits; `one` only before what it counts."""
    here, total, current = at, 0, -1
    while here < len(tokens):
        word = tokens[here].norm
        small, round_ = _small(tokens[here], first=here == at), tens(word)
        if (
            word in _SCALES
            and 0 < current < (100 if word == "hundred" else 1000)
            and total < 10**12
            and not tokens[at].surface[0].isdigit()
        ):
            scale = _SCALES[word]
            total, current = (total, current * 100) if scale == 100 else (total + current * scale, 0)
        elif round_ and (current < 0 or current % 100 == 0):
            current = max(current, 0) + round_
        elif small >= 0 and (current < 0 or current % 100 == 0 or (current % 10 == 0 and 0 < small < 10)):
            current = max(current, 0) + small
        elif not (
            word == "and" and here > at and norm_at(tokens, here - 1) in _SCALES and _more(tokens, here + 1)
        ):
            break
        here += 1
    used = here - at
    plain = used == 1 and tokens[at].surface[0] in "+-0123456789"
    if current < 0 or plain or (used == 1 and tokens[at].norm == "one" and not _one_thing(tokens, at, out)):
        return NOTHING
    return [value(str(total + current), tokens[at].surface)], used


def _small(token: Token, *, first: bool) -> int:
    """Nought to twenty in words, or any number in digits that opens ("2 thousand"); -1 for what is none."""
    if token.norm == "one":
        return 1
    if not token.norm.isdigit() or len(token.norm) > 9:
        return -1
    return int(token.norm) if first or not token.surface[0].isdigit() else -1


def tens(word: str) -> int:
    """The value of "twenty" or "twenty-five"; 0 for what is none."""
    joined = _WORD_TENS.fullmatch(word) if "-" in word else None
    if joined:
        return _TENS[joined[1]] + _SMALL[joined[2]] if joined[2] in _SMALL else 0
    return _TENS.get(word, 0)


def _more(tokens: Sequence[Token], at: int) -> bool:
    if at >= len(tokens):
        return False
    return _small(tokens[at], first=False) >= 0 or tens(tokens[at].norm) > 0


def _one_thing(tokens: Sequence[Token], at: int, out: list[Token]) -> bool:
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    if behind is None or behind.numeric or not (behind.tag == 0 or behind.norm in UNITS):
        return False
    return not out or not (
        out[-1].tag & DETERMINER or out[-1].norm in ("new", "old", "other", "first", "last")
    )


def value(form: str, surface: str) -> Token:
    return Token(form, surface, True, False, form, 0, False)


def norm_at(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].norm if 0 <= at < len(tokens) else ""
