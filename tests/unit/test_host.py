"""shared.host.clock and shared.host.log, and that the fakes stand in for the real ports."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import anyio
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from shared.host.clock import RandomIds, SystemClock, SystemRng
from shared.host.log import clean, configure, get_logger
from shared.ports import Clock, IdSource, Rng
from tests.fakes import CountingIds, FakeClock, SeededRng


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure(stream=stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_a_log_line_is_json_with_its_facts(lines: io.StringIO) -> None:
    get_logger("store").info("swept", moved=3)
    line = json.loads(lines.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "swept", "moved": 3, "level": "info", "logger": "store"}


def test_library_logs_come_out_the_same_way(lines: io.StringIO) -> None:
    logging.getLogger("aiohttp.server").warning("bad %s", "request")
    line = json.loads(lines.getvalue())
    assert (line["event"], line["level"], line["logger"]) == ("bad request", "warning", "aiohttp.server")


def test_debug_lines_are_left_out_unless_wanted(lines: io.StringIO) -> None:
    get_logger("store").debug("noise")
    assert lines.getvalue() == ""


def test_a_logged_error_carries_its_traceback_on_one_line(lines: io.StringIO) -> None:
    try:
        raise KeyError("gone")
    except KeyError:
        get_logger("store").exception("died")
    assert lines.getvalue().count("\n") == 1
    assert "KeyError: 'gone'" in json.loads(lines.getvalue())["exception"]


def test_a_person_gets_plain_lines(lines: io.StringIO) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    configure(stream=terminal)
    get_logger("store").info("swept", moved=3)
    assert "swept" in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("naïve 猫", "naïve 猫"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("nul\0", "nul\\x00"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800", "\\ud800"),
    ],
)
def test_peer_text_is_one_printable_line(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text(max_size=300), st.integers(min_value=1, max_value=250))
def test_cleaned_text_is_short_printable_and_encodable(text: str, limit: int) -> None:
    cleaned = clean(text, limit)
    assert len(cleaned) <= limit
    assert cleaned.isprintable()
    cleaned.encode("utf-8")


def test_cut_text_says_so() -> None:
    assert clean("x" * 201) == "x" * 199 + "…"
    assert clean("x" * 200) == "x" * 200
    assert clean("\n" * 150).endswith("…")


def test_real_and_fake_ports_are_ports() -> None:
    clocks: list[Clock] = [SystemClock(), FakeClock()]
    rngs: list[Rng] = [SystemRng(), SeededRng()]
    sources: list[IdSource] = [RandomIds(), CountingIds()]
    for clock in clocks:
        assert clock.mono_ns() <= clock.mono_ns()
        assert clock.wall_ns() > 1_700_000_000_000_000_000
    for rng in rngs:
        assert 0.0 <= rng.random() < 1.0
        assert len(rng.bytes(7)) == 7
    for source in sources:
        first, second = source.new_id(), source.new_id()
        assert len(first) == len(second) == 16
        assert first != second


async def test_the_real_clock_lets_others_run() -> None:
    clock = SystemClock()
    order: list[str] = []

    async def other() -> None:
        order.append("other")

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        before_ns = clock.mono_ns()
        await clock.sleep(0.001)
        order.append("me")
    assert order == ["other", "me"]
    assert clock.mono_ns() - before_ns >= 1_000_000


async def test_sleepers_of_the_fake_clock_wake_in_time_and_not_before() -> None:
    clock = FakeClock()
    woken: list[float] = []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async with anyio.create_task_group() as group:
        for seconds in (3.0, 1.0, 0.0):
            group.start_soon(sleeper, seconds)
        await anyio.wait_all_tasks_blocked()
        assert woken == [0.0]
        await clock.advance(0.999)
        assert woken == [0.0]
        await clock.advance(0.001)
        assert woken == [0.0, 1.0]
        await clock.advance(5.0)
        assert woken == [0.0, 1.0, 3.0]
    assert clock.sleepers == 0


def test_the_same_seed_gives_the_same_numbers() -> None:
    assert SeededRng(3).bytes(16) == SeededRng(3).bytes(16) != SeededRng(4).bytes(16)
