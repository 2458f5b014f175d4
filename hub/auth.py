"""Who may speak: the allow-list, the ZAP handler that asks it, and the proof that strangers stay out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import anyio
import zmq
import zmq.asyncio
from zmq.utils import z85

from hub.counters import Counters
from shared.errors import Code, CrystalError, PermanentError, SecurityError
from shared.host.keys import KeyFiles, new_pair, write_pair
from shared.host.log import clean, get_logger
from shared.host.sockets import ZAP_DOMAIN, stranger, zap_socket
from shared.ports import Clock
from shared.scope import EdgeName, TenantName, edge_name, tenant_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# A revoked key must be out within 1 s (runtime.md R6): look four times as often.
RELOAD_PERIOD_S = 0.25
_Z85_KEY = re.compile(rb"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_log = get_logger("hub.auth")


@dataclass(frozen=True)
class Edge:
    """One edge of the allow-list. Two keys during a rotation."""

    name: EdgeName
    keys: tuple[bytes, ...]
    tenants: tuple[TenantName, ...]


def new_keys(directory: Path, name: str) -> KeyFiles:
    """`crystalmem keys new NAME`: a fresh pair in two files, the secret one 0600 from its first byte on."""
    return write_pair(directory, name, new_pair())


class AllowList:
    """Keys to edges. The key names the edge; its tenants are the hub's knowledge, not the peer's claim."""

    def __init__(self, edges: Iterable[Edge] = ()) -> None:
        self.edges = tuple(edges)
        self._by_key: dict[bytes, Edge] = {}
        for edge in self.edges:
            for key in edge.keys:
                if key in self._by_key:
                    raise _bad("a key is listed twice", edge=edge.name, other=self._by_key[key].name)
                self._by_key[key] = edge

    def edge_of(self, key: bytes) -> Edge | None:
        """The edge that a key names, now."""
        return self._by_key.get(key)


def parse_allow_list(text: str) -> AllowList:
    """`[edges.NAME] keys = [...] tenants = [...]`; PermanentError names what is wrong."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _bad(f"the allow-list is not TOML: {error}") from None
    unknown = sorted(set(tree) - {"edges"})
    edges = tree.get("edges", {})
    if unknown or not isinstance(edges, dict):
        raise _bad("the allow-list holds nothing but [edges.NAME] tables", unknown=unknown)
    return AllowList(_edge(name, table) for name, table in edges.items())


def render_allow_list(edges: Iterable[Edge]) -> str:
    """The file that parse_allow_list reads back."""
    return "".join(
        f'[edges."{edge.name}"]\n'
        f"keys = [{', '.join(_quoted(key.decode()) for key in edge.keys)}]\n"
        f"tenants = [{', '.join(_quoted(name) for name in edge.tenants)}]\n\n"
        for edge in edges
    )


def allow(path: Path, edge: Edge) -> AllowList:
    """Add an edge to the file, or its keys and tenants to one that is listed; the file is replaced whole."""
    listed = parse_allow_list(path.read_text("utf-8")) if path.exists() else AllowList()
    held = next((known for known in listed.edges if known.name == edge.name), edge)
    merged = Edge(
        edge.name,
        tuple(dict.fromkeys((*held.keys, *edge.keys))),
        tuple(dict.fromkeys((*held.tenants, *edge.tenants))),
    )
    others = [known for known in listed.edges if known.name != edge.name]
    changed = AllowList((*others, merged))
    partial = path.with_name(path.name + ".partial")
    partial.write_text(render_allow_list(changed.edges), "utf-8")
    partial.replace(path)
    return changed


class AllowListFile:
    """The list in force. A file that cannot be read leaves the last good list, counted and logged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.current = AllowList()
        self.failures = 0
        self._seen: tuple[int, int, int] | None = None

    def load(self) -> None:
        """Read the file if it changed; a missing file is an empty list. Raises what is wrong with it."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._seen, self.current = None, AllowList()
            return
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            text = self.path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _bad("the allow-list cannot be read", path=str(self.path), reason=str(error)) from error
        self.current = parse_allow_list(text)

    async def watch(self, clock: Clock) -> None:
        """Keep `current` up to date until cancelled."""
        while True:
            await clock.sleep(RELOAD_PERIOD_S)
            try:
                await anyio.to_thread.run_sync(self.load)
            except CrystalError as error:
                self.failures += 1
                _log.error("the allow-list is unchanged", error=clean(str(error)), path=str(self.path))


