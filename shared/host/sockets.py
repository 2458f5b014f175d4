"""The one factory of ZeroMQ sockets: every setting of the link is set here and read back."""

from __future__ import annotations

from collections.abc import Mapping

import zmq
import zmq.asyncio

from shared.errors import Code, PermanentError
from shared.host.keys import KeyPair
from shared.messages import MAX_MESSAGE_BYTES

ZAP_ENDPOINT = "inproc://zeromq.zap.01"
ZAP_DOMAIN = b"crystalmem"

# A hostile but listed peer can make the hub hold this many messages of MAX_MESSAGE_BYTES, no more.
_RECEIVE_QUEUE = 16
_SEND_QUEUE = 64
# Heartbeats: a frozen peer is noticed after 3.0 s; ZeroMQ alone never does (runtime.md 2.1, Z12).
_COMMON = {
    zmq.MAXMSGSIZE: MAX_MESSAGE_BYTES,
    zmq.HEARTBEAT_IVL: 1000,
    zmq.HEARTBEAT_TIMEOUT: 3000,
    zmq.HEARTBEAT_TTL: 3000,
    zmq.HANDSHAKE_IVL: 5000,
    zmq.LINGER: 0,
    zmq.RCVHWM: _RECEIVE_QUEUE,
    zmq.SNDHWM: _SEND_QUEUE,
}
_ROUTER = {**_COMMON, zmq.CURVE_SERVER: 1, zmq.ZAP_ENFORCE_DOMAIN: 1}
# IMMEDIATE: nothing queues towards an absent hub; the outbox is the queue.
_DEALER = {**_COMMON, zmq.IMMEDIATE: 1, zmq.RECONNECT_IVL: 250, zmq.RECONNECT_IVL_MAX: 30_000}
# libzmq does not let these two be read; tests show what they do.
_ROUTER_WRITE_ONLY = {zmq.ROUTER_MANDATORY: 1, zmq.ROUTER_HANDOVER: 1}


def router(context: zmq.asyncio.Context, endpoint: str, keys: KeyPair) -> zmq.asyncio.Socket:
    """The hub's bound socket. Without a running ZAP handler it lets nobody in."""
    socket = context.socket(zmq.ROUTER)
    try:
        _set(socket, _ROUTER)
        for option, value in _ROUTER_WRITE_ONLY.items():
            socket.setsockopt(option, value)
        socket.setsockopt(zmq.ZAP_DOMAIN, ZAP_DOMAIN)
        socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
        _must_be_curve(socket)
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        socket.close()
        raise PermanentError(
            Code.BAD_CONFIG,
            "the hub cannot listen here",
            endpoint=endpoint,
            reason=str(error),
            hint="Choose a free port in `listen`, written as tcp://HOST:PORT",
        ) from error
    except PermanentError:
        socket.close()
        raise
    return socket


def dealer(context: zmq.asyncio.Context, endpoint: str, keys: KeyPair, hub_key: bytes) -> zmq.asyncio.Socket:
    """An edge's socket towards the hub; connecting goes on behind the scenes."""
    socket = context.socket(zmq.DEALER)
    try:
        _set(socket, _DEALER)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public)
        socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
        socket.setsockopt(zmq.CURVE_SERVERKEY, hub_key)
        _must_be_curve(socket)
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        socket.close()
        raise PermanentError(
            Code.BAD_CONFIG,
            "this is not a hub endpoint",
            endpoint=endpoint,
            reason=str(error),
            hint="Write `link.endpoint` as tcp://HOST:PORT and check the key files",
        ) from error
    except PermanentError:
        socket.close()
        raise
    return socket


def stranger(context: zmq.asyncio.Context, hub_key: bytes | None) -> zmq.asyncio.Socket:
    """An unconnected socket that the hub must refuse: a throw-away key, or (None) no key at all."""
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    if hub_key is not None:
        public, secret = zmq.curve_keypair()
        socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
        socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
        socket.setsockopt(zmq.CURVE_SERVERKEY, hub_key)
    return socket


def zap_socket(context: zmq.asyncio.Context) -> zmq.asyncio.Socket:
    """Where libzmq asks whether a key may come in; in this process only."""
    socket = context.socket(zmq.REP)
    socket.setsockopt(zmq.LINGER, 0)
    socket.bind(ZAP_ENDPOINT)
    return socket


def bound_endpoint(socket: zmq.asyncio.Socket) -> str:
    """Where a socket really listens (a port `*` in the configuration becomes a number)."""
    return str(socket.getsockopt_string(zmq.LAST_ENDPOINT))


def _set(socket: zmq.asyncio.Socket, options: Mapping[zmq.SocketOption, int]) -> None:
    for option, value in options.items():
        socket.setsockopt(option, value)
        found = socket.getsockopt(option)
        if found != value:
            raise PermanentError(
                Code.BAD_CONFIG,
                "libzmq did not take a socket option",
                option=option.name,
                wanted=value,
                found=found,
            )


def _must_be_curve(socket: zmq.asyncio.Socket) -> None:
    """A forgotten key would leave the socket open to plain peers (zeromq/pyzmq#657)."""
    if socket.getsockopt(zmq.MECHANISM) != zmq.CURVE:
        raise PermanentError(
            Code.BAD_CONFIG, "a socket of the link is not encrypted", hint="libzmq must be built with CURVE"
        )
