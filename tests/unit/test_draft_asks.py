"""edge_agent.drafting towards the hub: an ask fits its message, is charged before it, and ends no daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge_agent.draft_request import MOST_FACTS, MOST_NEIGHBOUR_BYTES, draft_request
from edge_agent.entries import NewEntry, Overlay
from edge_agent.link import LinkTimings
from edge_agent.recovery import Recovery, RecoveryLimits
from edge_agent.state import ON_DEVICE
from edge_agent.sync import _ask
from hub.calls import ASK_S, QUEUE_S
from shared.config import ModelConfig
from shared.errors import Code, CrystalError, IntegrityError, PermanentError, SecurityError, TransientError
from shared.memory.model import Promotion, Rung, Source
from shared.ports import Draft, DraftRequest
from shared.prompt import ask_tokens, estimate_tokens
from shared.wire import MAX_MESSAGE_BYTES, encode
from tests.unit.test_board_drafts import STEP, House, opened_house

MODEL = Source.MODEL.value
LOST = TransientError(Code.TIMED_OUT, "the hub did not answer in time")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened_house(tmp_path) as made:
        made.link.up = made.link.generates = True
        yield made


def broken(house: House, problem: CrystalError) -> None:
    """The link fails every ask with this, after it was taken."""

    async def draft(request: DraftRequest) -> Draft:
        house.link.drafted.append(request)
        raise problem

    house.link.draft = draft  # type: ignore[method-assign]


async def added(house: House, text: str, references: tuple[int, ...] = ()) -> int:
    def add() -> int:
        (number,) = house.parts.store.add_many([NewEntry(text, references=references)])
        house.parts.store.apply_moves({number: Rung.SKELETAL})
        return number

    return await house.parts.thread.run(add)


async def asked(house: House, number: int) -> DraftRequest:
    step = Promotion(number, Rung.SKELETAL, Rung.COMPRESSED, Source.MODEL, 10.0, 100.0)
    parts = house.parts
    prepared = await parts.thread.run(draft_request, parts.store, parts.state, step)
    assert prepared is not None
    return prepared[1]


# --- what fits -------------------------------------------------------------------------------------------


async def test_a_dense_text_and_large_neighbours_fit_the_message(house: House) -> None:
    dense = "".join(f"Ann{i} sold {i} red boats to Bob{i} in May {i}. " for i in range(3300))
    near = [await added(house, letter * 900_000) for letter in "xyz"]
    request = await asked(house, await added(house, dense, tuple(near)))
    assert len(dense) > 151_000
    assert len(request.invariants) == MOST_FACTS
    assert sum(len(text.encode()) for text in request.neighbours) <= MOST_NEIGHBOUR_BYTES
    assert len(encode(_ask("home", 1, request))) < MAX_MESSAGE_BYTES


async def test_neighbours_are_what_is_exact_never_what_a_model_wrote(house: House) -> None:
    def cover() -> str:
        store = house.parts.store
        entry = store.read(2)
        overlay = Overlay(Rung.COMPRESSED, f"INVENTED {entry.base_text}", "m", 1)
        store.put_overlay(2, entry.version, entry.base_digest, overlay)
        assert dict(store.texts([2]))[2].startswith("INVENTED")
        return entry.base_text

    base = await house.parts.thread.run(cover)
    request = await asked(house, await added(house, "Ann sold 3 red boats to Bob in May. " * 9, (2,)))
    assert request.neighbours == (base,)


# --- what fails ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "charged"),
    [
        (PermanentError(Code.TOO_LARGE, "not fit to send"), False),
        (PermanentError(Code.SOURCE_ABSENT, "the hub refused"), True),
        (SecurityError(Code.MALFORMED, "something else"), True),
        (IntegrityError(Code.CHAIN_MISMATCH, "other bytes"), True),
    ],
)
async def test_an_ask_that_fails_for_good_ends_no_daemon_and_backs_the_entry_off(
    house: House, problem: CrystalError, *, charged: bool
) -> None:
    broken(house, problem)
    drafting = house.drafting
    recovery = Recovery(house.parts, house.link, drafting, RecoveryLimits(0.1, float("inf")))
    assert not await recovery.rise(lambda: False)
    assert drafting.backed_off(1) == {1, 2, 3}
    assert recovery.take_counts().rejected == {problem.code.value: 3}
    most = [ask_tokens(request) if charged else 0 for request in house.link.drafted]
    assert [tokens for _, tokens, _, _ in await house.ledger()] == most
    # The same entry is not planned again at once.
    await recovery.rise(lambda: False)
    assert len(house.link.drafted) == 3


async def test_an_entry_that_cannot_be_read_is_backed_off(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def corrupt(number: int) -> None:
        raise IntegrityError(Code.CORRUPT, "broken", number=number)

    monkeypatch.setattr(house.parts.store, "read", corrupt)
    drafting = house.drafting
    assert (await drafting.lift(STEP)).reason == "corrupt"
    assert drafting.backed_off(1) == {1}


# --- what it costs ---------------------------------------------------------------------------------------


async def test_a_lost_answer_stays_charged_and_the_board_has_what_is_left(house: House) -> None:
    drafting = house.drafting
    broken(house, LOST)
    for _ in range(3):
        with pytest.raises(TransientError):
            await drafting.lift(STEP)
    most = ask_tokens(house.link.drafted[0])
    assert await house.ledger() == [(MODEL, most, 0, "unsettled")]  # one base, one charge
    house.link.up = False
    drafting._rho = (most + estimate_tokens(house.link.drafted[0]) - 1) / 100_000
    assert (await drafting.lift(STEP)).reason == "over_cap"
    assert house.board.drafted == []


async def test_what_the_hub_says_later_settles_the_lost_charge(house: House) -> None:
    drafting, working = house.drafting, house.link.draft
    broken(house, LOST)
    with pytest.raises(TransientError):
        await drafting.lift(STEP)
    house.link.draft = working  # type: ignore[method-assign]
    house.link.answer = Draft("", "hub", 310, "no_words")
    assert (await drafting.lift(STEP)).tokens == 310
    assert await house.ledger() == [(MODEL, 310, 0, "no_words")]


@pytest.mark.parametrize("reason", ["already_charged", "busy", "no_words"])
async def test_nothing_more_is_not_nothing(house: House, reason: str) -> None:
    drafting, working = house.drafting, house.link.draft
    broken(house, LOST)
    with pytest.raises(TransientError):
        await drafting.lift(STEP)
    house.link.draft = working  # type: ignore[method-assign]
    house.link.answer = Draft("", "hub", 0, reason)
    await drafting.lift(STEP)
    ((_, tokens, _, _),) = await house.ledger()
    assert tokens == ask_tokens(house.link.drafted[0])


async def test_a_charge_that_only_the_hub_knows_of_is_taken_over(house: House) -> None:
    house.link.answer = Draft("", "hub", 0, "already_charged")
    await house.drafting.lift(STEP)
    most = ask_tokens(house.link.drafted[0])
    assert [tokens for _, tokens, _, _ in await house.ledger()] == [most]
    # After a restart it is in these books already.
    await house.drafting.lift(STEP)
    assert [tokens for _, tokens, _, _ in await house.ledger()] == [most, 0]


# --- whose turn it is ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "board_helps"),
    [
        ("busy", False),
        ("rate_limited", False),
        ("over_cap", False),
        ("unreachable", True),
        ("no_model", True),
    ],
)
async def test_a_hub_that_rests_is_not_a_hub_that_is_away(
    house: House, reason: str, *, board_helps: bool
) -> None:
    house.link.answer = Draft("", "hub", 0, reason)
    drafting = house.drafting
    for _ in range(3):
        await drafting.lift(STEP)
    assert len(house.link.drafted) == 1
    assert bool(house.board.drafted) is board_helps
    assert drafting.generates is board_helps
    house.link.up = False
    assert drafting.generates
    await drafting.lift(STEP)
    assert (await house.ledger())[-1][0] == ON_DEVICE


def test_the_hub_gives_up_before_the_edge_does() -> None:
    assert LinkTimings().draft_s >= ASK_S + 3.0
    assert ModelConfig().timeout_s + QUEUE_S <= ASK_S
