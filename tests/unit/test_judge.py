"""The hub's judge: asked only about what the rules leave open, charged, and no clear yes is a no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from msgspec import convert

from hub.calls import Call
from hub.endpoints import Endpoints
from hub.model import OpenAIGenerator
from hub.regenerate import Books, Regenerator, Rules
from shared.memory.model import Kind
from shared.ports import Draft, DraftRequest, Verdict
from shared.prompt import ask_tokens, judge_tokens
from shared.wire import DraftFailure
from tests.fakes import FakeClock
from tests.scripted_openai import TOKENS, Script, scripted_openai
from tests.unit.test_regenerate import ASK, COST, EDGE, TEXT, MemoryShelf, Reader, other, regenerator

EVIDENCE, CLAIM = "went to the shelf", "It was brought to the shelf."


async def opinion(*script: Script, p_yes: float = 0.5) -> Call:
    async with scripted_openai(*script) as endpoint:
        endpoint.p_yes = p_yes
        generator = OpenAIGenerator(endpoint.url, "model-1", "none", 5.0)
        try:
            return await generator.judge(EVIDENCE, CLAIM)
        finally:
            await generator.aclose()


@pytest.mark.parametrize("p_yes", [0.0, 0.25, 0.9, 1.0])
async def test_the_probability_is_read_over_all_spellings(p_yes: float) -> None:
    call = await opinion(p_yes=p_yes)
    assert float(call.draft.text) == pytest.approx(p_yes, abs=1e-4)
    assert (call.draft.tokens, call.draft.failure, call.answered) == (TOKENS, "", True)


MOST = judge_tokens(EVIDENCE, CLAIM)


@pytest.mark.parametrize(
    ("step", "failure", "tokens"),
    [
        (Script.NO_ANSWER, DraftFailure.BAD_REPLY, TOKENS),
        (Script.NO_CHOICES, DraftFailure.BAD_REPLY, TOKENS),
        (Script.WRONG_MODEL, DraftFailure.BAD_REPLY, TOKENS),
        (Script.NOT_JSON_AT_ALL, DraftFailure.BAD_REPLY, MOST),
        (Script.ERROR_500, DraftFailure.HTTP_ERROR, MOST),
        (Script.ERROR_400, DraftFailure.HTTP_ERROR, 0),
    ],
)
async def test_what_is_no_clear_answer_is_a_failure_with_a_price(
    step: Script, failure: DraftFailure, tokens: int
) -> None:
    call = await opinion(step, p_yes=1.0)
    assert (call.draft.text, call.draft.failure, call.draft.tokens) == ("", failure.value, tokens)


async def test_the_endpoints_share_judging_too() -> None:
    async with scripted_openai(Script.RATE_LIMITED) as first, scripted_openai() as second:
        second.p_yes = 0.8
        callers = [OpenAIGenerator(served.url, "model-1", "none", 5.0) for served in (first, second)]
        endpoints = Endpoints(callers, FakeClock(), stall_s=20.0, most=8)
        draft = await endpoints.judge(EVIDENCE, CLAIM)
        await endpoints.aclose()
    assert float(draft.text) == pytest.approx(0.8, abs=1e-4)
    assert EVIDENCE in second.requests[0]["messages"][-1]["content"]
    assert CLAIM in second.requests[0]["messages"][-1]["content"]


# --- at the hub -----------------------------------------------------------------------------------------


@dataclass
class OpenGate:
    """Says of every draft what the test says."""

    verdict: Verdict

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        return self.verdict


@dataclass
class Model:
    """Writes TEXT and answers a judge's question with `opinion`."""

    opinion: Draft
    model: str = "m"
    made: Draft = field(default_factory=lambda: Draft(TEXT, "m", 40))
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def draft(self, request: DraftRequest) -> Draft:
        return self.made

    async def judge(self, evidence: str, claim: str) -> Draft:
        self.asked.append((evidence, claim))
        return self.opinion


OPEN = Verdict(admitted=False, reason="unsupported_clause", open=True)
FAILED = Verdict(admitted=False, reason="tuple_swapped")
YES, NO = Draft("0.900000", "m", 7), Draft("0.790000", "m", 7)
LOST = Draft("", "m", 99, DraftFailure.TIMED_OUT.value, True)


