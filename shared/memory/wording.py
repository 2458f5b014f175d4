"""The small words that turn a statement: tense, modals, the scope of "not", pronouns, prepositions, signs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from shared.memory.direction import passive, pronoun
from shared.memory.entailment import Reason
from shared.memory.grammar import VERB
from shared.memory.residue import Lack, Residue
from shared.memory.statements import Statement, contentful
from shared.memory.tokens import Clause
from shared.memory.vocabulary import IRREGULAR

_MODALS = frozenset(["can", "could", "may", "might", "will", "would", "must", "shall", "should"])
_PAST = frozenset(["was", "were", "did"])
_PRESENT = frozenset(["is", "are", "am", "does", "do"])
_SCOPED = frozenset(
    ["all", "every", "everyone", "everybody", "everything", "both", "each", "always", "except", "only"]
)
_NONE = frozenset(("nothing", "none", "nowhere"))
_FIRST = frozenset(("i", "you", "we"))
_GENDERED = frozenset(("he", "she"))
_OWN = {
    "my": "i", "mine": "i", "me": "i", "your": "you", "yours": "you", "our": "we", "ours": "we", "us": "we",
    "his": "he", "him": "he", "her": "she", "hers": "she",
}  # fmt: skip
_TURNING = frozenset(
    [
        "before",
        "after",
        "under",
        "over",
        "above",
        "below",
        "behind",
        "beside",
        "without",
        "with",
        "against",
        "until",
        "since",
        "between",
        "into",
        "inside",
        "outside",
        "near",
        "from",
        "through",
        "during",
    ]
)
_SAME = {"beneath": "under", "underneath": "under", "below": "under", "within": "inside", "till": "until"}
_CONTRARY = frozenset(["before", "after", "under", "over", "above", "behind", "without"])
_PLAIN = frozenset(("in", "on", "to"))
_SIGNED = re.compile(r"[=<>~^!|&+*\\]|^[-−–]\d")
_ENDS = ".,;:?!\"'()[]“”’"
_STRANGE_SPACE = frozenset("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")


def changed(statement: Statement, there: Sequence[Clause], residue: Residue) -> Lack | None:
    """The first of them that is another than in what the statement repeats."""
    checks = (_prepositions,) if residue.loose else (_modals, _tense, _scope, _persons, _prepositions)
    for check in checks:
        reason = check(statement.clause, there, residue)
        if reason is not None:
            return Lack(reason, statement.text())
    return _gender(statement, there, residue)


def _norms(found: Sequence[Clause]) -> list[str]:
    return [token.norm for clause in found for token in clause.tokens]


def _modals(clause: Clause, there: Sequence[Clause], residue: Residue) -> Reason | None:
    said, meant = (
        {token.norm for one in some for token in one.tokens if _modal(token.norm, token.surface)}
        for some in ((clause,), there)
    )
    if said != meant:
        return Reason.QUALIFIER_CHANGED
    if "must" in said and clause.denials:
        helped = [
            any(
                token.norm == "must" and token.surface.casefold() != "must"
                for one in some
                for token in one.tokens
            )
            for some in ((clause,), there)
        ]
        if helped[0] != helped[1]:
            return Reason.QUALIFIER_CHANGED  # "do not have to" is not "must not"
    return None


def _modal(norm: str, surface: str) -> bool:
    return norm in _MODALS and not (norm in ("may", "will") and surface[:1].isupper())


def _tense(clause: Clause, there: Sequence[Clause], residue: Residue) -> Reason | None:
    if len(there) != 1:
        return None
    said, meant = _past(clause), _past(there[0])
    if {"have", "has"} & set(_norms((clause,))) and "had" in _norms(there):
        return Reason.QUALIFIER_CHANGED
    if {"have", "has"} & set(_norms(there)) and "had" in _norms((clause,)):
        return Reason.QUALIFIER_CHANGED
    return Reason.QUALIFIER_CHANGED if None not in (said, meant) and said != meant else None


def _past(clause: Clause) -> bool | None:
    """Whether its first finite verb is past; None where the form does not tell."""
    for token in clause.tokens:
        if token.norm in _MODALS:
            return None
        if token.norm in ("have", "has", "had"):
            return None
        if token.norm in _PAST:
            return True
        if token.norm in _PRESENT:
            return False
    verbs = [token for token in clause.tokens if token.tag & VERB and contentful(token)]
    if len(verbs) != 1:
        return None
    word = verbs[0].surface.casefold()
    if word in IRREGULAR:
        return None if IRREGULAR[word] == word else True
    if word.endswith("ed"):
        return True
    return False if word.endswith("s") and not word.endswith("ss") else None


def _scope(clause: Clause, there: Sequence[Clause], residue: Residue) -> Reason | None:
    if not clause.denials or not any(one.denials for one in there):
        return None
    meant = {word for one in there for word in _denied(one)}
    for word in _denied(clause):
        if word not in meant and not any(other in meant for other in residue.meanings(word)):
            return Reason.POLARITY_FLIPPED
    return None


def _denied(clause: Clause) -> Iterator[str]:
    """The word that each particle stands before: of content, or one that says how many."""
    tokens = clause.tokens
    for at, token in enumerate(tokens):
        if token.denies and not contentful(token) and token.norm not in _NONE:
            behind = (
                other
                for other in tokens[at + 1 :]
                if other.norm in _SCOPED or contentful(other) or other.denies
            )
            first = next(behind, None)
            yield "" if first is None else first.norm if first.norm in _SCOPED else first.form


def _persons(clause: Clause, there: Sequence[Clause], residue: Residue) -> Reason | None:
    said, meant = _people((clause,)), _people(there)
    added = set(said) - set(meant)
    if added & _FIRST or (added and (set(meant) - set(said)) & _FIRST):
        return Reason.TUPLE_SWAPPED
    alike = len(there) == 1 and _passive(clause) == _passive(there[0])
    if alike and said != meant and sorted(said) == sorted(meant) and len(set(said)) > 1:
        return Reason.TUPLE_SWAPPED  # "my boss and your cousin"
    return None


def _passive(clause: Clause) -> bool:
    return passive(clause.tokens, clause.label)


def _people(found: Sequence[Clause]) -> list[str]:
    """Persons in their order: he for his, I for my."""
    folded = (_OWN.get(norm) or pronoun(norm) for norm in _norms(found))
    return [norm for norm in folded if norm in _FIRST or norm in _GENDERED]


def _gender(statement: Statement, there: Sequence[Clause], residue: Residue) -> Lack | None:
    said, meant = (
        [one for one in _people(some) if one in _GENDERED] for some in ((statement.clause,), there)
    )
    if said and meant and any(said.count(one) > meant.count(one) for one in said):
        lost = any(meant.count(one) > said.count(one) for one in meant)
        if lost or (not residue.loose and len(said) <= len(meant)):
            return Lack(Reason.TUPLE_SWAPPED, statement.text())
    return None


def _prepositions(clause: Clause, there: Sequence[Clause], residue: Residue) -> Reason | None:
    said, meant = ({_SAME.get(word, word) for word in _norms(some)} for some in ((clause,), there))
    added, gone = (said - meant) & (_TURNING | _PLAIN), (meant - said) & (_TURNING | _PLAIN)
    if residue.loose:
        return Reason.TUPLE_SWAPPED if added & _CONTRARY else None
    if added & _TURNING or (added & _PLAIN and gone & _TURNING):
        return Reason.TUPLE_SWAPPED
    return None


# --- signs ------------------------------------------------------------------------------------------


def signs(draft: str, rendered: str) -> str:
    """A word with an operator or a sign that the residue has otherwise; empty without one."""
    there = set(_words(rendered))
    plain = {word for word in there if not _SIGNED.search(word)}
    said = list(_words(draft))
    for word in said:
        if _SIGNED.search(word) and word not in there:
            return word
    bare: set[str] = set()
    for word in there - plain:
        bare.update(piece for piece in re.split(r"[^\w.]+", word) if piece)
    for word in there:
        if unicodedata.normalize("NFKC", word) != word:
            bare.add(unicodedata.normalize("NFKC", word))
    return next((word for word in said if word in bare and word not in plain), "")


def _words(text: str) -> Iterator[str]:
    """Words as they stand; an operator apart goes with the word behind it, a line's first sign with none."""
    for line in text.splitlines():
        held = ""
        for at, word in enumerate(line.split()):
            signed = re.match(r"[!(\[]*[!~=<>]", word)
            core = word.casefold().rstrip(_ENDS) if signed else word.casefold().strip(_ENDS)
            if at == 0 and not re.search(r"\w", word):
                continue
            if core and not re.search(r"\w", core):
                held += core if _SIGNED.search(core) else ""
                continue
            if core:
                yield held + core
                held = ""


def styled(draft: str, rendered: str) -> str:
    """A letter, digit or space in a dress that the residue does not have."""
    for letter in draft:
        if letter in rendered or (letter.isascii() and letter not in _STRANGE_SPACE):
            continue
        if letter in _STRANGE_SPACE:
            return ascii(letter)
        folded = unicodedata.normalize("NFKC", letter)
        if folded != letter and any(one.isalnum() and one.isascii() for one in folded):
            return letter
    return ""
