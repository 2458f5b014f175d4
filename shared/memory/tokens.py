"""Tokens of a text, and its clauses: what the gate compares and the distiller cuts at. Linear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from shared.memory.grammar import (
    CONDITION,
    DETERMINER,
    FINITE,
    JOINT,
    PHRASE,
    PHRASE_STARTS,
    PREPOSITION,
    PRONOUN,
    VERB,
    tag,
)
from shared.memory.lexicon import CONTRASTS
from shared.memory.values import COUNTS, settled
from shared.memory.words import (
    INVISIBLE,
    Token,
    canonical,
    denies,
    negates,
    norm,
    numeric,
    punctuation,
    tokens_of,
)

__all__ = [
    "INVISIBLE", "Clause", "Place", "Token", "canonical", "clauses", "clauses_at", "clauses_by_line",
    "denials_by_clause",    "denies", "located", "negates", "norm", "numeric", "punctuation",
]  # fmt: skip

# Han and kana carry no spaces: one character, one token.
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# \w knows no combining marks; these keep a word in decomposed Latin, Arabic, Hebrew and Indic text whole.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u200c\u200d"
_LETTER = f"[^\\W\\d_{_IDEOGRAPH}]"
_IN_WORD = f"(?:[^\\W{_IDEOGRAPH}]|[{_MARKS}])"
_DIGITS = r"\d[0-9A-Za-z]*(?:[.,:/\-]\d[0-9A-Za-z]*)*%?"  # 12, 1,000.5, 2023-05-08, 7:30pm, 3rd
_TOKEN = re.compile(
    r"[AaPp]\.[Mm]\b\.?"
    r"|[A-Za-z]+(?![^\s.,;!?])"  # plain words and numbers are most of any text: few branches are tried
    r"|https?://[^\s<>\"']*[^\s<>\"'.,;:!?)]"
    rf"|(?<![^\s(\[$€£])[-+]?{_DIGITS}"  # a sign counts only where no word stands before it
    rf"|{_DIGITS}"
    rf"|{_LETTER}{_IN_WORD}*(?:['’\-]{_IN_WORD}+)*"  # don't, well-known, AB-1234
    rf"|[{_IDEOGRAPH}]"
    r"|[^\s]",
)
_LINE_BREAK = re.compile(r"[\n\r\u2028\u2029]+")
_LEANING_LINE = re.compile(r"\n\s*(?:in|on|inside)\s+(?:it|them)\b", re.IGNORECASE)
_ENDS = frozenset(".!?;。")
_SHORTENED = frozenset({"dr", "mr", "mrs", "ms", "prof", "st", "vs", "approx", "dept", "jr", "sr"})
_PLACES = frozenset({"in", "on", "inside"})
_IT = frozenset({"it", "them"})
_JOINT_WORDS = "and or then because if unless until when whenever while since once so after before where ,"
_JOINTS = frozenset(_JOINT_WORDS.split())
_HALVES = frozenset({"a.m.", "p.m."})
_TURNS = _ENDS | _JOINTS | _HALVES | CONTRASTS
_LONGEST_LABEL = 3
_LOOK_BACK = 24
_LOOK_AHEAD = 8  # a subject is short

_number = itemgetter(2)  # of a place, its clause's

Place = tuple[int, int, int]
"""Start and end offset of a token, and the number of its clause."""


class Clause(NamedTuple):
    """A stretch of tokens with one claim in it; punctuation is not kept."""

    tokens: tuple[Token, ...]
    denials: int
    """How many of its words turn the claim round."""
    label: int = 0
    """How many of its tokens stand before a colon: who speaks, or what the rest is the value of."""
    joint: str = ""
    """What ties it to the clause before in one sentence: "and", "if", ","; empty at a sentence's start."""


