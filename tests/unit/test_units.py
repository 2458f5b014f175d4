"""shared.units: what is read and what is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Code, InputError
from shared.units import GIB, KIB, MIB, format_bytes, parse_bytes, parse_seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (0, 0),
        (4_096, 4_096),
        ("0", 0),
        ("512", 512),
        ("512 B", 512),
        ("64MiB", 64 * MIB),
        (" 64 mib ", 64 * MIB),
        ("1.5 GB", 1_500_000_000),
        ("2KB", 2_000),
        ("2KiB", 2_048),
        ("1GiB", GIB),
        (2**53, 2**53),
    ],
)
def test_sizes_are_read(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "MiB", "-1", -1, "1e3", "1 TiB", "64 Mi B", "0x10", True, 1.5, None, 2**53 + 1, "9e99", "１B"],
)
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(InputError) as refused:
        parse_bytes(text)
    assert refused.value.code is Code.BAD_REQUEST


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (KIB, "1.0 KiB"),
        (1_536, "1.5 KiB"),
        (64 * MIB, "64.0 MiB"),
        (3 * GIB, "3.0 GiB"),
        (5_000 * GIB, "5000.0 GiB"),
        (-KIB, "-1.0 KiB"),
    ],
)
def test_sizes_are_printed_with_their_unit(size: int, text: str) -> None:
    assert format_bytes(size) == text


@given(st.integers(min_value=0, max_value=2**50))
def test_a_printed_size_reads_back_within_its_rounding(size: int) -> None:
    again = parse_bytes(format_bytes(size))
    assert abs(again - size) <= 0.051 * max(1, size)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("2s", 2.0),
        ("2", 2.0),
        ("1.5 m", 90.0),
        ("2min", 120.0),
        ("1h", 3_600.0),
        ("1d", 86_400.0),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("given_number", [0, 3, 0.5])
def test_a_number_is_a_number_of_seconds(given_number: float) -> None:
    assert parse_seconds(given_number) == given_number


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", -1, "1 week", "1 S", float("nan"), float("inf"), True, None]
)
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(InputError) as refused:
        parse_seconds(text)
    assert refused.value.code is Code.BAD_REQUEST