async def _reply(
    path: Path, verdict: Verdict, said: Draft, threshold: float = 0.8, cap_tokens: int = 10_000
) -> tuple[tuple[str, str, int, bool], Model, Reader]:
    model, shelf = Model(said), MemoryShelf()
    async with regenerator(path, model, shelf=shelf) as (_, books):
        source = Regenerator(
            model,
            {Kind.EPISODE: OpenGate(verdict)},
            Books(shelf, books.ledger, books.worker),
            FakeClock(),
            Rules(0.5, strict=True, judge_threshold=threshold),
            model,
        )
        reply = await source.draft(EDGE, other(cap_tokens=cap_tokens))
        assert await books.spent() == reply.tokens
        if reply.text:
            assert (await source.draft(EDGE, ASK)).judged == reply.judged
    return (reply.text, reply.failure, reply.tokens, reply.judged), model, books


@pytest.mark.parametrize(
    ("verdict", "said", "threshold", "expected", "questions"),
    [
        (OPEN, YES, 0.8, (TEXT, "", 47, True), 1),
        (OPEN, NO, 0.8, ("", "unsupported_clause", 47, False), 1),
        (OPEN, LOST, 0.8, ("", "unsupported_clause", 139, False), 1),
        (OPEN, YES, 0.0, ("", "unsupported_clause", 40, False), 0),  # no judge is configured
        (FAILED, YES, 0.8, ("", "tuple_swapped", 40, False), 0),  # a rule failed: nobody is asked
        (Verdict(admitted=True), NO, 0.8, (TEXT, "", 40, False), 0),
    ],
)
async def test_the_judge_decides_what_is_open_and_nothing_else(
    tmp_path: Path,
    verdict: Verdict,
    said: Draft,
    threshold: float,
    expected: tuple[str, str, int, bool],
    questions: int,
) -> None:
    found, model, _ = await _reply(tmp_path, verdict, said, threshold)
    assert (found, len(model.asked)) == (expected, questions)
    if questions:
        assert model.asked == [("went to the shelf\ntuple: went / shelf", TEXT)]


class SilentModel(Model):
    """Its judge never answers."""

    async def judge(self, evidence: str, claim: str) -> Draft:
        await super().judge(evidence, claim)
        await anyio.sleep_forever()
        raise AssertionError


async def test_draft_and_judge_share_one_deadline(tmp_path: Path) -> None:
    model, shelf = SilentModel(YES), MemoryShelf()
    async with regenerator(tmp_path, model, shelf=shelf) as (_, books):
        source = Regenerator(
            model,
            {Kind.EPISODE: OpenGate(OPEN)},
            Books(shelf, books.ledger, books.worker),
            FakeClock(),
            Rules(0.5, strict=True, judge_threshold=0.8, ask_s=0.2),
            model,
        )
        with anyio.fail_after(5):
            reply = await source.draft(EDGE, ASK)
        (shown, claim) = model.asked[0]
        assert (reply.text, reply.failure) == ("", "unsupported_clause")
        assert reply.tokens == await books.spent() == 40 + judge_tokens(shown, claim)
        assert reply.tokens <= ask_tokens(convert(ASK, DraftRequest, from_attributes=True))


async def test_a_judge_over_the_bound_of_the_ask_is_not_asked(tmp_path: Path) -> None:
    dear = Draft(TEXT, "m", ask_tokens(convert(ASK, DraftRequest, from_attributes=True)) - 20)
    model, shelf = Model(YES), MemoryShelf()
    model.made = dear
    async with regenerator(tmp_path, model, shelf=shelf) as (_, books):
        source = Regenerator(
            model,
            {Kind.EPISODE: OpenGate(OPEN)},
            Books(shelf, books.ledger, books.worker),
            FakeClock(),
            Rules(0.5, strict=True, judge_threshold=0.8),
            model,
        )
        assert (await source.draft(EDGE, ASK)).tokens == dear.tokens
    assert model.asked == []


async def test_a_judge_over_the_cap_is_not_asked(tmp_path: Path) -> None:
    found, model, _ = await _reply(tmp_path, OPEN, YES, cap_tokens=COST)
    assert (found, model.asked) == (("", "unsupported_clause", 40, False), [])
