"""What holds for every test: no leaked thread, no time limit on a single example."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Two cores are shared by two workers: the suite's time-out counts, not an example's. In CI the examples are
# always the same, so that a red run can be repeated; at a desk each run looks further.
settings.register_profile("suite", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _no_leaked_threads() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread for thread in set(threading.enumerate()) - before if not thread.daemon]
    for thread in left:
        thread.join(timeout=1)  # a thread that is just ending is no leak
    assert [thread.name for thread in left if thread.is_alive()] == []
