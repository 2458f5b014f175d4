"""What the driver meant to write, on the disk before each call: all that the checker reads of the driver."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType


@dataclass(frozen=True)
class JournalRow:
    """One intended write; `acknowledged` once the daemon answered."""

    id: bytes
    version: int
    digest: bytes
    acknowledged: bool


def public_id(name: str) -> bytes:
    """The door's 16-byte id of an input id: the same in every run."""
    return hashlib.blake2b(name.encode("utf-8"), digest_size=16, person=b"crystal-demo").digest()


def text_digest(text: str) -> bytes:
    """BLAKE2b-128 of the UTF-8 text, computed here and not taken from the daemon."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()


class Journal:
    """Append-only JSON lines; `intend` returns when the line is on the disk."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def intend(self, entry: bytes, version: int, digest: bytes) -> None:
        """Before the call."""
        self._append({"intend": entry.hex(), "version": version, "digest": digest.hex()})
        os.fsync(self._file.fileno())

    def acknowledge(self, entry: bytes, version: int) -> None:
        """After the daemon's answer. Losing this line only makes the checker more lenient, so no fsync."""
        self._append({"acknowledged": entry.hex(), "version": version})

    def close(self) -> None:
        """Everything written is on the disk when this returns."""
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, row: dict[str, object]) -> None:
        self._file.write(json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n")


def read_journal(path: Path) -> tuple[JournalRow, ...]:
    """Every intended write in order; a last line cut by a crash is an intent that was never sent."""
    intended: dict[tuple[bytes, int], bytes] = {}
    acknowledged: set[tuple[bytes, int]] = set()
    for line in path.read_bytes().split(b"\n")[:-1]:
        row = json.loads(line)
        if "intend" in row:
            intended[bytes.fromhex(row["intend"]), int(row["version"])] = bytes.fromhex(row["digest"])
        else:
            acknowledged.add((bytes.fromhex(row["acknowledged"]), int(row["version"])))
    return tuple(
        JournalRow(entry, version, digest, (entry, version) in acknowledged)
        for (entry, version), digest in intended.items()
    )
