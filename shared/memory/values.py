"""Numbers, dates and times of day in one form, whatever they are written as.

`8 May 2023`, `May 8th, 2023` and `2023-05-08` become day, month and year, in that order; `7 pm`, `7:00 p.m.`
and `19:00` one token; number words digits; `€5` the number before its unit. What is ambiguous stays as it
stands: 05/08/2023 is nobody's date, and 4:10 is read on a 24-hour clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from shared.memory.counts import COUNTS, NOTHING, Made, norm_at, number, tens, value
from shared.memory.grammar import PHRASE, PHRASE_STARTS, PHRASES, PRONOUN, VERB
from shared.memory.lexicon import UNITS
from shared.memory.words import Token, word_token

__all__ = ["COUNTS", "MONTHS", "WEEKDAYS", "settled"]

_LONG_MONTHS = "january february march april may june july august september october november december"
MONTHS = {
    **{name: number for number, name in enumerate(_LONG_MONTHS.split(), 1)},
    **{name[:3]: number for number, name in enumerate(_LONG_MONTHS.split(), 1)},
    "sept": 9,
}
_ALSO_WORDS = frozenset({"may", "march", "mar"})
_WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS = {name: name for name in _WEEK} | {
    "mon": "monday", "tue": "tuesday", "tues": "tuesday", "wed": "wednesday", "thu": "thursday",
    "thurs": "thursday",
    "fri": "friday",
}  # fmt: skip
_HALVES = {"am": 0, "pm": 12, "a.m": 0, "p.m": 12, "a.m.": 0, "p.m.": 12}
_CURRENCIES = {"€": "euro", "$": "dollar", "£": "pound", "¥": "yen"}
_UNIT_FORMS = {
    "kilometer": "km", "kilometre": "km", "meter": "m", "metre": "m", "centimeter": "cm", "centimetre": "cm",
    "millimeter": "mm", "millimetre": "mm", "kilogram": "kg", "kilo": "kg", "gram": "g", "milligram": "mg",
    "liter": "l", "litre": "l", "milliliter": "ml", "millilitre": "ml", "second": "s", "sec": "s",
    "minute": "min",
    "hour": "h", "hr": "h", "percent": "%", "eur": "euro", "usd": "dollar", "gbp": "pound", "watt": "w",
    "volt": "v",
    "amp": "a", "ampere": "a", "celsius": "c", "ton": "t", "tonne": "t", "byte": "b", "inch": "in",
    "feet": "ft",
    "foot": "ft", "degree": "°", "hectare": "ha", "millisecond": "ms", "gigabyte": "gb", "megabyte": "mb",
    "kilobyte": "kb", "decibel": "db", "newton": "n", "kilowatt": "kw", "lb": "pound", "lbs": "pound",
    "mile": "mile",
    "euro": "euro", "dollar": "dollar", "pound": "pound", "cent": "cent", "day": "day", "week": "week",
    "month": "month", "year": "year", "inches": "in", "°": "°", "€": "euro", "$": "dollar",
}  # fmt: skip
_ISO = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})")
_DOTTED = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{4})")
_CLOCK = re.compile(r"(\d{1,2})[:.](\d\d)(am|pm)?|(\d{1,2})(am|pm)")
_ATTACHED = re.compile(r"([-+]?\d+(?:[.,]\d+)*)([a-z°%]+)")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")
_TIME_WORDS = frozenset({"noon", "midnight", "half", "quarter", "one"})
_LONGEST_VALUE = 64  # what is longer must not stay in memory
Rule = Callable[[Sequence[Token], int, list[Token]], Made]


def settled(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of a clause with every value and fixed phrase in one form."""
    out: list[Token] = []
    behind = 0
    for at, token in enumerate(tokens):
        _, _, counts, _, _, bits, special = token
        if at < behind:
            continue  # a part of the value before
        # A plain number is a part of a value only where more of it follows.
        if special or bits & PHRASE or (counts and _goes_on(tokens, at + 1)):
            made, used = _phrase(tokens, at) if bits & PHRASE else NOTHING
            if not used and (special or counts or (out and out[-1].numeric)):
                made, used = _value(tokens, at, out)
            if used:
                out += made
                behind = at + used
                continue
        out.append(token)
    return out


