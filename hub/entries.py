"""Crystallized state of one tenant's entries: number to id, rungs, residues, tombstones."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from hub.archive import Archive
from shared.errors import Code, PermanentError
from shared.host.db import Database
from shared.memory.model import Kind, MemoryClass, Provenance, Rung
from shared.scope import TenantName, tombstone_hash
from shared.wire import Archived, Created, Delta, Fetch, Forgotten, Layers, Residue, State


@dataclass
class Outcome:
    """What an ack must say beside the seq, and how many deltas named nothing the hub has."""

    not_archived: list[int] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)
    skipped: int = 0


class Entries:
    """The rows that deltas change; every write runs inside the caller's transaction."""

    def __init__(self, database: Database, archive: Archive, tenant: TenantName) -> None:
        self._database = database
        self._archive = archive
        self._tenant = tenant

    def apply(self, edge: str, epoch: bytes, delta: Delta, outcome: Outcome) -> None:
        """Apply one delta; what it could not do stands in `outcome`."""
        if isinstance(delta, Created):
            self._create(edge, epoch, delta, outcome)
            return
        row = self._database.query_one(
            "SELECT public_id, version FROM entry WHERE edge = ? AND number = ?", (edge, delta.number)
        )
        if isinstance(delta, Forgotten):
            self._forget(edge, epoch, delta, row[0] if row else None)
        elif row is None or row[1] != delta.version:
            outcome.skipped += 1
            if isinstance(delta, Layers):
                outcome.not_archived.append(delta.seq)
        elif isinstance(delta, Layers):
            if not self._archive.put_layers(row[0], delta.levelling, epoch, delta.layers):
                outcome.not_archived.append(delta.seq)
        else:
            self._set_rung(row[0], delta)

    def archived(self, edge: str, ask: Fetch) -> Archived:
        """Everything the archive holds of an entry; PermanentError(SOURCE_ABSENT) when that is nothing."""
        row = self._database.query_one(
            "SELECT public_id, version, kind, memory_class, created_wall_ns, digest, links FROM entry"
            " WHERE edge = ? AND number = ?",
            (edge, ask.number),
        )
        kept = self._archive.get(row[0]) if row is not None and row[1] == ask.version else None
        if row is None or kept is None or not (kept.layers or kept.original):
            raise PermanentError(
                Code.SOURCE_ABSENT, "the archive does not hold this", number=ask.number, version=ask.version
            )
        public_id, version, kind, memory_class, created_wall_ns, digest, links = row
        return Archived(
            request=ask.request,
            number=ask.number,
            public_id=public_id,
            version=version,
            kind=Kind(kind),
            memory_class=MemoryClass(memory_class),
            created_wall_ns=created_wall_ns,
            digest=digest,
            links=struct.unpack(f"<{len(links) // 4}I", links),
            # One exact source is enough, and both may not fit one message.
            layers=() if kept.original else kept.layers,
            levelling=kept.levelling,
            original=kept.original,
        )

    def _create(self, edge: str, epoch: bytes, delta: Created, outcome: Outcome) -> None:
        self._database.execute(
            "UPDATE entry SET number = NULL WHERE edge = ? AND number = ? AND public_id <> ?",
            (edge, delta.number, delta.public_id),
        )
        if self._forgotten(epoch, delta.public_id):
            outcome.forgotten.append(delta.seq)
            return
        found = self._database.query_one(
            "SELECT version, digest, epoch, creations FROM entry WHERE public_id = ?",
            (delta.public_id,),
        )
        same = found is not None and found[:2] == (delta.version, delta.digest)
        if found is not None and not same:
            self._archive.drop(delta.public_id)
        creations = found[3] + 1 if found is not None and same and found[2] == epoch else 1
        self._write_entry(edge, epoch, delta, creations, keep_state=same)
        if delta.original and not self._archive.put_original(delta.public_id, delta.original):
            outcome.not_archived.append(delta.seq)

    def _forgotten(self, epoch: bytes, public_id: bytes) -> bool:
        """A tombstone of another epoch holds against an old copy; one of this epoch yields to a new entry."""
        hashed = tombstone_hash(self._tenant, public_id)
        row = self._database.query_one("SELECT epoch FROM tombstone WHERE hash = ?", (hashed,))
        if row is None or row[0] != epoch:
            return row is not None
        self._database.execute("DELETE FROM tombstone WHERE hash = ?", (hashed,))
        return False

    def _write_entry(
        self, edge: str, epoch: bytes, delta: Created, creations: int, *, keep_state: bool
    ) -> None:
        values = (
            *(
                edge,
                delta.number,
                epoch,
                delta.version,
                delta.kind,
                delta.memory_class,
                delta.created_wall_ns,
            ),
            *(
                delta.digest,
                delta.value,
                delta.text_bytes,
                struct.pack(f"<{len(delta.links)}I", *delta.links),
            ),
            *(creations, delta.public_id),
        )
        if keep_state:
            self._database.execute(
                "UPDATE entry SET edge = ?, number = ?, epoch = ?, version = ?, kind = ?, memory_class = ?,"
                " created_wall_ns = ?, digest = ?, value = ?, text_bytes = ?, links = ?, creations = ?"
                " WHERE public_id = ?",
                values,
            )
            return
        self._database.execute("DELETE FROM entry WHERE public_id = ?", (delta.public_id,))
        self._database.execute(
            "INSERT INTO entry (edge, number, epoch, version, kind, memory_class, created_wall_ns, digest,"
            " value, text_bytes, links, creations, public_id, rung, overlay_rung, provenance)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, Rung.FULL, Rung.FULL, Provenance.ORIGINAL.value),
        )

    def _set_rung(self, public_id: bytes, delta: Residue | State) -> None:
        if isinstance(delta, Residue):
            self._database.execute(
                "UPDATE entry SET rung = ?, overlay_rung = ?, provenance = ?, residue_rung = ?,"
                " residue_levelling = ?, residue = ? WHERE public_id = ?",
                (
                    *(delta.rung, delta.rung, Provenance.EXACT.value),
                    *(delta.rung, delta.levelling, delta.payload, public_id),
                ),
            )
            return
        self._database.execute(
            "UPDATE entry SET rung = ?, overlay_rung = ?, provenance = ?, value = ? WHERE public_id = ?",
            (delta.rung, delta.overlay_rung, delta.provenance.value, delta.value, public_id),
        )

    def _forget(self, edge: str, epoch: bytes, delta: Forgotten, public_id: bytes | None) -> None:
        if public_id is not None:
            self._archive.drop(public_id)
            self._database.execute("DELETE FROM entry WHERE public_id = ?", (public_id,))
        self._database.execute(
            "INSERT OR REPLACE INTO tombstone (hash, edge, epoch) VALUES (?, ?, ?)",
            (delta.tombstone, edge, epoch),
        )
