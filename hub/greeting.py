"""The hello table of docs/link.md as one pure decision."""

from __future__ import annotations

from dataclasses import dataclass

from shared.wire import NO_CHAIN, Hello, HelloVerdict


@dataclass(frozen=True)
class Cursor:
    """How far the hub has applied one edge's stream in its present epoch."""

    epoch: bytes
    seq: int = 0
    chain: bytes = NO_CHAIN
    prev_chain: bytes = NO_CHAIN
    last_ack: bytes = b""
    alarmed: bool = False


def judge(hello: Hello, cursor: Cursor | None, *, retired: bool) -> HelloVerdict:
    """What both sides must do. `retired`: this edge has left the hello's epoch before."""
    if cursor is None or cursor.epoch != hello.epoch:
        if retired:
            return HelloVerdict.FENCE
        # What an unknown epoch has seen acked, a hub has acked that we no longer are.
        return HelloVerdict.RESYNC if hello.acked_seq else HelloVerdict.CONTINUE
    if cursor.alarmed:
        return HelloVerdict.ALARM
    if hello.acked_seq > cursor.seq:
        return HelloVerdict.RESYNC
    if hello.highest_seq < cursor.seq:
        return HelloVerdict.FENCE
    if hello.acked_seq < cursor.seq:
        # Only the last batch can be unknown to a true edge; one that is further behind is an old copy.
        return HelloVerdict.AHEAD if hello.chain == cursor.prev_chain else HelloVerdict.FENCE
    return HelloVerdict.CONTINUE if hello.chain == cursor.chain else HelloVerdict.ALARM
