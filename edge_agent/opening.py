"""Opens a tenant's memory plane: files, checks, and the rows that live in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from edge_agent.bodies import ROW_BYTES, Bodies
from edge_agent.choices import Choices
from edge_agent.dictionaries import Dictionaries
from edge_agent.entries import ArchiveMode
from edge_agent.graph import Graph
from edge_agent.outbox import Outbox
from edge_agent.plane import OVERLAY_ROW_BYTES, DiskMeter, Plane
from edge_agent.recalls import OpenRecalls
from edge_agent.table import FACTS, HEAT, NO_OVERLAY, ROW, EntryTable, Structured
from edge_agent.transaction import open_journal
from edge_agent.vectors import Vectors, check_signature
from shared.host.db import Database, open_db
from shared.host.files import directory_bytes
from shared.memory.codec import DEFAULT_LEVEL
from shared.memory.model import Kind, Ladder, Rung
from shared.memory.vectors import Signature
from shared.ports import Clock, Rng, RungCodec

FILE_NAME = "store.db"
# Measured at 30,000 x 200 B and 8,000 x 1.5 KB: after sweeps 1 KB pages waste least (DECISIONS.md).
PAGE_BYTES = 1024


@dataclass(frozen=True)
class StoreOptions:
    """What a store is opened with. archive None = no hub is configured: nothing is queued for one."""

    tenant: str
    ladder: Ladder
    provision_bytes: int
    archive: ArchiveMode | None = None
    pack_level: int = DEFAULT_LEVEL
    embedder: Signature | None = None
    """The configured model: a store with vectors of another is refused. None = whatever is there stays."""
    disk_meter: DiskMeter = directory_bytes


def open_plane(
    directory: Path, options: StoreOptions, codecs: Mapping[Kind, RungCodec], clock: Clock, rng: Rng
) -> Plane:
    """A new or an old plane in `directory` (the tenant's memory/); refused for another tenant or ladder."""
    database = open_db(directory / FILE_NAME, files("edge_agent") / "schema", page_size_bytes=PAGE_BYTES)
    try:
        journal = open_journal(
            database,
            tenant=options.tenant,
            ladder=options.ladder.name,
            provision_bytes=options.provision_bytes,
            rng=rng,
        )
        dictionaries = Dictionaries(database)
        bodies = Bodies(database, dictionaries, level=options.pack_level)
        graph, table = Graph(database), EntryTable()
        vectors = Vectors(database, journal)
        check_signature(vectors.signature, options.embedder)
        table.load(_rows(database, bodies, graph, vectors))
        plane = Plane(
            database,
            journal,
            options.ladder,
            codecs,
            options.archive,
            table,
            bodies,
            dictionaries,
            graph,
            vectors,
            Outbox(database, journal),
            OpenRecalls(database),
            Choices(database),
            dict(database.query("SELECT number, stub FROM stub")),
            clock,
            rng,
            options.disk_meter,
        )
        _measure_empty(plane)
    except BaseException:
        database.close()
        raise
    return plane


def _measure_empty(plane: Plane) -> None:
    """E of spec.md 3: the files of this very store, before its first entry."""
    if plane.journal.meta.empty_bytes:
        return
    plane.db.shrink()
    with plane.journal.write() as change:
        change.change(empty_bytes=plane.disk_meter(plane.db.path.parent))
    plane.db.shrink()


def _rows(database: Database, bodies: Bodies, graph: Graph, vectors: Vectors) -> Structured:
    """Every entry as a row of the table."""
    held = database.query("SELECT number, id, digest, version, facts FROM entry ORDER BY number")
    rows = np.zeros(len(held), ROW)
    rows["overlay_rung"] = NO_OVERLAY
    if not held:
        bodies.load(())
        return rows
    numbers, ids, digests, versions, facts = zip(*held, strict=True)
    rows["number"], rows["version"] = numbers, versions
    rows["id"] = np.frombuffer(b"".join(ids), "V16")
    rows["digest"] = np.frombuffer(b"".join(digests), "V16")
    rows["facts"] = np.frombuffer(b"".join(facts), FACTS)
    where = {number: place for place, number in enumerate(numbers)}
    for number, heat in database.query("SELECT number, heat FROM heat"):
        rows["heat"][where[number]] = np.frombuffer(heat, HEAT)[0]
    for number, rung, size in database.query(
        "SELECT number, rung, length(CAST(body AS BLOB)) + length(CAST(model AS BLOB)) FROM overlay"
    ):
        rows["overlay_rung"][where[number]] = rung
        rows["overlay_bytes"][where[number]] = size + OVERLAY_ROW_BYTES
    for number in graph.owners():
        rows["graph_bytes"][where[number]] = graph.charged_bytes(number)
    _weigh_bodies(rows, bodies)
    rows["vector_bytes"][np.isin(rows["number"], vectors.numbers())] = vectors.charged_bytes
    return rows


def _weigh_bodies(rows: Structured, bodies: Bodies) -> None:
    facts = rows["facts"]
    packed = facts["rung"] != Rung.FULL
    blocks, texts = facts["block"][packed].tolist(), facts["text_bytes"][packed].tolist()
    bodies.load(zip(blocks, texts, strict=True))
    rows["body_bytes"][~packed] = facts["text_bytes"][~packed] + ROW_BYTES
    rows["body_bytes"][packed] = [
        bodies.blocks[block].share(text) if block in bodies.blocks else 0.0
        for block, text in zip(blocks, texts, strict=True)
    ]
