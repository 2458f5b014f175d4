"""edge_agent.relevel: the model may only choose among sentences, before any layer is made, under the cap."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.distill import PlainDistiller, sentences
from edge_agent.elastic import Elastic, ElasticOptions
from edge_agent.entries import ArchiveMode, NewEntry, StageTally
from edge_agent.ondevice_state import Answer, Prompt
from edge_agent.ondevice_wire import End
from edge_agent.parts import Parts
from edge_agent.relevel import (
    MOST_SENTENCES,
    Relevelling,
    answer_tokens,
    choice_prompt,
    most_chosen,
    parse_choice,
)
from edge_agent.retrieval import Retrieval
from edge_agent.state import RELEVEL, State
from edge_agent.store import Store
from edge_agent.valuation import Valuation
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.layers import decode_record
from shared.memory.model import EvictionMode, Rung
from shared.memory.text_codec import CHOSEN, TextCodec
from shared.memory.value import ValueMode
from tests.fakes import FakeClock
from tests.ondevice import opened as opened_board
from tests.planes import acknowledge_all, open_store
from tests.unit.test_levels import TEXT

SERVED_TOKENS = 200_000
LAST_TWO = "6, 7"  # "Anna moved ... and works ..." are two


def text_of(number: int) -> str:
    """TEXT with words of the entry's own, so that packing alone does not make room."""
    rng = random.Random(number)
    padded = TEXT.replace(".", " ({}).").format(
        *(" ".join("".join(rng.choices("bcdfghjklmnpqrstvwxz", k=6)) for _ in range(8)) for _ in range(6))
    )
    return f"{padded} Number {number}."


class ScriptedBoard:
    """Says what it is told to, whatever it is asked."""

    def __init__(self) -> None:
        self.available = True
        self.text = LAST_TWO
        self.end = End.STOP
        self.asked: list[Prompt] = []
        self.meanwhile: Callable[[], object] | None = None

    async def generate(self, prompt: Prompt) -> Answer:
        self.asked.append(prompt)
        if self.meanwhile is not None:
            self.meanwhile()
        return Answer(self.end, self.text, "tiny", 90, 5)


