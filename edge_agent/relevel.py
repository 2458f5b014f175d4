"""Re-levelling: the board's model chooses which sentences of an entry outlive the others. It writes nothing.

Its answer is read as numbers among those it was given; whatever else it says is ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from edge_agent.choices import choice_bytes
from edge_agent.distill import sentences
from edge_agent.elastic import Elastic
from edge_agent.levels import changes_levels, choose, open_to_choice, room_for_choice
from edge_agent.ondevice import OnDevice
from edge_agent.ondevice_state import Answer, Prompt
from edge_agent.ondevice_wire import End
from edge_agent.parts import Parts
from edge_agent.state import RELEVEL
from shared.errors import CrystalError
from shared.memory.model import Kind, Rung
from shared.ports import LedgerRow
from shared.prompt import most_tokens
from shared.wire import DraftFailure

# With fewer there is nothing to choose; with more a small model loses count, and the prompt is long.
LEAST_SENTENCES = 4
MOST_SENTENCES = 40
LONGEST_BYTES = 8192
# A third of the sentences: the rungs below keep a half, a quarter and a twelfth of the bytes.
_CHOSEN_SHARE = 3
_SYSTEM = (
    "You pick the sentences that a memory must not lose: who did what, where, when, how many, what was"
    " decided, what came out. Greetings and small talk can go. Answer with sentence numbers only."
)
_EXAMPLES = (
    ("1. Hi, how are you?\n2. Ben sold his red car on May 3.\n3. Nice weather.\n4. Haha, yes.", 1, "2"),
    (
        "1. You are in the kitchen.\n2. You open drawer 4.\n3. The drawer 4 holds a knife 1.\n4. You look"
        " around.\n5. You take knife 1 from drawer 4.\n6. Done.",
        2,
        "3, 5",
    ),
)
_FRAME_TOKENS = 256
_NUMBER = r"[0-9]{1,3}(?![0-9])"
_NUMBERS = re.compile(rf"\s*[\[(]?\s*{_NUMBER}(?:(?:\s*[,;]\s*|\s+and\s+|\s+){_NUMBER})*")
_UNSETTLED = "unsettled"
_NOT_TRIED_AGAIN = frozenset({End.CANCELLED, End.UNAVAILABLE})


@dataclass(frozen=True)
class _Asked:
    """One entry put before the model."""

    number: int
    version: int
    kind: Kind
    rung: Rung
    text: str
    found: tuple[tuple[int, int, int], ...]
    stage: int
    place: int
    """Its reservation in the ledger."""

    @property
    def most(self) -> int:
        """How many sentences it may choose."""
        return most_chosen(len(self.found))


class Relevelling:
    """Goes through the entries that would sink next, while the board is idle and the stage's cap has room."""

    def __init__(self, parts: Parts, elastic: Elastic, board: OnDevice, rho: float) -> None:
        self._parts = parts
        self._elastic = elastic
        self._board = board
        self._rho = rho
        self._tried: set[tuple[int, int]] = set()
        self.outcomes: Counter[str] = Counter()
        """What became of the entries asked about: `kept`, or why not."""

    async def run(self, give_way: Callable[[], bool], most: int | None = None) -> bool:
        """True when a choice was kept. Ends early to give way, and when the cap binds."""
        if not self._board.available:
            return False
        kept = 0
        for number in (await self._parts.thread.run(self._candidates))[:most]:
            if give_way() or not self._board.available:
                break
            asked = await self._parts.thread.run(self._ask, number)
            if isinstance(asked, str):
                if asked == DraftFailure.OVER_CAP.value:
                    break
                continue
            answer = await self._board.generate(_prompt(asked))
            async with self._parts.lock:
                outcome = await self._parts.thread.run(self._take, asked, answer)
            self.outcomes[outcome or "kept"] += 1
            kept += not outcome
        return kept > 0

    # --- store's thread ---------------------------------------------------------------------------------

    def _candidates(self) -> list[int]:
        plane = self._parts.store.plane
        sinking = open_to_choice(plane, self._elastic.sinking_next())
        rows = plane.table.take(sinking)
        short = rows[rows["facts"]["text_bytes"] <= LONGEST_BYTES]
        named = zip(short["number"].tolist(), short["version"].tolist(), strict=True)
        return [number for number, version in named if (number, version) not in self._tried]

    def _ask(self, number: int) -> _Asked | str:
        """The entry, charged ahead; or why it is not asked about."""
        store = self._parts.store
        if not open_to_choice(store.plane, [number]):
            return "levels_frozen"
        try:
            entry = store.read(number)
        except CrystalError as problem:
            return problem.code.value
        found = tuple(sentences(entry.base_text))
        self._tried.add((number, entry.version))
        if entry.kind not in store.plane.codecs or not LEAST_SENTENCES <= len(found) <= MOST_SENTENCES:
            return "not_for_choosing"
        tokens = _FRAME_TOKENS + most_tokens(entry.base_text) + answer_tokens(len(found))
        asked = _Asked(
            number, entry.version, entry.kind, entry.rung, entry.base_text, found, store.meta.stage, 0
        )
        served = self._parts.state.serving_tokens(asked.stage - 1)
        place = self._parts.state.reserve(self._row(asked, tokens, _UNSETTLED), self._rho * served)
        if place is None:
            self._tried.discard((number, entry.version))
            return DraftFailure.OVER_CAP.value
        return replace(asked, place=place)

    def _take(self, asked: _Asked, answer: Answer) -> str:
        """Keep the choice, or say why not; the tokens are charged either way."""
        reason = self._judged(asked, answer)
        if answer.end in _NOT_TRIED_AGAIN:
            self._tried.discard((asked.number, asked.version))
        self._parts.state.settle(asked.place, self._row(asked, answer.tokens, reason))
        return reason

    def _judged(self, asked: _Asked, answer: Answer) -> str:
        if answer.end is not End.STOP:
            return str(answer.end.value)
        chosen = parse_choice(answer.text, len(asked.found), asked.most)
        if not chosen:
            return "unparsable"
        store = self._parts.store
        plane, clauses = store.plane, [asked.found[position - 1][2] for position in chosen]
        row = plane.table.get(asked.number)
        if row is None or int(row["version"]) != asked.version:
            return "superseded"
        if not changes_levels(plane, asked.kind, asked.text, clauses):
            return "no_change"
        if not room_for_choice(plane, clauses) or not store.account.holds(choice_bytes(clauses)):
            return "no_room"
        try:
            choose(plane, asked.number, clauses)
        except CrystalError as problem:
            return problem.code.value
        return ""

    def _row(self, asked: _Asked, tokens: int, reason: str) -> LedgerRow:
        return LedgerRow(
            tenant=self._parts.store.meta.tenant,
            stage=asked.stage,
            number=asked.number,
            version=asked.version,
            origin=asked.rung,
            to=asked.rung,
            source=RELEVEL,
            tokens=tokens,
            link_bytes=0,
            admitted=not reason,
            reason=reason,
            wall_ns=self._parts.clock.wall_ns(),
        )


