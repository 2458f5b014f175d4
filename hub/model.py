"""The generative source: one call to an OpenAI-compatible endpoint, with a deadline, never repeated here."""

from __future__ import annotations

from typing import cast

import anyio
import msgspec
import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema

from shared.ports import Draft, DraftRequest
from shared.prompt import estimate_tokens, turns
from shared.wire import DraftFailure

CONNECT_S = 5.0
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


class _Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str


class OpenAIGenerator:
    """ports.Generator. The client's own retries are off: the edge asks again, and each attempt is charged."""

    def __init__(self, url: str, model: str, api_key: str, timeout_s: float) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._client = openai.AsyncOpenAI(
            base_url=url,
            api_key=api_key,
            max_retries=0,
            timeout=openai.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
        )

    @property
    def model(self) -> str:
        """The model's name, as every draft carries it."""
        return self._model

    async def draft(self, request: DraftRequest) -> Draft:
        """Never raises for what the endpoint does: a failure is a draft with a reason and its tokens."""
        try:
            # The client's time-out restarts with every byte; a dripping engine needs a deadline.
            with anyio.fail_after(self._timeout_s):
                completion = await self._client.chat.completions.create(
                    model=self._model,
                    messages=_messages(request),
                    max_tokens=request.max_tokens,
                    temperature=0.0,
                    response_format=_FORMAT,
                )
        except (TimeoutError, openai.APITimeoutError):
            return self._failed(DraftFailure.TIMED_OUT, estimate_tokens(request))
        except openai.APIConnectionError as error:
            never_sent = type(error.__cause__).__name__ in {"ConnectError", "ConnectTimeout"}
            return self._failed(DraftFailure.UNREACHABLE, 0 if never_sent else estimate_tokens(request))
        except openai.APIStatusError as error:
            # A refused request made no token; a server that broke down may have made all of them.
            tokens = 0 if error.status_code < 500 else estimate_tokens(request)
            return self._failed(DraftFailure.HTTP_ERROR, tokens)
        except (openai.OpenAIError, ValueError):
            return self._failed(DraftFailure.BAD_REPLY, estimate_tokens(request))
        return self._judged(completion, request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _judged(self, completion: object, request: DraftRequest) -> Draft:
        if not isinstance(completion, ChatCompletion) or not completion.choices:
            return self._failed(DraftFailure.BAD_REPLY, estimate_tokens(request))
        tokens = completion.usage.total_tokens if completion.usage else estimate_tokens(request)
        choice = completion.choices[0]
        if choice.finish_reason == "length":
            return self._failed(DraftFailure.TRUNCATED, tokens)
        if choice.finish_reason != "stop":
            return self._failed(DraftFailure.NOT_FINISHED, tokens)
        try:
            text = msgspec.json.decode(choice.message.content or "", type=_Reply).text
        except msgspec.DecodeError:
            return self._failed(DraftFailure.BAD_REPLY, tokens)
        if not text.strip():
            return self._failed(DraftFailure.EMPTY, tokens)
        return Draft(text, self._model, tokens)

    def _failed(self, reason: DraftFailure, tokens: int) -> Draft:
        return Draft("", self._model, tokens, reason.value)


def _messages(request: DraftRequest) -> list[ChatCompletionMessageParam]:
    # The client's own type has one class a role.
    return [
        cast(ChatCompletionMessageParam, {"role": role, "content": text}) for role, text in turns(request)
    ]