class House:
    """A small store whose every entry would sink in a deep squeeze."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.board = ScriptedBoard()
        options = ElasticOptions(EvictionMode.LAST_RESORT, None, None, 0.0)
        self.elastic = Elastic(parts, None, options)
        self.relevelling = Relevelling(parts, self.elastic, self.board, 0.1)

    @property
    def store(self) -> Store:
        return self.parts.store

    async def run(self, most: int | None = None) -> bool:
        return await self.relevelling.run(lambda: False, most)

    async def ledger(self) -> list[tuple[object, ...]]:
        def rows() -> list[tuple[object, ...]]:
            return self.parts.state._db.query("SELECT source, tokens, admitted, reason FROM ledger")

        return await self.parts.thread.run(rows)

    async def text_at(self, number: int, rung: Rung) -> str:
        await self.parts.thread.run(self.store.apply_moves, {number: rung})
        return (await self.parts.thread.run(self.store.read, number)).text


def _opened(directory: Path, thread: WorkerThread, archive: ArchiveMode | None) -> House:
    store = open_store(
        directory / "memory", codec=TextCodec(PlainDistiller()), provision_bytes=40_000, archive=archive
    )
    store.add_many([NewEntry(text_of(number)) for number in range(1, 41)])
    state = State.open(directory / "state")
    state.end_stage(StageTally(0, 0, 0.0, SERVED_TOKENS), 1.0, None, 0)
    valuation = Valuation(store, ValueMode.PRODUCT, 0.3)
    return House(Parts(store, Retrieval(store), valuation, state, thread, FakeClock(), anyio.Lock()))


@pytest.fixture
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    thread = WorkerThread("store", Pulse("store", FakeClock()))
    made = await thread.run(_opened, tmp_path, thread, getattr(request, "param", None))
    yield made
    await thread.run(made.parts.retrieval.close)
    await thread.run(made.parts.state.close)
    await thread.run(made.store.close)
    await thread.aclose()


async def test_a_choice_is_kept_where_it_changes_the_levels(house: House) -> None:
    assert await house.run()
    assert house.relevelling.outcomes["kept"] > 0
    assert len(house.store.plane.choices) == house.relevelling.outcomes["kept"]
    number = next(n for n in range(1, 41) if n in house.store.plane.choices)
    found = sentences(text_of(number))
    assert house.store.plane.choices.of(number) == tuple(clause for _, _, clause in found[5:7])
    text = await house.text_at(number, Rung.SKELETAL)
    assert "barn" in text
    assert "lighthouse" not in text
    entry = await house.parts.thread.run(house.store.read, number)
    assert entry.levelling & CHOSEN
    assert all(span.text in text_of(number) for span in decode_record(entry.record).spans)


async def test_an_entry_is_asked_about_once_and_those_that_sink_first_come_first(house: House) -> None:
    order = await house.parts.thread.run(house.elastic.sinking_next)
    await house.run(most=1)
    assert len(house.board.asked) == 1
    assert f"Number {order[0]}." in house.board.asked[0].turns[-1][1]
    # Choices are charged: what sinks next may grow by a few entries.
    while await house.run():
        pass
    asked = [prompt.turns[-1][1] for prompt in house.board.asked]
    assert len(asked) == len(set(asked)) >= len(order)
    await house.run()
    assert len(house.board.asked) == len(asked)


async def test_every_token_is_in_the_ledger_and_lifts_are_counted_apart(house: House) -> None:
    await house.run(most=2)
    assert [row[:2] for row in await house.ledger()] == [(RELEVEL, 95), (RELEVEL, 95)]
    assert {row[2:] for row in await house.ledger()} <= {(1, ""), (0, "no_change")}
    totals = await house.parts.thread.run(house.parts.state.totals, "home")
    assert (totals["attempts"], totals["admitted"], totals["tokens"]) == (0, 0, 190)


async def test_the_cap_of_the_stage_holds(house: House) -> None:
    tally = StageTally(0, 0, 0.0, 4_000)
    await house.parts.thread.run(house.parts.state.end_stage, tally, 1.0, None, 0)
    await house.run()
    assert len(house.board.asked) == 0
    assert await house.ledger() == []
    tally = StageTally(0, 0, 0.0, 8_000)
    await house.parts.thread.run(house.parts.state.end_stage, tally, 1.0, None, 0)
    await house.run()
    spent = await house.parts.thread.run(house.parts.state.tokens_spent, "home", 1)
    assert 0 < spent <= 800


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I would keep all of them!", "unparsable"),
        ("", "unparsable"),
        ("99", "unparsable"),
        ("The well behind the barn is dry.", "unparsable"),
    ],
)
async def test_anything_but_numbers_is_ignored(house: House, text: str, reason: str) -> None:
    house.board.text = text
    assert not await house.run(most=1)
    assert dict(house.relevelling.outcomes) == {reason: 1}
    assert len(house.store.plane.choices) == 0
    assert await house.ledger() == [(RELEVEL, 95, 0, reason)]


@pytest.mark.parametrize("end", [end for end in End if end is not End.STOP])
async def test_a_call_that_fails_chooses_nothing_and_is_charged(house: House, end: End) -> None:
    house.board.end = end
    assert not await house.run(most=1)
    assert await house.ledger() == [(RELEVEL, 95, 0, end.value)]
    assert len(house.store.plane.choices) == 0
    # Cut short by a recall, it is asked again; what may have crashed the model is not.
    await house.run(most=1)
    first, second = (prompt.turns[-1][1] for prompt in house.board.asked)
    assert (first == second) is (end in {End.CANCELLED, End.UNAVAILABLE})


async def test_a_choice_that_changes_nothing_is_not_kept(house: House) -> None:
    thread, relevelling = house.parts.thread, house.relevelling
    number = await thread.run(house.store.add, NewEntry("It is so. And it was. As it is. So be it."))
    asked = await thread.run(relevelling._ask, number)
    assert await thread.run(relevelling._take, asked, Answer(End.STOP, "1", "tiny", 90, 5)) == "no_change"
    assert number not in house.store.plane.choices
    assert await house.ledger() == [(RELEVEL, 95, 0, "no_change")]


async def test_it_gives_way_before_each_entry(house: House) -> None:
    asked = house.board.asked
    assert not await house.relevelling.run(lambda: len(asked) >= 0)
    assert asked == []
    await house.relevelling.run(lambda: len(asked) >= 2)
    assert len(asked) == 2
    house.board.available = False
    assert not await house.run()
    assert len(asked) == 2


async def test_levels_made_while_the_model_thought_stay(house: House) -> None:
    order = await house.parts.thread.run(house.elastic.sinking_next)
    apply = house.store.apply_moves
    # Run by the worker's thread in the test's place: it is idle while the model thinks.
    house.board.meanwhile = lambda: house.parts.thread._executor.submit(
        apply, {order[0]: Rung.SKELETAL}
    ).result()
    assert not await house.run(most=1)
    assert dict(house.relevelling.outcomes) == {"levels_frozen": 1}
    assert order[0] not in house.store.plane.choices
    assert (await house.ledger())[0][1] == 95


@pytest.mark.parametrize("house", [ArchiveMode.DEMOTED], indirect=True)
async def test_an_entry_whose_layers_the_hub_has_is_not_asked_about(house: House) -> None:
    order = await house.parts.thread.run(house.elastic.sinking_next)

    def archive() -> None:
        house.store.link.ship(order[:-1])
        acknowledge_all(house.store)

    await house.parts.thread.run(archive)
    await house.run()
    assert len(house.board.asked) <= 1
    assert not any(number in house.store.plane.choices for number in order[:-1])


@pytest.mark.parametrize("text", ["One. Two. Three.", "Word. " * (MOST_SENTENCES + 1), "a" * 9000])
async def test_texts_without_a_choice_to_make_are_left_alone(house: House, text: str) -> None:
    number = await house.parts.thread.run(house.store.add, NewEntry(text))
    await house.run()
    assert number not in house.store.plane.choices
    assert all("One. Two" not in prompt.turns[-1][1] for prompt in house.board.asked)


async def test_a_real_model_chooses_and_the_choice_survives_a_restart(house: House, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai", reason="the extra `ondevice` is not installed here")
    async with opened_board(FakeClock(), max_prompt_tokens=1500) as board:
        relevelling = Relevelling(house.parts, house.elastic, board, 0.1)
        await relevelling.run(lambda: False, 2)
        # Held to its form even random weights name sentences; whether they matter is another thing.
        assert sum(relevelling.outcomes[name] for name in ("kept", "no_change")) == 2
        assert board.counts.tokens == sum(int(str(row[1])) for row in await house.ledger())


# --- what is asked and how it is read ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", (2,)),
        (" 2, 5", (2, 5)),
        ("[2, 5, 2]", (2, 5)),
        ("5 and 2.", (5, 2)),
        ("3\n1\n", (3, 1)),
        ("2, 5, 6, 1", (2, 5, 6)),
        ("2, 99, 0, 5", (2, 5)),
        ("2. Because it names Anna 4 times", (2,)),
        ("Sentence 2", ()),
        ("-2", ()),
        ("two", ()),
        ("12345678", ()),
        ("1" * 5000, ()),
        ("٣", ()),
        ("", ()),
    ],
)
def test_numbers_are_read_strictly(text: str, expected: tuple[int, ...]) -> None:
    assert parse_choice(text, 9, 3) == expected


@given(st.text(), st.integers(1, 50), st.integers(1, 20))
def test_any_answer_names_sentences_that_are_there_or_none(text: str, count: int, most: int) -> None:
    chosen = parse_choice(text, count, most)
    assert len(chosen) == len(set(chosen)) <= most
    assert all(1 <= number <= count for number in chosen)


def test_the_prompt_numbers_the_sentences_on_one_line_each() -> None:
    prompt = choice_prompt(["One\nline.", "Two.", "Three."])
    assert "1. One line.\n2. Two.\n3. Three.\nPick 1." in prompt.turns[-1][1]
    assert prompt.pattern == "(1|2|3)(, (1|2|3)){0,0}"
    assert prompt.max_tokens == answer_tokens(3) == 4 * most_chosen(3) + 4
