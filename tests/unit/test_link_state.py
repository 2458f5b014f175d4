"""The link's legal moves, and who holds a session at the hub."""

from __future__ import annotations

import pytest

from edge_agent.channel import refusal
from edge_agent.link import Phase, transition
from hub.sessions import LIVE_S, Rivalry, Sessions
from shared.errors import Code, PermanentError, SecurityError, TransientError
from shared.wire import Refused
from tests.fakes import FakeClock


def test_a_link_comes_up_sends_and_goes_down() -> None:
    way = (Phase.CONNECTING, Phase.READY, Phase.SENDING, Phase.READY, Phase.BACKOFF, Phase.CONNECTING)
    phase = Phase.OFFLINE
    for to in way:
        phase = transition(phase, to)
    assert [step.up for step in way] == [False, True, True, True, False, False]


@pytest.mark.parametrize(
    ("origin", "to"),
    [
        (Phase.OFFLINE, Phase.READY),
        (Phase.CONNECTING, Phase.SENDING),
        (Phase.BACKOFF, Phase.READY),
        (Phase.STOPPED, Phase.CONNECTING),
        (Phase.ALARMED, Phase.CONNECTING),
        (Phase.ALARMED, Phase.BACKOFF),
    ],
)
def test_an_illegal_move_is_an_error(origin: Phase, to: Phase) -> None:
    with pytest.raises(PermanentError) as caught:
        transition(origin, to)
    assert caught.value.code is Code.INTERNAL


@pytest.mark.parametrize(
    ("code", "kind", "ours"),
    [
        ("source_absent", PermanentError, Code.SOURCE_ABSENT),
        ("fenced", SecurityError, Code.FENCED),
        ("disk_full", TransientError, Code.DISK_FULL),
        ("a code of a later release", TransientError, Code.HUB_UNAVAILABLE),
    ],
)
def test_a_refusal_says_whether_to_try_again(code: str, kind: type[Exception], ours: Code) -> None:
    error = refusal(Refused(0, code, "why"))
    assert isinstance(error, kind)
    assert error.code is ours


A, B = b"a" * 16, b"b" * 16
OLD, NEW = b"o" * 16, b"n" * 16


def rivalry(sessions: Sessions, boot: bytes, epoch: bytes) -> Rivalry:
    return sessions.rivalry("edge-1", "t", boot, epoch)


def test_rivals_are_live_processes_of_one_place() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    assert rivalry(sessions, A, OLD) is Rivalry.NONE
    sessions.open("edge-1", "t", b"\0r1", A, OLD)
    assert rivalry(sessions, A, NEW) is Rivalry.NONE  # the same process, on a new socket
    assert rivalry(sessions, B, OLD) is Rivalry.OLDER
    assert rivalry(sessions, B, NEW) is Rivalry.CLONE
    assert sessions.rivalry("edge-1", "u", B, NEW) is Rivalry.NONE
    clock.tick(LIVE_S - 0.1)
    assert rivalry(sessions, B, NEW) is Rivalry.CLONE
    clock.tick(0.2)
    assert rivalry(sessions, B, NEW) is Rivalry.NONE  # silent for longer than a heartbeat allows


def test_only_the_socket_of_a_session_keeps_it_live() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    sessions.open("edge-1", "t", b"\0r1", A, OLD)
    clock.tick(LIVE_S - 0.1)
    assert not sessions.heard("edge-1", "t", b"\0r2")
    assert sessions.heard("edge-1", "t", b"\0r1")
    clock.tick(LIVE_S - 0.1)
    assert rivalry(sessions, B, OLD) is Rivalry.OLDER
    sessions.drop("edge-1", "t")
    assert not sessions.heard("edge-1", "t", b"\0r1")
    assert len(sessions) == 0
