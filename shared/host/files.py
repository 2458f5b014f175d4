"""What the daemons ask of the file system: a directory with a single owner, and its size."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType

from shared.errors import Code, PermanentError

LOCK_NAME = "lock"


class DirectoryLock:
    """Held until released or until the process ends, however it ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Let the next owner in; harmless when done twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_directory(path: Path) -> DirectoryLock:
    """Become the single owner of a data directory, or be refused with the owner's process id."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The file stays when the lock goes: removing it would let two owners lock two files of one name.
    descriptor = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        raise PermanentError(
            Code.STORE_LOCKED,
            "another daemon owns this data directory",
            hint=f"Stop process {owner or 'unknown'} first, or give this daemon its own directory",
            path=str(path),
            pid=owner,
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
    return DirectoryLock(descriptor)


def directory_bytes(path: Path) -> int:
    """Sum of the file sizes under `path`; a file that vanishes meanwhile counts as nothing."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue
    return total
