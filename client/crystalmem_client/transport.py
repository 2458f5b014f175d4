"""HTTP/1.1 over a unix socket or loopback TCP, one kept-alive connection."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


class CrystalMemError(Exception):
    """The daemon's refusal, or `daemon_unreachable` when there is none."""

    def __init__(
        self, code: str, message: str, hint: str = "", facts: dict[str, Any] | None = None, status: int = 0
    ) -> None:
        super().__init__(f"{code}: {message}{f' {facts}' if facts else ''}{f' - {hint}' if hint else ''}")
        self.code = code
        self.message = message
        self.hint = hint
        self.facts = facts or {}
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Transport:
    """Calls the door; reconnects once when a kept-alive connection was closed before it was used."""

    def __init__(self, path: str | None, address: str | None, token: str | None, timeout_s: float) -> None:
        self._path = path
        self._address = address
        self._timeout_s = timeout_s
        self._headers = dict(_HEADERS)
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection: http.client.HTTPConnection | None = None

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request; JSON in, JSON out."""
        try:
            payload = None if body is None else json.dumps(body).encode("utf-8")
        except (TypeError, ValueError) as problem:
            raise CrystalMemError(
                "bad_request", f"the request cannot be written as JSON: {problem}"
            ) from None
        status, raw = self._exchange(method, path, payload)
        try:
            answer = json.loads(raw)
        except ValueError:
            raise CrystalMemError("malformed", "the daemon's answer is not JSON", status=status) from None
        if status >= 400:
            error = answer.get("error", {})
            raise CrystalMemError(
                str(error.get("code", "internal")),
                str(error.get("message", "the daemon refused")),
                str(error.get("hint", "")),
                error.get("facts") or {},
                status,
            )
        return dict(answer)

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, method: str, path: str, payload: bytes | None) -> tuple[int, bytes]:
        fresh = self._connection is None
        try:
            return self._once(method, path, payload)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.close()
            if fresh or method != "GET":
                raise self._gone(
                    "the daemon closed the connection; the request may have been carried out"
                ) from None
        except OSError as problem:
            self.close()
            raise self._gone(str(problem)) from None
        except http.client.HTTPException as problem:
            self.close()
            raise CrystalMemError("malformed", f"the daemon's answer is not HTTP: {problem}") from None
        try:
            return self._once(method, path, payload)
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            raise self._gone(str(problem)) from None

    def _once(self, method: str, path: str, payload: bytes | None) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request(method, path, body=payload, headers=self._headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def _connect(self) -> http.client.HTTPConnection:
        if self._path is not None:
            return _UnixConnection(self._path, self._timeout_s)
        return http.client.HTTPConnection(self._address or "127.0.0.1", timeout=self._timeout_s)

    def _gone(self, why: str) -> CrystalMemError:
        where = self._path or self._address or ""
        return CrystalMemError(
            "daemon_unreachable", why, "Is `crystalmem edge run` up? Check the socket path", {"at": where}
        )
