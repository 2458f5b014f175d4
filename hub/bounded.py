"""An HTTP client that reads no more of an answer than a draft can be, and believes none of its headers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http.cookiejar import CookieJar
from typing import Any, cast

import httpx2
import openai

_KEPT = b"retry-after"


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


class _NoCookies(CookieJar):
    """Keeps none, and never parses one."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Nothing."""


def bounded_client(timeout: openai.Timeout, limit_bytes: int) -> httpx2.AsyncClient:
    """Follows no redirect (the key would travel with it) and unpacks nothing."""

    async def bound(response: httpx2.Response) -> None:
        # Before anybody reads them: a charset may name any codec of Python, an encoding may unpack gigabytes.
        response.headers = httpx2.Headers([pair for pair in response.headers.raw if pair[0].lower() == _KEPT])
        if response.is_success:
            response.stream = _Bounded(cast(httpx2.AsyncByteStream, response.stream), limit_bytes)
        else:
            # A failure's status says all that is asked of it.
            await cast(httpx2.AsyncByteStream, response.stream).aclose()
            response.stream = httpx2.ByteStream(b"")

    return httpx2.AsyncClient(
        timeout=timeout,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        cookies=_NoCookies(),
        event_hooks={"response": [bound]},
    )
