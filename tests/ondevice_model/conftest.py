"""Options of the tests with real weights: `make test-ondevice` gives them."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ondevice-model", type=Path, help="folder that `crystalmem models prepare` made")


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Path:
    given: Path | None = request.config.getoption("--ondevice-model")
    if given is None:
        pytest.skip("give --ondevice-model FOLDER; `make test-ondevice` builds and names one")
    return given
