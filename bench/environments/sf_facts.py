"""MQuAKE's cases as numbered facts, and what can be read back from texts that state them.

A fact is `subject, relation, object`; a relation is its published sentence, "{} is a citizen of".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bench.environments.answering import normalised
from bench.environments.files import text_of
from bench.reader_free import STOP

LAYOUT = "MQuAKE (a list of cases with requested_rewrite, questions, new_answer, new_single_hops)"
_SERIAL = re.compile(r"\bfact\s+(\d+)\b\W*", re.IGNORECASE)
_GOLD_WORDS = 12


@dataclass(frozen=True)
class Edit:
    """A fact that was one thing and becomes another. names: the new object and its aliases."""

    subject: str
    relation: str
    old: str
    new: str
    question: str
    names: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Subject and relation."""
        return self.subject, self.relation

    def stated(self, serial: int, value: str) -> str:
        """The fact as an entry."""
        return f"Fact {serial}: {self.relation.format(self.subject)} {value}."


@dataclass(frozen=True)
class Case:
    """A chain of facts and the questions over all of it. names: the answer and its aliases."""

    id: str
    chain: tuple[tuple[str, str], ...]
    questions: tuple[str, ...]
    names: tuple[str, ...]
    stale: str


def cases(records: Any) -> tuple[list[Case], dict[tuple[str, str], Edit]]:
    """Cases in the file's order, and their facts; what two cases contradict is left out with its cases."""
    if not isinstance(records, list) or not records:
        raise ValueError("a list of cases was expected")
    told: dict[tuple[str, str], Edit] = {}
    contradicted: set[tuple[str, str]] = set()
    found: list[Case] = []
    for record in records:
        edits = _edits(record)
        for edit in edits:
            if told.setdefault(edit.key, edit).new != edit.new:
                contradicted.add(edit.key)
        found.append(
            Case(
                id=str(record["case_id"]),
                chain=tuple(edit.key for edit in edits),
                questions=tuple(dict.fromkeys(text_of(question) for question in record["questions"])),
                names=_names(record["new_answer"], record.get("new_answer_alias", ())),
                stale=str(record.get("answer", "")),
            )
        )
    kept = [case for case in found if contradicted.isdisjoint(case.chain)]
    if not kept:
        raise ValueError("every case contradicts another")
    return kept, {key: edit for key, edit in told.items() if key not in contradicted}


def _edits(record: Mapping[str, Any]) -> list[Edit]:
    edits = []
    hops = {text_of(hop["question"]): hop for hop in record.get("new_single_hops", ())}
    for rewrite in record["requested_rewrite"]:
        relation, question = text_of(rewrite["prompt"]), text_of(rewrite["question"])
        if relation.count("{}") != 1 or relation.format("") == "":
            raise ValueError(f"a prompt with one {{}} was expected, not {relation!r}")
        new = text_of(rewrite["target_new"]["str"])
        edits.append(
            Edit(
                subject=text_of(rewrite["subject"]),
                relation=relation,
                old=text_of(rewrite["target_true"]["str"]),
                new=new,
                question=question,
                names=_names(new, hops.get(question, {}).get("answer_alias", ())),
            )
        )
    if not edits:
        raise ValueError("a case without requested_rewrite")
    return edits


def _names(answer: object, aliases: Iterable[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([text_of(answer), *(str(alias) for alias in aliases)]))


# --- reading ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """A numbered sentence found in a text, as words."""

    serial: int
    words: tuple[str, ...]


def statements(texts: Iterable[str]) -> list[Statement]:
    """What the texts state; a sentence that lost its number cannot be placed and is not read."""
    found = []
    for text in texts:
        marks = list(_SERIAL.finditer(text))
        for at, mark in enumerate(marks):
            end = marks[at + 1].start() if at + 1 < len(marks) else len(text)
            body = text[mark.end() : end].split("\n", 1)[0]
            found.append(Statement(int(mark[1]), normalised(body)))
    return found


def newest(
    told: Sequence[Statement], subject: Sequence[str], relation: str, relations: Sequence[str]
) -> tuple[str, ...]:
    """The object words of the highest number that states this of the subject; empty where none does.

    relations: all that may be meant; a sentence belongs to the one whose words it shows most of.
    """
    best = -1
    value: tuple[str, ...] = ()
    for one in told:
        if one.serial > best and (read := _object(one.words, tuple(subject), relation, relations)):
            best, value = one.serial, read
    return value


def walk(
    told: Sequence[Statement], start: str, chain: Sequence[str], relations: Sequence[str]
) -> tuple[str, ...]:
    """From fact to fact: each object is the next subject; empty where a fact is missing."""
    at = normalised(start)
    for relation in chain:
        at = newest(told, at, relation, relations)
        if not at:
            break
    return at


def _object(
    words: tuple[str, ...], subject: tuple[str, ...], relation: str, relations: Sequence[str]
) -> tuple[str, ...]:
    place = _place(words, subject)
    if place is None:
        return ()
    before, after = words[:place], words[place + len(subject) :]
    shown, value = _match(before, after, relation)
    if not shown or any(_match(before, after, other)[0] > shown for other in relations):
        return ()
    return value[:_GOLD_WORDS]


def _match(before: tuple[str, ...], after: tuple[str, ...], relation: str) -> tuple[float, tuple[str, ...]]:
    """How many telling words of a relation stand around the subject, and what is left behind it.

    Words may be missing (a shortened text), but none may be foreign before the subject.
    """
    front, back = _template(relation)
    if not set(before) <= set(front):
        return 0.0, ()
    left = list(after)
    for word in back:
        if left and left[0] == word:
            left.pop(0)
    consumed = after[: len(after) - len(left)]
    told = [word for word in (*before, *consumed) if word not in STOP]
    wanted = [word for word in (*front, *back) if word not in STOP]
    if not told or not left:
        return 0.0, ()
    # Most words shown; among equals the relation that misses fewest.
    return len(told) - 0.01 * (len(wanted) - len(told)), tuple(left)


@lru_cache(maxsize=1024)
def _template(relation: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    front, back = relation.split("{}")
    return normalised(front), normalised(back)


def _place(words: tuple[str, ...], subject: tuple[str, ...]) -> int | None:
    size = len(subject)
    if not size:
        return None
    return next((at for at in range(len(words) - size + 1) if words[at : at + size] == subject), None)
