"""An endpoint that means harm: whatever it sends, no call raises, and no lie of it is charged."""

from __future__ import annotations

import asyncio
import bz2
import copy
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hub.calls import Call
from hub.engine import Load
from hub.model import OpenAIGenerator
from shared.ports import Draft
from shared.prompt import estimate_tokens, judge_tokens
from shared.wire import DraftFailure
from tests.fakes import FakeClock
from tests.scripted_openai import TOKENS, scripted_openai, vllm_page
from tests.unit.test_model_calls import MOST, REQUEST
from tests.unit.test_regenerate import ASK, COST, EDGE, TEXT, other, ready, regenerator

Raw = tuple[int, tuple[tuple[str, str], ...], bytes]
CONTENT = '{"text": "A good draft."}'
YES = {"content": [{"token": "Yes", "logprob": -0.1, "top_logprobs": [{"token": "Yes", "logprob": -0.1}]}]}
USAGE = {"prompt_tokens": TOKENS - 27, "completion_tokens": 27}
DEEP = 100_000
JSON_TYPE = (("Content-Type", "application/json"),)
CODECS = [
    "hex",
    "base64",
    "uu",
    "quopri",
    "zlib",
    "bz2",
    "rot13",
    "utf-16",
    "idna",
    "punycode",
    "undefined",
    "\xff",
]


def reply(content: str | None = CONTENT, logprobs: Any = YES, **change: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}
    return {"id": "x", "model": "model-1", "choices": [choice], "usage": USAGE, **change}


async def outcomes(port_url: str) -> tuple[Call, Call, Load | None]:
    generator = OpenAIGenerator(port_url, "model-1", "none", 2.0, FakeClock())
    try:
        return await generator.call(REQUEST), await generator.judge("e", "c"), await generator.load()
    finally:
        await generator.aclose()


async def told(body: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = JSON_TYPE) -> Call:
    return (
        await answered((status, headers, body if isinstance(body, bytes) else json.dumps(body).encode()))
    )[0]


async def answered(raw: Raw) -> tuple[Call, Call, Load | None]:
    async with scripted_openai() as endpoint:
        endpoint.raw = raw
        return await outcomes(endpoint.url)


def sane(call: Call, most: int) -> None:
    draft = call.draft
    assert 0 <= draft.tokens <= 4 * most
    assert bool(draft.text.strip()) is not bool(draft.failure)


# --- whatever it sends -----------------------------------------------------------------------------------


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def _bent(draw: st.DrawFn) -> dict[str, Any]:
    """A good reply in which one thing is something else."""
    whole = copy.deepcopy(reply())  # the templates are shared
    at: Any = whole
    while True:
        key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], (dict, list)) or not at[key] or draw(st.booleans()):
            at[key] = draw(_VALUES)
            return whole
        at = at[key]


_BODIES = st.binary(max_size=64) | (_VALUES | _bent()).map(lambda value: json.dumps(value).encode())
_PRINTABLE = st.text(
    st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f"), max_size=12
)
_HEADERS = st.tuples(
    st.sampled_from(["Retry-After", "Set-Cookie", "Content-Encoding", "Location", "X-Request-Id", "Link"]),
    _PRINTABLE,
) | st.tuples(st.just("Content-Type"), st.sampled_from(CODECS).map("text/plain; charset={}".format))
_STATUS = st.sampled_from([200, 200, 200, 201, 204, 302, 304, 400, 401, 404, 429, 500, 503, 599, 999])
_FUZZ = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_FUZZ
@given(_STATUS, st.lists(_HEADERS, max_size=3).map(tuple), _BODIES)
async def test_no_answer_raises(status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
    drafted, judged, _ = await answered((status, headers, body))
    sane(drafted, estimate_tokens(REQUEST))
    sane(judged, judge_tokens("e", "c"))


@asynccontextmanager
async def _socket(sent: bytes) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(sent)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@_FUZZ
@given(
    st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 500 X\r\nContent-Length: "]),
    st.binary(max_size=80),
)
async def test_no_bytes_at_all_raise(head: bytes, rest: bytes) -> None:
    async with _socket(head + rest) as url:
        drafted, judged, load = await outcomes(url)
    assert (drafted.draft.text, judged.draft.text, load) == ("", "", None)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        json.dumps(reply())[:-1].encode() + b',"z":' + b"[" * DEEP + b"]" * DEEP + b"}",
        reply(choices={"0": 1}),
        reply(choices=[None]),
        json.dumps(reply()).encode("utf-16"),
        json.dumps(reply()).replace("good", "g\xff").encode("latin-1"),
        json.dumps(reply())[:-1].encode() + b',"model":"model-1"}',
        json.dumps(reply())[:-1].encode() + b',"n":NaN}',
        b'{"n":' + b"9" * 6000 + b"}",
    ],
)
async def test_a_malformed_reply_is_a_bad_one_at_the_estimate(body: Any) -> None:
    expected = Draft("", "model-1", MOST, DraftFailure.BAD_REPLY.value, True)
    assert await told(body) == Call(expected, answered=True)


