"""CrystalMem itself as an arm: the edge agent's own passes over a real store, driven verb by verb.

Nothing is decided here. What is the bench's own is in `edge_parts`: time by events, seeded randomness, and a
store that lives in scratch space for one run.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping

from anyio.from_thread import start_blocking_portal

from bench.environments.contract import Item
from bench.policies.contract import Held, Hit, Recalled, Report, Spending, Traits
from bench.policies.edge_arms import EdgeSpec, spec
from bench.policies.edge_parts import EventClock, scratch_directory
from bench.policies.edge_running import Running, running
from edge_agent import requests
from shared.errors import Code, InputError
from shared.memory.model import Rung
from shared.memory.value import ValueColumns

_SETTLE_S = 60.0


class EdgeArm:
    """bench.policies.contract.Arm over one edge agent in this process."""

    budget_exempt = False
    traits = Traits(shortens=True, lengthens=True, links=True)

    def __init__(self, name: str, found: EdgeSpec, seed: int) -> None:
        self.name = name
        self._directory = scratch_directory("crystalmem-bench-")
        self._clock = EventClock()
        self._originals: dict[int, str] = {}
        self._items: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._portal_scope = start_blocking_portal()
        self._portal = self._portal_scope.__enter__()
        scope = running(found, seed, self._directory, self._clock, self._originals)
        self._running_scope = self._portal.wrap_async_context_manager(scope)
        try:
            self._running: Running = self._running_scope.__enter__()
        except BaseException as problem:
            self._portal_scope.__exit__(type(problem), problem, problem.__traceback__)
            shutil.rmtree(self._directory, ignore_errors=True)
            raise
        self._verbs = self._running.passes.verbs
        self.stand_in = self._running.stand_in

    # --- bench.policies.contract.Arm --------------------------------------------------------------------

    def write(self, item: Item) -> Report:
        """Remember; what the budget has no room for at all is refused, and counted as evicted."""
        self._clock.advance()
        before = self._seen()
        body = requests.Remember(
            item.text,
            kind=item.kind.name.lower(),
            links=[self._id(link) for link in item.links if link in self._numbers][: requests.MAX_LINKS],
        )
        try:
            told = self._portal.call(self._verbs.remember, body)
        except InputError as problem:
            if problem.code is not Code.ENTRY_OVER_BUDGET:
                raise
            report = self._told(before)
            report.evicted.append(item.id)
            return report
        self._items[told.number] = item.id
        self._originals[told.number] = item.text
        self._numbers[item.id] = told.number
        return self._told(before)

    def recall(self, query: str, k: int, max_bytes: int, *, record: bool) -> Recalled:
        """The door's recall."""
        if record:
            self._clock.advance()
        body = requests.Recall(query, k, max_bytes, record)
        found = self._portal.call(self._verbs.recall, body)
        hits = tuple(
            Hit(self._items[int(hit.id, 16)], hit.text, hit.score, hit.rung)
            for hit in found.hits
            if int(hit.id, 16) in self._items
        )
        return Recalled(found.recall_id or "", hits)

    def outcome(self, ticket: str, g: float, tokens: int) -> None:
        """The door's outcome; a recall that the budget has made void by now teaches nothing."""
        self._clock.advance()
        try:
            self._portal.call(self._verbs.outcome, requests.Outcome(ticket, g, tokens))
        except InputError as problem:
            if problem.code is not Code.UNKNOWN_RECALL:
                raise

    def set_budget(self, budget_bytes: float) -> Report:
        """The door's budget, then settled."""
        self._clock.advance()
        before = self._seen()
        body = requests.SetBudget(bytes=max(int(budget_bytes), 1))
        self._portal.call(self._verbs.set_budget, body)
        return self._settled(before)

    def settle(self) -> Report:
        """The door's settle."""
        self._clock.advance()
        return self._settled(self._seen())

    def held(self) -> Held:
        """The account, split."""
        return self._portal.call(self._running.held)

    def rungs(self) -> Mapping[str, int]:
        """Entries by the rung that recall shows."""
        return Counter(rung.name.lower() for rung in self._seen().values())

    def spending(self) -> Spending:
        """What the ledger says of the stage under way, and what planning took."""
        return self._portal.call(self._running.spending)

    def close(self) -> None:
        """End the passes, close the files and remove them."""
        try:
            self._running_scope.__exit__(None, None, None)
        finally:
            self._portal_scope.__exit__(None, None, None)
            shutil.rmtree(self._directory, ignore_errors=True)

    # --- for the theory's checks ----------------------------------------------------------------------

    def values(self) -> dict[str, float]:
        """v of Eq. 6 by item."""
        found = self._portal.call(self._running.values)
        return {self._items[number]: value for number, value in found.items() if number in self._items}

    def influences(self) -> ValueColumns:
        """What Eq. 8 and 9 look at now, ascending by number."""
        return self._portal.call(self._running.columns)

    def items(self) -> list[str]:
        """Live items, ascending by number."""
        return [self._items[number] for number in sorted(self._seen()) if number in self._items]

    # --- private ------------------------------------------------------------------------------------------

    def _id(self, item: str) -> str:
        return f"{self._numbers[item]:032x}"

    def _seen(self) -> dict[int, Rung]:
        return self._portal.call(self._running.shown)

    def _settled(self, before: Mapping[int, Rung]) -> Report:
        told = self._portal.call(self._verbs.settle, requests.Settle(_SETTLE_S))
        report = self._told(before)
        report.model_tokens = told.tokens
        report.rejected = self._portal.call(self._running.take_rejected)
        report.model_calls = sum(report.rejected.values()) + told.by_source.get("model", 0)
        return report

    def _told(self, before: Mapping[int, Rung]) -> Report:
        """Net moves since `before`, which held every live entry's shown rung."""
        after = self._seen()
        report = Report()
        for number, rung in before.items():
            item = self._items.get(number, "")
            now = after.get(number)
            if now is None:
                report.evicted.append(item)
            elif now > rung:
                report.demoted.append((item, rung.name.lower(), now.name.lower()))
            elif now < rung:
                report.promoted.append((item, rung.name.lower(), now.name.lower()))
        return report


def edge_arm(name: str, seed: int) -> EdgeArm:
    """A new arm over an empty store; InputError for a name that is none of edge_arms'."""
    return EdgeArm(name, spec(name, seed), seed)
