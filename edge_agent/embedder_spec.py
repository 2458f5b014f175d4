"""What an embedder's folder says of itself: `embedder.json`. Any BERT-like ONNX encoder fits by it."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import msgspec

from shared.errors import Code, PermanentError

SPEC_FILE = "embedder.json"
_PREPARED = "minilm"  # the name that `crystalmem models prepare` knows, and the default of embedder.model
_PLAIN_NAME = r"^[\w][\w.-]*$"

FileName = Annotated[str, msgspec.Meta(pattern=_PLAIN_NAME, max_length=100)]


class Pooling(str, Enum):
    """How token vectors become one: mean over the real tokens, or the first token's."""

    MEAN = "mean"
    CLS = "cls"


class EmbedderSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model. id, width, pooling and prefixes say which vectors may be compared: a store records them."""

    id: Annotated[str, msgspec.Meta(pattern=_PLAIN_NAME, max_length=100)]
    width: Annotated[int, msgspec.Meta(ge=8, le=8192, multiple_of=8)]
    pooling: Pooling
    query_prefix: Annotated[str, msgspec.Meta(max_length=200)] = ""
    passage_prefix: Annotated[str, msgspec.Meta(max_length=200)] = ""
    max_tokens: Annotated[int, msgspec.Meta(ge=8, le=8192)] = 256
    """Longer texts are cut; special tokens count."""
    model_file: FileName = "model.onnx"
    tokenizer_file: FileName = "tokenizer.json"
    output: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = "last_hidden_state"
    """Name of the graph's output: float32 (batch, tokens, width)."""
    weights_sha256: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?$")] = ""
    """Of the model file, checked when it is loaded; empty = not pinned."""


def read_spec(folder: Path) -> EmbedderSpec:
    """The spec of a prepared folder; PermanentError names the file and the field."""
    path = folder / SPEC_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=EmbedderSpec)
    except OSError as problem:
        raise PermanentError(
            Code.MODEL_ABSENT,
            "the embedder is not prepared here",
            hint=prepare_hint(folder),
            path=str(path),
            reason=problem.strerror,
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise PermanentError(
            Code.MODEL_BROKEN,
            f"the embedder's description is not valid: {problem}",
            hint="See docs/recall.md for every field",
            path=str(path),
        ) from None


def encode_spec(spec: EmbedderSpec) -> bytes:
    """As `read_spec` reads it."""
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def prepare_hint(folder: Path) -> str:
    """What makes this folder: a command for the one model that has a recipe."""
    if folder.name == _PREPARED:
        return f"Run: crystalmem models prepare {_PREPARED} --dir {folder.parent}"
    return "Put model.onnx, tokenizer.json and embedder.json there: docs/recall.md says what they hold"
