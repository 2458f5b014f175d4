"""The local door with many clients at once, kills among them, a second listener and odd clocks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from crystalmem_client import Client, CrystalMemError

from crystalmem.demo.processes import free_port
from shared.errors import PermanentError
from tests.daemons import STILL, TENANT, Edge, running_edge


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """A daemon that tests may write to and kill, in a zone far from UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        with running_edge(tmp_path_factory.mktemp("busy"), STILL) as edge:
            yield edge


def test_parallel_writes_survive_a_kill_in_the_middle(busy: Edge) -> None:
    texts = {f"{number:032x}": f"parallel note {number}" for number in range(0x100, 0x100 + 200)}
    acknowledged: list[str] = []
    enough = threading.Event()

    def write(item: tuple[str, str]) -> None:
        with busy.client() as client, suppress(CrystalMemError):
            acknowledged.append(client.remember(item[1], id=item[0])["id"])
        if len(acknowledged) > 60:
            enough.set()

    with ThreadPoolExecutor(50) as pool:
        writers = [pool.submit(write, item) for item in texts.items()]
        assert enough.wait(60)
        busy.daemon.kill()
    assert all(writer.exception() is None for writer in writers)
    busy.start()
    assert 60 < len(acknowledged) < len(texts)
    held = busy.held()
    assert set(acknowledged) <= held.keys()
    with busy.client() as client:
        shown = {entry: client.get(entry)["text"] for entry in held}
    assert shown == {entry: texts[entry] for entry in held}


def test_a_retry_with_the_same_id_writes_once(busy: Edge) -> None:
    with busy.client() as client:
        client.remember("my dog is called Rex", id="aa" * 16)
        with pytest.raises(CrystalMemError, match="duplicate_id"):
            client.remember("my dog is called Rex", id="aa" * 16)
        assert client.get("aa" * 16)["text"] == "my dog is called Rex"
    assert list(busy.held()).count("aa" * 16) == 1


def test_racing_writers_of_one_id_get_one_entry(busy: Edge) -> None:
    start = threading.Barrier(8)

    def write(number: int) -> int:
        start.wait()
        return busy.post(f"/v1/{TENANT}/remember", {"text": f"racer {number}", "id": "bb" * 16}).status

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(write, range(8)))
    assert statuses == [200] + [409] * 7


def test_a_client_that_hangs_up_leaves_a_whole_entry_or_none(busy: Edge) -> None:
    body = json.dumps({"text": "was sent and never waited for", "id": "cc" * 16}).encode()
    head = f"POST /v1/{TENANT}/remember HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with busy.connect() as raw:
        raw.sendall(head + body)
    with busy.client() as client:
        client.remember("the next client")
        if "cc" * 16 in busy.held():
            assert client.get("cc" * 16)["text"] == "was sent and never waited for"


def test_odd_clocks_do_no_harm(busy: Edge) -> None:
    times = {
        "1970-01-01T00:00:00Z": "1970-01-01T00:00:00Z",
        "2200-01-01T00:00:00Z": "2200-01-01T00:00:00Z",
        "2026-03-01T09:30:00+09:00": "2026-03-01T00:30:00Z",
        "2026-03-01T00:30:00": "2026-03-01T00:30:00Z",
    }
    with busy.client() as client:
        for given, kept in times.items():
            held = client.remember(f"an entry dated {given}", created=given)
            assert client.get(held["id"])["created"] == kept
        provision = client.budget()["provision_bytes"]
        report = client.set_budget(bytes=client.budget()["logical_bytes"] * 3 // 4)
        assert report["logical_bytes"] <= report["budget_bytes"]
        client.set_budget(bytes=provision)
        assert client.settle()["state"] == "settled"


# --- other starts -----------------------------------------------------------------------------------------


def test_loopback_wants_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a token of more than 16 characters\n", "ascii")
    port = free_port()
    door = {"listen": f"127.0.0.1:{port}", "token_file": str(token)}
    with running_edge(tmp_path, {**STILL, "door": door}):
        address = f"127.0.0.1:{port}"
        for wrong in (None, "", "a token of more than 16", "A token of more than 16 characters"):
            with Client(address=address, token=wrong, tenant=TENANT) as client:
                for call in (client.status, client.budget, lambda: client.remember("x")):
                    with pytest.raises(CrystalMemError) as refusal:
                        call()
                    assert (refusal.value.code, refusal.value.status) == ("unauthorized", 401)
        with Client(address=address, token="a token of more than 16 characters", tenant=TENANT) as client:
            assert client.budget()["entries"] == 0


def test_a_socket_that_another_daemon_serves_is_not_taken_from_it(busy: Edge) -> None:
    thief = Edge(busy.fleet, "thief", STILL)
    thief.socket = busy.socket
    with pytest.raises(PermanentError, match="did not start") as failure:
        thief.start()
    assert "another daemon" in str(failure.value)
    with busy.client() as client:
        assert client.status()["state"] == "serving"


def test_a_store_of_another_tenant_or_ladder_is_refused_untouched(tmp_path: Path) -> None:
    with running_edge(tmp_path, STILL) as edge:
        with edge.client() as client:
            held = client.remember("this belongs to home")
        edge.daemon.stop()
        before = (edge.memory / "store.db").read_bytes()
        for other, code in (
            (Edge(edge.fleet, "edge", STILL, "away"), "wrong_tenant_store"),
            (Edge(edge.fleet, "edge", {**STILL, "memory": {"ladder": "paper"}}), "wrong_ladder"),
        ):
            with pytest.raises(PermanentError, match="did not start") as failure:
                other.start()
            assert code in str(failure.value)
            assert "Traceback" not in str(failure.value)
            assert (edge.memory / "store.db").read_bytes() == before
        edge.start()
        with edge.client() as client:
            assert client.get(held["id"])["text"] == "this belongs to home"


def test_sigterm_during_requests_ends_well_and_keeps_what_it_acknowledged(busy: Edge) -> None:
    acknowledged: list[str] = []

    def remember_for_ever(client: Client) -> None:
        while True:
            acknowledged.append(client.remember("until the end")["id"])

    def write() -> None:
        with busy.client() as client, pytest.raises(CrystalMemError, match="daemon_unreachable"):
            remember_for_ever(client)

    writer = threading.Thread(target=write)
    writer.start()
    while len(acknowledged) < 20:
        assert writer.is_alive()
        writer.join(0.01)
    busy.daemon.stop()  # fails unless the exit code is 0
    writer.join()
    busy.start()
    assert set(acknowledged) <= set(busy.held())