def denials_by_clause(text: str, places: Sequence[Place]) -> dict[int, int]:
    """How many words turn each clause's claim round, in the clause numbers of `places`."""
    counts: dict[int, int] = {}
    for start, end, clause in places:
        if denies(norm(text[start:end])):
            counts[clause] = counts.get(clause, 0) + 1
    return counts


def clauses(text: str) -> list[Clause]:
    """Clauses of any text, in order."""
    text = canonical(text)
    return clauses_at(text, located(text))


def clauses_by_line(text: str, known: dict[str, list[Clause]]) -> list[Clause]:
    """The same, line by line: a line that was read before is not read again."""
    text = canonical(text)
    if _LEANING_LINE.search(text):
        return clauses(text)
    found: list[Clause] = []
    for line in text.split("\n"):
        read = known.get(line)
        if read is None:
            read = known[line] = clauses_at(line, located(line))
        found.extend(read)
    return found


def clauses_at(text: str, places: Sequence[Place]) -> list[Clause]:
    """Clauses of canonical text whose tokens are already located."""
    found: list[Clause] = []
    for _, members in groupby(places, key=_number):
        surfaces = [text[start:end] for start, end, _ in members]
        tokens = tokens_of(surfaces)
        if not tokens:
            continue
        kept = settled(tokens) if _settles(tokens) else tokens
        label = _label(surfaces) if ":" in surfaces else 0
        label = label if len(kept) > label else 0
        word = surfaces[0].casefold()
        joint = word if word in _JOINTS or word in CONTRASTS else ""
        found.append(Clause(tuple(kept), sum([token.denies for token in kept]), label, joint))
    return found


def located(text: str) -> list[Place]:
    """Every token of `text` as it stands, for whoever cuts the original."""
    # Where case changes nothing but the words themselves, the words are found at once in small letters.
    same = text.isascii() and "://" not in text
    read = text.lower() if same else text
    surfaces: list[str] = []
    lines: list[int] = []
    for line in _LINE_BREAK.split(read):
        lines.append(len(surfaces))
        surfaces += _TOKEN.findall(line)
    words = surfaces if same else [surface.casefold() for surface in surfaces]
    starts: list[int] = []
    ends: list[int] = []
    find, end = read.find, 0
    for surface in surfaces:
        start = find(surface, end)  # nothing but blanks stands before it
        end = start + len(surface)
        starts.append(start)
        ends.append(end)
    # Few words can open or end a clause: the rest are not looked at one by one.
    marks = [at for at, word in enumerate(words) if word in _TURNS]
    numbers: list[int] = []
    for number, high in enumerate([*_cuts(text, words, marks, starts, lines[1:]), len(words)]):
        numbers += [number] * (high - len(numbers))
    return list(zip(starts, ends, numbers, strict=True))


def _cuts(
    text: str, words: Sequence[str], marks: Sequence[int], starts: Sequence[int], lines: Sequence[int]
) -> list[int]:
    """Tokens that open a clause: behind an end, on a new line, "but" and its like, a second statement."""
    opened = set(lines)
    for at in marks:
        word = words[at]
        if word in CONTRASTS:
            opened.add(at)
        elif word in _ENDS:
            shortened = word == "." and at and words[at - 1] in _SHORTENED
            if not (shortened and text[starts[at - 1]].isupper()):
                opened.add(at + 1)
        elif word in _HALVES:
            behind = starts[at] + len(word) + 1
            if text[behind : behind + 1].isupper():
                opened.add(at + 1)
    opened.discard(len(words))
    # "The fridge is open. In it, you see ...": the second sentence goes on about the first's object.
    cuts = sorted(
        at for at in opened if not (words[at] in _PLACES and at + 1 < len(words) and words[at + 1] in _IT)
    )
    return _divided(words, marks, cuts)