def _value(tokens: Sequence[Token], at: int, out: list[Token]) -> Made:
    word = tokens[at].norm
    for rule in _rules(word) if len(word) <= _LONGEST_VALUE else _RULES:
        made, used = rule(tokens, at, out)
        if used:
            return made, used
    return NOTHING


def _goes_on(tokens: Sequence[Token], at: int) -> bool:
    return at < len(tokens) and (tokens[at].special or tokens[at].norm == "of")


@lru_cache(maxsize=4096)
def _rules(word: str) -> tuple[Rule, ...]:
    """The rules for what may open with this word, in their order."""
    digit, one = word[0].isdigit(), word.removesuffix("s")
    opens = (
        digit or word in MONTHS,
        digit or word in _TIME_WORDS,
        word.isdigit() or word == "one" or tens(word) > 0,
        digit or word[0] in "+-" or bool({word, one} & (_UNIT_FORMS.keys() | _CURRENCIES.keys() | UNITS)),
        word in WEEKDAYS or one in WEEKDAYS,
    )
    return tuple(rule for rule, may in zip(_RULES, opens, strict=True) if may)


def _date(tokens: Sequence[Token], at: int, out: list[Token]) -> Made:
    """Day, month, year, in that order."""
    word, surface = tokens[at].norm, tokens[at].surface
    iso = _ISO.fullmatch(word)
    dotted = None if iso else _DOTTED.fullmatch(word)
    if iso or dotted:
        year, month, day = (int(iso[1]), int(iso[2]), int(iso[3])) if iso else _unambiguous(dotted)
        return (_dated(surface, day, month, year), 1) if 0 < month < 13 and 0 < day < 32 else NOTHING
    day, here = _day(word), at
    if day:
        here += 1
        here += norm_at(tokens, here) == "of"
    month = MONTHS.get(norm_at(tokens, here), 0)
    if not month:
        return NOTHING
    named = tokens[here]
    here += 1
    if not day:
        led = here + (norm_at(tokens, here) == "the")
        day = _day(norm_at(tokens, led))
        if day and not _counts(tokens, led):
            here = led + 1
        else:
            day = 0
    if not day and named.norm in _ALSO_WORDS and (named.surface.islower() or not out):
        return NOTHING  # "may", "march", and what opens a sentence with them
    year = int(norm_at(tokens, here)) if _YEAR.fullmatch(norm_at(tokens, here)) else 0
    if day and out and out[-1].norm == "the":
        out.pop()
    return _dated(surface, day, month, year), here - at + bool(year)


def _unambiguous(match: re.Match[str] | None) -> tuple[int, int, int]:
    """A date in digits only where one part can be no month."""
    if match is None:
        return 0, 0, 0
    one, other, year = int(match[1]), int(match[2]), int(match[3])
    if one > 12 or one == other:
        return year, other, one
    return (year, one, other) if other > 12 else (0, 0, 0)


def _dated(surface: str, day: int, month: int, year: int) -> list[Token]:
    parts = [str(day)] if day else []
    parts.append(f"#{month:02d}")
    return [value(part, surface) for part in (*parts, *([str(year)] if year else []))]


def _day(word: str) -> int:
    match = _DAY.fullmatch(word)
    return int(match[1]) if match and 0 < int(match[1]) < 32 else 0


def _counts(tokens: Sequence[Token], at: int) -> bool:
    """True where a number has a noun or a unit behind it: "in May 5 people came"."""
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    if behind is None or behind.numeric or behind.surface[0].isupper():
        return False
    return behind.tag == 0 and behind.norm not in _HALVES


def _time(tokens: Sequence[Token], at: int, out: list[Token]) -> Made:
    """A time of day on a 24-hour clock."""
    word, behind = tokens[at].norm, norm_at(tokens, at + 1)
    if word in ("noon", "midnight"):
        return [value("12:00" if word == "noon" else "00:00", word)], 1
    if word in ("half", "quarter"):
        return _spoken_time(tokens, at)
    match = _CLOCK.fullmatch(word)
    half = _HALVES.get(behind)
    used, minute = 2, 0
    if match is None:
        hour = _hour(word)
        if hour < 0 or (half is None and behind != "o'clock"):
            return NOTHING
        if half is None:
            half = _HALVES.get(norm_at(tokens, at + 2))
            used += half is not None
    else:
        hour, minute = int(match[1] or match[4]), int(match[2] or 0)
        attached = match[3] or match[5]
        used = 1 if attached or half is None else 2
        half = _HALVES[attached] if attached else half
        if half is None and ":" not in word:
            return NOTHING
    if hour > 24 or minute > 59 or (half is not None and not 1 <= hour <= 12):
        return NOTHING
    hour = hour if half is None else hour % 12 + half
    return [value(f"{hour:02d}:{minute:02d}", tokens[at].surface)], used


