"""Counts peers that libzmq turned away before they could send a message."""

from __future__ import annotations

import sys

import zmq
import zmq.asyncio

from hub.counters import Counters
from shared.errors import Code

_EVENTS = zmq.Event.HANDSHAKE_FAILED_PROTOCOL | zmq.Event.HANDSHAKE_FAILED_NO_DETAIL
# Its greeting names another mechanism. Where the plain peer sees ours first it breaks off: no detail then.
_MECHANISM_MISMATCH = zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH


class HandshakeWatch:
    """Reads the monitor of the hub's socket. Refusals by key are counted by the ZAP handler."""

    def __init__(self, socket: zmq.asyncio.Socket, counters: Counters) -> None:
        self._watched = socket
        self._monitor = socket.get_monitor_socket(_EVENTS)
        self._counters = counters

    async def run(self) -> None:
        """Count until cancelled."""
        while True:
            frame = (await self._monitor.recv_multipart())[0]
            event, detail = (int.from_bytes(part, sys.byteorder) for part in (frame[:2], frame[2:6]))
            plain = event == zmq.Event.HANDSHAKE_FAILED_NO_DETAIL or detail == _MECHANISM_MISMATCH
            self._counters.refuse(Code.NOT_ENCRYPTED if plain else Code.MALFORMED)

    def close(self) -> None:
        """Stop watching."""
        self._watched.disable_monitor()
        self._monitor.close()
