"""CURVE key pairs and their files: one line each, a word that says which half it is, then the key in Z85."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import zmq

from shared.errors import Code, PermanentError
from shared.scope import edge_name

KEY_CHARACTERS = 40
PUBLIC_SUFFIX = ".pub"
SECRET_SUFFIX = ".key"  # noqa: S105 - a file name's ending
_PUBLIC_WORD = "crystalmem-curve-public"
_SECRET_WORD = "crystalmem-curve-secret"  # noqa: S105 - a file's first word, not a secret
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class KeyPair:
    """One identity on the link, both halves in Z85."""

    public: bytes
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class KeyFiles:
    """Where a pair was written."""

    public_file: Path
    secret_file: Path


def new_pair() -> KeyPair:
    """A fresh pair from libzmq's generator."""
    public, secret = zmq.curve_keypair()
    return KeyPair(public, secret)


def write_pair(directory: Path, name: str, pair: KeyPair) -> KeyFiles:
    """NAME.pub and NAME.key (0600 from its first byte on); existing files are never overwritten."""
    name = edge_name(name)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = KeyFiles(directory / f"{name}{PUBLIC_SUFFIX}", directory / f"{name}{SECRET_SUFFIX}")
    _create(files.secret_file, f"{_SECRET_WORD} {pair.secret.decode()}\n", 0o600)
    try:
        _create(files.public_file, f"{_PUBLIC_WORD} {pair.public.decode()}\n", 0o644)
    except PermanentError:
        files.secret_file.unlink()
        raise
    return files


def load_public(path: Path) -> bytes:
    """The key of a .pub file."""
    return _key(_read(path), _PUBLIC_WORD, path)


def load_pair(path: Path, environment: Mapping[str, str] = os.environ) -> KeyPair:
    """The pair whose secret half is at `path`; a file that others can read is refused."""
    text = _read(path)
    credentials = environment.get("CREDENTIALS_DIRECTORY", "")
    # systemd's own files show an ACL mask as group bits; the directory is closed to everybody else.
    theirs = credentials and path.resolve().parent == Path(credentials).resolve()
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & _OTHERS and not theirs:
        raise PermanentError(
            Code.BAD_KEY_FILE,
            "others can read this secret key",
            path=str(path),
            mode=oct(mode),
            hint=f"Make a new pair, or run: chmod 600 {path}",
        )
    secret = _key(text, _SECRET_WORD, path)
    return KeyPair(zmq.curve_public(secret), secret)


def _create(path: Path, text: str, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise PermanentError(
            Code.BAD_KEY_FILE,
            "a key file of this name exists",
            path=str(path),
            hint="Use another name, or move the old pair away first",
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        # The umask can only take rights away; this gives the public half what it should have.
        os.fchmod(descriptor, mode)
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        raise PermanentError(
            Code.BAD_KEY_FILE,
            "there is no such key file",
            path=str(path),
            hint="Make a pair with `crystalmem keys new NAME`",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PermanentError(
            Code.BAD_KEY_FILE, "the key file cannot be read", path=str(path), reason=str(error)
        ) from error


def _key(text: str, word: str, path: Path) -> bytes:
    words = text.split()
    if len(words) != 2 or words[0] != word or len(words[1]) != KEY_CHARACTERS:
        raise PermanentError(
            Code.BAD_KEY_FILE, f"not a {word} file", path=str(path), hint="Did you name the other half?"
        )
    return words[1].encode("ascii")
