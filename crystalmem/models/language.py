"""Language models from the weights that packages ship: GGUF, to a Hugging Face folder, to int4 ONNX.

Finished steps are kept until the folder is: an interrupted run goes on where it was. The folder appears under
its name whole, its manifest written last.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from crystalmem.models.build_environment import python_of, require_space, run
from crystalmem.models.packages import PinnedFile, fetch
from shared.errors import Code, CrystalError, IntegrityError, PermanentError, TransientError
from shared.host.files import DirectoryLock, lock_directory
from shared.host.model_folder import read_manifest, seal

ONNX, HF = "onnx-int4", "hf-bf16"
_BUILT_WITH = {ONNX: "onnxruntime-genai 0.18.0 builder, int4, cpu", HF: "transformers 5.19.0"}
# transformers 5 writes a class name that the runtime for Python 3.10 does not know; this one both know.
_NEW_CLASS, _KNOWN_CLASS = "TokenizersBackend", "PreTrainedTokenizerFast"
# Parts, the joined file, dense weights and the result lie side by side for a while.
_SPACE_FACTOR = 5
Say = Callable[[str], None]


@dataclass(frozen=True)
class Weights:
    """One GGUF file, whole or in parts; its SHA-256 after joining. tie: see tools/gguf_to_hf.py."""

    parts: tuple[PinnedFile, ...]
    sha256: str
    tie: bool
    licence: str

    @property
    def size_bytes(self) -> int:
        """The joined file."""
        return sum(part.size_bytes for part in self.parts)

    @property
    def source(self) -> str:
        """Packages and hash, for the manifest."""
        first, last = self.parts[0].requirement, self.parts[-1].requirement
        return f"{first if first == last else f'{first} to {last}'}, GGUF sha256 {self.sha256}"


@dataclass(frozen=True)
class LanguageModel:
    """A Recipe: one model in one format."""

    name: str
    summary: str
    model: str
    weights: Weights
    format: str

    def is_ready(self, folder: Path) -> bool:
        """The manifest is written last; names and sizes are checked, nothing is hashed."""
        try:
            return read_manifest(folder, self.format).source == self.weights.source
        except CrystalError:
            return False

    def prepare(self, folder: Path, say: Say) -> None:
        """Fetch, convert, build, try, seal. Raises CrystalError with the next thing to do."""
        if self.is_ready(folder):
            say(f"{folder} is ready; delete it to build it again")
            return
        base = folder.parent
        work = base / f".{self.name.removesuffix('-hf')}.work"
        try:
            work.mkdir(parents=True, exist_ok=True)
            with _alone(base):
                self._build(folder, base, work, say)
        except OSError as problem:
            raise _disk_problem(problem, folder) from problem
        shutil.rmtree(work, ignore_errors=True)

    def _build(self, folder: Path, base: Path, work: Path, say: Say) -> None:
        require_space(base, _SPACE_FACTOR * self.weights.size_bytes, "not enough space to build the model")
        gguf = joined(self.weights, work, say)
        python = python_of(base, say)
        dense = self._dense(gguf, work, python, say)
        built = dense if self.format == HF else self._onnx(dense, work, python, say)
        self._finish(built, folder)

    def _dense(self, gguf: Path, work: Path, python: Path, say: Say) -> Path:
        out = work / "hf"
        if not out.is_dir():
            say("converting to dense bf16 weights (about a minute)")
            part = _fresh(work / "hf.part")
            tie = ["--tie"] if self.weights.tie else []
            with as_file(files("crystalmem.models.tools") / "gguf_to_hf.py") as script:
                run(
                    [str(python), str(script), str(gguf), str(part), *tie],
                    "the weights cannot be converted",
                )
            part.replace(out)
        return out

    def _onnx(self, dense: Path, work: Path, python: Path, say: Say) -> Path:
        out = work / "onnx"
        if not out.is_dir():
            say("building int4 ONNX (about half a minute)")
            part = _fresh(work / "onnx.part")
            shared = ["--extra_options", "shared_embeddings=true"] if self.weights.tie else []
            command = [str(python), "-m", "onnxruntime_genai.models.builder", "-p", "int4", "-e", "cpu"]
            paths = ["-i", str(dense), "-o", str(part), "-c", str(work / "cache")]
            run([*command, *paths, *shared], "the ONNX model cannot be built")
            config = part / "tokenizer_config.json"
            config.write_text(config.read_text("utf-8").replace(_NEW_CLASS, _KNOWN_CLASS), "utf-8")
            with as_file(files("crystalmem.models.tools") / "try_onnx.py") as script:
                run([str(python), str(script), str(part)], "the built model does not answer")
            part.replace(out)
        return out

    def _finish(self, built: Path, folder: Path) -> None:
        seal(
            built,
            model=self.model,
            kind=self.format,
            source=self.weights.source,
            licence=self.weights.licence,
            built_with=_BUILT_WITH[self.format],
        )
        # What lies there is no folder of this recipe: prepare looked.
        shutil.rmtree(folder, ignore_errors=True)
        built.replace(folder)


def joined(weights: Weights, work: Path, say: Say) -> Path:
    """The GGUF file below `work`, its hash right; parts are joined in their numeric order, then deleted."""
    whole = work / "weights.gguf"
    if whole.is_file() and _sha256(whole) == weights.sha256:
        return whole
    if len(weights.parts) == 1:
        return fetch(weights.parts[0], whole, say)
    pieces = [fetch(part, work / f"part{number:02d}", say) for number, part in enumerate(weights.parts, 1)]
    joining = work / "weights.gguf.part"
    with joining.open("wb") as out:
        for piece in pieces:
            with piece.open("rb") as source:
                shutil.copyfileobj(source, out)
    found = _sha256(joining)
    if found != weights.sha256:
        joining.unlink()
        raise IntegrityError(
            Code.DIGEST_MISMATCH,
            "the joined file is not the pinned one",
            hint="Run the command again; if it stays so, the packages were replaced: do not use them",
            expected_sha256=weights.sha256,
            found_sha256=found,
        )
    joining.replace(whole)
    for piece in pieces:
        piece.unlink()
    say(f"joined {len(pieces)} parts, SHA-256 {found[:16]}... is right")
    return whole


def _alone(base: Path) -> DirectoryLock:
    """One build at a time below a folder: they share the environment and their steps."""
    try:
        return lock_directory(base)
    except PermanentError as problem:
        raise TransientError(
            problem.code, "another run builds a model here", hint="Wait for its end", **problem.facts
        ) from None


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _disk_problem(problem: OSError, folder: Path) -> TransientError:
    return TransientError(
        Code.DISK_ERROR,
        "the model's folder cannot be written",
        hint="Free space, or name another folder with --dir",
        path=str(folder),
        reason=problem.strerror or str(problem),
    )
