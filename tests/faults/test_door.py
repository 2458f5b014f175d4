"""The local door of a real daemon: bad input has a code and changes nothing; no client can hurt the next."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crystalmem_client import CrystalMemError

from tests.daemons import STILL, TENANT, Answer, Edge, running_edge

BUDGET_BYTES = 256 * 1024
KNOWN_ID = "00" * 15 + "01"
SECRET = "the safe's code is zyxq-17"
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """One daemon with a few entries, a graded and an open recall; tests here leave it as they found it."""
    tables = {**STILL, "memory": {"provision_bytes": BUDGET_BYTES}}
    with running_edge(tmp_path_factory.mktemp("door"), tables) as edge:
        with edge.client() as client:
            client.remember(SECRET, id=KNOWN_ID, kind="memory")
            for number in range(20):
                client.remember(f"Trip {number}: dock A to shelf {number % 7}, battery {90 - number} %.")
        yield edge


@pytest.fixture(scope="module")
def graded_id(door: Edge) -> str:
    with door.client() as client:
        recall_id = client.recall("safe code").recall_id
        assert recall_id is not None
        client.outcome(recall_id, 1.0)
    return recall_id


@pytest.fixture(scope="module")
def open_id(door: Edge) -> str:
    with door.client() as client:
        recall_id = client.recall("battery of trip 3").recall_id
    assert recall_id is not None
    return recall_id


def refused(door: Edge, answer: Answer, before: dict[str, Any], code: str) -> None:
    """A refusal with this code, a message and a hint-shaped body; and nothing at all has changed."""
    assert answer.code == code, answer.body
    assert 400 <= answer.status < 500 or code == "entry_over_budget"
    assert answer.body["error"]["message"]
    assert door.fingerprint() == before


# --- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"text": ""}, "empty_text"),
        ({"text": " \n\t \u3000"}, "empty_text"),
        ({"text": "\u200b"}, "empty_text"),
        ({"text": "half a \ud83d pair"}, "lone_surrogate"),
        ({"text": "a\0b"}, "nul_in_text"),
        ({"text": "x" * (MIB + 1)}, "text_too_large"),
        (b'{"text": "caf\xe9"}', "not_utf8"),
        (b'{"text": "bad \\u12 escape"}', "bad_request"),
        ({"text": "y " * (BUDGET_BYTES // 2)}, "entry_over_budget"),
        ({"text": "again", "id": KNOWN_ID}, "duplicate_id"),
        ({"text": "x", "id": "12"}, "bad_id"),
        ({"text": "x", "id": KNOWN_ID.replace("0", "g")}, "bad_id"),
        ({"text": "x", "links": ["nonsense"]}, "bad_id"),
        ({"text": "x", "id": "ab" * 16, "links": ["ab" * 16]}, "bad_request"),
        ({"text": "x", "kind": "poem"}, "bad_request"),
        ({"text": "x", "class": "fact"}, "bad_request"),
        ({"text": "x", "created": "yesterday"}, "bad_request"),
        ({"text": "x", "colour": "red"}, "bad_request"),
        ({"text": 7}, "bad_request"),
        ({}, "bad_request"),
        (b"", "bad_request"),
        (b"{", "bad_request"),
        (b"[]", "bad_request"),
        (b"[" * 100_000, "bad_request"),
        (b'{"text": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, "bad_request"),
        (b'{"text": "' + b"x" * (7 * MIB) + b'"}', "text_too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:40],
)
def test_a_bad_write_is_refused_by_name_and_changes_nothing(door: Edge, body: object, code: str) -> None:
    before = door.fingerprint()
    refused(door, door.post(f"/v1/{TENANT}/remember", body), before, code)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"g": float("nan")}, "bad_outcome"),
        ({"g": float("inf")}, "bad_outcome"),
        ({"g": 1.5}, "bad_outcome"),
        ({"g": -0.1}, "bad_outcome"),
        ({"g": "1"}, "bad_request"),
        ({"g": 1.0, "tokens": -1}, "bad_request"),
        ({"g": 1.0, "recall_id": "ef" * 16}, "unknown_recall"),
        ({"g": 1.0, "recall_id": "short"}, "bad_id"),
    ],
    ids=repr,
)
def test_a_bad_outcome_is_refused_and_the_recall_stays_open(
    door: Edge, open_id: str, fields: dict[str, Any], code: str
) -> None:
    before = door.fingerprint()
    refused(door, door.post(f"/v1/{TENANT}/outcome", {"recall_id": open_id, **fields}), before, code)


def test_a_recall_is_graded_once(door: Edge, graded_id: str) -> None:
    before = door.fingerprint()
    answer = door.post(f"/v1/{TENANT}/outcome", {"recall_id": graded_id, "g": 0.0})
    refused(door, answer, before, "already_graded")


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("budget", {"fraction": 0.0}, "bad_budget"),
        ("budget", {"fraction": 1.5}, "bad_budget"),
        ("budget", {"fraction": float("nan")}, "bad_budget"),
        ("budget", {}, "bad_budget"),
        ("budget", {"bytes": 1000, "fraction": 0.5}, "bad_budget"),
        ("budget", {"bytes": 1}, "budget_below_floor"),
        ("budget", {"fraction": 0.5, "capability": 101}, "bad_request"),
        ("budget", {"bytes": -5}, "bad_request"),
        ("budget/plan", {"fraction": 2.0}, "bad_budget"),
        ("recall", {"query": "x", "k": 0}, "bad_request"),
        ("recall", {"query": "x", "k": 10**6}, "bad_request"),
        ("recall", {"query": "x", "max_bytes": 0}, "bad_request"),
        ("recall", {"query": "half \ud83d"}, "lone_surrogate"),
        ("recall", {"query": "q" * 20_000}, "text_too_large"),
        ("settle", {"timeout_s": -1}, "bad_request"),
        ("restore", {}, "bad_request"),
        ("restore", {"id": "ef" * 16}, "unknown_id"),
    ],
    ids=repr,
)
def test_a_bad_request_of_any_other_verb_changes_nothing(
    door: Edge, open_id: str, path: str, body: object, code: str
) -> None:
    before = door.fingerprint()
    refused(door, door.post(f"/v1/{TENANT}/{path}", body), before, code)


def test_a_query_of_nothing_finds_nothing(door: Edge) -> None:
    for query in ("", "   ", "\u200b", "!?", '"', "a AND NOT (", "text:x OR *", "\0"):
        answer = door.post(f"/v1/{TENANT}/recall", {"query": query, "record": False})
        assert answer.status == 200, (query, answer.body)


def test_measuring_changes_nothing(door: Edge) -> None:
    before = door.fingerprint()
    with door.client() as client:
        found = client.recall("safe code", record=False)
        client.plan_budget(fraction=0.1)
        client.explain(KNOWN_ID)
        client.get(KNOWN_ID)
    assert found.recall_id is None
    assert found.hits[0].text == SECRET
    assert door.fingerprint() == before


# --- scope ----------------------------------------------------------------------------------------------


VERBS = [
    ("POST", "remember", {"text": "an intruder was here"}),
    ("POST", "recall", {"query": "safe code zyxq-17"}),
    ("POST", "outcome", {"recall_id": KNOWN_ID, "g": 1.0}),
    ("GET", f"entries/{KNOWN_ID}", None),
    ("GET", f"explain/{KNOWN_ID}", None),
    ("GET", "budget", None),
    ("POST", "budget", {"fraction": 0.1}),
    ("POST", "budget/plan", {"fraction": 0.1}),
    ("POST", "settle", {}),
    ("GET", "evicted", None),
    ("POST", "restore", {"id": KNOWN_ID}),
]


@pytest.mark.parametrize(
    "name",
    ["A", "HOME", "home%20", "%20home", "home%2F1", "home/1", "home%00", "%2e", "..", "%2e%2e%2fhome", "h"],
)
def test_another_tenants_name_is_unknown_on_every_verb(door: Edge, name: str) -> None:
    before = door.fingerprint()
    for method, path, body in VERBS:
        answer = door.ask(method, f"/v1/{name}/{path}", None if body is None else json.dumps(body).encode())
        assert answer.code in {"unknown_tenant", "not_found"}, (method, path, answer.body)
        assert answer.status == 404
        assert "zyxq" not in json.dumps(answer.body)
    assert door.fingerprint() == before


def test_one_function_maps_names_for_reads_and_writes(tmp_path: Path) -> None:
    with running_edge(tmp_path, STILL, tenant="a-1.x") as edge:
        with edge.client("a-1.x") as client:
            held = client.remember("written and read under one name")
            assert client.get(held["id"])["text"] == "written and read under one name"
        for other in ("A-1.x", "a-1", "a-1.x ", "a-1_x"):
            with edge.client(other) as client, pytest.raises(CrystalMemError, match="unknown_tenant"):
                client.get(held["id"])


# --- HTTP -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1"),
        ("GET", f"/v1/{TENANT}/remember"),
        ("DELETE", f"/v1/{TENANT}/entries/{KNOWN_ID}"),
        ("PUT", f"/v1/{TENANT}/budget"),
        ("POST", "/v1/status"),
        ("POST", f"/v1/{TENANT}/remember/"),
        ("POST", f"/v1/{TENANT}/forget"),
        ("PATCH", "/v1/status"),
        ("GET", "/metrics/../v1/status"),
    ],
)
def test_unknown_routes_and_methods_are_not_found(door: Edge, method: str, path: str) -> None:
    answer = door.ask(method, path, b"{}")
    assert answer.code == "not_found"


def test_hostile_http_does_not_hurt_the_next_client(door: Edge) -> None:
    before = door.fingerprint()
    assert door.ask("GET", "/v1/status", headers={"X-Big": "x" * 100_000}).status == 400
    assert door.ask("BREW", "/v1/status").status == 400
    with door.connect() as raw:
        raw.sendall(b"\x16\x03\x01 not HTTP at all\r\n\r\n")
        assert b" 400 " in raw.recv(64)
    with door.connect() as raw:
        raw.sendall(
            b'POST /v1/home/remember HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{"text": "half'
        )
    with door.connect() as raw:
        raw.sendall(b"POST /v1/home/remember HTTP/1.1\r\nHost: x\r\nContent-Length: zero\r\n\r\n{}")
        assert b" 400 " in raw.recv(64)
    with door.connect() as raw:
        raw.sendall(b"GET /v1/status HTT")
    idle = [door.connect() for _ in range(50)]
    try:
        assert door.fingerprint() == before
    finally:
        for held in idle:
            held.close()


def test_the_socket_is_the_owners_and_the_groups(door: Edge) -> None:
    assert stat.S_IMODE(os.stat(door.socket).st_mode) == 0o660
    assert stat.S_IMODE(os.stat(door.memory).st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in door.memory.iterdir()} == {0o600}
