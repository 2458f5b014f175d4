"""The hub's regeneration against a real vLLM, by `make test-vllm` only; a model's words are never asserted.

CRYSTALMEM_VLLM: the engine's environment (`make vllm`); CRYSTALMEM_VLLM_MODEL: a model folder.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import anyio
import openai
import pytest

from crystalmem.demo.site import Model
from edge_agent.distill import PlainDistiller
from hub.app import LEDGER_NAME
from hub.endpoints import Endpoints
from hub.engine import Load
from hub.model import _FORMAT, OpenAIGenerator, _messages
from shared.host.clock import SystemClock
from shared.memory.model import LADDERS, Kind, Rung
from shared.memory.text_codec import TextCodec
from shared.ports import DraftRequest
from shared.prompt import estimate_tokens, prompt_tokens, turns
from tests.hub_process import HubProcess, free_port, link_to
from tests.link_harness import ListOutbox, running_link, until
from tests.recrystallized import recrystallized

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
NAME = "smollm2"
START_S = 420.0
STOP_S = 30.0
# What a reply of a real model may come to; anything else is a fault of ours or of the engine.
_FAIR_FAILURES = {"", "truncated", "empty"}
TEXTS = (
    "Sofia: I booked the train to Porto for 14 May, it leaves at 9:40 and costs 32 euros.",
    "Ken: The red kayak is in the garage, behind the two bicycles. Do not take it without the repair kit.",
    "The pump failed twice on Tuesday. After the filter was cleaned it ran for 6 hours without a fault.",
    "You open the drawer 2. The drawer 2 is open. In it, you see a pen 1, a key 3 and a watch 2.",
    "Maria cannot eat gluten. Her sister Ana visits on July 4th and stays until the end of the month.",
    "Build 418 passed after the cache was cleared; the report is in the folder reports and the tag is v2.3.",
)


@dataclass(frozen=True)
class Engine:
    """A running server."""

    url: str

    def page(self) -> str:
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    def tokens(self) -> int:
        """Read and written so far, by the engine's own counters."""
        total = 0.0
        for line in self.page().splitlines():
            if line.startswith(("vllm:prompt_tokens_total", "vllm:generation_tokens_total")):
                total += float(line.rsplit(" ", 1)[1])
        return round(total)


