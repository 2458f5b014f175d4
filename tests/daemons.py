"""Real daemons for tests: an edge behind its door, a hub when asked for; nothing outlives the block."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crystalmem_client import Client

from crystalmem.demo.checker import read_edge
from crystalmem.demo.processes import Daemon, Fleet, Value, write_config
from shared.host.files import directory_bytes

TENANT = "home"
# Long enough for two busy cores; a door that hangs fails the test instead of the suite.
ANSWER_S = 60.0

Tables = Mapping[str, "Value | Mapping[str, Value]"]
# Nothing moves in the background: what a test compares is what its own calls did.
STILL: Tables = {"idle": {"window_s": 3600.0, "patience_s": 3600.0}}


@dataclass(frozen=True)
class Answer:
    """One HTTP answer of the door."""

    status: int
    body: Any

    @property
    def code(self) -> str:
        """The refusal's code; empty where there is none."""
        return str(self.body["error"]["code"]) if "error" in self.body else ""


@dataclass
class Edge:
    """One `crystalmem edge run` and what is needed to start it again over the same files."""

    fleet: Fleet
    name: str
    tables: Tables = field(default_factory=dict)
    tenant: str = TENANT

    def __post_init__(self) -> None:
        self.directory = self.fleet.directory / self.name
        self.socket = self.fleet.socket_path(self.name)
        self._daemon: Daemon | None = None

    @property
    def memory(self) -> Path:
        """What the budget counts."""
        return self.directory / "memory"

    @property
    def daemon(self) -> Daemon:
        """The process that runs, or ran last."""
        assert self._daemon is not None, "start() first"
        return self._daemon

    def start(self) -> Edge:
        """Return when the daemon said READY."""
        config = self.fleet.directory / f"{self.name}.toml"
        door = {**self._table("door"), "socket": str(self.socket)}
        whole: dict[str, Value | Mapping[str, Value]] = {
            "tenant": self.tenant,
            "data_dir": str(self.directory),
            # A model that this machine happens to hold must not change what a test sees.
            "embedder": {"model": "none"},
            **self.tables,
            "door": door,
        }
        write_config(config, whole)
        self._daemon = self.fleet.start(self.name, ["edge", "run", "--config", str(config)])
        return self

    def kill_and_start(self) -> None:
        """SIGKILL, and a new process over the same files."""
        self.daemon.kill()
        self.start()

    def stop_and_start(self) -> None:
        """An orderly stop, and a new process over the same files."""
        self.daemon.stop()
        self.start()

    def client(self, tenant: str | None = None) -> Client:
        """The public client."""
        return Client(str(self.socket), tenant=tenant or self.tenant, timeout_s=ANSWER_S)

    def disk_bytes(self) -> int:
        """`du` of the memory, from outside."""
        return directory_bytes(self.memory)

    def log_bytes(self) -> int:
        """Of these, the write-ahead log's."""
        log = self.memory / "store.db-wal"
        return log.stat().st_size if log.exists() else 0

    def post(self, path: str, body: object) -> Answer:
        """POST raw bytes, or anything that json can write (NaN and lone surrogates too)."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", path, raw)

    def get(self, path: str) -> Answer:
        """GET."""
        return self.ask("GET", path)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own, sent as it is: what a foreign client may do."""
        connection = http.client.HTTPConnection("localhost", timeout=ANSWER_S)
        connection.sock = self.connect()
        try:
            connection.request(method, path, body=body, headers=dict(headers or {}))
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        is_json = response.headers.get_content_type() == "application/json"
        return Answer(response.status, json.loads(raw) if is_json else raw)

    def connect(self) -> socket.socket:
        """A bare connection to the door."""
        bare = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        bare.settimeout(ANSWER_S)
        bare.connect(str(self.socket))
        return bare

    def fingerprint(self) -> dict[str, Any]:
        """Everything the door tells of the memory, for "and nothing was changed"."""
        with self.client() as client:
            return {"status": client.status(), "evicted": client.list_evicted(), "held": self.held()}

    def held(self) -> dict[str, str]:
        """Id to digest of every live entry, read from the file and not from the daemon."""
        return {row.id.hex(): row.digest.hex() for row in read_edge(self.directory).live}

    def _table(self, name: str) -> Mapping[str, Value]:
        table = self.tables.get(name, {})
        assert isinstance(table, Mapping)
        return table


@contextmanager
def running_edge(directory: Path, tables: Tables | None = None, *, tenant: str = TENANT) -> Iterator[Edge]:
    """An edge that is ready; killed when the block ends."""
    directory.mkdir(parents=True, exist_ok=True)
    with Fleet(directory) as fleet:
        yield Edge(fleet, "edge", tables or {}, tenant).start()
