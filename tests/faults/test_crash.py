"""Twenty kills of one edge, four of its hub (`make soak-crash`: 200): nothing acknowledged is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak import crash

KILLS = 20


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_lost_doubled_or_over_budget_after_kills(tmp_path: Path) -> None:
    outcome = crash.run(KILLS, tmp_path)
    assert outcome.findings.problems == []
    assert outcome.check is not None
    assert not outcome.check.broken, outcome.check.details
    assert outcome.killed_during.total() == KILLS
    assert outcome.hub_kills == KILLS // crash.HUB_EVERY
    # The run is worth nothing unless it hit what it is about.
    assert outcome.findings.pending_at_kill > 0
    assert outcome.killed_during["write"] + outcome.killed_during["serve"] > 0
