"""One hub for one arm: fresh keys, its allow-list, its process, and its death by SIGKILL."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from crystalmem.demo.processes import Daemon, Fleet, Value, free_port, run_command, write_config
from shared.errors import Code, PermanentError
from shared.host.keys import load_public

TENANT = "demo"
_EDGE = "demo-edge"
_HUB = "demo-hub"


@dataclass(frozen=True)
class Model:
    """The endpoint that `--llm` and `--model` name."""

    url: str
    name: str


class HubSite:
    """Made fresh for each run of an arm: nothing is shared between arms."""

    def __init__(self, name: str, directory: Path, fleet: Fleet, model: Model | None) -> None:
        self._name = f"{name}-hub"
        self._directory = directory
        self._fleet = fleet
        self._model = model
        self._endpoint = f"tcp://127.0.0.1:{free_port()}"
        self._keys = directory / "keys"
        self._daemon: Daemon | None = None
        self.kills = 0

    @property
    def data(self) -> Path:
        """The hub's data directory."""
        return self._directory / "hub"

    @property
    def tenant_file(self) -> Path:
        """What the checker reads."""
        return self.data / "tenants" / f"{TENANT}.db"

    def start(self) -> None:
        """Make the keys and the allow-list, write the configuration, start the daemon."""
        for name in (_HUB, _EDGE):
            run_command(["keys", "new", name, "--dir", str(self._keys)], self._directory)
        edges = self._directory / "edges.toml"
        public = load_public(self._keys / f"{_EDGE}.pub").decode("ascii")
        edges.write_text(
            f'[edges."{_EDGE}"]\nkeys = [{json.dumps(public)}]\ntenants = [{json.dumps(TENANT)}]\n', "utf-8"
        )
        tables: dict[str, Value | dict[str, Value]] = {
            "listen": self._endpoint,
            "data_dir": str(self.data),
            "key_file": str(self._keys / f"{_HUB}.key"),
            "edges_file": str(edges),
        }
        if self._model is not None:
            tables["model"] = {"url": self._model.url, "name": self._model.name}
        write_config(self._config, tables)
        self._run()

    def link_table(self) -> dict[str, Value]:
        """What the edge's configuration needs to find this hub and to know it."""
        return {
            "endpoint": self._endpoint,
            "hub_key_file": str(self._keys / f"{_HUB}.pub"),
            "key_file": str(self._keys / f"{_EDGE}.key"),
        }

    def kill_and_restart(self) -> None:
        """SIGKILL, whatever it is doing, and a new process over the same files."""
        self._running().kill()
        self.kills += 1
        self._run()

    def stop(self) -> None:
        """End it well."""
        self._running().stop()
        self._daemon = None

    @property
    def _config(self) -> Path:
        return self._directory / "hub.toml"

    def _run(self) -> None:
        self._daemon = self._fleet.start(self._name, ["hub", "run", "--config", str(self._config)])

    def _running(self) -> Daemon:
        if self._daemon is None:
            raise PermanentError(Code.INTERNAL, "the hub is not running", hub=self._name)
        return self._daemon
