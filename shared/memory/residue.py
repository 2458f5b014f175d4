"""What is left of an entry, by what its statements are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shared.memory import denial
from shared.memory.entailment import Reason
from shared.memory.statements import statements
from shared.memory.tokens import Clause
from shared.memory.vocabulary import SYNONYMS
from shared.memory.words import Token


class Lack(NamedTuple):
    """What is wrong, where, and whether a rule failed or only words are not known."""

    reason: Reason
    offending: str
    open: bool = False


class Residue:
    """Statements by what they are about."""

    def __init__(self, found: Sequence[Clause], *, loose: bool) -> None:
        self.loose = loose
        self.statements = statements(found)
        self.denials = denial.Denials(found) if loose else None
        self.words = {token.norm for clause in found for token in clause.tokens}
        self.forms: dict[str, set[int]] = {}
        self.verbatim: dict[tuple[str, ...], list[int]] = {}
        self.names: dict[str, set[str]] = {}
        lower: set[str] = set()
        for at, statement in enumerate(self.statements):
            self.verbatim.setdefault(statement.words, []).append(at)
            for form, token in statement.content.items():
                self.forms.setdefault(form, set()).add(at)
                if token.surface[0].isupper() and not token.tag:
                    self.names.setdefault(form, set()).add(token.norm)
                else:
                    lower.add(form)
        for form in lower:
            self.names.pop(form, None)

    def meanings(self, form: str) -> tuple[str, ...]:
        """The form itself, and what the residue says instead of it."""
        others = (other for other in SYNONYMS.get(form, ()) if other in self.forms)
        return (form, *others) if form in self.forms else tuple(others)

    def knows(self, token: Token) -> bool:
        names = self.names.get(token.form)
        return bool(self.meanings(token.form)) and (names is None or token.norm in names or token.numeric)


PRONOUNS = frozenset(("i", "you", "he", "she", "it", "we", "they"))
