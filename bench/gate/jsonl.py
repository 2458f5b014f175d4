"""Cases of anyone's own: one JSON object a line, (original, invariants or none, draft, expected)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.gate.cases import EXACT, Case, exact_base
from shared.memory import spans
from shared.memory.invariants import Invariant, InvariantType
from shared.memory.model import Rung
from shared.memory.spans import Base, Levelled, render
from shared.memory.tokens import numeric

_EXPECTED = {"admit": True, "accept": True, "reject": False, True: True, False: False}
_KEYS = frozenset({"original", "invariants", "draft", "expected", "kind", "rung", "neighbours"})


class BadCaseError(ValueError):
    """A line that is no case: which, what stands there, and what should."""


def read(path: Path) -> Iterator[Case]:
    """Cases of a file; BadCaseError names the line."""
    with path.open(encoding="utf-8", errors="strict") as lines:
        number = 0
        while True:
            number += 1
            try:
                line = lines.readline()
                if not line:
                    return
                if line.strip():
                    yield _case(json.loads(line))
            except json.JSONDecodeError as error:
                raise BadCaseError(
                    f"{path}:{number}: not JSON ({error.msg}); write one object a line"
                ) from None
            except UnicodeDecodeError:
                raise BadCaseError(f"{path}:{number}: not UTF-8; save the file as UTF-8") from None
            except BadCaseError as error:
                raise BadCaseError(f"{path}:{number}: {error}") from None


def _case(row: object) -> Case:
    if not isinstance(row, dict):
        raise BadCaseError(f'{row!r} is no object; write {{"original": ..., "draft": ..., "expected": ...}}')
    unknown = sorted(set(row) - _KEYS)
    if unknown:
        raise BadCaseError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    original, draft = _text(row, "original"), _text(row, "draft")
    if not original:
        raise BadCaseError("original is empty; an entry has at least one character")
    expected = row.get("expected")
    if not isinstance(expected, str | bool) or expected not in _EXPECTED:
        raise BadCaseError(f'expected is {expected!r}; write "admit" or "reject"')
    claims = row.get("invariants")
    base = exact_base(original) if claims is None else based_on(original, claims)
    rung = row.get("rung")
    if rung is not None:
        names = [rung.name for rung in Rung if rung.lossy]
        if rung not in names:
            raise BadCaseError(
                f"rung is {rung!r}; write one of {', '.join(names)}, or leave it out for the original"
            )
        base = spans.lower(base, Rung[rung])
    neighbours = row.get("neighbours") or []
    if not isinstance(neighbours, list) or not all(isinstance(text, str) for text in neighbours):
        raise BadCaseError(f"neighbours is {neighbours!r}; write a list of texts")
    kind = row.get("kind") or "given"
    return Case(str(kind), _EXPECTED[expected], base, draft, tuple(neighbours), False, rung or EXACT)


def _text(row: dict[str, object], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise BadCaseError(f"{name} is {value!r}; write a text")
    return value


def based_on(original: str, claims: object) -> Base:
    """The whole original, with these invariants in the place of a distiller's."""
    if not isinstance(claims, list):
        raise BadCaseError(f"invariants is {claims!r}; write null or a list of texts or objects")
    made = [_claim(claim, original) for claim in claims]
    places = sorted({place for _, found, _ in made for place in found})
    cuts = sorted({at for place in places for at in place} | {len(original)} - {0})
    inside = [any(start <= low and high <= end for start, end in places) for low, high in _pieces(cuts)]
    levels = tuple(Rung.TRACE if kept else Rung.FULL for kept in inside)
    index = {low: sum(inside[:at]) for at, (low, _) in enumerate(_pieces(cuts))}
    invariants = []
    for kind, found, positive in made:
        members = [
            index[low] for start, end in found for low, high in _pieces(cuts) if start <= low and high <= end
        ]
        invariants.append(Invariant(kind, tuple(members), positive))
    ends = tuple(cut for cut in cuts if cut)
    return spans.whole(Levelled(original, ends, levels, tuple(invariants)), 1)


def _pieces(cuts: Sequence[int]) -> list[tuple[int, int]]:
    ends = [cut for cut in cuts if cut]
    return list(zip([0, *ends], ends, strict=False))


def _claim(claim: object, original: str) -> tuple[InvariantType, list[tuple[int, int]], bool]:
    """Type, places in the original, polarity."""
    if isinstance(claim, str):
        claim = {"text": claim}
    if not isinstance(claim, dict):
        raise BadCaseError(f"invariant {claim!r} is no text and no object")
    texts = claim.get("spans", [claim.get("text")])
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise BadCaseError(f'invariant {claim!r} has no words; give "text" or "spans"')
    places = []
    at = 0
    for text in texts:
        start = original.find(text, at)
        start = start if start >= 0 else original.find(text)
        if start < 0:
            raise BadCaseError(f"invariant {text!r} does not stand in the original; copy its words exactly")
        places.append((start, start + len(text)))
        at = start + len(text)
    name = claim.get("type", "tuple" if len(texts) > 1 else "number" if numeric(texts[0]) else "span")
    if not isinstance(name, str) or name.upper() not in InvariantType.__members__:
        known = ", ".join(kind.name.lower() for kind in InvariantType)
        raise BadCaseError(f"invariant type is {name!r}; known are {known}")
    positive = claim.get("positive", True)
    if not isinstance(positive, bool):
        raise BadCaseError(f"positive is {positive!r}; write true or false")
    return InvariantType[name.upper()], places, positive


def shown(case: Case) -> str:
    """The residue as a hub sees it."""
    return render(case.base)
