"""A clause as one statement: its content, its polarity, what qualifies it, and what it leans on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import overload

from shared.memory.direction import Roles, pronoun, roles, subject
from shared.memory.grammar import BE, DETERMINER, FUNCTION, PREPOSITION, PRONOUN, VERB
from shared.memory.lexicon import FUNCTION_WORDS, NEGATIONS, UNITS
from shared.memory.tokens import Clause
from shared.memory.values import WEEKDAYS
from shared.memory.words import Token

# What makes a statement surer or weaker, or says how much of it holds; one class each.
_QUALIFIERS = {
    "must": "must shall", "may": "may might can could", "will": "will would", "should": "should ought",
    "only": "only just solely merely", "every": "every all each both", "some": "some several",
    "any": "any", "most": "most mostly", "few": "few", "about": "approximately roughly circa approx",
    "almost": "almost nearly", "minimum": "minimum", "maximum": "maximum",
    "perhaps": "perhaps maybe possibly",
    "probably": "probably likely presumably", "again": "again once-more", "more": "more",
    "other": "other another", "same": "same",
    "than": "than", "hardly": "hardly barely scarcely", "allegedly": "allegedly supposedly",
}  # fmt: skip
_CLASS = {word: name for name, words in _QUALIFIERS.items() for word in words.split()}
# Words that only link; the order they claim is checked where they stand.
_LINK_WORDS = (
    "also additionally moreover furthermore besides and then next afterwards meanwhile finally too "
    "likewise similarly well namely indeed"
)
LINKS = frozenset(_LINK_WORDS.split())
SEQUENCE = frozenset(["then", "next", "afterwards", "finally"])
_APPROXIMATE = frozenset(("about", "around"))
_LIGHT_WORDS = "there here yes oh so very really quite well please then also just already now"
_LIGHT = frozenset(_LIGHT_WORDS.split())
_CONDITIONS = {
    "if": "if", "unless": "unless", "when": "when", "whenever": "when", "until": "until", "till": "until",
    "while": "while",
    "once": "when", "only": "if", "except": "unless", "because": "because", "after": "after",
    "before": "before",
    "since": "since", "where": "where",
}  # fmt: skip


SHARING = frozenset(("and", "or", "then", ","))
"""Behind these a clause may go on about the one before it."""


class Statement:
    """One clause, read."""

    __slots__ = (
        "_before",
        "_subject",
        "clause",
        "condition",
        "content",
        "denied",
        "opening",
        "pairs",
        "qualifiers",
        "roles_",
        "things",
        "units",
    )

    def __init__(self, clause: Clause, before: Statement | None) -> None:
        self.clause = clause = _unlinked(clause)
        self.content: dict[str, Token] = {}
        self.qualifiers: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.units: set[tuple[str, str]] = set()
        self.things: set[tuple[str, str]] = set()
        self.denied = bool(clause.denials % 2)
        self.opening = clause.tokens[0].norm
        word = clause.joint if clause.joint not in ("", ",", "and") else self.opening
        self.condition = _CONDITIONS.get(word, "") if clause.joint or word in ("if", "unless", "when") else ""
        self._read()
        self.roles_: Roles | None = None
        self._before = before if clause.joint in SHARING else None
        self._subject: frozenset[str] | None = None

    def saying(self, content: dict[str, Token], clause: Clause) -> Statement:
        """The same statement with only these of its words."""
        made = copy(self)
        made.content, made.clause, made.roles_, made._subject = content, clause, None, None  # noqa: SLF001
        return made

    @property
    def roles(self) -> Roles:
        """Computed when asked for."""
        if self.roles_ is None:
            self.roles_ = roles(self.clause.tokens, self.clause.label)
        return self.roles_

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(token.norm for token in self.clause.tokens)

    @property
    def agents(self) -> frozenset[str]:
        """Who acts in the clause before, where that is passive."""
        before = self._before
        return (
            frozenset(form for form, some in before.roles.items() if "S" in some) if before else frozenset()
        )

    def text(self) -> str:
        """As it stands, punctuation aside."""
        return " ".join(token.surface for token in self.clause.tokens)

    def pronouns(self) -> set[str]:
        """He for him, I for my."""
        return {
            pronoun(token.norm)
            for token in self.clause.tokens
            if token.tag & PRONOUN or token.norm in _POSSESSIVE
        }

    def _read(self) -> None:
        previous: Token | None = None
        tokens = self.clause.tokens
        for at, token in enumerate(tokens):
            norm = token.norm
            says = contentful(token)
            quality = _CLASS.get(norm)
            if quality is not None and not (norm in ("may", "will") and token.surface[0].isupper() and at):
                self.qualifiers.add(quality)
            elif norm in _APPROXIMATE and at + 1 < len(tokens) and tokens[at + 1].numeric:
                self.qualifiers.add("about")
            elif token.numeric:
                self.content[token.form] = token
                if previous is not None:
                    if not previous.tag & VERB:  # "reported 64": a verb has no number of its own
                        self.pairs.add((previous.form, token.form))
                    behind = tokens[at + 1] if at + 1 < len(tokens) else None
                    if not previous.numeric and not previous.tag and (behind is None or not _counted(behind)):
                        self.things.add((previous.form, token.form))
                self.units.update(_behind(tokens, at))
            elif says:
                self.content[token.form] = token
            previous = token if says or token.numeric else None

    @property
    def own(self) -> bool:
        """True where it says itself who it is about."""
        return bool(subject(self.clause.tokens, self.clause.label))

    @property
    def subject(self) -> frozenset[str]:
        """Who it is about; behind "and" with a verb at once, who the clause before is about."""
        if self._subject is None:
            self._subject = subject(self.clause.tokens, self.clause.label)
            if not self._subject and self._before is not None:
                self._subject = self._before.subject
        return self._subject


def _counted(behind: Token) -> bool:
    return behind.numeric or behind.norm in UNITS or contentful(behind)


def _unlinked(clause: Clause) -> Clause:
    """Without "also" and its like in front."""
    at = 0
    while at < len(clause.tokens) - 1 and clause.tokens[at].norm in LINKS and clause.tokens[at].norm != "and":
        at += 1
    return clause._replace(tokens=clause.tokens[at:], label=0) if at else clause


_SIGNS = frozenset(">=+<|~^")  # a transcript's and a log's signs say nothing alone
_EMPTY = FUNCTION_WORDS | _LIGHT | LINKS | _CLASS.keys() | _CONDITIONS.keys() | _SIGNS | NEGATIONS
_GRAMMAR = FUNCTION | BE | PREPOSITION | PRONOUN | DETERMINER
_POSSESSIVE = frozenset(["my", "your", "his", "her", "our", "their"])


def contentful(token: Token) -> bool:
    """True for a word that says something."""
    norm = token.norm
    if norm in _EMPTY or (token.tag & _GRAMMAR and not token.numeric):
        return False
    return not norm.endswith("n't")


def _behind(tokens: Sequence[Token], at: int) -> Iterator[tuple[str, str]]:
    """The number with its unit, and with the next word of content ("40 cm wide")."""
    number = tokens[at].form
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    if behind is None:
        return
    if (not behind.numeric and behind.norm in UNITS) or behind.form in UNITS:
        yield number, behind.form
        led = at + 2 < len(tokens) and bool(tokens[at + 2].tag & PREPOSITION)  # "12 francs for adults"
        behind = tokens[at + 2 + led] if at + 2 + led < len(tokens) else None
    if behind is not None and contentful(behind) and not behind.numeric and behind.form not in WEEKDAYS:
        yield number, f"+{behind.form}"


class Statements(Sequence[Statement]):
    """Every clause, read when it is looked at; each knows the one before it."""

    def __init__(self, found: Sequence[Clause]) -> None:
        self._clauses = found
        self._read: list[Statement | None] = [None] * len(found)

    def __len__(self) -> int:
        return len(self._clauses)

    @overload
    def __getitem__(self, at: int) -> Statement: ...

    @overload
    def __getitem__(self, at: slice) -> list[Statement]: ...

    def __getitem__(self, at: int | slice) -> Statement | list[Statement]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        known = self._read[at]
        if known is not None:
            return known
        first = at
        while self._read[first] is None and first and self._clauses[first].joint in SHARING:
            first -= 1
        for one in range(first, at + 1):
            if self._read[one] is None:
                self._read[one] = Statement(self._clauses[one], self._read[one - 1] if one else None)
        made = self._read[at]
        assert made is not None  # noqa: S101 (the loop above made it)
        return made
