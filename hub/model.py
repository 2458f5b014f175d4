"""One call to an OpenAI-compatible endpoint: bounded in time and bytes, never repeated here, priced."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterable
from email.utils import parsedate_to_datetime
from typing import cast

import anyio
import httpx2
import msgspec
import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema

from hub import judge
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
_FORMAT: ResponseFormatJSONSchema = {
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


class _Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str


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
        most = estimate_tokens(request)
        asked = self._client.chat.completions.create(
            model=self._model,
            messages=_messages(turns(request)),
            max_tokens=request.max_tokens,
            temperature=0.0,
            response_format=_FORMAT,
        )
        answer = await self._answer(asked, most)
        if isinstance(answer, Call):
            return answer
        return Call(self._read(answer, request.max_tokens, most), answered=True)

    async def judge(self, evidence: str, claim: str) -> Call:
        """The model's probability of "yes" as the draft's text (hub.judge); BAD_REPLY where it gave none."""
        most = judge_tokens(evidence, claim)
        asked = self._client.chat.completions.create(
            model=self._model,
            messages=_messages(judge_turns(evidence, claim)),
            max_tokens=JUDGE_MAX_TOKENS,
            temperature=0.0,
            logprobs=True,
            top_logprobs=judge.TOP_LOGPROBS,
        )
        answer = await self._answer(asked, most)
        if isinstance(answer, Call):
            return answer
        tokens, estimated = _charge(answer, most)
        p_yes = judge.p_yes(answer) if answer.model == self._model else None
        if p_yes is None:
            return Call(self._failed(DraftFailure.BAD_REPLY, tokens, estimated=estimated), answered=True)
        return Call(Draft(f"{p_yes:.6f}", self._model, tokens, estimated=estimated), answered=True)

    async def _answer(self, asked: Awaitable[ChatCompletion], most: int) -> ChatCompletion | Call:
        """The endpoint's answer, or what the failed call came to."""
        try:
            # The client's time-out restarts with every byte; a dripping engine needs a deadline.
            with anyio.fail_after(self._timeout_s):
                completion: object = await asked
        except (TimeoutError, openai.APITimeoutError) as error:
            if type(error.__cause__).__name__ in _CONNECT_ERRORS:
                return Call(self._failed(DraftFailure.UNREACHABLE, 0), down=True)
            return Call(self.given_up(most))
        except openai.APIConnectionError as error:
            return self._unconnected(error, most)
        except openai.APIStatusError as error:
            return self._refused(error, most)
        except (openai.OpenAIError, ValueError):
            return Call(self._failed(DraftFailure.BAD_REPLY, most, estimated=True), answered=True)
        if not isinstance(completion, ChatCompletion):
            return Call(self._failed(DraftFailure.BAD_REPLY, most, estimated=True), answered=True)
        return completion

    def given_up(self, most: int) -> Draft:
        """A call that was not waited for: the engine may have made every token of it."""
        return self._failed(DraftFailure.TIMED_OUT, most, estimated=True)

    async def load(self) -> Load | None:
        """The engine's /metrics; None where there is none that we can read, or not in time."""
        try:
            with anyio.fail_after(METRICS_S):
                answer = await self._http.get(self._metrics_url)
        except (TimeoutError, ValueError, httpx2.HTTPError):
            return None
        if answer.status_code != 200 or len(answer.content) > MAX_METRICS_BYTES:
            return None
        return load_of(answer.text)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _unconnected(self, error: openai.APIConnectionError, most: int) -> Call:
        cause = error.__cause__
        if isinstance(cause, ValueError):
            return Call(self._failed(DraftFailure.BAD_REPLY, most, estimated=True), answered=True)
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
            try:
                until = parsedate_to_datetime(asked or "").timestamp()
                seconds = until - self._clock.wall_ns() / 1e9 if self._clock else seconds
            except (ValueError, OverflowError, OSError):
                pass
        return SHORTEST_REST_S if math.isnan(seconds) else min(max(seconds, SHORTEST_REST_S), LONGEST_REST_S)

    def _read(self, completion: ChatCompletion, max_tokens: int, most: int) -> Draft:
        tokens, estimated = _charge(completion, most)
        try:
            answered_by, choice = completion.model, completion.choices[0]
            finish, content = choice.finish_reason, choice.message.content
        except (AttributeError, IndexError, TypeError):
            # The client builds its types without checking them.
            return self._failed(DraftFailure.BAD_REPLY, tokens, estimated=estimated)
        if answered_by != self._model:
            return self._failed(DraftFailure.WRONG_MODEL, tokens, estimated=estimated)
        if finish != "stop":
            cut = finish == "length"
            reason = DraftFailure.TRUNCATED if cut else DraftFailure.NOT_FINISHED
            return self._failed(reason, tokens, estimated=estimated)
        text = _text(content)
        if text is None or len(text) > _LONGEST_TOKEN_BYTES * max_tokens:
            return self._failed(DraftFailure.BAD_REPLY, tokens, estimated=estimated)
        if not text.strip():
            return self._failed(DraftFailure.EMPTY, tokens, estimated=estimated)
        return Draft(text, self._model, tokens, estimated=estimated)

    def _failed(self, reason: DraftFailure, tokens: int, *, estimated: bool = False) -> Draft:
        return Draft("", self._model, tokens, reason.value, estimated)


def _charge(completion: ChatCompletion, most: int) -> tuple[int, bool]:
    """Tokens to charge, and whether they are an estimate."""
    used = _used(completion)
    return (most, True) if used is None else (used, False)


def _messages(told: Iterable[Turn]) -> list[ChatCompletionMessageParam]:
    # The client's own type has one class a role.
    return [cast(ChatCompletionMessageParam, {"role": role, "content": text}) for role, text in told]


def _used(completion: ChatCompletion) -> int | None:
    """Tokens read and written; None where the endpoint does not say, or says what cannot be."""
    usage = completion.usage
    parts = (getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None))
    counts = [part for part in parts if type(part) is int and 0 <= part < 2**31]
    # Nothing is read for free: an endpoint that counts no prompt token does not count.
    return sum(counts) if len(counts) == len(parts) and counts[0] > 0 else None


def _text(content: object) -> str | None:
    """The draft in the reply; None where it is not what the schema asks for, or cannot be stored."""
    if not isinstance(content, str):
        return None
    try:
        text = msgspec.json.decode(content, type=_Reply).text
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return None if "\0" in text else text
