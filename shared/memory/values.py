"""Numbers, dates and times of day in one form, whatever they are written as.

`8 May 2023`, `May 8th, 2023` and `2023-05-08` become day, month and year, in that order; `7 pm`, `7:00 p.m.`
and `19:00` one token; number words digits; `€5` the number before its unit. What is ambiguous stays as it
stands: 05/08/2023 is nobody's date, and 4:10 is read on a 24-hour clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from shared.memory.grammar import DETERMINER, PHRASE, PHRASE_STARTS, PHRASES, PRONOUN, VERB
from shared.memory.lexicon import NUMBERS, UNITS
from shared.memory.words import Token, word_token

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
_TENS = {
    word: 10 * number
    for number, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2
    )
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
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
_WORD_TENS = re.compile(r"(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)-([a-z]+)")
COUNTS = frozenset((*NUMBERS, *_TENS, *_SCALES, "one"))
"""What a number word ends in."""
_SMALL = {"one": 1, **{word: int(value) for word, value in NUMBERS.items()}}

_Made = tuple[list[Token], int]
_NOTHING: _Made = ([], 0)


def settled(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of a clause with every value and fixed phrase in one form."""
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        used = 0
        if token.special or token.numeric or token.tag & PHRASE:
            for rule in _RULES:
                made, used = rule(tokens, at, out)
                if used:
                    out.extend(made)
                    break
        if not used:
            out.append(token)
        at += used or 1
    return out


def _value(form: str, surface: str) -> Token:
    return Token(form, surface, True, False, form, 0, False)


def _norm(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].norm if 0 <= at < len(tokens) else ""


def _date(tokens: Sequence[Token], at: int, out: list[Token]) -> _Made:
    """Day, month, year, in that order."""
    word, surface = tokens[at].norm, tokens[at].surface
    iso = _ISO.fullmatch(word)
    dotted = None if iso else _DOTTED.fullmatch(word)
    if iso or dotted:
        year, month, day = (int(iso[1]), int(iso[2]), int(iso[3])) if iso else _unambiguous(dotted)
        return (_dated(surface, day, month, year), 1) if 0 < month < 13 and 0 < day < 32 else _NOTHING
    day, here = _day(word), at
    if day:
        here += 1
        here += _norm(tokens, here) == "of"
    month = MONTHS.get(_norm(tokens, here), 0)
    if not month:
        return _NOTHING
    named = tokens[here]
    here += 1
    if not day:
        led = here + (_norm(tokens, here) == "the")
        day = _day(_norm(tokens, led))
        if day and not _counts(tokens, led):
            here = led + 1
        else:
            day = 0
    if not day and named.norm in _ALSO_WORDS and (named.surface.islower() or not out):
        return _NOTHING  # "may", "march", and what opens a sentence with them
    year = int(_norm(tokens, here)) if _YEAR.fullmatch(_norm(tokens, here)) else 0
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
    return [_value(part, surface) for part in (*parts, *([str(year)] if year else []))]


def _day(word: str) -> int:
    match = _DAY.fullmatch(word)
    return int(match[1]) if match and 0 < int(match[1]) < 32 else 0


def _counts(tokens: Sequence[Token], at: int) -> bool:
    """True where a number has a noun or a unit behind it: "in May 5 people came"."""
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    if behind is None or behind.numeric or behind.surface[0].isupper():
        return False
    return behind.tag == 0 and behind.norm not in _HALVES


def _time(tokens: Sequence[Token], at: int, out: list[Token]) -> _Made:
    """A time of day on a 24-hour clock."""
    word, behind = tokens[at].norm, _norm(tokens, at + 1)
    if word in ("noon", "midnight"):
        return [_value("12:00" if word == "noon" else "00:00", word)], 1
    if word in ("half", "quarter"):
        return _spoken_time(tokens, at)
    match = _CLOCK.fullmatch(word)
    half = _HALVES.get(behind)
    used, minute = 2, 0
    if match is None:
        hour = _hour(word)
        if hour < 0 or (half is None and behind != "o'clock"):
            return _NOTHING
        if half is None:
            half = _HALVES.get(_norm(tokens, at + 2))
            used += half is not None
    else:
        hour, minute = int(match[1] or match[4]), int(match[2] or 0)
        attached = match[3] or match[5]
        used = 1 if attached or half is None else 2
        half = _HALVES[attached] if attached else half
        if half is None and ":" not in word:
            return _NOTHING
    if hour > 24 or minute > 59 or (half is not None and not 1 <= hour <= 12):
        return _NOTHING
    hour = hour if half is None else hour % 12 + half
    return [_value(f"{hour:02d}:{minute:02d}", tokens[at].surface)], used


def _spoken_time(tokens: Sequence[Token], at: int) -> _Made:
    """ "half past seven", "quarter to 8 pm"."""
    turn, hour = _norm(tokens, at + 1), _hour(_norm(tokens, at + 2))
    if turn not in ("past", "to") or hour < 0:
        return _NOTHING
    minutes = 30 if tokens[at].norm == "half" else 15
    total = (hour * 60 + (minutes if turn == "past" else -minutes)) % 1440
    half = _HALVES.get(_norm(tokens, at + 3))
    total = total if half is None else total % 720 + 60 * half
    return [_value(f"{total // 60:02d}:{total % 60:02d}", tokens[at].surface)], 3 + (half is not None)


