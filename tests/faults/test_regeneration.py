"""A draft's whole way: edge link, hub, endpoint, the hub's gate, ledger, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from crystalmem.run_hub import TextGate
from edge_agent.distill import PlainDistiller
from hub.app import LEDGER_NAME
from hub.ledger import Ledger
from hub.model import OpenAIGenerator
from shared.errors import CrystalError, TransientError
from shared.memory.gate import Reason
from shared.memory.model import LADDERS, Kind, Rung
from shared.memory.text_codec import TextCodec
from shared.ports import DraftRequest
from tests.link_harness import TENANT, ListOutbox, link_to, running_hub, running_link, until
from tests.scripted_openai import TOKENS, Script, scripted_openai

TEXT = (
    "You arrive at shelf 3. On the shelf 3, you see a mug 2 and a plate 1. You take the mug 2 from"
    " the shelf 3. You go to the sinkbasin 1. You clean the mug 2 with the sinkbasin 1. The task is finished"
    " after 14 steps."
)


def request(serving_tokens: int = 100_000) -> DraftRequest:
    codec = TextCodec(PlainDistiller())
    record = codec.drop(TEXT, LADDERS["paper"], Rung.SKELETAL).record
    return DraftRequest(
        number=7, version=1, base_digest=b"d" * 16, origin=Rung.SKELETAL, target=Rung.COMPRESSED,
        residue=codec.render(record), invariants=codec.invariants(record), neighbours=(), max_tokens=200,
        kind=Kind.EPISODE, record=record, stage=2, serving_tokens=serving_tokens, cap_tokens=serving_tokens,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("step", "failure", "admitted"),
    [(Script.GOOD, "", 1), (Script.ECHO, "echo", 0), (Script.TRUNCATED, "truncated", 0)],
)
async def test_only_a_draft_that_the_gate_admits_comes_back(
    tmp_path: Path, step: Script, failure: str, admitted: int
) -> None:
    async with scripted_openai(step, text=TEXT) as endpoint:
        generator = OpenAIGenerator(endpoint.url, "model-1", "none", 5.0)
        # The gate's paper mode: the original itself says more than the residue supports.
        gates = {Kind.EPISODE: TextGate()}
        async with running_hub(tmp_path, gates=gates, generator=generator, strict=False) as hub:
            link = link_to(hub, ListOutbox(), hub.admit())
            async with running_link(link):
                await until(lambda: link.generates)
                draft = await link.draft(request())
            status = hub.app.status()
        await generator.aclose()
    assert (draft.text, draft.failure, draft.tokens) == ("" if failure else TEXT, failure, TOKENS)
    assert (status.drafts, status.model) == (1, "model-1")
    ledger = Ledger(tmp_path / LEDGER_NAME)
    assert ledger.totals(TENANT)["tokens"] == TOKENS
    assert ledger.totals(TENANT)["admitted"] == admitted
    ledger.close()


@pytest.mark.parametrize(
    "other",
    [
        "You are in the kitchen. You put the apple 1 in the fridge 2. The task is finished after 9 steps.",
        TEXT.replace("mug 2", "mug 5").replace("shelf 3", "shelf 7").replace("14", "16"),
    ],
)
async def test_a_reply_that_restores_another_entry_is_rejected_and_charged(
    tmp_path: Path, other: str
) -> None:
    async with scripted_openai(Script.OTHER_ENTRY) as endpoint:
        endpoint.other = other
        generator = OpenAIGenerator(endpoint.url, "model-1", "none", 5.0)
        gates = {Kind.EPISODE: TextGate()}
        async with running_hub(tmp_path, gates=gates, generator=generator, strict=True) as hub:
            link = link_to(hub, ListOutbox(), hub.admit())
            async with running_link(link):
                await until(lambda: link.generates)
                draft = await link.draft(request())
        await generator.aclose()
    assert (draft.text, draft.tokens) == ("", TOKENS)
    assert draft.failure in {reason.value for reason in Reason} | {"thin"}
    ledger = Ledger(tmp_path / LEDGER_NAME)
    totals = ledger.totals(TENANT)
    assert (totals["tokens"], totals["admitted"]) == (TOKENS, 0)
    ledger.close()


async def test_a_hub_without_a_model_says_so(tmp_path: Path) -> None:
    async with running_hub(tmp_path, gates={Kind.EPISODE: TextGate()}) as hub:
        link = link_to(hub, ListOutbox(), hub.admit())
        async with running_link(link):
            await until(lambda: link.up)
            assert not link.generates
            assert (await link.draft(request())).failure == "no_model"
        assert hub.app.status().model == ""


async def test_without_a_hub_every_question_fails_at_once(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        link = link_to(hub, ListOutbox(), hub.admit())
    for ask in (link.fetch(1, 1), link.draft(request())):
        with pytest.raises(CrystalError) as caught:
            await ask
        assert isinstance(caught.value, TransientError)
        assert caught.value.hint
