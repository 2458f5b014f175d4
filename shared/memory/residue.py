"""What is left of an entry, by what its statements are about."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from shared.memory import denial
from shared.memory.entailment import Reason
from shared.memory.statements import Statements
from shared.memory.tokens import Clause
from shared.memory.vocabulary import SYNONYMS
from shared.memory.words import Token


class Lack(NamedTuple):
    """What is wrong, where, and whether a rule failed or only words are not known."""

    reason: Reason
    offending: str
    open: bool = False


class Residue:
    """Statements by what they are about. Indexes are made when asked for: most drafts repeat most lines."""

    def __init__(self, found: Sequence[Clause], *, loose: bool) -> None:
        self.loose = loose
        self.statements = Statements(found)
        self.clauses = found
        self.verbatim: dict[tuple[str, ...], list[int]] = {}
        for at, clause in enumerate(found):
            self.verbatim.setdefault(tuple([token.norm for token in clause.tokens]), []).append(at)
        self._meanings: dict[str, tuple[str, ...]] = {}

    @cached_property
    def denials(self) -> denial.Denials | None:
        """Only where words are left, and no statements."""
        return denial.Denials(self.clauses) if self.loose else None

    @cached_property
    def words(self) -> set[str]:
        """Every word as it stands."""
        return {token.norm for clause in self.clauses for token in clause.tokens}

    @cached_property
    def forms(self) -> dict[str, set[int]]:
        """Where each form of a word with content stands."""
        found: dict[str, set[int]] = {}
        for at, statement in enumerate(self.statements):
            for form in statement.content:
                found.setdefault(form, set()).add(at)
        return found

    @cached_property
    def names(self) -> dict[str, set[str]]:
        """Forms that are only ever names, with the names."""
        found: dict[str, set[str]] = {}
        lower: set[str] = set()
        for statement in self.statements:
            for form, token in statement.content.items():
                if token.surface[0].isupper() and not token.tag:
                    found.setdefault(form, set()).add(token.norm)
                else:
                    lower.add(form)
        return {form: names for form, names in found.items() if form not in lower}

    def meanings(self, form: str) -> tuple[str, ...]:
        """The form itself, and what the residue says instead of it."""
        found = self._meanings.get(form)
        if found is None:
            found = tuple([other for other in (form, *SYNONYMS.get(form, ())) if other in self.forms])
            self._meanings[form] = found
        return found

    def knows(self, token: Token) -> bool:
        names = self.names.get(token.form)
        return bool(self.meanings(token.form)) and (names is None or token.norm in names or token.numeric)


PRONOUNS = frozenset(("i", "you", "he", "she", "it", "we", "they"))
