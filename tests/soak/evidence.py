"""What a crash may leave: checks from outside, against a journal written before each call."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from crystalmem_client import Client

from crystalmem.demo.checker import read_edge
from crystalmem.demo.journal import text_digest
from edge_agent.distill import PlainDistiller
from edge_agent.entries import ArchiveMode
from edge_agent.opening import StoreOptions
from edge_agent.store import Store
from shared.errors import IntegrityError
from shared.memory.model import LADDERS, Kind, Rung
from shared.memory.text_codec import TextCodec
from tests.daemons import Edge
from tests.fakes import FakeClock, SeededRng

CODEC = TextCodec(PlainDistiller())
# A restart reads this many acknowledged entries through the door, besides the newest ones.
SAMPLE = 30
LOG_SINCE_READY_BYTES = 16 * 1024


@dataclass
class Written:
    """What the driver wrote: text by id, and which of it was acknowledged."""

    texts: dict[str, str] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)


@dataclass
class Findings:
    """What was wrong, in words; empty is good."""

    problems: list[str] = field(default_factory=list)
    pending_at_kill: int = 0
    entries_read: int = 0

    def expect(self, holds: bool, problem: str) -> None:
        """Note what does not hold and go on: one run shows everything."""
        if not holds:
            self.problems.append(problem)


def target_pending(edge: Edge) -> bool:
    """Whether the file of a dead daemon says that a sweep is unfinished."""
    path = edge.memory / "store.db"
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        row = database.execute("SELECT value FROM meta WHERE name = 'target_pending'").fetchone()
    return bool(row[0])


def check_ready(edge: Edge, written: Written, newest: Iterable[str], findings: Findings) -> None:
    """Right after READY: the sweep is through, both budgets hold, nothing acknowledged is missing."""
    with edge.client() as client:
        check_account(client.budget(), edge, findings)
        held = check_held(edge, written, findings)
        for entry in {*newest, *sorted(written.acknowledged)[: len(written.acknowledged) : _step(written)]}:
            if entry in held:
                check_shown(client, entry, written.texts[entry], findings)


def check_account(account: dict[str, Any], edge: Edge, findings: Findings) -> None:
    """Prop. 4 and the physical budget, the second one measured here."""
    budget, limit = account["budget_bytes"], account["budget_bytes"] + account["empty_bytes"]
    findings.expect(not account["over_budget"], "READY before the sweep was finished")
    findings.expect(
        account["logical_bytes"] <= budget, f"logical {account['logical_bytes']} over a budget of {budget}"
    )
    disk, log = edge.disk_bytes(), edge.log_bytes()
    findings.expect(disk - log <= limit, f"disk {disk} with a log of {log} over a limit of {limit}")
    # The link may have written since READY; what a killed daemon left in the log may not be there.
    findings.expect(disk <= limit or log <= LOG_SINCE_READY_BYTES, f"a log of {log} over a limit of {limit}")


def check_held(edge: Edge, written: Written, findings: Findings) -> frozenset[str]:
    """Every acknowledged entry is live, or its eviction is on record; nothing is there twice."""
    files = read_edge(edge.directory)
    live = [row.id.hex() for row in files.live]
    evicted = {entry.hex() for entry in files.evicted}
    lost = written.acknowledged - set(live) - evicted
    findings.expect(not lost, f"{len(lost)} acknowledged entries are neither live nor recorded as evicted")
    findings.expect(len(live) == len(set(live)), "an entry is there twice")
    findings.expect(set(live) <= written.texts.keys(), "an entry is there that nobody wrote")
    wrong = [row for row in files.live if row.digest != text_digest(written.texts.get(row.id.hex(), ""))]
    findings.expect(not wrong, f"{len(wrong)} entries hold another digest than the text that was written")
    return frozenset(live)


def check_shown(client: Client, entry: str, text: str, findings: Findings) -> None:
    """The door shows the original at an exact rung, and exactly the rung's spans of it at a lossy one."""
    shown = client.get(entry)
    findings.entries_read += 1
    wanted = expected_text(text, Rung[shown["rung"].upper()])
    findings.expect(shown["text"] == wanted, f"{entry} shows another text at {shown['rung']}")


def check_stopped(edge: Edge, written: Written, findings: Findings) -> None:
    """Every entry of the stopped store by the store's own code, and every page of its file."""
    options = StoreOptions(edge.tenant, LADDERS["product"], 1, ArchiveMode.DEMOTED)
    codecs = dict.fromkeys(Kind, CODEC)
    store = Store.open(edge.memory, options, codecs=codecs, clock=FakeClock(), rng=SeededRng())
    try:
        for number in store.table.numbers().tolist():
            try:
                held = store.read(number)
            except IntegrityError as problem:
                findings.expect(False, f"entry {number} does not give its digest: {problem}")
                continue
            findings.entries_read += 1
            wanted = expected_text(written.texts[held.public_id.hex()], held.rung)
            findings.expect(
                held.base_text == wanted, f"entry {number} holds another base at {held.rung.name}"
            )
        store.plane.db.integrity_check()
    except IntegrityError as problem:
        findings.expect(False, f"integrity_check: {problem}")
    finally:
        store.close()


def expected_text(text: str, rung: Rung) -> str:
    """The base's text is a function of (original, levelling, rung) alone."""
    if not rung.lossy:
        return text
    return CODEC.render(CODEC.drop(text, LADDERS["product"], rung).record)


def _step(written: Written) -> int:
    return max(1, len(written.acknowledged) // SAMPLE)
