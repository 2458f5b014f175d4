"""What the daemons ask of the file system: where things live, a single owner, a size."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from shared.errors import Code, PermanentError

APPLICATION = "crystalmem"
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


def data_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where a daemon keeps its data: systemd's StateDirectory, else the XDG data home."""
    return _first_of(environment, "STATE_DIRECTORY") or _xdg(environment, "XDG_DATA_HOME", ".local/share")


def config_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where a person's configuration lies."""
    return _first_of(environment, "CONFIGURATION_DIRECTORY") or _xdg(environment, "XDG_CONFIG_HOME", ".config")


def runtime_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where sockets live: systemd's RuntimeDirectory, else the XDG one, else beside the data."""
    given = _first_of(environment, "RUNTIME_DIRECTORY")
    if given is not None:
        return given
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    return Path(runtime) / APPLICATION if os.path.isabs(runtime) else data_directory(environment) / "run"


def _first_of(environment: Mapping[str, str], name: str) -> Path | None:
    """systemd joins several directories with colons; ours has one."""
    first = environment.get(name, "").split(":")[0]
    return Path(first) if first else None


def _xdg(environment: Mapping[str, str], name: str, fallback: str) -> Path:
    """The XDG rule: a relative path is to be ignored."""
    given = environment.get(name, "")
    base = Path(given) if os.path.isabs(given) else Path(environment.get("HOME") or Path.home()) / fallback
    return base / APPLICATION