def _divided(words: Sequence[str], marks: Sequence[int], cuts: list[int]) -> list[int]:
    """Clauses cut again where "and", "if", a comma and their like join two statements with a verb each."""
    out = list(cuts)
    bounds = iter([*cuts, len(words)])
    low, high, last = 0, next(bounds), 0
    for at in marks:
        while at >= high:
            low, high = high, next(bounds)
        begin = max(0, at - _LOOK_BACK, last)
        if at > low and words[at] in _JOINTS and _joins(words, at, begin, low, high):
            out.append(at)
            last = at
    out.sort()
    return out


def _joins(words: Sequence[str], at: int, begin: int, low: int, high: int) -> bool:
    """True where the joint at `at` has a statement behind it and one before, in its clause low:high."""
    if not _stated_behind(words, at, high):
        return False
    if tag(words[at]) & CONDITION:
        return True  # "call the doctor if it comes back": an order has no verb that shows
    for back in range(at - 1, begin - 1, -1):
        if back < low or words[back] in _ENDS:
            return False
        if _is_verb(words, back, begin):
            return True
    return False


def _is_verb(words: Sequence[str], at: int, begin: int) -> bool:
    """A finite form; or a base form behind a pronoun, or as an order at the start ("call the doctor")."""
    bits = tag(words[at])
    if bits & FINITE or not bits & VERB:
        return bool(bits & FINITE)
    if at > begin:
        return bool(tag(words[at - 1]) & PRONOUN)
    return bool(tag(words[at + 1]) & (DETERMINER | PRONOUN)) if at + 1 < len(words) else False


def _stated_behind(words: Sequence[str], at: int, high: int) -> bool:
    """A finite verb, at once behind "and" or behind a short subject."""
    joint = before = words[at]
    led = tag(joint)  # what the word before can do
    subject = fronted = False
    for here in range(at + 1, min(at + 1 + _LOOK_AHEAD, high)):
        word = words[here]
        own = bits = tag(word)
        # "9 am", "9 steps": nothing behind a number is a verb
        if bits and (before[0].isdigit() or before.rpartition("-")[2] in COUNTS):
            bits = 0
        if bits & VERB and led & DETERMINER:
            bits = 0  # "the lost property"
        if bits & FINITE or (bits & VERB and led & PRONOUN):
            if here > at + 1:
                return subject and not (led & PREPOSITION and bits & VERB)
            if bits & FINITE:
                # "drawers and plates": a plural behind a plural is no verb
                plural = word.endswith("s") and words[at - 1].endswith("s")
                return joint in ("and", "or", "then") and not plural
        if here == at + 1 and bits & VERB:
            # "and turn it on": an order behind another one
            behind = tag(words[here + 1]) if here + 1 < len(words) else 0
            return joint == "and" and bool(behind & (PRONOUN | DETERMINER))
        if word == "," and fronted:
            fronted = False  # "and on the shelf, you see"
        elif word in _JOINTS and not (bits & PREPOSITION and not subject):
            return False
        else:
            if bits & PREPOSITION and not subject:
                fronted = True
            subject = subject or bool(bits & PRONOUN) or not bits & (PREPOSITION | JOINT)
        before, led = word, own
    return False


def _settles(tokens: Sequence[Token]) -> bool:
    """True where a value or a fixed phrase may stand in it: few clauses have one."""
    opens = []
    for at, (_, _, _, _, _, bits, special) in enumerate(tokens):
        if special:
            return True
        if bits & PHRASE:
            opens.append(at)
    # Most first words of a phrase ("in order to") stand alone most of the time; "gave it back".
    return any(
        tokens[at + 1].tag & PRONOUN or (tokens[at].form, tokens[at + 1].form) in PHRASE_STARTS
        for at in opens
        if at + 1 < len(tokens)
    )


def _label(surfaces: Sequence[str]) -> int:
    """How many tokens stand before the first colon behind one."""
    for at, surface in enumerate(surfaces):
        if surface == ":":
            count = len(tokens_of(surfaces[:at]))
            if count > _LONGEST_LABEL:
                break
            if count:
                return count
    return 0
