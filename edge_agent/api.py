"""The local door: HTTP/JSON on a unix socket (0660), and on loopback with a token by choice."""

from __future__ import annotations

import contextlib
import hmac
import os
import socket as socketlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from edge_agent import requests
from edge_agent.verbs import Verbs
from shared import metrics
from shared.config import DoorConfig
from shared.errors import Code, CrystalError, InputError, PermanentError, TransientError

SOCKET_MODE = 0o660
# Linux keeps 108 bytes for the path of a unix socket, one of them for the final NUL.
_MAX_SOCKET_PATH_BYTES = 107
_SHUTDOWN_S = 1.0

_STATUS: dict[Code, int] = {
    Code.UNKNOWN_ID: 404,
    Code.UNKNOWN_TENANT: 404,
    Code.UNKNOWN_RECALL: 404,
    Code.NOT_FOUND: 404,
    Code.DUPLICATE_ID: 409,
    Code.ALREADY_GRADED: 409,
    Code.NOT_RESTORABLE: 409,
    Code.TEXT_TOO_LARGE: 413,
    Code.UNAUTHORIZED: 401,
    Code.DISK_FULL: 507,
    Code.ENTRY_OVER_BUDGET: 507,
}


def build(verbs: Verbs, token: str | None = None) -> web.Application:
    """The application; `token` guards every route when the door is reachable over TCP."""
    app = web.Application(client_max_size=requests.MAX_BODY_BYTES, middlewares=[_errors, _token(token)])
    routes = _Routes(verbs)
    app.router.add_get("/v1/status", routes.status)
    app.router.add_get("/metrics", routes.metrics)
    scope = "/v1/{tenant}"
    app.router.add_post(f"{scope}/remember", routes.remember)
    app.router.add_post(f"{scope}/recall", routes.recall)
    app.router.add_post(f"{scope}/outcome", routes.outcome)
    app.router.add_get(f"{scope}/entries/{{id}}", routes.get)
    app.router.add_get(f"{scope}/explain/{{id}}", routes.explain)
    app.router.add_get(f"{scope}/budget", routes.budget)
    app.router.add_post(f"{scope}/budget", routes.set_budget)
    app.router.add_post(f"{scope}/budget/plan", routes.plan_budget)
    app.router.add_post(f"{scope}/settle", routes.settle)
    app.router.add_get(f"{scope}/evicted", routes.evicted)
    app.router.add_get(f"{scope}/lost", routes.lost)
    app.router.add_post(f"{scope}/restore", routes.restore)
    return app


class _Routes:
    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs

    async def status(self, _: web.Request) -> web.Response:
        return _json(await self._verbs.status())

    async def metrics(self, _: web.Request) -> web.Response:
        await self._verbs.refresh_metrics()
        return web.Response(body=metrics.exposition(), headers={"Content-Type": metrics.CONTENT_TYPE})

    async def remember(self, request: web.Request) -> web.Response:
        body = await self._body(request, requests.Remember)
        return _json(await self._verbs.remember(body))

    async def recall(self, request: web.Request) -> web.Response:
        body = await self._body(request, requests.Recall)
        return _json(await self._verbs.recall(body))

    async def outcome(self, request: web.Request) -> web.Response:
        body = await self._body(request, requests.Outcome)
        return _json(await self._verbs.outcome(body))

    async def get(self, request: web.Request) -> web.Response:
        self._scope(request)
        return _json(await self._verbs.get(requests.parse_id(request.match_info["id"])))

    async def explain(self, request: web.Request) -> web.Response:
        self._scope(request)
        return _json(await self._verbs.explain(requests.parse_id(request.match_info["id"])))

    async def budget(self, request: web.Request) -> web.Response:
        self._scope(request)
        return _json(await self._verbs.budget())

    async def set_budget(self, request: web.Request) -> web.Response:
        body = await self._body(request, requests.SetBudget)
        return _json(await self._verbs.set_budget(body))

    async def plan_budget(self, request: web.Request) -> web.Response:
        body = await self._body(request, requests.SetBudget)
        return _json(await self._verbs.plan_budget(body))

    async def settle(self, request: web.Request) -> web.Response:
        body = await self._body(request, requests.Settle)
        return _json(await self._verbs.settle(body))

    async def evicted(self, request: web.Request) -> web.Response:
        self._scope(request)
        limit = _query_int(request, "limit", 100, 1, 1000)
        cursor = _query_int(request, "cursor", 0, 0, 2**32)
        return _json(await self._verbs.list_evicted(limit, cursor))

    async def lost(self, request: web.Request) -> web.Response:
        self._scope(request)
        return _json(await self._verbs.list_lost(_query_int(request, "limit", 100, 1, 10_000)))

    async def restore(self, request: web.Request) -> web.Response:
        body = await self._body(request, requests.Restore)
        return _json(await self._verbs.restore(body))

    def _scope(self, request: web.Request) -> None:
        self._verbs.check_tenant(request.match_info["tenant"])

    async def _body(self, request: web.Request, kind: type[requests.RequestT]) -> requests.RequestT:
        self._scope(request)
        try:
            raw = await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise InputError(
                Code.TEXT_TOO_LARGE,
                "the request is too large",
                limit_bytes=requests.MAX_BODY_BYTES,
                hint="Split the text into several entries",
            ) from None
        return requests.parse(raw or b"{}", kind)


