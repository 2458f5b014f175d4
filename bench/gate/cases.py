"""Cases: an entry's base, a draft, and what the gate should say; from seeds, so that anyone gets the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bench.gate.corruptions import DETAILS
from bench.gate.forgeries import WHOLE, merged, neighbour
from bench.gate.rewrites import REWRITES
from bench.gate.salad import FAITHFUL, ONLY, WRONG
from bench.gate.texts import Text, own, transcript
from edge_agent.distill import PlainDistiller
from shared.memory import spans
from shared.memory.evidence import Evidence
from shared.memory.gate import failures
from shared.memory.model import LADDERS, Rung
from shared.memory.spans import Base, render
from shared.memory.tokens import clauses

PER_KIND = 120
FRESH_SHARE = 4  # one case in four comes from the fresh seed
FIXED_SEED = 20_261_130
EXACT = "exact"
LOSSY = (Rung.COMPRESSED, Rung.SKELETAL, Rung.TRACE)
_TRANSCRIPTS = 0.3
_WHOLE_TRANSCRIPTS = 0.1
_ATTEMPTS = 400


@dataclass(frozen=True)
class Case:
    """One draft of one entry."""

    kind: str
    admit: bool
    base: Base
    draft: str
    neighbours: tuple[str, ...] = ()
    fresh: bool = False
    table: str = EXACT


# text -> draft, or draft and the entry it borrows from, or None where the text offers nothing
Maker = Callable[[Text, random.Random], "str | tuple[str, str] | None"]


@lru_cache(maxsize=2048)
def exact_base(text: str) -> Base:
    """The original with its invariants: nothing dropped."""
    return spans.whole(PlainDistiller().distil(text, LADDERS["product"]), PlainDistiller.version)


def exact_cases(fresh_seed: int, per_kind: int = PER_KIND) -> Iterator[Case]:
    """Drafts of entries of which nothing was dropped."""
    makers: list[tuple[str, bool, Maker, Sequence[str]]] = [
        *((kind, False, make, edits) for kind, (make, edits) in DETAILS.items()),
        *((kind, False, make, ()) for kind, make in WHOLE.items()),
        ("neighbour", False, neighbour, ()),
        *((kind, True, make, edits) for kind, (make, edits) in REWRITES.items()),
    ]
    for kind, admit, make, edits in makers:
        for rng, fresh, count in _seeds(kind, EXACT, fresh_seed, per_kind):
            for text, draft, borrowed in _made(make, rng, count, lambda: _original(make, edits, rng)):  # noqa: B023
                yield Case(kind, admit, exact_base(text.plain), draft, borrowed, fresh)


def lossy_cases(fresh_seed: int, per_kind: int = PER_KIND) -> Iterator[Case]:
    """Drafts of what a rung still shows: made from the residue, as a hub sees it."""
    for rung in LOSSY:
        for table, admit in ((WRONG, False), (FAITHFUL, True)):
            for kind, make in table.items():
                rungs = ONLY.get(kind, LOSSY)
                if rung not in rungs:
                    continue
                for rng, fresh, count in _seeds(kind, rung.name, fresh_seed, per_kind // len(rungs)):
                    for base, draft, borrowed in _drafts_of_residues(make, rng, count, rung, faithful=admit):
                        yield Case(kind, admit, base, draft, borrowed, fresh, rung.name)


def _seeds(kind: str, table: str, fresh_seed: int, count: int) -> Iterator[tuple[random.Random, bool, int]]:
    fresh = count // FRESH_SHARE
    yield random.Random(f"{FIXED_SEED}/{table}/{kind}"), False, count - fresh
    yield random.Random(f"fresh/{fresh_seed}/{table}/{kind}"), True, fresh


def _original(make: Maker, edits: Sequence[str], rng: random.Random) -> Text:
    if make is merged:
        # Two entries of the store in one: there must be two people to mix up.
        one, other = (own(rng) for _ in range(2))
        return Text(f"{one.source}", f"{one.plain} {other.plain}")
    if rng.random() < _TRANSCRIPTS:
        return transcript(rng, whole=rng.random() < _WHOLE_TRANSCRIPTS)
    return own(rng, edits)


def _made(
    make: Maker, rng: random.Random, count: int, original: Callable[[], Text]
) -> Iterator[tuple[Text, str, tuple[str, ...]]]:
    seen: set[tuple[str, str]] = set()
    for _ in range(count * _ATTEMPTS):
        if len(seen) == count:
            return
        text = original()
        made = make(text, rng)
        draft, borrowed = (made[0], (made[1],)) if isinstance(made, tuple) else (made, ())
        same = (
            draft is not None
            and draft.casefold() == text.plain.casefold()
            and make is not REWRITES["identity"][0]
        )
        if draft is None or same or (text.plain, draft) in seen:
            continue
        seen.add((text.plain, draft))
        yield text, draft, borrowed
    if len(seen) < count // 8:  # the tables say how many there were; a kind must not fade away unseen
        raise RuntimeError(f"the texts offer only {len(seen)} of {count} cases: {make}")


def _drafts_of_residues(
    make: Maker, rng: random.Random, count: int, rung: Rung, *, faithful: bool
) -> Iterator[tuple[Base, str, tuple[str, ...]]]:
    bases: dict[str, Base] = {}

    def residue() -> Text:
        # Where a residue has lost what its invariants ask for ("not", say), no draft of it is faithful.
        while True:
            text = drawn()
            base = bases[text.plain]
            if (
                not faithful
                or next(failures(base.trace, base.invariants, Evidence(clauses(text.plain))), None) is None
            ):
                return text

    def drawn() -> Text:
        if rng.random() < _TRANSCRIPTS:
            plain = transcript(rng).plain
        else:
            plain = "\n".join(own(rng).plain for _ in range(3))
        base = spans.lower(exact_base(plain), rung)
        shown = render(base)
        bases[shown] = base
        return Text("residue", shown)

    for text, draft, borrowed in _made(make, rng, count, residue):
        yield bases[text.plain], draft, borrowed
