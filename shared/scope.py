"""Names of tenants and edges: one rule for both sides of the link, no normalisation that merges two names."""

from __future__ import annotations

import hashlib
import re
from typing import NewType

from shared.errors import Code, InputError

TenantName = NewType("TenantName", str)
EdgeName = NewType("EdgeName", str)

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}\Z"
_NAME = re.compile(NAME_PATTERN)


def tenant_name(text: str) -> TenantName:
    """The name itself when it is legal; it also names a file, so nothing is repaired."""
    return TenantName(_checked(text, "tenant"))


def edge_name(text: str) -> EdgeName:
    """The name of an edge in the hub's allow-list."""
    return EdgeName(_checked(text, "edge"))


def tombstone_hash(tenant: str, public_id: bytes) -> bytes:
    """What is left of a forgotten entry: tells this id again, tells nothing about its text."""
    return hashlib.blake2b(public_id, digest_size=16, key=tenant.encode(), person=b"crystal-forgot").digest()


def _checked(text: str, what: str) -> str:
    if not isinstance(text, str) or _NAME.match(text) is None:
        raise InputError(
            Code.BAD_REQUEST,
            f"not a {what} name",
            value=repr(text)[:80],
            hint="Use 1 to 64 of a-z, 0-9, dot, underscore and dash, the first a letter or digit",
        )
    return text
