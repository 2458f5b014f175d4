"""What the parts of one tenant's store share, and the byte price of a row (spec.md 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edge_agent.bodies import ROW_BYTES as BODY_ROW_BYTES
from edge_agent.bodies import Bodies
from edge_agent.choices import Choices
from edge_agent.dictionaries import Dictionaries
from edge_agent.entries import ArchiveMode
from edge_agent.graph import Graph
from edge_agent.outbox import Op, Outbox
from edge_agent.recalls import OpenRecalls
from edge_agent.table import EntryTable, Structured
from edge_agent.transaction import Journal, Transaction
from edge_agent.vectors import Vectors
from shared.errors import Code, InputError
from shared.host.db import Database
from shared.memory.model import Kind, Ladder, Rung
from shared.memory.text_codec import levelling_id
from shared.ports import Clock, Rng, RungCodec

# Measured on full 1 KB pages: 63 bytes of values, record and cell header, pointer, and the page's own.
ENTRY_ROW_BYTES = 80
HEAT_ROW_BYTES = 35
OVERLAY_ROW_BYTES = 24
STUB_BYTES = 24


DiskMeter = Callable[[Path], int]
"""Bytes on disk of a directory: what the physical account measures."""


@dataclass(frozen=True)
class Plane:
    """One open memory plane. Everything here belongs to the thread that opened it."""

    db: Database
    journal: Journal
    ladder: Ladder
    codecs: Mapping[Kind, RungCodec]
    archive: ArchiveMode | None
    table: EntryTable
    bodies: Bodies
    dictionaries: Dictionaries
    graph: Graph
    vectors: Vectors
    outbox: Outbox
    recalls: OpenRecalls
    choices: Choices
    stubs: dict[int, bytes]
    clock: Clock
    rng: Rng
    disk_meter: DiskMeter

    def tell(self, change: Transaction, number: int, op: Op, version: int) -> None:
        """Queue a delta; a plane without a link tells nobody."""
        if self.archive is not None:
            self.outbox.queue(change, number, op, version)

    def row(self, number: int) -> np.void:
        """The row of a live entry; InputError(UNKNOWN_ID) for any other."""
        row = self.table.get(number)
        if row is None:
            raise InputError(Code.UNKNOWN_ID, "no such entry", number=number)
        return row

    def levelling(self, kind: Kind, number: int) -> int:
        """The id of the levels that an entry gets."""
        return levelling_id(self.codecs[kind].levelling, chosen=number in self.choices)

    def levellings(self, numbers: NDArray[np.uint32], kind: Kind) -> NDArray[np.uint16]:
        """`levelling` of many entries of a kind."""
        version = self.codecs[kind].levelling
        plain, chosen = (levelling_id(version, chosen=flag) for flag in (False, True))
        return np.where(self.choices.among(numbers.astype(np.int64)), chosen, plain).astype(np.uint16)

    def coded(self, rung: Rung) -> bool:
        """Whether this ladder packs the bytes of a rung."""
        return self.ladder.rungs[self.ladder.index(rung)].coded


def size_bytes(rows: Structured) -> NDArray[np.float64]:
    """mu of each row: body (in a block: its share), vector, overlay, columns and row overhead."""
    overlay = rows["overlay_bytes"].astype(np.float64)
    return np.asarray(
        beside_body_bytes(rows) + rows["body_bytes"] + rows["vector_bytes"] + overlay, np.float64
    )


def beside_body_bytes(rows: Structured) -> NDArray[np.float64]:
    """What an entry costs at any rung."""
    heat = np.where(rows["heat"]["recalls"] > 0, HEAT_ROW_BYTES, 0)
    own = np.where(rows["number"] > 0, ENTRY_ROW_BYTES, 0)
    return np.asarray(own + heat + rows["graph_bytes"], np.float64)


def keeps_vector(rungs: NDArray[np.uint8] | Rung) -> NDArray[np.bool_]:
    """Below COMPRESSED an entry sheds its vector, which would cost as much as what is left of it."""
    return np.asarray(np.asarray(rungs) <= Rung.COMPRESSED)


def text_row_bytes(text_bytes: NDArray[np.uint32] | int) -> NDArray[np.float64]:
    """What a body costs at FULL."""
    return np.asarray(text_bytes, np.float64) + BODY_ROW_BYTES