def _query_int(request: web.Request, name: str, default: int, low: int, high: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not low <= int(text) <= high:
        raise InputError(Code.BAD_REQUEST, f"{name} must be an integer in {low}..{high}", value=text[:64])
    return int(text)


def _json(answer: msgspec.Struct | dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(answer), status=status, content_type="application/json")


def error_response(problem: CrystalError) -> web.Response:
    """The one shape of a refusal."""
    status = _STATUS.get(problem.code)
    if status is None:
        status = (
            422 if isinstance(problem, InputError) else 503 if isinstance(problem, TransientError) else 500
        )
    facts = {
        name: value if isinstance(value, (int, float, str)) else str(value)
        for name, value in problem.facts.items()
    }
    error = {"code": problem.code.value, "message": problem.message, "facts": facts, "hint": problem.hint}
    return _json({"error": error}, status)


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    verb = request.match_info.route.resource.canonical if request.match_info.route.resource else "unknown"
    code = "ok"
    try:
        return await handler(request)
    except CrystalError as problem:
        code = problem.code.value
        return error_response(problem)
    except web.HTTPException as problem:
        code = Code.NOT_FOUND.value
        return error_response(
            InputError(Code.NOT_FOUND, "no such route", method=request.method, path=request.path[:200])
            if problem.status in (404, 405)
            else InputError(Code.BAD_REQUEST, problem.reason, path=request.path[:200])
        )
    finally:
        metrics.REQUESTS.labels(verb=verb.rsplit("/v1", 1)[-1], code=code).inc()


def _token(token: str | None) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token is not None and not hmac.compare_digest(given.encode(), token.encode()):
            raise PermanentError(
                Code.UNAUTHORIZED, "a bearer token is needed", hint="Send Authorization: Bearer TOKEN"
            )
        return await handler(request)

    return guard


@contextlib.asynccontextmanager
async def serve(verbs: Verbs, socket: Path, door: DoorConfig) -> AsyncIterator[None]:
    """Keep the door open while the block runs."""
    runners = [web.AppRunner(build(verbs), access_log=None, shutdown_timeout=_SHUTDOWN_S)]
    if door.listen:
        token = _read_token(door.token_file)
        runners.append(web.AppRunner(build(verbs, token), access_log=None, shutdown_timeout=_SHUTDOWN_S))
    ours = False
    try:
        for runner in runners:
            await runner.setup()
        await _listen_unix(runners[0], socket)
        ours = True
        if door.listen:
            await _listen_loopback(runners[1], door.listen)
        yield
    finally:
        for runner in runners:
            await runner.cleanup()
        if ours:
            _remove(socket)


async def _listen_unix(runner: web.AppRunner, socket: Path) -> None:
    if len(os.fsencode(socket)) > _MAX_SOCKET_PATH_BYTES:
        raise PermanentError(
            Code.BAD_CONFIG,
            "the path of the socket is too long for the kernel",
            path=str(socket),
            limit_bytes=_MAX_SOCKET_PATH_BYTES,
            hint="Set door.socket to a shorter path",
        )
    socket.parent.mkdir(parents=True, exist_ok=True)
    _clear(socket)
    # Nobody may connect between bind and chmod: the socket is made closed, then opened to the group.
    before = os.umask(0o177)
    try:
        await web.UnixSite(runner, str(socket)).start()
    finally:
        os.umask(before)
    os.chmod(socket, SOCKET_MODE)


def _remove(socket: Path) -> None:
    socket.unlink(missing_ok=True)


def _clear(path: Path) -> None:
    """Remove the socket that a killed daemon left; one that somebody serves is theirs."""
    with contextlib.closing(socketlib.socket(socketlib.AF_UNIX, socketlib.SOCK_STREAM)) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise PermanentError(
        Code.BAD_CONFIG,
        "another daemon serves this socket",
        path=str(path),
        hint="Stop it, or set door.socket to another path",
    )


async def _listen_loopback(runner: web.AppRunner, listen: str) -> None:
    host, _, port = listen.rpartition(":")
    if host not in ("127.0.0.1", "[::1]", "localhost") or not port.isdigit():
        raise PermanentError(
            Code.BAD_CONFIG,
            "door.listen must be a loopback address",
            value=listen,
            hint="Write 127.0.0.1:8377",
        )
    try:
        await web.TCPSite(runner, host.strip("[]"), int(port)).start()
    except (OSError, OverflowError) as problem:
        raise PermanentError(Code.BAD_CONFIG, f"cannot listen on {listen}: {problem}") from None


def _read_token(name: str) -> str:
    path = Path(name).expanduser()
    try:
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise PermanentError(
            Code.BAD_CONFIG, f"the token file cannot be read: {problem}", path=str(path)
        ) from None
    if len(token) < 16:
        raise PermanentError(Code.BAD_CONFIG, "the token is shorter than 16 characters", path=str(path))
    return token