def _hour(word: str) -> int:
    word = "1" if word == "one" else word
    return int(word) if word.isdigit() and len(word) < 3 and int(word) <= 24 else -1


def _number(tokens: Sequence[Token], at: int, out: list[Token]) -> _Made:
    """Number words as digits; `one` only before what it counts."""
    here, total, current = at, 0, -1
    while here < len(tokens):
        word = tokens[here].norm
        small, tens = _small(tokens[here], first=here == at), _tens(word)
        if word in _SCALES and current > 0 and not tokens[at].surface[0].isdigit():
            scale = _SCALES[word]
            total, current = (total, current * 100) if scale == 100 else (total + current * scale, 0)
        elif tens and (current < 0 or current % 100 == 0):
            current = max(current, 0) + tens
        elif small >= 0 and (current < 0 or current % 100 == 0 or (current % 10 == 0 and 0 < small < 10)):
            current = max(current, 0) + small
        elif not (
            word == "and" and here > at and _norm(tokens, here - 1) in _SCALES and _more(tokens, here + 1)
        ):
            break
        here += 1
    used = here - at
    plain = used == 1 and tokens[at].surface[0] in "+-0123456789"
    if current < 0 or plain or (used == 1 and tokens[at].norm == "one" and not _one_thing(tokens, at, out)):
        return _NOTHING
    return [_value(str(total + current), tokens[at].surface)], used


def _small(token: Token, *, first: bool) -> int:
    """Nought to twenty in words, or any number in digits that opens ("2 thousand"); -1 for what is none."""
    if token.norm == "one":
        return 1
    if not token.norm.isdigit() or len(token.norm) > 9:
        return -1
    return int(token.norm) if first or not token.surface[0].isdigit() else -1


def _tens(word: str) -> int:
    joined = _WORD_TENS.fullmatch(word) if "-" in word else None
    if joined:
        return _TENS[joined[1]] + _SMALL[joined[2]] if joined[2] in _SMALL else 0
    return _TENS.get(word, 0)


def _more(tokens: Sequence[Token], at: int) -> bool:
    if at >= len(tokens):
        return False
    return _small(tokens[at], first=False) >= 0 or _tens(tokens[at].norm) > 0


def _one_thing(tokens: Sequence[Token], at: int, out: list[Token]) -> bool:
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    if behind is None or behind.numeric or not (behind.tag == 0 or behind.norm in UNITS):
        return False
    return not out or not (
        out[-1].tag & DETERMINER or out[-1].norm in ("new", "old", "other", "first", "last")
    )


def _unit(tokens: Sequence[Token], at: int, out: list[Token]) -> _Made:
    """`5km`, `€5`, `5 percent`: the number, then the unit in its short form."""
    token = tokens[at]
    if token.norm in _CURRENCIES:
        made = _named(_CURRENCIES[token.norm], token)
        if at + 1 < len(tokens) and tokens[at + 1].numeric:
            return [tokens[at + 1], made], 2
        return [made], 1
    match = _ATTACHED.fullmatch(token.norm)
    if match and match[2] in UNITS:
        return [_value(match[1], match[1]), _named(_UNIT_FORMS.get(match[2], match[2]), token)], 1
    if token.numeric or not (out and out[-1].numeric):
        return _NOTHING
    unit = _UNIT_FORMS.get(token.norm) or _UNIT_FORMS.get(token.norm.removesuffix("s"))
    unit = unit or (token.norm if token.norm in UNITS else None)
    return ([_named(unit, token)], 1) if unit else _NOTHING


def _named(unit: str, token: Token) -> Token:
    return Token(unit, token.surface, False, False, unit, 0, False)


def _weekday(tokens: Sequence[Token], at: int, out: list[Token]) -> _Made:
    word = tokens[at].norm
    full = WEEKDAYS.get(word) or WEEKDAYS.get(word.removesuffix("s"))
    if len(word) < 5 and tokens[at].surface.islower():
        return _NOTHING  # "they wed"
    return ([tokens[at]._replace(norm=full, form=full)], 1) if full else _NOTHING


def _phrase(tokens: Sequence[Token], at: int, out: list[Token]) -> _Made:
    if at + 2 < len(tokens) and tokens[at + 1].tag & PRONOUN:
        # "gave it back"
        for said, meant in PHRASES.get(tokens[at].form, ()):
            if said == (tokens[at].form, tokens[at + 2].form) and len(meant) == 1:
                verb = word_token(meant[0])._replace(surface=tokens[at].surface)
                return [verb, tokens[at + 1]], 3
    if at + 1 == len(tokens) or (tokens[at].form, tokens[at + 1].form) not in PHRASE_STARTS:
        return _NOTHING
    for said, meant in PHRASES.get(tokens[at].form, ()):
        behind = tokens[at + 1 : at + len(said)]
        if len(behind) == len(said) - 1 and all(
            token.form == form for token, form in zip(behind, said[1:], strict=True)
        ):
            made = [word_token(word)._replace(surface=tokens[at].surface) for word in meant]
            if tokens[at].tag & made[0].tag & VERB:
                made[0] = made[0]._replace(tag=tokens[at].tag)  # "was picked up" is as passive as "was taken"
            return made, len(said)
    return _NOTHING


_RULES: tuple[Callable[[Sequence[Token], int, list[Token]], _Made], ...] = (
    _phrase, _date, _time, _number, _unit, _weekday,
)  # fmt: skip
