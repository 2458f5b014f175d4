"""An OpenAI-compatible endpoint on loopback that answers as it is told, and shows /metrics."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import anyio
from aiohttp import web


class Script(Enum):
    """What the next reply does."""

    GOOD = "good"
    ECHO = "echo"
    TRUNCATED = "truncated"
    FILTERED = "filtered"
    ABORTED = "aborted"
    """SGLang's word for a request that it gave up: status 200, some text."""
    EMPTY = "empty"
    WRONG_JSON = "wrong json"
    UNKNOWN_KEYS = "unknown keys"
    NOT_JSON_AT_ALL = "not json at all"
    HALF_JSON = "half json"
    NO_CHOICES = "no choices"
    NO_ANSWER = "no answer"
    """A judge's reply whose first word is neither yes nor no."""
    NO_USAGE = "no usage"
    FREE_USAGE = "free usage"
    NEGATIVE_USAGE = "negative usage"
    HUGE_USAGE = "huge usage"
    WRONG_MODEL = "wrong model"
    SURROGATE = "surrogate"
    BARE_SURROGATE = "bare surrogate"
    """Half a character in the reply itself, not in the JSON inside it."""
    NUL = "nul"
    ESCAPED = "escaped"
    """Letters as JSON escapes, as some engines write all that is not ASCII."""
    OTHER_ENTRY = "other entry"
    """A well-formed reply that restores another entry's text (`other`)."""
    RAMBLING = "rambling"
    """Never stops where it was told to, and says `stop` all the same."""
    ERROR_500 = "error 500"
    ERROR_400 = "error 400"
    ERROR_404 = "error 404"
    RATE_LIMITED = "rate limited"
    UNAVAILABLE = "unavailable"
    SILENT = "silent"
    DRIP = "drip"
    """One byte at a time, for ever."""
    ENDLESS = "endless"
    """Bytes as fast as they are read, for ever."""
    ENDLESS_ERROR = "endless error"
    PACKED = "packed"
    REDIRECT = "redirect"
    CUT = "cut"
    CUT_BODY = "cut body"


TOKENS = 377
_READ = TOKENS - 27
_STATUS = {Script.ERROR_500: 500, Script.ERROR_400: 400, Script.ERROR_404: 404}
_FINISH = {Script.TRUNCATED: "length", Script.FILTERED: "content_filter", Script.ABORTED: "abort"}
# Prompt and completion that cannot be.
_USAGE = {Script.FREE_USAGE: (0, 27), Script.NEGATIVE_USAGE: (50, -5), Script.HUGE_USAGE: (50, 2**70)}
_RAW_CONTENT = {
    Script.WRONG_JSON: '{"txt": 1',
    Script.UNKNOWN_KEYS: '{"text": "A good draft.", "sure": true}',
    Script.SURROGATE: '{"text": "A \\ud800 draft."}',
    Script.BARE_SURROGATE: '{"text": "A \ud800 draft."}',
    Script.ESCAPED: '{"text": "A caf\\u00e9 in Z\\u00fcrich \\ud83d\\ude00."}',
    Script.NUL: '{"text": "A \\u0000 draft."}',
}


def vllm_page(running: int = 0, waiting: int = 0, tokens: int = 0) -> str:
    """The part of vLLM's page that we read, with its comments and labels."""
    labels = '{engine="0",model_name="model-1"}'
    return (
        "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
        "# TYPE vllm:num_requests_running gauge\n"
        f"vllm:num_requests_running{labels} {float(running)}\n"
        f"vllm:num_requests_waiting{labels} {float(waiting)}\n"
        f"vllm:generation_tokens_total{labels} {float(tokens)}\n"
        f"vllm:generation_tokens_created{labels} 1.764e+09\n"
    )


def sglang_page(running: int = 0, waiting: int = 0, tokens: int = 0) -> str:
    """The same of SGLang."""
    labels = '{model_name="model-1"}'
    return (
        f"sglang:num_running_reqs{labels} {running}\n"
        f"sglang:num_queue_reqs{labels} {waiting}\n"
        f"sglang:generation_tokens_total{labels} {tokens}\n"
    )


