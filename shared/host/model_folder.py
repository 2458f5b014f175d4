"""A prepared model: a folder whose manifest, written last, names every file with its size and SHA-256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from shared.errors import Code, PermanentError
from shared.units import MIB

MANIFEST = "manifest.json"
_CHUNK_BYTES = MIB
_HINT = "Make it with `crystalmem models prepare NAME`, or name another folder"


class FileFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file as it must be."""

    size_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a folder holds and where it came from. `model` is the name that drafts carry."""

    model: str
    format: str
    """`onnx-int4` for onnxruntime-genai, `hf-bf16` for vLLM."""
    source: str
    """Packages and the hash of their weights."""
    licence: str
    built_with: str
    files: Mapping[str, FileFact]

    @property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(fact.size_bytes for fact in self.files.values())


def seal(folder: Path, *, model: str, kind: str, source: str, licence: str, built_with: str) -> Manifest:
    """Describe every file that is in `folder`; the manifest appears whole or not at all."""
    files = {path.name: _fact(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST}
    manifest = Manifest(model, kind, source, licence, built_with, files)
    part = folder / f"{MANIFEST}.part"
    with part.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / MANIFEST)
    return manifest


def read_manifest(folder: Path, kind: str) -> Manifest:
    """The manifest of a whole folder of this format: names and sizes checked, nothing hashed."""
    manifest = _decoded(folder)
    if manifest.format != kind:
        raise PermanentError(
            Code.MODEL_BROKEN,
            "the model folder has another format",
            hint=_HINT,
            path=str(folder),
            found=manifest.format[:40],
            expected=kind,
        )
    for name, fact in manifest.files.items():
        if Path(name).name != name or name == MANIFEST:
            raise _broken(folder, name[:80], "a file name of its own")
        try:
            size = (folder / name).stat().st_size
        except OSError:
            raise _broken(folder, name, "missing") from None
        if size != fact.size_bytes:
            raise _broken(folder, name, f"{size} bytes, {fact.size_bytes} expected")
    return manifest


def verify(folder: Path, manifest: Manifest) -> None:
    """Hash every file; PermanentError(MODEL_BROKEN) names the first that differs."""
    for name, fact in manifest.files.items():
        try:
            found = _fact(folder / name)
        except OSError as problem:
            raise _broken(folder, name, problem.strerror or "unreadable") from None
        if found != fact:
            raise _broken(folder, name, "another SHA-256 than the manifest says")


def _decoded(folder: Path) -> Manifest:
    if not folder.is_dir():
        raise PermanentError(
            Code.MODEL_ABSENT, "the model folder is not there", hint=_HINT, path=str(folder)
        ) from None
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise PermanentError(
            Code.MODEL_BROKEN,
            "the model folder has no manifest: it was not built to its end",
            hint=_HINT,
            path=str(folder),
        ) from None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise PermanentError(
            Code.MODEL_BROKEN,
            "the model folder's manifest cannot be read",
            hint=_HINT,
            path=str(folder),
            reason=str(problem)[:200],
        ) from None


def _broken(folder: Path, name: str, what: str) -> PermanentError:
    return PermanentError(
        Code.MODEL_BROKEN,
        "the model folder is not what its manifest says",
        hint=_HINT,
        path=str(folder),
        file=name,
        found=what,
    )


def _fact(path: Path) -> FileFact:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return FileFact(size, digest.hexdigest())
