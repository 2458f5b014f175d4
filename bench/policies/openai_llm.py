"""The policies' port for a language model at an OpenAI-compatible endpoint, named by the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from shared.errors import Code, InputError, TransientError

URL_VARIABLE = "CRYSTALMEM_BENCH_POLICY_URL"
MODEL_VARIABLE = "CRYSTALMEM_BENCH_POLICY_MODEL"
KEY_VARIABLE = "CRYSTALMEM_BENCH_POLICY_KEY"

_TIMEOUT_S = 120.0
_MAX_TOKENS = 1024
_SYSTEM = (
    "You keep an agent's memory in order. Answer with one JSON document of the given schema, nothing else."
)


class OpenAiLlm:
    """bench.policies.llm.Llm over chat completions, temperature 0, the schema as the response format."""

    stand_in = False

    def __init__(self, url: str, model: str, api_key: str = "none", timeout_s: float = _TIMEOUT_S) -> None:
        import openai  # half a second, and most runs have no model

        # One retry layer: a policy asks again itself where an answer cannot be read.
        self._client = openai.OpenAI(base_url=url, api_key=api_key, timeout=timeout_s, max_retries=0)
        self.name = model

    def complete(self, purpose: str, prompt: str, schema: Mapping[str, Any]) -> str:
        """The raw answer; TransientError(TIMED_OUT) when the endpoint gives none that is the API's."""
        import openai

        try:
            answer = self._client.chat.completions.create(
                model=self.name,
                messages=[{"role": "system", "content": _SYSTEM}, {"role": "user", "content": prompt}],
                temperature=0,
                max_tokens=_MAX_TOKENS,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": purpose, "schema": dict(schema)},
                },
            )
            found = (answer.choices[0].message.content or "") if answer.choices else ""
        # The client hands a page that is no JSON on as text, and lets half a document through.
        except (openai.OpenAIError, AttributeError, ValueError) as problem:
            raise TransientError(
                Code.TIMED_OUT,
                "the policies' model gave no answer",
                model=self.name,
                purpose=purpose,
                reason=str(problem)[:200],
                hint=f"Look at the endpoint in {URL_VARIABLE}; finished cells are not run again",
            ) from None
        # Half a character can be sent, but not stored.
        return found.encode("utf-8", "replace").decode()

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def from_environment() -> OpenAiLlm | None:
    """The endpoint that the environment names; None without one, InputError without its model."""
    url, model = os.environ.get(URL_VARIABLE, ""), os.environ.get(MODEL_VARIABLE, "")
    if not url:
        return None
    if not model:
        raise InputError(
            Code.BAD_REQUEST, "the policies' endpoint has no model", url=url, hint=f"Set {MODEL_VARIABLE} too"
        )
    return _shared(url, model, os.environ.get(KEY_VARIABLE, "none"))


@lru_cache(maxsize=4)
def _shared(url: str, model: str, api_key: str) -> OpenAiLlm:
    # Hundreds of arms, one pool of connections.
    return OpenAiLlm(url, model, api_key)
