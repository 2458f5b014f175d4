"""A real hub process over one directory and one port, to be killed, frozen and started again."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from edge_agent.sync import LinkEndpoint, SyncLink
from hub.auth import Edge, new_keys, render_allow_list
from shared.host.clock import SystemRng
from shared.host.keys import KeyPair, load_pair, new_pair
from shared.scope import EdgeName, TenantName
from tests.link_harness import CLOCK, EDGE, FAST, TENANT, ListOutbox

RUN = "import sys; from crystalmem.run_hub import run_hub_command; sys.exit(run_hub_command(None, {}))"


class HubProcess:
    """`crystalmem hub run` over one directory and one port; the port is kept from one life to the next."""

    def __init__(self, directory: Path, port: int, settings: Mapping[str, object] | None = None) -> None:
        self.directory = directory
        self.endpoint = f"tcp://127.0.0.1:{port}"
        self.keys = load_pair(new_keys(directory / "keys", "hub").secret_file)
        self.edge_keys = new_pair()
        edge = Edge(EdgeName(EDGE), (self.edge_keys.public,), (TenantName(TENANT),))
        (directory / "edges.toml").write_text(render_allow_list([edge]), encoding="utf-8")
        self.settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """A new process; the link notices when it listens."""
        overrides = {"data_dir": str(self.directory), "listen": self.endpoint, **self.settings}
        code = RUN.replace("{}", repr(overrides))
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait."""
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        assert self._process is not None
        return self._process.wait(20)

    def end(self) -> None:
        """Whatever state it is in."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.kill()

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Read with plain sqlite3: not our own reading of our own writing."""
        path = self.directory / "tenants" / f"{TENANT}.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()


def free_port() -> int:
    """A port that nobody listens on just now."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


def link_to(hub: HubProcess, source: ListOutbox, pair: KeyPair, *, draft_s: float = FAST.draft_s) -> SyncLink:
    """A link of this process to the hub's."""
    endpoint = LinkEndpoint(hub.endpoint, pair, hub.keys.public)
    return SyncLink(source, endpoint, b"b" * 16, CLOCK, SystemRng(), replace(FAST, draft_s=draft_s))
