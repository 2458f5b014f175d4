"""What the door accepts and refuses, before anything is touched."""

from __future__ import annotations

import json

import pytest

from edge_agent import requests
from shared.errors import Code, InputError
from shared.memory.model import Kind, MemoryClass


def refused(code: Code, act: object, *args: object) -> InputError:
    with pytest.raises(InputError) as caught:
        act(*args)  # type: ignore[operator]
    assert caught.value.code is code
    return caught.value


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u200b", " \u200b\ufeff\n", "\u3000"])
def test_blank_text_is_refused(text: str) -> None:
    refused(Code.EMPTY_TEXT, requests.checked_text, text)


def test_a_lone_surrogate_is_named_by_place() -> None:
    problem = refused(Code.LONE_SURROGATE, requests.checked_text, "ab\ud83d")
    assert problem.facts == {"offset": 2, "value": "U+D83D"}


def test_a_nul_is_named_by_place() -> None:
    assert refused(Code.NUL_IN_TEXT, requests.checked_text, "ab\0c").facts["offset"] == 2


def test_text_limit_counts_bytes_not_characters() -> None:
    fits = "\u00e9" * (requests.MAX_TEXT_BYTES // 2)
    assert requests.checked_text(fits) == fits
    problem = refused(Code.TEXT_TOO_LARGE, requests.checked_text, fits + "x")
    assert problem.facts["size_bytes"] == requests.MAX_TEXT_BYTES + 1


@pytest.mark.parametrize("g", [float("nan"), 1.5, -0.1, float("inf")])
def test_a_grade_outside_the_unit_interval_is_refused(g: float) -> None:
    refused(Code.BAD_OUTCOME, requests.checked_grade, g)


@pytest.mark.parametrize("fraction", [0.0, -1.0, 1.01, float("nan")])
def test_a_fraction_outside_the_unit_interval_is_refused(fraction: float) -> None:
    refused(Code.BAD_BUDGET, requests.checked_fraction, fraction)


def test_nan_and_lone_surrogates_reach_their_own_checks() -> None:
    grade = requests.parse(b'{"recall_id": "00", "g": NaN}', requests.Outcome)
    refused(Code.BAD_OUTCOME, requests.checked_grade, grade.g)
    write = requests.parse(b'{"text": "x\\ud83d"}', requests.Remember)
    refused(Code.LONE_SURROGATE, requests.checked_text, write.text)


def test_bytes_that_are_not_utf8_are_named_by_place() -> None:
    problem = refused(Code.NOT_UTF8, requests.parse, b'{"text": "\xff"}', requests.Remember)
    assert problem.facts == {"offset": 10, "byte": "0xff"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'"text"',
        b"[" * 100_000,
        b'{"text": 5}',
        b'{"txt": "x"}',
        b'{"text": "x", "k": 1}',
        b'{"text": "x", "id": 7}',
        b'{"text": "x", "links": "none"}',
        b'{"text": ' + b"9" * 5000 + b"}",
    ],
)
def test_malformed_requests_are_refused(body: bytes) -> None:
    refused(Code.BAD_REQUEST, requests.parse, body, requests.Remember)


@pytest.mark.parametrize("body", [{"k": 0}, {"k": 101}, {"max_bytes": 0}, {"k": True}, {"k": 2**80}])
def test_bounds_of_a_recall(body: dict[str, object]) -> None:
    refused(Code.BAD_REQUEST, requests.parse, json.dumps({"query": "q", **body}).encode(), requests.Recall)


@pytest.mark.parametrize("text", ["", "00", "zz" * 16, "0" * 33, "00 " * 16, "0x" + "0" * 30])
def test_an_id_is_32_hexadecimal_digits(text: str) -> None:
    refused(Code.BAD_ID, requests.parse_id, text)


def test_kind_and_class() -> None:
    assert requests.parse_kind("memory") is Kind.MEMORY
    refused(Code.BAD_REQUEST, requests.parse_kind, "thought")
    assert requests.parse_class("rule", Kind.MEMORY) is MemoryClass.RULE
    refused(Code.BAD_REQUEST, requests.parse_class, "rule", Kind.EPISODE)
    refused(Code.BAD_REQUEST, requests.parse_class, "none", Kind.MEMORY)


def test_times_are_utc_whatever_the_process_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    naive = requests.parse_time_ns("2026-03-01T00:30:00")
    assert naive == requests.parse_time_ns("2026-03-01T00:30:00Z")
    assert naive == requests.parse_time_ns("2026-03-01T09:30:00+09:00")
    assert requests.format_time(naive) == "2026-03-01T00:30:00Z"
    for text in ("yesterday", "1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", ""):
        refused(Code.BAD_REQUEST, requests.parse_time_ns, text)
