"""MemoryOS: pages move from short-term memory to mid-term sessions, and hot sessions to long-term memory.

Does: short-term memory is a queue of ten pages; a popped page is told continuing or not (a chain) and gets a
topic (summary, keywords), which finds it a session; a session whose heat (visits + pages + recency) reaches
5 updates the profile and gives knowledge.
Source: github.com/BAI-LAB/MemoryOS (memoryos-pypi); arXiv 2506.06326.
Ours: capacities are counts upstream. A budget is split 10 % short, 60 % mid, 30 % long, and mid-term memory
borrows what the others leave. Short-term memory that is over flushes early; long-term memory is first in,
first out; the session accessed least (a counter, not its heat) loses its pages, then, when it is the least
accessed again, its summary. Hours are the stream's own time. User and assistant knowledge are one queue.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.environments.contract import Item
from bench.policies import memoryos_rules as rules
from bench.policies.asking import STRING, STRINGS, Asker, schema
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row
from bench.policies.llm import Llm
from bench.policies.similarity import cosine
from shared.memory.model import Kind

SHORT_CAPACITY, SESSION_CAPACITY, KNOWLEDGE_CAPACITY = 10, 2000, 100
SHORT_SHARE, LONG_SHARE = 0.10, 0.30
SAME_SESSION = 0.6
HOT = 5.0
_HOURS_TAU = 24.0
_HOUR_S = 3600.0
_MARKS = ("session", "keywords", "long")
_CONTINUITY = schema(continues={"type": "boolean"}, chain=STRING)
_TOPIC = schema(summary=STRING, keywords=STRINGS)
_PROFILE = schema(profile=STRING)
_KNOWLEDGE = schema(knowledge=STRINGS)


class MemoryOs:
    """Rows carry their tier: none = short, `session` names a page's, `keywords` mark a session, `long`."""

    name = "memoryos"
    budget_exempt = False
    traits = Traits(
        shortens=True, links=True, calls_per_write=4, calls_in_enforce=4, native_knob="tier capacities"
    )
    origin = Origin(
        "MemoryOS",
        "arXiv 2506.06326; github.com/BAI-LAB/MemoryOS",
        "yes",
        "shares of the budget; one knowledge queue",
    )

    def __init__(self, seed: int, llm: Llm | None) -> None:
        answers = {
            "continuity": rules.continuity,
            "topic": rules.topic,
            "profile": rules.profile,
            "knowledge": rules.knowledge,
        }
        self._asker = Asker(llm, answers)
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in
        self._time_s = 0.0

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """To the queue; what it cannot hold moves on."""
        report = Report()
        self._time_s = max(self._time_s, item.time)
        host.add(item, now)
        while len(_short(host)) > SHORT_CAPACITY:
            self._move_on(host, now, report)
        return report

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """Sessions of the hits are visited, and may become hot."""
        report = Report()
        found = [host.rows[number] for number in hits if number in host.rows]
        sessions = {int(row.metadata.get("session", row.number)) for row in found}
        for number in sorted(sessions):
            session = host.rows.get(number)
            if session is not None and "keywords" in session.metadata:
                _count(host, session, "visits", 1)
                _count(host, session, "access", 1)
                self._learn_if_hot(host, session, now, report)
        return report

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Short-term memory flushes, long-term memory forgets its oldest, mid-term memory gets the rest."""
        report = Report()
        if host.bytes() <= budget_bytes:
            return report
        while _bytes(host, short := _short(host)) > SHORT_SHARE * budget_bytes and short:
            self._move_on(host, now, report)
        for row in _long(host):
            if _bytes(host, _long(host)) <= LONG_SHARE * budget_bytes:
                break
            report.evicted.append(host.remove(row.number).item)
        while host.bytes() > budget_bytes:
            sessions = _sessions(host)
            if sessions:
                _strip(host, min(sessions, key=_least_accessed), budget_bytes, report)
            else:
                report.evicted.append(host.remove(min(host.rows)).item)
        return report

    def _move_on(self, host: Host, now: int, report: Report) -> None:
        """The oldest page of the queue becomes a page of the session that its topic fits."""
        page = _short(host)[0]
        last = max(_pages(host), key=lambda row: row.created, default=None)
        chain = last.metadata.get("chain", "") if last else ""
        joined = self._asker.ask(
            report,
            "continuity",
            "Does the page continue the previous one? Describe the chain so far.",
            _CONTINUITY,
            previous=last.text if last else "",
            chain=chain,
            page=page.text,
        )
        told = self._asker.ask(report, "topic", "Summary and keywords of the page.", _TOPIC, page=page.text)
        summary = told["summary"] if told and told["summary"].strip() else page.text
        words = list(told["keywords"]) if told else []
        session = _fitting(host, summary, words) or _open(host, page, summary, words, now)
        page.metadata["session"] = str(session.number)
        if joined is not None:
            page.metadata["chain"] = joined["chain"]
            if joined["continues"] and last is not None and last.number not in page.links:
                page.links.append(last.number)
        host.touched(page.number)
        report.demoted.append((page.item, "short", "mid"))
        session.time = max(session.time, self._time_s)
        _count(host, session, "pages", 1)
        self._learn_if_hot(host, session, now, report)
        sessions = _sessions(host)
        if len(sessions) > SESSION_CAPACITY:
            _drop(host, min(sessions, key=_least_accessed), report)

    def _learn_if_hot(self, host: Host, session: Row, now: int, report: Report) -> None:
        """Heat 5: the profile and the knowledge learn from the session, whose counts begin anew."""
        if self._heat(session) < HOT:
            return
        pages = [row.text for row in _pages(host) if row.metadata["session"] == str(session.number)]
        for name in ("visits", "pages"):
            session.metadata[name] = "0"
        host.touched(session.number)
        if not pages:
            return
        known = _long(host)
        held = next((row for row in known if row.metadata["long"] == "profile"), None)
        earlier = held.text if held else ""
        found = self._asker.ask(
            report, "profile", "The profile after these pages.", _PROFILE, profile=earlier, pages=pages
        )
        if found and found["profile"].strip():
            if held:
                held.text = found["profile"]
                host.touched(held.number)
            else:
                _add_long(host, session, found["profile"], "profile", now)
        texts = [row.text for row in known]
        learnt = self._asker.ask(
            report,
            "knowledge",
            "What these pages tell that is not known yet.",
            _KNOWLEDGE,
            pages=pages,
            known=texts,
        )
        for text in learnt["knowledge"] if learnt else ():
            if text.strip() and text not in texts:
                _add_long(host, session, text, "fact", now)
        facts = [row for row in _long(host) if row.metadata["long"] == "fact"]
        for row in facts[: max(0, len(facts) - KNOWLEDGE_CAPACITY)]:
            report.evicted.append(host.remove(row.number).item)

    def _heat(self, session: Row) -> float:
        hours = (self._time_s - session.time) / _HOUR_S
        counted = int(session.metadata["visits"]) + int(session.metadata["pages"])
        return counted + math.exp(-hours / _HOURS_TAU)


def _short(host: Host) -> list[Row]:
    return [row for row in host.by_age() if row.metadata.keys().isdisjoint(_MARKS)]


def _pages(host: Host) -> list[Row]:
    return [row for row in host.by_age() if "session" in row.metadata]


def _sessions(host: Host) -> list[Row]:
    return [row for row in host.by_age() if "keywords" in row.metadata]


def _long(host: Host) -> list[Row]:
    """Oldest first; the profile, which every answer needs, last."""
    found = [row for row in host.by_age() if "long" in row.metadata]
    return sorted(found, key=lambda row: row.metadata["long"] == "profile")


def _bytes(host: Host, rows: Sequence[Row]) -> int:
    return sum(host.size_bytes(row.number) for row in rows)


def _fitting(host: Host, summary: str, words: Sequence[str]) -> Row | None:
    """The session most like it, when cosine of summaries + Jaccard of keywords is high enough."""

    def fit(session: Row) -> float:
        theirs, ours = set(session.metadata["keywords"].split(", ")), set(words)
        shared = len(theirs & ours) / len(theirs | ours) if theirs | ours else 0.0
        return cosine(session.text, summary) + shared

    ranked = [(fit(session), -session.number, session) for session in _sessions(host)]
    best = max(ranked, key=lambda found: found[:2], default=None)
    return best[2] if best and best[0] >= SAME_SESSION else None


def _open(host: Host, page: Row, summary: str, words: Sequence[str], now: int) -> Row:
    session = host.add(Item(page.item, summary, Kind.EPISODE, page.time), now)
    session.metadata |= {"keywords": ", ".join(words), "visits": "0", "pages": "0", "access": "0"}
    host.touched(session.number)
    return session


def _add_long(host: Host, session: Row, text: str, what: str, now: int) -> None:
    row = host.add(Item(session.item, text, Kind.KNOWLEDGE, session.time), now)
    row.metadata["long"] = what
    host.touched(row.number)


def _count(host: Host, session: Row, name: str, more: int) -> None:
    session.metadata[name] = str(int(session.metadata[name]) + more)
    host.touched(session.number)


def _least_accessed(session: Row) -> tuple[int, int, int]:
    return int(session.metadata["access"]), session.created, session.number


def _strip(host: Host, session: Row, budget_bytes: float, report: Report) -> None:
    """Pages of the session until the host fits; a session without pages goes itself."""
    pages = [row for row in _pages(host) if row.metadata["session"] == str(session.number)]
    if not pages:
        report.evicted.append(host.remove(session.number).item)
        return
    for row in pages:
        if host.bytes() <= budget_bytes:
            return
        report.evicted.append(host.remove(row.number).item)
    # Its summary stays until it is the least accessed again: the others have their turn first.
    _count(host, session, "access", 1)


def _drop(host: Host, session: Row, report: Report) -> None:
    for row in _pages(host):
        if row.metadata["session"] == str(session.number):
            report.evicted.append(host.remove(row.number).item)
    report.evicted.append(host.remove(session.number).item)
