"""kill -9 at random instants of writes, sweeps and promotions; what is left is checked from outside.

python -m tests.soak.crash --kills 200 --out out/bench/crash.json
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeVar

from crystalmem_client import Client, CrystalMemError

from bench import report
from bench.report import at_least, at_most
from crystalmem.demo.journal import Journal, text_digest
from crystalmem.demo.processes import Fleet, run_checker
from crystalmem.demo.results import Check
from crystalmem.demo.site import TENANT, HubSite
from tests import households
from tests.daemons import Edge
from tests.soak.evidence import Findings, Written, check_ready, check_stopped, target_pending

T = TypeVar("T")

ENTRIES = 200
PROVISION_BYTES = 240 * 1024
TROUGHS = (0.5, 0.25, 0.12, 0.08)
# The first guess of how long an operation takes; later kills go by what was measured.
GUESS_S = {"write": 0.15, "sweep": 0.2, "promotion": 0.3}
# Every so many kills the hub dies too, while the link is busy.
HUB_EVERY = 5


@dataclass
class Outcome:
    """What a run found."""

    killed_during: Counter[str] = field(default_factory=Counter)
    hub_kills: int = 0
    findings: Findings = field(default_factory=Findings)
    ready_s: list[float] = field(default_factory=list)
    acknowledged: int = 0
    check: Check | None = None


class Driver:
    """Writes, recalls, grades and moves the budget through the public door until the door goes away."""

    def __init__(self, edge: Edge, journal: Journal, rng: random.Random) -> None:
        self.edge = edge
        self.written = Written()
        self.newest: list[str] = []
        self.doing = ""
        self._journal = journal
        self._rng = rng
        self._texts = _episodes()
        self._took_s = dict(GUESS_S)

    def fill(self, count: int) -> None:
        """Acknowledged entries to begin with."""
        with self.edge.client() as client:
            for _ in range(count):
                self._write(client)

    def prepare(self, wanted: str) -> None:
        """Bring the store where the wanted operation has something to do."""
        with self.edge.client() as client:
            if wanted == "sweep":
                client.set_budget(fraction=1.0)
                if self._rng.random() < 0.7:
                    client.settle()  # without it, layers are dropped that the hub has not got
            elif wanted == "promotion":
                client.settle()
                self._squeeze(client)
                client.set_budget(fraction=1.0)

    def until_killed(self, wanted: str, kill: Callable[[], None]) -> str:
        """Do it with a kill armed at a random instant of it; the operation that was in flight."""
        self.newest.clear()
        fired: list[str] = []
        delay_s = self._rng.uniform(0.0, self._took_s[wanted])

        def strike() -> None:
            if wanted == "sweep":
                self._await_pending()
            time.sleep(delay_s)
            doing = self.doing
            kill()
            fired.append(doing)

        striker = threading.Thread(target=strike)
        with self.edge.client() as client, suppress(_GoneError):
            striker.start()
            started = time.monotonic()
            self._do(client, wanted)
            # It was through before the kill came: the next one of its kind is struck in its own time.
            self._took_s[wanted] = time.monotonic() - started
            while not fired:
                self._write(client)
                self._serve(client)
        striker.join()
        return fired[0]

    def _await_pending(self) -> None:
        """From here on the sweep is under way, however slow the machine is; none may come at all."""
        for _ in range(200):
            if target_pending(self.edge):
                return
            time.sleep(0.01)

    # --- operations -------------------------------------------------------------------------------------

    def _do(self, client: Client, wanted: str) -> None:
        if wanted == "sweep":
            self._calling("sweep", lambda: self._squeeze(client))
        elif wanted == "promotion":
            self._calling("promotion", client.settle)
        else:
            for _ in range(20):
                self._write(client)
                self._serve(client)

    def _write(self, client: Client) -> None:
        text = next(self._texts)
        entry = self._rng.randbytes(16)
        self.written.texts[entry.hex()] = text
        self._journal.intend(entry, 1, text_digest(text))
        try:
            self._calling("write", lambda: client.remember(text, id=entry.hex()))
        except CrystalMemError as problem:
            if problem.code != "entry_over_budget":
                raise
            return  # a trough whose room is all outbox: refused, so not acknowledged
        self._journal.acknowledge(entry, 1)
        self.written.acknowledged.add(entry.hex())
        self.newest.append(entry.hex())

    def _serve(self, client: Client) -> None:
        query = f"episode e{self._rng.randrange(len(self.written.texts)):04d} mug fridge"
        found = self._calling("serve", lambda: client.recall(query))
        if found.recall_id is not None and self._rng.random() < 0.5:
            with suppress(_VoidError):
                self._calling("serve", lambda: client.outcome(found.recall_id, self._rng.random()))

    def _squeeze(self, client: Client) -> None:
        # A full outbox may be above the deepest trough: that is refused, and the next one up is taken.
        for fraction in sorted(TROUGHS[self._rng.randrange(len(TROUGHS)) :: -1]):
            try:
                client.set_budget(fraction=fraction)
            except CrystalMemError as problem:
                if problem.code != "budget_below_floor":
                    raise
            else:
                return

    def _calling(self, doing: str, call: Callable[[], T]) -> T:
        self.doing = doing
        try:
            return call()
        except CrystalMemError as problem:
            if problem.code == "daemon_unreachable":
                raise _GoneError from None
            if problem.code == "unknown_recall":
                raise _VoidError from None
            raise


class _GoneError(Exception):
    """The daemon was killed under the call."""


class _VoidError(Exception):
    """A recall id that many newer ones have pushed out."""


def _episodes() -> Iterator[str]:
    for seed in count():
        for row in households.rows(200, seed):
            if row["type"] == "episode":
                yield f"run {seed} {row['text']}"


def run(kills: int, directory: Path, seed: int = 1, tell: Callable[[str], None] = lambda _: None) -> Outcome:
    """One store, one hub, `kills` deaths of the edge and every HUB_EVERY of them one of the hub."""
    rng, outcome = random.Random(seed), Outcome()
    with Fleet(directory) as fleet, Journal(directory / "journal.jsonl") as journal:
        hub = HubSite("crash", directory, fleet, None)
        hub.start()
        tables = {"memory": {"provision_bytes": PROVISION_BYTES}, "link": hub.link_table()}
        edge = Edge(fleet, "edge", tables, TENANT).start()
        driver = Driver(edge, journal, rng)
        driver.fill(ENTRIES)
        for number in range(1, kills + 1):
            wanted = rng.choice(("write", "sweep", "promotion"))
            with _dying(hub, rng) if number % HUB_EVERY == 0 else nullcontext():
                driver.prepare(wanted)
                doing = driver.until_killed(wanted, edge.daemon.kill)
            outcome.killed_during[doing] += 1
            _restart(edge, driver, outcome)
            tell(f"{number:4d}/{kills} killed during {doing}, ready after {outcome.ready_s[-1]:.1f} s")
        with edge.client() as client:
            client.set_budget(fraction=1.0)
            client.settle()
        edge.daemon.stop()
        hub.stop()
    outcome.hub_kills = hub.kills
    outcome.acknowledged = len(driver.written.acknowledged)
    check_stopped(edge, driver.written, outcome.findings)
    outcome.check = run_checker(directory / "journal.jsonl", edge.directory, hub.tenant_file)
    return outcome


def _restart(edge: Edge, driver: Driver, outcome: Outcome) -> None:
    outcome.findings.pending_at_kill += target_pending(edge)
    started = time.monotonic()
    edge.start()
    outcome.ready_s.append(time.monotonic() - started)
    check_ready(edge, driver.written, driver.newest, outcome.findings)


@contextmanager
def _dying(hub: HubSite, rng: random.Random) -> Iterator[None]:
    """The hub is killed somewhere in the block and is back when the block ends."""
    death = threading.Timer(rng.uniform(0.0, 0.3), hub.kill_and_restart)
    death.start()
    try:
        yield
    finally:
        death.join()


def figures_of(outcome: Outcome) -> dict[str, float]:
    """What the report keeps."""
    check = outcome.check
    assert check is not None
    killed = {f"kills_during_{name}": outcome.killed_during[name] for name in (*GUESS_S, "serve")}
    return {
        "kills": outcome.killed_during.total(),
        **killed,
        "hub_kills": outcome.hub_kills,
        "sweeps_pending_at_kill": outcome.findings.pending_at_kill,
        "acknowledged_writes": outcome.acknowledged,
        "entries_read_back": outcome.findings.entries_read,
        "problems": len(outcome.findings.problems),
        "lost": check.lost + check.hub_lost,
        "changed": check.changed + check.hub_changed,
        "held_twice": check.duplicated,
        "applied_twice": check.applied_twice,
        "ready_median_s": round(statistics.median(outcome.ready_s), 2),
        "ready_max_s": round(max(outcome.ready_s), 2),
    }


def main() -> int:
    """The soak; exit code 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description="kill -9 during writes, sweeps and promotions")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/bench/crash.json"))
    parser.add_argument("--dir", type=Path, default=None, help="keep the stores, logs and journal here")
    options = parser.parse_args()
    if options.dir is None:
        with tempfile.TemporaryDirectory(prefix="crash-") as directory:
            outcome = run(options.kills, Path(directory), options.seed, _tell)
    else:
        options.dir.mkdir(parents=True)
        outcome = run(options.kills, options.dir, options.seed, _tell)
    figures = figures_of(outcome)
    aims = {
        name: at_most(figures[name], 0)
        for name in ("problems", "lost", "changed", "held_twice", "applied_twice")
    }
    aims["kills"] = at_least(figures["kills"], options.kills)
    report.write(options.out, figures, aims)
    details = outcome.check.details if outcome.check else ()
    for line in (*_table(figures), *outcome.findings.problems[:20], *details):
        _tell(line)
    return 0 if all(aim.met for aim in aims.values()) else 1


def _table(figures: dict[str, float]) -> Iterator[str]:
    for name, figure in figures.items():
        yield f"  {name:24} {figure:g}"


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