@dataclass
class ScriptedOpenAI:
    """`script` is consumed from its start; then every reply is GOOD with `text`."""

    text: str = "A good draft."
    script: list[Script] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    other: str = "Another entry altogether."
    hold: anyio.Event | None = None
    page: str | None = None
    """What /metrics shows; None = 404."""
    retry_after: str | None = "7"
    sglang: bool = False
    p_yes: float = 0.5
    """What a judge's question is answered with."""
    words: bool = False
    """Answer with the notes that were sent, as a sentence, instead of `text`."""
    raw: tuple[int, tuple[tuple[str, str], ...], bytes] | None = None
    """Status, headers and body of every answer, whatever is asked."""
    cancelled: int = 0
    """Requests whose client hung up before the answer."""

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/chat/completions."""
        body = await request.json()
        self.requests.append(body)
        if self.raw is not None:
            return _raw(*self.raw)
        step = self.script.pop(0) if self.script else Script.GOOD
        try:
            if self.hold is not None:
                await self.hold.wait()
            if step is Script.SILENT:
                await anyio.sleep_forever()
            return await self._answer(step, body, request)
        except (asyncio.CancelledError, ConnectionError):
            self.cancelled += 1
            raise

    async def metrics(self, _: web.Request) -> web.Response:
        """GET /metrics."""
        if self.raw is not None:
            return _raw(*self.raw)
        return web.Response(text=self.page) if self.page is not None else web.Response(status=404)

    async def _answer(self, step: Script, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        error = {"error": {"message": "no"}}
        if step in {Script.DRIP, Script.ENDLESS, Script.ENDLESS_ERROR}:
            return await _stream(step, request)
        if step is Script.CUT and request.transport is not None:
            request.transport.abort()
        if step in _STATUS:
            return web.json_response(error, status=_STATUS[step])
        if step in {Script.RATE_LIMITED, Script.UNAVAILABLE}:
            headers = {"Retry-After": self.retry_after} if self.retry_after is not None else {}
            status = 429 if step is Script.RATE_LIMITED else 503
            return web.json_response(error, status=status, headers=headers)
        if step is Script.REDIRECT:
            raise web.HTTPTemporaryRedirect("/v1/chat/completions")
        if step is Script.NOT_JSON_AT_ALL:
            return web.Response(text="<html>busy</html>", content_type="text/html")
        whole = json.dumps(self._reply(step, body))
        if step is Script.HALF_JSON:
            return web.Response(text=whole[: len(whole) // 2], content_type="application/json")
        if step is Script.CUT_BODY:
            return await _cut_body(whole.encode(), request)
        response = web.Response(text=whole, content_type="application/json")
        if step is Script.PACKED:
            response.enable_compression(web.ContentCoding.gzip)
        return response

    def _reply(self, step: Script, body: dict[str, Any]) -> dict[str, Any]:
        notes = body["messages"][-1]["content"].split("Notes:\n")[-1]
        texts = {
            Script.ECHO: notes,
            Script.EMPTY: "  ",
            Script.OTHER_ENTRY: self.other,
            Script.TRUNCATED: self.text[:5],
            Script.RAMBLING: "and so on " * 2000,
        }
        content = json.dumps({"text": texts.get(step, f"{notes}." if self.words else self.text)})
        choice: dict[str, Any] = {
            "index": 0,
            "finish_reason": _FINISH.get(step, "stop"),
            "message": {"role": "assistant", "content": _RAW_CONTENT.get(step, content)},
        }
        if body.get("logprobs"):
            choice["message"]["content"] = "yes"
            choice["logprobs"] = {"content": [_first_word(step, self.p_yes)]}
        reply: dict[str, Any] = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "another-model" if step is Script.WRONG_MODEL else body["model"],
            "choices": [] if step is Script.NO_CHOICES else [choice],
            "usage": {"prompt_tokens": _READ, "completion_tokens": TOKENS - _READ, "total_tokens": TOKENS},
        }
        if self.sglang:
            # SGLang's extra fields, as its server sends them.
            choice |= {"matched_stop": 151645, "logprobs": None}
            choice["message"] |= {"reasoning_content": None, "tool_calls": None}
            reply["usage"] |= {"prompt_tokens_details": None, "reasoning_tokens": 0}
            reply["metadata"] = {"weight_version": "default"}
        if step is Script.NO_USAGE:
            del reply["usage"]
        if step in _USAGE:
            read, written = _USAGE[step]
            reply["usage"] = {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
            }
        return reply


def _raw(status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> web.Response:
    response = web.Response(status=status, body=body)
    response.headers.extend(headers)
    return response


def _first_word(step: Script, p_yes: float) -> dict[str, Any]:
    """Yes and no in several spellings, as models have them, and other words besides."""
    spread = {"Yes": p_yes * 0.7, " yes": p_yes * 0.2, "No": (1 - p_yes) * 0.9, "Maybe": 0.1}
    if step is Script.NO_ANSWER:
        spread = {"The": 0.8, "Yes": 0.2}
    top = [
        {"token": token, "logprob": math.log(mass) if mass else -9999.0, "bytes": None}
        for token, mass in spread.items()
    ]
    return {**top[0], "top_logprobs": top}


async def _stream(step: Script, request: web.Request) -> web.StreamResponse:
    status = 500 if step is Script.ENDLESS_ERROR else 200
    response = web.StreamResponse(status=status, headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"id": "')
    while True:
        if step is Script.DRIP:
            await response.write(b"x")
            await asyncio.sleep(0.02)
        else:
            await response.write(b"x" * 65536)


async def _cut_body(whole: bytes, request: web.Request) -> web.StreamResponse:
    """Says how long it is, sends half, and is gone."""
    response = web.StreamResponse(
        headers={"Content-Type": "application/json", "Content-Length": str(len(whole))}
    )
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response


@asynccontextmanager
async def scripted_openai(*script: Script, text: str = "A good draft.") -> AsyncIterator[ScriptedOpenAI]:
    """Serve on a free port, in this event loop."""
    scripted = ScriptedOpenAI(text, list(script))
    runner = await _serve(scripted)
    try:
        yield scripted
    finally:
        await runner.cleanup()


@contextmanager
def scripted_openai_thread(*script: Script, text: str = "A good draft.") -> Iterator[ScriptedOpenAI]:
    """Serve on a free port, in a thread of its own: for tests whose daemons are processes."""
    scripted = ScriptedOpenAI(text, list(script))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="scripted-openai")
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(_serve(scripted), loop).result(10)
    try:
        yield scripted
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _serve(scripted: ScriptedOpenAI) -> web.AppRunner:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", scripted.completions)
    app.router.add_get("/metrics", scripted.metrics)
    # A request whose client hung up is cancelled: what an engine does with it, too.
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    scripted.url = f"http://127.0.0.1:{port}/v1"
    return runner