def most_chosen(count: int) -> int:
    """How many of so many sentences may be chosen."""
    return max(1, count // _CHOSEN_SHARE)


def answer_tokens(count: int) -> int:
    """A number, a comma and a blank are up to four tokens; the end mark is one."""
    return 4 * most_chosen(count) + 4


def choice_prompt(texts: Sequence[str]) -> Prompt:
    """Which of these sentences: numbered, with two examples, the answer held to numbers among them."""
    count = len(texts)
    most = most_chosen(count)
    numbers = "|".join(map(str, range(1, count + 1)))
    listed = "\n".join(f"{number}. {' '.join(text.split())}" for number, text in enumerate(texts, 1))
    turns = [("system", _SYSTEM)]
    for example, few, answered in _EXAMPLES:
        turns += [("user", f"{example}\nPick {few}."), ("assistant", answered)]
    turns.append(("user", f"{listed}\nPick {most}."))
    pattern = f"({numbers})(, ({numbers})){{0,{most - 1}}}"
    return Prompt(tuple(turns), answer_tokens(count), pattern=pattern)


def parse_choice(text: str, count: int, most: int) -> tuple[int, ...]:
    """Positions (1 to `count`, each once, `most` at most) that an answer begins with; empty = unparsable."""
    found = _NUMBERS.match(text)
    if found is None:
        return ()
    named = (int(number) for number in re.findall(_NUMBER, found[0]))
    return tuple(dict.fromkeys(number for number in named if 1 <= number <= count))[:most]


def _prompt(asked: _Asked) -> Prompt:
    return choice_prompt([asked.text[start:end] for start, end, _ in asked.found])
