"""One call to an OpenAI-compatible endpoint: bounded in time and bytes, never repeated here, priced."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Any

import anyio
import httpx2
import openai

from hub import judge
from hub.answer import Answer, counted, draft_text, read
from hub.bounded import bounded_client
from hub.calls import Call
from hub.engine import Load, load_of
from shared.ports import Clock, Draft, DraftRequest
from shared.prompt import JUDGE_MAX_TOKENS, Turn, estimate_tokens, judge_tokens, judge_turns, turns
from shared.wire import MAX_PAYLOAD_BYTES, DraftFailure

CONNECT_S = 5.0
# The longest draft that may be asked for is 8,192 tokens; escapes can make six bytes of one.
MAX_REPLY_BYTES = MAX_PAYLOAD_BYTES
MAX_METRICS_BYTES = 1 << 20
# A token of usual text has 3 to 5 bytes; an engine that writes so much more was not stopped where we asked.
_LONGEST_TOKEN_BYTES = 32
METRICS_S = 5.0
# A rest that an endpoint asks for; longer ones are asked for again.
LONGEST_REST_S = 3600.0
SHORTEST_REST_S = 1.0
_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "memory",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
    },
}
_CONNECT_ERRORS = frozenset({"ConnectError", "ConnectTimeout"})
# This endpoint would refuse the next ask too; other codes below 500 are about one request.
_REFUSES_ALL = frozenset({401, 403, 404, 405})
_RATE_LIMITED = 429
_UNAVAILABLE = 503
# The only form that HTTP lets a server send.
_HTTP_DATE = re.compile(r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT")


class OpenAIGenerator:
    """ports.Generator for one endpoint. The client's own retries are off: every attempt is charged."""

    def __init__(
        self, url: str, model: str, api_key: str, timeout_s: float, clock: Clock | None = None
    ) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._clock = clock
        timeout = openai.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s))
        self._http = bounded_client(timeout, MAX_REPLY_BYTES)
        self._client = openai.AsyncOpenAI(
            base_url=url, api_key=api_key, max_retries=0, timeout=timeout, http_client=self._http
        )
        # Engines serve their metrics beside /v1.
        self._metrics_url = f"{url.rstrip('/').removesuffix('/v1')}/metrics"

    @property
    def model(self) -> str:
        """The model's name, as every draft carries it."""
        return self._model

    async def draft(self, request: DraftRequest) -> Draft:
        """Never raises for what the endpoint does: a failure is a draft with a reason and its tokens."""
        return (await self.call(request)).draft

    async def call(self, request: DraftRequest) -> Call:
        """The same, with what it tells about the endpoint."""
        most, told = estimate_tokens(request), turns(request)
        body = {"max_tokens": request.max_tokens, "response_format": _FORMAT}
        answer = await self._ask(told, body, most)
        if isinstance(answer, Call):
            return answer
        return Call(self._read(answer, request.max_tokens, _charge(answer, told, most)), answered=True)

    async def judge(self, evidence: str, claim: str) -> Call:
        """The model's probability of "yes" as the draft's text (hub.judge); BAD_REPLY where it gave none."""
        most, told = judge_tokens(evidence, claim), judge_turns(evidence, claim)
        body = {"max_tokens": JUDGE_MAX_TOKENS, "logprobs": True, "top_logprobs": judge.TOP_LOGPROBS}
        answer = await self._ask(told, body, most)
        if isinstance(answer, Call):
            return answer
        tokens, estimated = _charge(answer, told, most)
        p_yes = judge.p_yes(answer) if answer.model == self._model else None
        if p_yes is None:
            return Call(self._failed(DraftFailure.BAD_REPLY, tokens, estimated=estimated), answered=True)
        return Call(Draft(f"{p_yes:.6f}", self._model, tokens, estimated=estimated), answered=True)

    async def _ask(self, told: Iterable[Turn], body: dict[str, Any], most: int) -> Answer | Call:
        """The endpoint's answer, or what the failed call came to."""
        whole = {"model": self._model, "messages": _messages(told), "temperature": 0.0, **body}
        try:
            # The client's time-out restarts with every byte; a dripping engine needs a deadline.
            with anyio.fail_after(self._timeout_s):
                # The bare answer: the client's own types are built from whatever stands in it.
                response = await self._client.post("/chat/completions", body=whole, cast_to=httpx2.Response)
        except (TimeoutError, openai.APITimeoutError) as error:
            if type(error.__cause__).__name__ in _CONNECT_ERRORS:
                return Call(self._failed(DraftFailure.UNREACHABLE, 0), down=True)
            return Call(self.given_up(most))
        except openai.APIConnectionError as error:
            return self._unconnected(error, most)
        except openai.APIStatusError as error:
            return self._refused(error, most)
        except (openai.OpenAIError, ValueError):
            return self._malformed(most)
        return read(response.content) or self._malformed(most)

    def given_up(self, most: int) -> Draft:
        """A call that was not waited for: the engine may have made every token of it."""
        return self._failed(DraftFailure.TIMED_OUT, most, estimated=True)

    async def load(self) -> Load | None:
        """The engine's /metrics; None where there is none that we can read, or not in time."""
        try:
            with anyio.fail_after(METRICS_S):
                answer = await self._http.get(self._metrics_url)
        except (ValueError, OSError, anyio.EndOfStream, httpx2.HTTPError):
            return None
        if answer.status_code != 200 or len(answer.content) > MAX_METRICS_BYTES:
            return None
        return load_of(answer.content.decode("utf-8", "replace"))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _unconnected(self, error: openai.APIConnectionError, most: int) -> Call:
        cause = error.__cause__
        if isinstance(cause, ValueError):
            return self._malformed(most)
        if type(cause).__name__ in _CONNECT_ERRORS:
            return Call(self._failed(DraftFailure.UNREACHABLE, 0), down=True)
        return Call(self._failed(DraftFailure.UNREACHABLE, most, estimated=True))

    def _refused(self, error: openai.APIStatusError, most: int) -> Call:
        """A refused request made no token; a server that broke down may have made all of them."""
        status, asked = error.status_code, error.response.headers.get("retry-after")
        if status == _RATE_LIMITED or (status == _UNAVAILABLE and asked):
            return Call(self._failed(DraftFailure.RATE_LIMITED, 0), rest_s=self._rest_s(asked))
        if status < 500:
            return Call(self._failed(DraftFailure.HTTP_ERROR, 0), down=status in _REFUSES_ALL)
        return Call(self._failed(DraftFailure.HTTP_ERROR, most, estimated=True))

    def _rest_s(self, asked: str | None) -> float:
        """Seconds, or an HTTP date; what cannot be read is the shortest rest."""
        seconds = SHORTEST_REST_S
        try:
            seconds = float(asked or "")
        except ValueError:
            if self._clock and _HTTP_DATE.fullmatch(asked or ""):
                seconds = _until(asked or "", self._clock)
        return SHORTEST_REST_S if math.isnan(seconds) else min(max(seconds, SHORTEST_REST_S), LONGEST_REST_S)

    def _read(self, answer: Answer, max_tokens: int, charge: tuple[int, bool]) -> Draft:
        tokens, estimated = charge
        if not answer.choices:
            return self._failed(DraftFailure.BAD_REPLY, tokens, estimated=estimated)
        finish = answer.choices[0].finish_reason
        if answer.model != self._model:
            return self._failed(DraftFailure.WRONG_MODEL, tokens, estimated=estimated)
        if finish != "stop":
            cut = finish == "length"
            reason = DraftFailure.TRUNCATED if cut else DraftFailure.NOT_FINISHED
            return self._failed(reason, tokens, estimated=estimated)
        text = draft_text(answer.written)
        if text is None or len(text) > _LONGEST_TOKEN_BYTES * max_tokens:
            return self._failed(DraftFailure.BAD_REPLY, tokens, estimated=estimated)
        if not text.strip():
            return self._failed(DraftFailure.EMPTY, tokens, estimated=estimated)
        return Draft(text, self._model, tokens, estimated=estimated)

    def _malformed(self, most: int) -> Call:
        """Whatever a reply that cannot be read was, every token of it may have been made."""
        return Call(self._failed(DraftFailure.BAD_REPLY, most, estimated=True), answered=True)

    def _failed(self, reason: DraftFailure, tokens: int, *, estimated: bool = False) -> Draft:
        return Draft("", self._model, tokens, reason.value, estimated)


def _charge(answer: Answer, told: Iterable[Turn], most: int) -> tuple[int, bool]:
    """Tokens to charge, and whether they are an estimate."""
    used = counted(answer, (text for _, text in told), most)
    return (most, True) if used is None else (used, False)


def _messages(told: Iterable[Turn]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in told]


def _until(date: str, clock: Clock) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - clock.wall_ns() / 1e9
    except (ValueError, OverflowError, OSError):
        return SHORTEST_REST_S
