"""The model answerer: any OpenAI-compatible endpoint at temperature 0. Reader-free needs none of this."""

from __future__ import annotations

from openai import APIError, OpenAI

from shared.errors import Code, TransientError

READER_FREE = "reader_free"
_TIMEOUT_S = 120.0


class EndpointModel:
    """bench.environments.contract.Model over chat completions."""

    def __init__(self, url: str, name: str, api_key: str = "none") -> None:
        self._client = OpenAI(base_url=url, api_key=api_key, timeout=_TIMEOUT_S, max_retries=2)
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def complete(self, prompt: str, max_tokens: int) -> str:
        """One answer; TransientError(TIMED_OUT) when the endpoint gives none."""
        try:
            answer = self._client.chat.completions.create(
                model=self._name,
                messages=[{"role": "user", "content": prompt}],
                temperature=0,
                max_tokens=max_tokens,
            )
        except APIError as problem:
            raise TransientError(
                Code.TIMED_OUT,
                "the answering model gave no answer",
                model=self._name,
                reason=str(problem)[:200],
            ) from None
        return (answer.choices[0].message.content or "").strip() if answer.choices else ""
