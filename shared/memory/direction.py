"""Who does what to whom: the role of each word of a clause, whatever its voice and order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from shared.memory.grammar import (
    ADVERB,
    BE,
    DETERMINER,
    FINITE,
    FUNCTION,
    JOINT,
    PAST,
    PREPOSITION,
    PRONOUN,
    VERB,
)
from shared.memory.grammar import form as form_of
from shared.memory.values import WEEKDAYS
from shared.memory.words import Token, negates

Roles = Mapping[str, frozenset[str]]
"""By form: S acts, O is acted on, N has no verb, T says when, V is the verb, L speaks; or a preposition."""

_ADJACENT = 4  # be and its participle: "was not yet fully opened"
SAME_PREPOSITION = {
    "inside": "in", "within": "in", "into": "in", "onto": "on", "upon": "on", "towards": "to",
    "toward": "to", "beneath": "under",
    "underneath": "under", "below": "under", "above": "over", "till": "until", "via": "through",
    "besides": "beside", "beside": "near",
    "using": "with", "next": "near",
}  # fmt: skip
# Prepositions that may stand for one another.
_PAIRS = "at in|at on|to for|to in|with by|of from|of about|to at|at near|for of|of in|of on"
_MEETING = frozenset(frozenset(pair.split()) for pair in _PAIRS.split("|"))
_GIVEN = frozenset(("to", "for"))  # "gave Bob the key", "gave the key to Bob"
_WHEN = frozenset(("from", "to", "until", "before", "after", "since", "over", "under", "than"))
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")
_TIME_WORDS = (
    "morning afternoon evening night day week month year weekend winter summer autumn today tomorrow "
    "yesterday tonight noon midnight last next hour minute second moment weekday spring"
)
WHEN_WORDS = frozenset(
    map(
        form_of,
        _TIME_WORDS.split(),
    )
)
_ONE_PRONOUN = {
    "him": "he", "his": "he", "her": "she", "hers": "she", "me": "i", "my": "i", "us": "we", "our": "we",
    "them": "they",
    "their": "they", "your": "you",
}  # fmt: skip


def pronoun(word: str) -> str:
    """One form for he and him."""
    return _ONE_PRONOUN.get(word, word)


def roles(tokens: tuple[Token, ...], label: int = 0) -> Roles:
    """Roles of every word with content, and of pronouns."""
    return read(tokens, label)[0]


def subject(tokens: tuple[Token, ...], label: int = 0) -> frozenset[str]:
    """Who or what the clause is about, whether it acts or is acted on; who speaks."""
    return read(tokens, label)[1]


@lru_cache(maxsize=1024)
def read(tokens: tuple[Token, ...], label: int) -> tuple[Roles, frozenset[str]]:
    """Roles, and the subject."""
    subject_end, verb, passive = predicate(tokens, label)
    found: dict[str, set[str]] = {}
    about: set[str] = set()
    groups: list[list[str]] = []  # what stands before the verb, by noun phrase: (role, forms)
    preposition, filled, previous = "", False, None
    for at, token in enumerate(tokens):
        bits = token.tag
        if at < label:
            found.setdefault(token.form, set()).add("L")
            about.add(token.form)
        elif at == verb:
            found.setdefault(token.form, set()).add("V")
            preposition, filled = "", False
        elif bits & PREPOSITION and token.norm not in ("up", "down", "out", "off"):
            infinitive = token.norm == "to" and at + 1 < len(tokens) and tokens[at + 1].tag & VERB
            preposition, filled = "" if infinitive else SAME_PREPOSITION.get(token.norm, token.norm), False
            previous = None
        elif bits & DETERMINER or bits & JOINT:
            if filled and not bits & JOINT:
                preposition = ""
            previous = None
        elif bits & PRONOUN or _content(token):
            before = verb < 0 or at < subject_end
            if preposition and filled and _breaks(previous, token, before=before):
                preposition = ""
            counted = token.numeric and previous is not None and not previous.numeric  # "drawer 3"
            role = (
                "T" if counted else _role(token, preposition, before=before, verb=verb >= 0, passive=passive)
            )
            form = pronoun(token.norm) if bits & PRONOUN else token.form
            found.setdefault(form, set()).add(role)
            if before and not preposition and role != "T":
                about.add(form)
            if before and verb >= 0 and role not in "ST":
                groups.append([form, role])
            filled, previous = True, token
            if bits & PRONOUN:
                preposition = ""
        elif bits & FINITE:
            preposition, filled = "", False
    about |= _front(tokens, subject_end, found, groups, passive=passive)
    return {form: frozenset(some) for form, some in found.items()}, frozenset(about)


def passive(tokens: tuple[Token, ...], label: int = 0) -> bool:
    """True where the subject is acted on."""
    return predicate(tokens, label)[2]


def _content(token: Token) -> bool:
    return not (token.tag & (FUNCTION | BE | FINITE) and not token.tag & VERB) and not negates(token.norm)


def _breaks(previous: Token | None, token: Token, *, before: bool) -> bool:
    """A new noun phrase without an article: "on Monday Ana", "at the lake Elena", "in 2019 birds"."""
    if previous is None:
        return False
    if (
        previous.form in WEEKDAYS
        or previous.form[0] == "#"
        or ":" in previous.form
        or _YEAR.fullmatch(previous.form)
    ):
        return not (token.numeric or token.form in WEEKDAYS or token.form in WHEN_WORDS)
    if previous.numeric:
        return token.surface[0].isupper()
    return before and previous.surface.islower() and token.surface[0].isupper() and len(token.surface) > 1


def _role(token: Token, preposition: str, *, before: bool, verb: bool, passive: bool) -> str:
    if token.form in WHEN_WORDS:
        return "T"
    if token.numeric or token.form in WEEKDAYS:
        return preposition if preposition in _WHEN else "T"
    if preposition:
        return "S" if passive and preposition == "by" and not before else preposition
    if not verb:
        return "N"
    return "O" if passive or not before else "S"


def predicate(tokens: Sequence[Token], label: int) -> tuple[int, int, bool]:
    """Where the subject ends, where the verb stands (-1: nowhere), and whether it is passive."""
    first = next(
        (at for at in range(label, len(tokens)) if _opens_predicate(tokens, at, tokens[at], label)), -1
    )
    if first < 0:
        return -1, -1, False
    be = bool(tokens[first].tag & BE)
    for at in range(first, min(len(tokens), first + 1 + _ADJACENT)):
        token = tokens[at]
        if at > first and token.norm in ("be", "been", "being"):
            be = True
        elif token.tag & (VERB | PAST) and not (at == first and be):
            return first, at, be and bool(token.tag & PAST)
        elif at > first and not (token.tag & (ADVERB | FINITE | PRONOUN) or negates(token.norm)):
            break
    return first, first, False


def _opens_predicate(tokens: Sequence[Token], at: int, token: Token, label: int) -> bool:
    if token.tag & FINITE:
        led = at > 0 and (tokens[at - 1].numeric or tokens[at - 1].tag & (DETERMINER | PREPOSITION))
        return not (led and token.tag & VERB)
    if not token.tag & VERB:
        return False
    if at == label or (at == label + 1 and (tokens[label].tag & JOINT or tokens[label].norm == ">")):
        return True
    behind = tokens[at - 1]
    return bool(behind.tag & PRONOUN) or (at > 1 and behind.surface.endswith("s") and behind.tag == 0)


def _front(
    tokens: Sequence[Token],
    subject_end: int,
    found: dict[str, set[str]],
    groups: list[list[str]],
    *,
    passive: bool,
) -> set[str]:
    """ "In Graz Ana studied": where nothing before the verb is free, the last name is who it is about."""
    if len(groups) < 2 or any(
        some & {"S", "O"} for form, some in found.items() if _stands_before(tokens, form, subject_end)
    ):
        return set()
    form, role = groups[-1]
    found[form].discard(role)
    found[form].add("O" if passive else "S")
    return {form}


def _stands_before(tokens: Sequence[Token], form: str, end: int) -> bool:
    return any(token.form == form or pronoun(token.norm) == form for token in tokens[:end])


def conflict(said: Roles, draft: Roles, *, loose: bool = False) -> str | None:
    """The first word whose role in the draft it cannot have; `loose` where small words were dropped."""
    given: set[bool] = set()
    for form, roles_there in draft.items():
        here = said.get(form)
        if here and not loose and len(here) == len(roles_there) == 1 and here != roles_there:
            # "gave Bob the key", "gave the key to Bob"; but both ways at once is another gift
            (one,), (other,) = here, roles_there
            if (one == "O" and other in _GIVEN) or (other == "O" and one in _GIVEN):
                given.add(one == "O")
                if len(given) > 1:
                    return form
        if here and not here & roles_there and not any(
            _meet(one, other, loose=loose) for one in here for other in roles_there
        ):  # fmt: skip
            return form
    return None


def _meet(one: str, other: str, *, loose: bool) -> bool:
    if one == other or one in "TV" or other in "TV" or {one, other} == {"by", "S"}:
        return True
    if "L" in (one, other):
        return one in "SN" or other in "SN"
    if {one, other} == {"S", "O"}:
        return False
    if "N" in (one, other):
        return one in "SO" or other in "SO" or loose
    if one in "SO" or other in "SO":
        return loose or (one == "O" and other in _GIVEN) or (other == "O" and one in _GIVEN)
    return frozenset((one, other)) in _MEETING
