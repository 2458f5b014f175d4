"""How the distiller's weights of words are fitted: which sorts of word are asked about.

Logistic regression with an L2 penalty over what `edge_agent.looks` says of an atom and of the two words on
either side: no feature is a word. Label: a question with this turn as evidence has a stem in its answer.
Fitted on the conversations of `distill_locomo.TUNED_ON` only, each turn three times: with its picture,
without, with the date ahead. Prints rows of edge_agent/weights.py; the shipped ones come from the same fit
with the wrong answers of category 5 as labels too, which bench.datasets leaves out, and differ by a few
tenths. Needs LoCoMo.
`python -m bench.distill_fit [--data DIR]`
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.datasets import ABSENT, Conversation, data_directory, locomo
from bench.distill_locomo import TUNED_ON, content, tokens
from edge_agent.atoms import CALLED, CALLING, OPENERS, Atoms, atoms
from edge_agent.looks import AtomClass, Look, commonness, looks_of
from edge_agent.words import COMMONEST, Group
from shared.memory.tokens import Place, located

PENALTY = 10.0  # of half the squared weights
_ROUNDS = 12
_LONGEST = 19
_COST = 5.0  # tenths a natural logarithm of the bytes: a long word must be worth its place
_TABLES = (
    ("OWN", len(Group)),
    ("LAST", len(Group)),
    ("BEFORE", len(Group)),
    ("AFTER", len(Group)),
    ("BEYOND", len(Group)),
    ("COMMON", COMMONEST + 1),
    ("LENGTH", _LONGEST + 1),
    ("KIND", len(AtomClass)),
    ("VOCATIVE", 1),
    ("SPEAKER", 1),
    ("ASKED", 1),
)
_AT = dict(
    zip((name for name, _ in _TABLES), np.cumsum([0, *(size for _, size in _TABLES)]).tolist(), strict=False)
)
_WIDTH = sum(size for _, size in _TABLES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and print."""
    parser = argparse.ArgumentParser(prog="bench.distill_fit", description=__doc__)
    parser.add_argument("--data", help="folder with locomo/; default $CRYSTALMEM_DATA, else ../shared/data")
    directory = data_directory(parser.parse_args(arguments).data)
    told = [one for one in locomo(directory) if one.id in TUNED_ON] if directory else []
    if not told:
        print(ABSENT)
        return 1
    rows, labels = zip(*(pair for one in told for pair in _examples(one)), strict=True)
    weights = fitted(design(rows), np.array(labels, np.float64), PENALTY)
    print(f"# {len(labels)} atoms of {', '.join(one.id for one in told)}; asked about: {sum(labels)}")
    for name, size in _TABLES:
        row = [round(10 * weight) for weight in weights[_AT[name] : _AT[name] + size]]
        if name == "LENGTH":
            row = [value - round(_COST * math.log(at + 1)) for at, value in enumerate(row)]
        print(f"{name} = {' '.join(map(str, row))}")
    return 0


def fitted(features: NDArray[np.float64], labels: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    """Weights without the intercept, by Newton's method."""
    features = np.hstack([features, np.ones((len(features), 1))])
    ridge = penalty * np.eye(features.shape[1])
    ridge[-1, -1] = 1e-9
    weights = np.zeros(features.shape[1])
    for _ in range(_ROUNDS):
        share = 1 / (1 + np.exp(-features @ weights))
        slope = features.T @ (share - labels) + ridge @ weights
        bend = (features * (share * (1 - share))[:, None]).T @ features + ridge
        weights -= np.linalg.solve(bend, slope)
    return weights[:-1]


def design(rows: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """One row an atom, 1 where it has the feature."""
    matrix = np.zeros((len(rows), _WIDTH))
    for at, row in enumerate(rows):
        matrix[at, list(row)] = 1
    return matrix


def features_of(text: str) -> Iterator[tuple[str, list[int]]]:
    """(atom's text, numbers of its features) of every atom: what `edge_agent.atoms` adds up."""
    places = located(text)
    looks = looks_of(text, places)
    found = atoms(text, places, looks)
    for at in range(len(found)):
        yield text[found.start[at] : found.end[at]], _features(text, places, looks, found, at)


def _features(text: str, places: Sequence[Place], looks: Sequence[Look], found: Atoms, at: int) -> list[int]:
    token, clause, kind = found.token[at], found.clause[at], found.kind[at]
    word, _, opening, _, group, _, _, _ = looks[token]

    def seen(step: int) -> Group:
        there = token + step
        inside = 0 <= there < len(places) and (step > 0 or places[there][2] == clause)
        return looks[there][4] if inside else Group.EDGE

    last, before, after, beyond = seen(-2), seen(-1), seen(1), seen(2)
    surface = text[places[token][0] : places[token][1]]
    named = {"OWN": group, "LAST": last, "BEFORE": before, "AFTER": after, "BEYOND": beyond, "KIND": kind}
    numbers = [_AT[name] + int(value) for name, value in named.items()]
    numbers.append(_AT["COMMON"] + commonness(surface, word, opening))
    numbers.append(_AT["LENGTH"] + min(len(surface), _LONGEST))
    if kind is AtomClass.NAME and before in CALLING and after in CALLED:
        numbers.append(_AT["VOCATIVE"])
    if group is Group.NAME and after is Group.COLON and before in OPENERS:
        numbers.append(_AT["SPEAKER"])
    if clause in found.asked:
        numbers.append(_AT["ASKED"])
    return numbers


def _examples(conversation: Conversation) -> Iterator[tuple[list[int], bool]]:
    """Features and label of every atom of every turn that answers something."""
    asked: dict[str, set[str]] = {}
    for question in conversation.questions:
        for turn_id in question.evidence:
            asked.setdefault(turn_id, set()).update(content(question.answer))
    for turn in conversation.turns:
        gold = asked.get(turn.id, set()) & set(tokens(turn.said))
        if gold:
            for text in (turn.said, f"{turn.speaker}: {turn.text}", f"[{turn.date}] {turn.said}"):
                for surface, numbers in features_of(text):
                    yield numbers, not gold.isdisjoint(tokens(surface))


if __name__ == "__main__":
    sys.exit(main())