def _setting(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        pytest.fail(f"{name} is not set: run `make test-vllm`")
    return str(Path(value).resolve())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Ready when it has answered a real completion; ended whatever happens."""
    environment, model = _setting("CRYSTALMEM_VLLM"), _setting("CRYSTALMEM_VLLM_MODEL")
    port = free_port()
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [str(ROOT / "deploy" / "vllm" / "serve.sh"), environment, model, NAME, str(port)],
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _await_completion(server, f"http://127.0.0.1:{port}/v1", log)
            yield Engine(f"http://127.0.0.1:{port}/v1")
        finally:
            _end(server)


def _await_completion(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    body = {"model": NAME, "max_tokens": 4, "messages": [{"role": "user", "content": "Say yes."}]}
    asked = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                assert json.load(answer)["usage"]["completion_tokens"] >= 1
                return
        except OSError:
            time.sleep(1)
    pytest.fail(
        f"the engine did not answer; the end of its log:\n{log.read_text('utf-8', 'replace')[-3000:]}"
    )


def _end(server: subprocess.Popen[bytes]) -> None:
    """The engine has processes of its own: its whole group goes."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, number)
        except ProcessLookupError:
            break
        try:
            server.wait(STOP_S)
        except subprocess.TimeoutExpired:
            continue


def request(at: int, rung: Rung = Rung.COMPRESSED, max_tokens: int = 160) -> DraftRequest:
    codec, ladder = TextCodec(PlainDistiller()), LADDERS["product"]
    record = codec.drop(TEXTS[at], ladder, rung).record
    return DraftRequest(
        number=at + 1, version=1, base_digest=bytes([at, rung]) * 8, origin=rung, target=Rung.FULL,
        residue=codec.render(record), invariants=codec.invariants(record), neighbours=(),
        max_tokens=max_tokens, kind=Kind.EPISODE, record=record, stage=2, serving_tokens=10**6,
        cap_tokens=10**6,
    )  # fmt: skip


async def test_the_schema_is_kept_and_the_count_is_the_engines(engine: Engine) -> None:
    generator = OpenAIGenerator(engine.url, NAME, "none", 120.0)
    before = engine.tokens()
    drafts = [await generator.draft(request(at)) for at in range(3)]
    assert {draft.failure for draft in drafts} <= _FAIR_FAILURES
    assert not any(draft.estimated for draft in drafts)
    assert sum(draft.tokens for draft in drafts) == engine.tokens() - before
    for at, draft in enumerate(drafts):
        assert draft.tokens <= estimate_tokens(request(at))  # what is reserved is never too little
    await generator.aclose()


async def test_what_the_schema_forbids_is_not_in_a_reply(engine: Engine) -> None:
    client = openai.AsyncOpenAI(base_url=engine.url, api_key="none", max_retries=0, timeout=120)
    reply = await client.chat.completions.create(
        model=NAME,
        messages=cast(Any, _messages(turns(request(3)))),
        max_tokens=300,
        temperature=0.0,
        response_format=cast(Any, _FORMAT),
    )
    choice = reply.choices[0]
    assert reply.usage is not None
    assert reply.usage.prompt_tokens <= prompt_tokens(request(3))
    if choice.finish_reason == "stop":
        assert list(json.loads(choice.message.content or "")) == ["text"]
    else:
        assert (choice.message.content or "").lstrip().startswith("{")
    await client.close()


async def test_the_real_page_tells_idle_from_busy(engine: Engine) -> None:
    generator = OpenAIGenerator(engine.url, NAME, "none", 120.0)
    idle = await generator.load()
    assert idle is not None
    assert (idle.running, idle.waiting) == (0, 0)
    assert idle.moved == engine.tokens() > 0
    busy: list[Load] = []
    async with anyio.create_task_group() as tasks:
        for at in range(4):
            tasks.start_soon(generator.draft, request(at))
        with anyio.fail_after(60):
            while not busy:
                load = await generator.load()
                if load is not None and load.running:
                    busy.append(load)
                await anyio.sleep(0.05)
    after = await generator.load()
    assert after is not None
    assert (after.running, after.moved > idle.moved) == (0, True)
    await generator.aclose()


async def test_a_call_that_is_given_up_ends_at_the_engine_too(engine: Engine) -> None:
    generator = OpenAIGenerator(engine.url, NAME, "none", 0.3)
    asked = replace(request(0), max_tokens=2048, residue="Count from one to a thousand. " * 20)
    draft = await generator.draft(asked)
    assert (draft.failure, draft.estimated, draft.tokens) == ("timed_out", True, estimate_tokens(asked))
    with anyio.fail_after(60):
        while (await generator.load()) != (load := await generator.load()) or load is None or load.running:
            await anyio.sleep(0.2)
    await generator.aclose()


async def test_a_name_that_is_not_served_is_refused_for_nothing(engine: Engine) -> None:
    generator = OpenAIGenerator(engine.url, "nobody", "none", 60.0)
    call = await generator.call(request(0))
    assert (call.draft.failure, call.draft.tokens, call.down) == ("http_error", 0, True)
    await generator.aclose()


async def test_drafts_fly_together(engine: Engine) -> None:
    clock = SystemClock()
    endpoints = Endpoints(
        [OpenAIGenerator(engine.url, NAME, "none", 180.0, clock)], clock, stall_s=60.0, most=8
    )
    seen: list[int] = []
    failures: list[str] = []

    async def ask(at: int) -> None:
        failures.append((await endpoints.draft(request(at))).failure)

    async with anyio.create_task_group() as tasks:
        for at in range(len(TEXTS)):
            tasks.start_soon(ask, at)
        while len(failures) < len(TEXTS):
            seen.append(endpoints.status()[0].flying)
            await anyio.sleep(0.02)
    assert max(seen) >= 4
    assert (set(failures) <= _FAIR_FAILURES, endpoints.status()[0].health) == (True, "healthy")
    await endpoints.aclose()


async def test_a_real_hub_drafts_judges_charges_and_keeps(engine: Engine, tmp_path: Path) -> None:
    # A busy machine may starve the engine for longer than a deployment would bear.
    waits = {"model.timeout_s": 120.0, "model.stall_s": 120.0}
    settings = {"model.url": engine.url, "model.name": NAME, "rho": 1.0, **waits}
    hub = HubProcess(tmp_path, free_port(), settings)
    hub.start()
    before = engine.tokens()
    source = ListOutbox()
    for at in range(len(TEXTS)):
        source.remember(at + 1, TEXTS[at])
    link = link_to(hub, source, hub.edge_keys, draft_s=150.0)
    try:
        async with running_link(link):
            await until(lambda: link.generates and not source.deltas, 60)
            asked = [request(at, rung) for at in range(len(TEXTS)) for rung in (Rung.COMPRESSED, Rung.TRACE)]
            drafts = [await link.draft(one) for one in asked]
            made = engine.tokens()
            assert all(draft.tokens for draft in drafts), drafts
            # Again: from what was kept, or refused as charged; the engine hears of none of it.
            again = [await link.draft(one) for one in asked]
            assert engine.tokens() == made
        assert await anyio.to_thread.run_sync(hub.stop) == 0
    finally:
        hub.end()
    for first, second in zip(drafts, again, strict=True):
        assert first.model == NAME
        assert bool(first.text) != bool(first.failure), first
        assert second.text == first.text if first.text else second.failure
    assert sum(draft.tokens for draft in drafts) == made - before
    admitted = sum(not draft.failure for draft in drafts)
    with closing(sqlite3.connect(tmp_path / LEDGER_NAME)) as ledger:
        rows = ledger.execute("SELECT sum(tokens), sum(admitted), min(settled) FROM spending").fetchall()
    assert rows == [(made - before, admitted, 1)]
    reasons = sorted(draft.failure for draft in drafts if draft.failure)
    print(f"\n{admitted} of {len(drafts)} drafts admitted, not: {reasons}")  # noqa: T201 - for who runs this


def test_real_daemons_recover_through_a_real_engine(engine: Engine, tmp_path: Path) -> None:
    """Edge and hub as processes; the archive is off, so what rises is drafted, judged twice and charged."""
    before = engine.tokens()
    found = recrystallized(tmp_path, Model(engine.url, NAME), entries=40, served_tokens=60_000, settle_s=240)
    used = engine.tokens() - before
    charged = sum(tokens for tokens, _, _ in found.spending)
    assert len(found.spending) >= 3
    assert used <= charged <= 0.1 * 60_000
    if not {reason for _, _, reason in found.spending} & {"timed_out", "unreachable"}:
        assert charged == used  # nothing was estimated
    if found.settled != "timed_out":
        assert found.status["ledger"]["tokens"] == charged
    admitted = sum(admitted for _, admitted, _ in found.spending)
    assert found.overlays <= admitted
    print(f"\n{admitted} of {len(found.spending)} drafts admitted, {charged} tokens")  # noqa: T201 - as above
