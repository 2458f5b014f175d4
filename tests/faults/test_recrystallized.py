"""Edge daemon, hub daemon and an endpoint: a squeeze whose only way back is a model, and both ledgers."""

from __future__ import annotations

from pathlib import Path

import pytest

from crystalmem.demo.site import Model
from tests.recrystallized import recrystallized
from tests.scripted_openai import TOKENS, Script, scripted_openai_thread

pytestmark = pytest.mark.slow
ENTRIES = 30
SERVED_TOKENS = 200_000


def test_both_ledgers_hold_what_the_engine_counted(tmp_path: Path) -> None:
    with scripted_openai_thread() as endpoint:
        endpoint.words = True
        found = recrystallized(
            tmp_path,
            Model(endpoint.url, "model-1"),
            entries=ENTRIES,
            served_tokens=SERVED_TOKENS,
            settle_s=60,
        )
    asked = len(endpoint.requests)
    assert asked > 0
    assert len(found.spending) == asked
    assert sum(tokens for tokens, _, _ in found.spending) == TOKENS * asked <= 0.1 * SERVED_TOKENS
    assert found.settled != "timed_out"
    ledger = found.status["ledger"]
    assert (ledger["tokens"], ledger["attempts"]) == (TOKENS * asked, asked)
    admitted = sum(admitted for _, admitted, _ in found.spending)
    assert all(bool(reason) != bool(admitted) for _, admitted, reason in found.spending)
    assert found.overlays <= admitted


def test_an_endpoint_that_is_away_costs_nothing_and_settle_returns(tmp_path: Path) -> None:
    with scripted_openai_thread(*[Script.RATE_LIMITED] * 50) as endpoint:
        found = recrystallized(
            tmp_path,
            Model(endpoint.url, "model-1"),
            entries=ENTRIES,
            served_tokens=SERVED_TOKENS,
            settle_s=60,
        )
    assert (found.spending, found.overlays) == ([], 0)
    assert 1 <= len(endpoint.requests) <= 3
