"""The one meter: what an entry costs any policy, by the prices of the real edge store (spec.md 3)."""

from __future__ import annotations

from edge_agent.bodies import ROW_BYTES as BODY_ROW_BYTES
from edge_agent.graph import ROW_BYTES as LINK_ROW_BYTES
from edge_agent.plane import ENTRY_ROW_BYTES, HEAT_ROW_BYTES

LINK_BYTES = 4
"""A citation is the cited entry's local number."""


def row_bytes(*, recalled: bool) -> int:
    """Columns and row overhead of an entry, beside its text; more once it was recalled."""
    return ENTRY_ROW_BYTES + BODY_ROW_BYTES + (HEAT_ROW_BYTES if recalled else 0)


def links_bytes(count: int) -> int:
    """What so many citations cost."""
    return LINK_ROW_BYTES + LINK_BYTES * count if count else 0


def text_bytes(text: str) -> int:
    """UTF-8, as it is stored."""
    return len(text.encode())
