"""An HTTP client that reads no more of an answer than a draft can be: a peer may send bytes without end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import httpx2
import openai


class TooLargeError(ValueError):
    """The answer is longer than anything that was asked for."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, limit_bytes: int) -> None:
        self._inner = inner
        self._left_bytes = limit_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left_bytes -= len(chunk)
            if self._left_bytes < 0:
                raise TooLargeError("the answer is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def bounded_client(timeout: openai.Timeout, limit_bytes: int) -> httpx2.AsyncClient:
    """Follows no redirect (the key would travel with it) and unpacks nothing."""

    async def bound(response: httpx2.Response) -> None:
        # Before the body is read: a few packed bytes can hold gigabytes.
        if response.headers.get("content-encoding", "identity") != "identity":
            raise TooLargeError("the answer is packed, which was not asked for")
        response.stream = _Bounded(cast(httpx2.AsyncByteStream, response.stream), limit_bytes)

    return httpx2.AsyncClient(
        timeout=timeout,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [bound]},
    )
