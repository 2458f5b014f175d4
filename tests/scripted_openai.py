"""An OpenAI-compatible endpoint on loopback that answers as it is told, reply by reply."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
    EMPTY = "empty"
    WRONG_JSON = "wrong json"
    NOT_JSON_AT_ALL = "not json at all"
    NO_CHOICES = "no choices"
    NO_USAGE = "no usage"
    ERROR_500 = "error 500"
    ERROR_400 = "error 400"
    SILENT = "silent"
    CUT = "cut"


TOKENS = 77


@dataclass
class ScriptedOpenAI:
    """`script` is consumed from its start; then every reply is GOOD with `text`."""

    text: str = "A good draft."
    script: list[Script] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    hold: anyio.Event | None = None

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/chat/completions."""
        body = await request.json()
        self.requests.append(body)
        step = self.script.pop(0) if self.script else Script.GOOD
        if self.hold is not None:
            await self.hold.wait()
        if step is Script.SILENT:
            await anyio.sleep_forever()
        if step is Script.CUT and request.transport is not None:
            request.transport.abort()
        if step in {Script.ERROR_500, Script.ERROR_400}:
            status = 500 if step is Script.ERROR_500 else 400
            return web.json_response({"error": {"message": "no"}}, status=status)
        if step is Script.NOT_JSON_AT_ALL:
            return web.Response(text="<html>busy</html>", content_type="text/html")
        return web.json_response(self._reply(step, body))

    def _reply(self, step: Script, body: dict[str, Any]) -> dict[str, Any]:
        texts = {
            Script.ECHO: body["messages"][-1]["content"].split("Notes:\n")[-1],
            Script.EMPTY: "  ",
            Script.TRUNCATED: self.text[:5],
        }
        content = json.dumps({"text": texts.get(step, self.text)})
        reasons = {Script.TRUNCATED: "length", Script.FILTERED: "content_filter"}
        reply: dict[str, Any] = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": reasons.get(step, "stop"),
                    "message": {
                        "role": "assistant",
                        "content": '{"txt": 1' if step is Script.WRONG_JSON else content,
                    },
                }
            ],
            "usage": {"prompt_tokens": 50, "completion_tokens": TOKENS - 50, "total_tokens": TOKENS},
        }
        if step is Script.NO_CHOICES:
            reply["choices"] = []
        if step is Script.NO_USAGE:
            del reply["usage"]
        return reply


@asynccontextmanager
async def scripted_openai(*script: Script, text: str = "A good draft.") -> AsyncIterator[ScriptedOpenAI]:
    """Serve on a free port."""
    scripted = ScriptedOpenAI(text, list(script))
    app = web.Application()
    app.router.add_post("/v1/chat/completions", scripted.completions)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    scripted.url = f"http://127.0.0.1:{port}/v1"
    try:
        yield scripted
    finally:
        await runner.cleanup()