class ZapHandler:
    """Answers libzmq's question about every new connection. Its death must end the hub: run it supervised."""

    def __init__(self, context: zmq.asyncio.Context, allowed: AllowListFile, counters: Counters) -> None:
        self._socket = zap_socket(context)
        self._allowed = allowed
        self._counters = counters
        self.announce = False
        """Whether refusals are logged: not those of the self-test."""

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            await self._socket.send_multipart(self._answer(await self._socket.recv_multipart()))

    def close(self) -> None:
        """Close the socket: from now on nobody new comes in."""
        self._socket.close()

    def _answer(self, frames: list[bytes]) -> list[bytes]:
        version, request = (*frames, b"", b"")[:2]
        key = _curve_key(frames)
        if key is not None and self._allowed.current.edge_of(key) is not None:
            # The User-Id of all its messages is the key itself, so that one of an edge's two can be revoked.
            return [version, request, b"200", b"OK", key, b""]
        self._counters.refuse(Code.UNKNOWN_KEY)
        if self.announce:
            _log.warning("a connection was refused", key=key.decode() if key else "none")
        return [version, request, b"400", b"unknown key", b"", b""]


async def prove_strangers_stay_out(context: zmq.asyncio.Context, endpoint: str, hub_key: bytes) -> None:
    """Knock with a throw-away key and with none; SecurityError unless both are refused (Z3 to Z7)."""
    await _must_be_refused(stranger(context, hub_key), endpoint, "an unknown key")
    await _must_be_refused(stranger(context, None), endpoint, "a plain socket")


_KNOCK_LIMIT_S = 5.0
_REFUSALS = zmq.Event.HANDSHAKE_FAILED_AUTH | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
_KNOCK_EVENTS = _REFUSALS | zmq.Event.HANDSHAKE_SUCCEEDED


async def _must_be_refused(socket: zmq.asyncio.Socket, endpoint: str, who: str) -> None:
    monitor = socket.get_monitor_socket(_KNOCK_EVENTS)
    event = 0
    try:
        socket.connect(_reachable(endpoint))
        with anyio.move_on_after(_KNOCK_LIMIT_S):
            frames = await monitor.recv_multipart()
            event = int.from_bytes(frames[0][:2], sys.byteorder)
    finally:
        socket.disable_monitor()
        monitor.close()
        socket.close()
    if not event & _REFUSALS:
        raise SecurityError(
            Code.UNKNOWN_KEY,
            f"the hub's socket does not refuse {who}",
            hint="Do not run this hub: its libzmq lets strangers in",
            event=event,
        )


def _reachable(endpoint: str) -> str:
    return endpoint.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _curve_key(frames: list[bytes]) -> bytes | None:
    """The client's key of a well-formed CURVE request for our domain, in Z85."""
    well_formed = len(frames) == 7 and frames[0] == b"1.0" and frames[2] == ZAP_DOMAIN
    if not well_formed or frames[5] != b"CURVE" or len(frames[6]) != 32:
        return None
    key: bytes = z85.encode(frames[6])
    return key


def _edge(name: str, table: object) -> Edge:
    if not isinstance(table, dict) or set(table) != {"keys", "tenants"}:
        raise _bad("an edge has exactly `keys` and `tenants`", edge=str(name)[:80])
    return Edge(
        edge_name(name),
        tuple(_listed_key(name, key) for key in _strings(name, table["keys"])),
        tuple(tenant_name(tenant) for tenant in _strings(name, table["tenants"])),
    )


def _strings(name: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _bad("`keys` and `tenants` are lists of strings", edge=name)
    return value


def _listed_key(name: str, text: str) -> bytes:
    key = text.encode("utf-8")
    if _Z85_KEY.fullmatch(key) is None:
        raise _bad("not a public key in Z85", edge=name, value=clean(text))
    return key


def _quoted(text: str) -> str:
    """Z85 and names hold neither quote nor backslash."""
    return f'"{text}"'


def _bad(message: str, **facts: object) -> PermanentError:
    return PermanentError(Code.BAD_CONFIG, message, hint="Write edges.toml as docs/link.md shows it", **facts)
