"""Tokens of a text, and its clauses: what the gate compares and the distiller cuts at. Linear."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    token,
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
_LINE_BREAK = re.compile(r"[\n\r\u2028\u2029]")
_LEANING_LINE = re.compile(r"\n\s*(?:in|on|inside)\s+(?:it|them)\b", re.IGNORECASE)
_ENDS = frozenset(".!?;。")
_SHORTENED = frozenset({"dr", "mr", "mrs", "ms", "prof", "st", "vs", "approx", "dept", "jr", "sr"})
_PLACES = frozenset({"in", "on", "inside"})
_IT = frozenset({"it", "them"})
_JOINT_WORDS = "and or then because if unless until when whenever while since once so after before where ,"
_JOINTS = frozenset(_JOINT_WORDS.split())
_LONGEST_LABEL = 3
_LOOK_BACK = 24
_LOOK_AHEAD = 8  # a subject is short

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
    current: list[Token] = []
    number = -1
    special = opens = False
    joint, label = "", 0
    for start, end, clause in places:
        surface = text[start:end]
        if clause != number:
            _close(found, current, label, joint, special=special)
            current, number, special, opens, label = [], clause, False, False, 0
            word = surface.casefold()
            joint = word if word in _JOINTS or word in CONTRASTS else ""
        made = token(surface)
        if surface == ":" and not label and len(current) <= _LONGEST_LABEL:
            label = len(current)
        if made is not None:
            # Most first words of a phrase ("in order to") stand alone most of the time.
            special = special or made.special or (opens and (current[-1].form, made.form) in PHRASE_STARTS)
            if made.tag & PRONOUN and opens:
                special = True  # "gave it back"
            opens = bool(made.tag & PHRASE)
            current.append(made)
    _close(found, current, label, joint, special=special)
    return found


def located(text: str) -> list[Place]:
    """Every token of `text` as it stands, for whoever cuts the original."""
    places: list[Place] = []
    words: list[str] = []
    clause, previous_end, opens, waiting = 0, 0, False, False
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        word = match[0].casefold()
        if waiting and word not in _IT:
            # The place word before did open a clause after all.
            clause += 1
            places[-1] = (*places[-1][:2], clause)
        waiting = False
        if not opens:
            blank = start > previous_end and text[previous_end:start] != " "
            opens = word in CONTRASTS or (blank and _LINE_BREAK.search(text, previous_end, start) is not None)
        if opens:
            # "The fridge is open. In it, you see ...": the second sentence goes on about the first's object.
            waiting = word in _PLACES
            clause += not waiting
        places.append((start, end, clause))
        words.append(word)
        opens = (
            word in _ENDS
            and not (
                word == "." and len(words) > 1 and words[-2] in _SHORTENED and text[places[-2][0]].isupper()
            )
        ) or (word in ("a.m.", "p.m.") and text[end : end + 2][1:].isupper())
        previous_end = end
    if waiting:
        places[-1] = (*places[-1][:2], clause + 1)
    return _divided(places, words)


def _divided(places: list[Place], words: list[str]) -> list[Place]:
    """Clauses cut again where "and", "if", a comma and their like join two statements with a verb each."""
    cuts = [
        at for at, word in enumerate(words) if word in _JOINTS and at and places[at - 1][2] == places[at][2]
    ]
    added = 0
    first = -1
    out = places
    for index, at in enumerate(cuts):
        clause = places[at][2]
        begin = max(0, at - _LOOK_BACK, first)
        if _joins(words, places, at, begin, clause):
            if added == 0:
                out = places[:at]
            added += 1
            first = at
        if added:
            end = cuts[index + 1] if index + 1 < len(cuts) else len(places)
            out.extend((start, stop, number + added) for start, stop, number in places[at:end])
    return out


def _joins(words: Sequence[str], places: Sequence[Place], at: int, begin: int, clause: int) -> bool:
    """True where the joint at `at` has a statement behind it and one before."""
    if not _stated_behind(words, places, at, clause):
        return False
    if tag(words[at]) & CONDITION:
        return True  # "call the doctor if it comes back": an order has no verb that shows
    for back in range(at - 1, begin - 1, -1):
        if places[back][2] != clause or words[back] in _ENDS:
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


def _stated_behind(words: Sequence[str], places: Sequence[Place], at: int, clause: int) -> bool:
    """A finite verb, at once behind "and" or behind a short subject."""
    joint = words[at]
    before = words[at - 1]
    subject = fronted = False
    for here in range(at + 1, min(at + 1 + _LOOK_AHEAD, len(words))):
        if places[here][2] != clause:
            return False
        word = words[here]
        # "9 am", "9 steps": nothing behind a number is a verb
        counted = words[here - 1][0].isdigit() or words[here - 1].rpartition("-")[2] in COUNTS
        bits = 0 if counted else tag(word)
        if bits & VERB and tag(words[here - 1]) & DETERMINER:
            bits = 0  # "the lost property"
        if here == at + 1 and bits & VERB and not bits & FINITE:
            # "and turn it on": an order behind another one
            return (
                joint == "and"
                and here + 1 < len(words)
                and bool(tag(words[here + 1]) & (PRONOUN | DETERMINER))
            )
        if bits & FINITE or (bits & VERB and tag(words[here - 1]) & PRONOUN):
            if here == at + 1:
                # "drawers and plates": a plural behind a plural is no verb
                return joint in ("and", "or", "then") and not (word.endswith("s") and before.endswith("s"))
            return subject and not (tag(words[here - 1]) & PREPOSITION and bits & VERB)
        if word == "," and fronted:
            fronted = False  # "and on the shelf, you see"
            continue
        if word in _JOINTS and not (bits & PREPOSITION and not subject):
            return False
        if bits & PREPOSITION and not subject:
            fronted = True
        subject = subject or bool(bits & PRONOUN) or not bits & (PREPOSITION | JOINT)
    return False


def _close(found: list[Clause], tokens: list[Token], label: int, joint: str, *, special: bool) -> None:
    if tokens:
        kept = settled(tokens) if special else tokens
        label = label if len(kept) > label else 0
        found.append(Clause(tuple(kept), sum(token.denies for token in kept), label, joint))
