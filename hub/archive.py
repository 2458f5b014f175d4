"""Layers and originals that edges gave away, within the tenant's quota. A layer that is here is a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.host.db import Database
from shared.memory.model import Rung
from shared.wire import Layer


@dataclass(frozen=True)
class Kept:
    """What the archive holds of one entry."""

    layers: tuple[Layer, ...]
    levelling: int
    original: bytes


class Archive:
    """One tenant's layers; every call runs inside the caller's transaction."""

    def __init__(self, database: Database, quota_bytes: int) -> None:
        self._database = database
        self._quota_bytes = quota_bytes

    @property
    def held_bytes(self) -> int:
        """Payload bytes held now."""
        return int(self._database.query("SELECT archive_bytes FROM tenant")[0][0])

    def put_layers(self, public_id: bytes, levelling: int, epoch: bytes, layers: Sequence[Layer]) -> bool:
        """Keep all of them or none; False: over quota, or their levelling is not the frozen one."""
        present = {
            Rung(rung): (found_levelling, found_epoch, size)
            for rung, found_levelling, found_epoch, size in self._database.query(
                "SELECT rung_above, levelling, epoch, length(payload) FROM layer WHERE public_id = ?",
                (public_id,),
            )
        }
        foreign = [found for found in present.values() if found[0] != levelling]
        if any(found_epoch == epoch for _, found_epoch, _ in foreign):
            return False
        replaced = [layer.rung_above for layer in layers if layer.rung_above in present]
        freed = sum(size for _, _, size in (foreign or [present[rung] for rung in replaced]))
        growth = sum(len(layer.payload) for layer in layers) - freed
        if not self._charge(growth):
            return False
        if foreign:
            # An edge that lost its archive flags may have levelled anew; the two cannot be joined.
            self._database.execute("DELETE FROM layer WHERE public_id = ?", (public_id,))
        self._database.executemany(
            "INSERT OR REPLACE INTO layer (public_id, rung_above, levelling, epoch, payload)"
            " VALUES (?, ?, ?, ?, ?)",
            [(public_id, layer.rung_above, levelling, epoch, layer.payload) for layer in layers],
        )
        return True

    def put_original(self, public_id: bytes, payload: bytes) -> bool:
        """Keep the whole original; False when it would break the quota."""
        row = self._database.query_one(
            "SELECT length(payload) FROM original WHERE public_id = ?", (public_id,)
        )
        if not self._charge(len(payload) - (row[0] if row else 0)):
            return False
        self._database.execute(
            "INSERT OR REPLACE INTO original (public_id, payload) VALUES (?, ?)", (public_id, payload)
        )
        return True

    def drop(self, public_id: bytes) -> None:
        """Forget every byte of an entry."""
        freed = 0
        for table in ("layer", "original"):
            freed += self._database.query(
                f"SELECT coalesce(sum(length(payload)), 0) FROM {table} WHERE public_id = ?", (public_id,)
            )[0][0]
            self._database.execute(f"DELETE FROM {table} WHERE public_id = ?", (public_id,))
        if freed:
            self._charge(-freed)

    def get(self, public_id: bytes) -> Kept:
        """All that is held of an entry, shallowest layer first."""
        rows = self._database.query(
            "SELECT rung_above, levelling, payload FROM layer WHERE public_id = ? ORDER BY rung_above",
            (public_id,),
        )
        original = self._database.query_one("SELECT payload FROM original WHERE public_id = ?", (public_id,))
        return Kept(
            tuple(Layer(Rung(rung), payload) for rung, _, payload in rows),
            rows[0][1] if rows else 0,
            original[0] if original else b"",
        )

    def _charge(self, growth_bytes: int) -> bool:
        """Move the tenant's total, unless it grows past the quota."""
        changed = self._database.execute(
            "UPDATE tenant SET archive_bytes = archive_bytes + ? WHERE ? <= 0 OR archive_bytes + ? <= ?",
            (growth_bytes, growth_bytes, growth_bytes, self._quota_bytes),
        )
        return changed == 1