@pytest.mark.parametrize("charset", CODECS)
async def test_the_charset_is_not_believed(charset: str) -> None:
    headers = (("Content-Type", f"text/plain; charset={charset}"),)
    assert (await told(reply(), headers=headers)).draft == Draft("A good draft.", "model-1", TOKENS)
    for status, price in ((400, 0), (500, MOST)):
        failed = (await told(zlib.compress(b"x"), status, headers)).draft
        assert (failed.failure, failed.tokens) == (DraftFailure.HTTP_ERROR.value, price)
    assert (await told(bz2.compress(b"x"), headers=headers)).draft.failure == DraftFailure.BAD_REPLY.value
    assert (await answered((200, headers, vllm_page(1, 2, 3).encode())))[2] == Load(1, 2, 3)


@pytest.mark.parametrize("sign", ["\x00", "\x01", "\x1b", "\x7f", "\x85", "\u202e", "\u2066", "\ud800"])
async def test_what_must_not_be_stored_is_no_draft(sign: str) -> None:
    draft = (await told(reply(json.dumps({"text": f"A good{sign} draft."})))).draft
    assert (draft.text, draft.failure) == ("", DraftFailure.BAD_REPLY.value)


@pytest.mark.parametrize("sign", ["\n", "\t", "\r\n", "\u200d", "\u200f", "é"])
async def test_line_ends_and_joiners_may_stay(sign: str) -> None:
    assert (await told(reply(json.dumps({"text": f"A{sign}b"})))).draft.text == f"A{sign}b"


async def test_a_draft_that_says_two_things_is_none() -> None:
    assert (await told(reply('{"text": "one", "text": "two"}'))).draft.failure == DraftFailure.BAD_REPLY.value


# --- what it claims to have used -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "written", "believed"),
    [
        (350, 27, True),
        (2 * MOST, 27, True),  # text of random letters
        (2**31 - 1, 2**31 - 1, False),
        (4 * MOST, 1, False),
        (350, 0, False),  # beside a text
        (1, 0, False),
        (20, 27, False),  # 47 tokens never hold the prompt
        (0, 350, False),
        (350, -1, False),
        (True, 350, False),
        (350.0, 27, False),
        ("350", 27, False),
    ],
)
async def test_a_count_that_cannot_be_is_none(read: Any, written: Any, *, believed: bool) -> None:
    draft = (await told(reply(usage={"prompt_tokens": read, "completion_tokens": written}))).draft
    expected = (read + written, False) if believed else (MOST, True)
    assert (draft.text, draft.tokens, draft.estimated) == ("A good draft.", *expected)


@pytest.mark.parametrize(
    ("cap", "charged", "estimated"), [(4 * COST, 3 * COST, 0), (2 * COST, 2 * COST, 2 * COST)]
)
async def test_a_count_beyond_the_reservation_never_breaks_the_cap(
    tmp_path: Path, cap: int, charged: int, estimated: int
) -> None:
    async with regenerator(tmp_path, ready(Draft(TEXT, "held", 3 * COST))) as (source, books):
        got = await source.draft(EDGE, other(ASK, cap_tokens=cap))
        assert (got.text, got.tokens) == (TEXT, charged)
        assert (await books.spent(), await books.estimated()) == (charged, estimated)


# --- what it thinks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "top",
    [
        [("Yes", 0.5)],
        [("Yes", float("inf"))],
        [("Yes", float("-inf")), ("No", -0.1)],
        [("Yes", True)],
        [("Yes", "-0.1")],
        [("Yes", 10**400)],
        [(None, -0.1)],
        [("Yes", -0.8), ("Yes", -0.8)],
        [("Yes", -0.1), ("No", -0.1)],
        {"0": 1},
        "Yes",
        None,
    ],
)
async def test_an_opinion_that_cannot_be_is_none(top: Any) -> None:
    places = [{"token": t, "logprob": p} for t, p in top] if isinstance(top, list) else top
    body = json.dumps(reply("yes", {"content": [{"top_logprobs": places}]})).encode()
    judged = (await answered((200, JSON_TYPE, body)))[1].draft
    assert (judged.text, judged.failure) == ("", DraftFailure.BAD_REPLY.value)
    odd: Any
    for odd in ({"content": {"0": 1}}, {"content": []}, [1], "x", None):
        body = json.dumps(reply("yes", odd)).encode()
        assert (await answered((200, JSON_TYPE, body)))[1].draft.failure == DraftFailure.BAD_REPLY.value