def _spoken_time(tokens: Sequence[Token], at: int) -> Made:
    """ "half past seven", "quarter to 8 pm"."""
    turn, hour = norm_at(tokens, at + 1), _hour(norm_at(tokens, at + 2))
    if turn not in ("past", "to") or hour < 0:
        return NOTHING
    minutes = 30 if tokens[at].norm == "half" else 15
    total = (hour * 60 + (minutes if turn == "past" else -minutes)) % 1440
    half = _HALVES.get(norm_at(tokens, at + 3))
    total = total if half is None else total % 720 + 60 * half
    return [value(f"{total // 60:02d}:{total % 60:02d}", tokens[at].surface)], 3 + (half is not None)


def _hour(word: str) -> int:
    word = "1" if word == "one" else word
    return int(word) if word.isdigit() and len(word) < 3 and int(word) <= 24 else -1


def _unit(tokens: Sequence[Token], at: int, out: list[Token]) -> Made:
    """`5km`, `€5`, `5 percent`: the number, then the unit in its short form."""
    token = tokens[at]
    if token.norm in _CURRENCIES:
        made = _named(_CURRENCIES[token.norm], token)
        if at + 1 < len(tokens) and tokens[at + 1].numeric:
            return [tokens[at + 1], made], 2
        return [made], 1
    match = _ATTACHED.fullmatch(token.norm)
    if match and match[2] in UNITS:
        return [value(match[1], match[1]), _named(_UNIT_FORMS.get(match[2], match[2]), token)], 1
    if token.numeric or not (out and out[-1].numeric):
        return NOTHING
    unit = _UNIT_FORMS.get(token.norm) or _UNIT_FORMS.get(token.norm.removesuffix("s"))
    unit = unit or (token.norm if token.norm in UNITS else None)
    return ([_named(unit, token)], 1) if unit else NOTHING


def _named(unit: str, token: Token) -> Token:
    return Token(unit, token.surface, False, False, unit, 0, False)


def _weekday(tokens: Sequence[Token], at: int, out: list[Token]) -> Made:
    word = tokens[at].norm
    full = WEEKDAYS.get(word) or WEEKDAYS.get(word.removesuffix("s"))
    if len(word) < 5 and tokens[at].surface.islower():
        return NOTHING  # "they wed"
    return ([tokens[at]._replace(norm=full, form=full)], 1) if full else NOTHING


def _phrase(tokens: Sequence[Token], at: int) -> tuple[Sequence[Token], int]:
    token = tokens[at]
    if at + 2 < len(tokens) and tokens[at + 1].tag & PRONOUN:
        # "gave it back"
        apart = (token.form, tokens[at + 2].form)
        for said, meant in PHRASES.get(token.form, ()):
            if said == apart and len(meant) == 1:
                return [*_meaning(meant, token.surface, 0), tokens[at + 1]], 3
    if at + 1 == len(tokens) or (token.form, tokens[at + 1].form) not in PHRASE_STARTS:
        return NOTHING
    for said, meant in PHRASES.get(token.form, ()):
        if said == tuple([one.form for one in tokens[at : at + len(said)]]):
            return _meaning(meant, token.surface, token.tag), len(said)
    return NOTHING


@lru_cache(maxsize=1024)
def _meaning(words: tuple[str, ...], surface: str, bits: int) -> tuple[Token, ...]:
    """What a phrase stands for, looking like its first word; "was picked up" is as passive as "was taken"."""
    made = [word_token(word)._replace(surface=surface) for word in words]
    if bits & made[0].tag & VERB:
        made[0] = made[0]._replace(tag=bits)
    return tuple(made)


_RULES: tuple[Rule, ...] = (_date, _time, number, _unit, _weekday)
