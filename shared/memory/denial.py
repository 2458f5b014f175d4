"""What is denied, where only words are left: by the word that stands behind the particle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.memory.statements import contentful
from shared.memory.tokens import Clause
from shared.memory.words import Token


class Denials:
    """A residue's words, by whether a particle stands before them."""

    def __init__(self, found: Sequence[Clause]) -> None:
        self.before: set[str] = set()
        self.behind: set[str] = set()
        self.plain: set[str] = set()
        for clause in found:
            denied = False
            for token in clause.tokens:
                if _says(token):
                    if not denied and not token.denies:
                        self.plain.add(token.form)
                    denied = token.denies
            for before, behind in _around(clause):
                self.before.add(before)
                self.behind.add(behind)


def turned(clause: Clause, denials: Denials | None) -> bool:
    """True where the clause denies what the residue does not, or states what the residue only denies."""
    if denials is None:
        return False
    if not clause.denials:
        return any(
            token.form in denials.behind and token.form not in denials.plain for token in clause.tokens
        )
    return any(
        behind not in denials.behind if behind else not before or before not in denials.before
        for before, behind in _around(clause)
    )


def lifted(clause: Clause, there: Sequence[Clause]) -> bool:
    """True where the clause states, without any particle, what one of these only has behind one."""
    if clause.denials:
        return False
    forms = {token.form for token in clause.tokens}
    for one in there:
        said = [token.form for token in one.tokens]
        if any(behind in forms and said.count(behind) == 1 for _, behind in _around(one)):
            return True
    return False


def _says(token: Token) -> bool:
    return contentful(token) or token.denies


def _around(clause: Clause) -> Iterator[tuple[str, str]]:
    """The words that each particle stands between; empty at an end."""
    if not clause.denials:
        return
    said = [token for token in clause.tokens if _says(token)]
    words = ["", *(token.form for token in said), ""]
    for at, token in enumerate(said):
        if token.denies:
            yield words[at], words[at + 2]
