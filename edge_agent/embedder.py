"""Text to unit vectors: an ONNX encoder on onnxruntime, no torch. Libraries are imported at load time."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge_agent.embedder_spec import EmbedderSpec, Pooling, prepare_hint, read_spec
from shared.errors import Code, PermanentError
from shared.memory.vectors import Signature

Vectors = NDArray[np.float32]

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}
RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
# A text is cut to so many characters a token before it is tokenised: 1 MB costs no more than its start.
_CHARACTERS_PER_TOKEN = 32
# On one core 4 to 16 short texts at once cost least (3.3 s CPU for 300 LoCoMo turns; alone 4.3, in 32s 4.2).
_WEIGHTS_NAMED = 12  # digits of their hash: enough to tell two models apart
_BATCH = 8
_PROBE = "A probe."


@dataclass(frozen=True)
class EmbedderOptions:
    """provider: a key of PROVIDERS. allow_cpu: start on the CPU, and say so, where the provider is absent."""

    provider: str = "cpu"
    allow_cpu: bool = False
    threads: int = 1
    batch: int = _BATCH


class OnnxEmbedder:
    """ports.Embedder over one loaded model. Not thread safe: one thread owns it."""

    def __init__(
        self,
        spec: EmbedderSpec,
        session: Any,
        tokenizer: Any,
        *,
        provider: str,
        weights: str,
        batch: int = _BATCH,
    ) -> None:
        """weights: hexadecimal SHA-256 of what was loaded."""
        self._spec = spec
        self._session = session
        self._tokenizer = tokenizer
        self._batch = batch
        self._inputs = {node.name for node in session.get_inputs()}
        self.provider = provider
        """Where it runs: a key of PROVIDERS, with a word where that is not what was asked for."""
        self.signature = Signature(
            spec.id,
            spec.width,
            spec.pooling.value,
            spec.query_prefix,
            spec.passage_prefix,
            weights[:_WEIGHTS_NAMED],
        )

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, (len(texts), width), of what is remembered; PermanentError(MODEL_BROKEN)."""
        return self._embed([self._spec.passage_prefix + text for text in texts])

    def query(self, text: str) -> Vectors:
        """The unit vector, (width,), of what is asked; PermanentError(MODEL_BROKEN)."""
        row: Vectors = self._embed([self._spec.query_prefix + text])[0]
        return row

    def _embed(self, texts: Sequence[str]) -> Vectors:
        limit = self._spec.max_tokens * _CHARACTERS_PER_TOKEN
        encoded = self._tokenizer.encode_batch([_clean(text, limit) for text in texts])
        found = np.zeros((len(texts), self._spec.width), np.float32)
        # Neighbours of like length share a batch, so that little is padding.
        order = sorted(range(len(texts)), key=lambda place: len(encoded[place].ids))
        for start in range(0, len(order), self._batch):
            chosen = order[start : start + self._batch]
            found[chosen] = self._run([encoded[place].ids for place in chosen])
        return found

    def _run(self, rows: Sequence[Sequence[int]]) -> Vectors:
        longest = max(map(len, rows))
        ids = np.full((len(rows), longest), self._tokenizer.padding_id, np.int64)
        mask = np.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: known[name] for name in self._inputs}
        try:
            [hidden] = self._session.run([self._spec.output], feed)
        except Exception as problem:
            raise _broken(self._spec, "the model cannot be run", reason=str(problem)[:300]) from problem
        return self._pooled(np.asarray(hidden), mask)

    def _pooled(self, hidden: NDArray[Any], mask: NDArray[np.int64]) -> Vectors:
        if hidden.shape != (*mask.shape, self._spec.width):
            raise _broken(
                self._spec,
                "the model's output has another shape than its description says",
                found=hidden.shape,
                expected=(*mask.shape, self._spec.width),
            )
        if self._spec.pooling is Pooling.CLS:
            pooled = hidden[:, 0].astype(np.float32)
        else:
            weight = mask[..., None].astype(np.float32)
            # Padding is cut out by choice, not by a factor of zero: what stands there may be NaN.
            pooled = np.where(weight > 0, hidden, 0.0).sum(1, dtype=np.float32) / weight.sum(1)
        norm = np.linalg.norm(pooled, axis=1, keepdims=True)
        if not (np.isfinite(norm).all() and (norm > 0).all()):
            raise _broken(self._spec, "the model gives a vector that is not finite, or zero")
        return np.asarray(pooled / norm, np.float32)


def load_embedder(folder: Path, options: EmbedderOptions, runtime: Any = None) -> OnnxEmbedder:
    """The model prepared in `folder`, probed once.

    PermanentError: MODEL_ABSENT (folder, libraries), MODEL_BROKEN, WRONG_PROVIDER, BAD_CONFIG (two runtimes).
    """
    spec = read_spec(folder)
    refuse_both_runtimes()
    ort, tokenizers = _libraries(runtime)
    weights = _weights(folder, spec)
    provider = _choose_provider(ort, options)
    session = _session(ort, folder, spec, provider, options.threads)
    running = _require_first(session, provider, options)
    tokenizer = _Tokenizer(tokenizers, folder, spec)
    embedder = OnnxEmbedder(spec, session, tokenizer, provider=running, weights=weights, batch=options.batch)
    unknown = {node.name for node in session.get_inputs()} - {"input_ids", "attention_mask", "token_type_ids"}
    if unknown:
        raise _broken(spec, "the model asks for inputs that we do not have", inputs=sorted(unknown))
    embedder.query(_PROBE)
    return embedder


def refuse_both_runtimes() -> None:
    """PermanentError(BAD_CONFIG) where both runtimes are installed: the last one written is what runs."""
    there = [name for name in RUNTIMES if _is_installed(name)]
    if len(there) > 1:
        raise PermanentError(
            Code.BAD_CONFIG,
            "onnxruntime and onnxruntime-gpu are both installed: they overwrite each other",
            hint="Run: pip uninstall onnxruntime onnxruntime-gpu; then install one of the extras cpu, gpu",
        )


class _Tokenizer:
    """Cuts at the spec's length; pads nothing, whatever its file says."""

    def __init__(self, library: Any, folder: Path, spec: EmbedderSpec) -> None:
        path = folder / spec.tokenizer_file
        try:
            self._tokenizer = library.Tokenizer.from_file(str(path))
        except Exception as problem:
            raise _broken(
                spec, "the tokenizer cannot be read", path=str(path), reason=str(problem)[:300]
            ) from problem
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=spec.max_tokens)
        known = (self._tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>"))
        self.padding_id = next((found for found in known if found is not None), 0)

    def encode_batch(self, texts: list[str]) -> Any:
        """Encodings with `ids`, special tokens included."""
        return self._tokenizer.encode_batch(texts)


def _libraries(runtime: Any) -> tuple[Any, Any]:
    try:
        import tokenizers

        ort = runtime or importlib.import_module("onnxruntime")
    except ImportError as problem:
        raise PermanentError(
            Code.MODEL_ABSENT,
            f"the embedder's library {problem.name} is not installed",
            hint="Install the extra `cpu` (or `gpu`) of crystalmem, in its repository: pip install '.[cpu]'",
        ) from None
    return ort, tokenizers


def _weights(folder: Path, spec: EmbedderSpec) -> str:
    """SHA-256 of the weights, which are the ones that the description names, where it names them."""
    path = folder / spec.model_file
    if not path.is_file():
        raise PermanentError(
            Code.MODEL_ABSENT, "the embedder's weights are missing", hint=prepare_hint(folder), path=str(path)
        )
    digest = hashlib.sha256()
    for part in (path, path.with_name(f"{path.name}_data")):  # large models keep their tensors apart
        if part.is_file():
            with part.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
    if spec.weights_sha256 not in {"", digest.hexdigest()}:
        raise _broken(
            spec,
            "the weights are not the ones that their description names",
            hint=prepare_hint(folder),
            path=str(path),
            found_sha256=digest.hexdigest(),
        )
    return digest.hexdigest()


def _choose_provider(ort: Any, options: EmbedderOptions) -> str:
    wanted = PROVIDERS[options.provider]
    if wanted in ort.get_available_providers():
        return wanted
    if options.allow_cpu:
        return PROVIDERS["cpu"]
    raise _wrong_provider(wanted, ort.get_available_providers())


def _session(ort: Any, folder: Path, spec: EmbedderSpec, provider: str, threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that wait for the next text must not burn a core.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    wanted = list(dict.fromkeys((provider, PROVIDERS["cpu"])))
    try:
        return ort.InferenceSession(str(folder / spec.model_file), options, providers=wanted)
    except Exception as problem:
        raise _broken(spec, "the model cannot be loaded", reason=str(problem)[:300]) from problem


def _require_first(session: Any, provider: str, options: EmbedderOptions) -> str:
    """What the session itself says comes first: where a library is missing it falls back silently."""
    first = session.get_providers()[0]
    if first == PROVIDERS[options.provider]:
        return options.provider
    if options.allow_cpu and first == PROVIDERS["cpu"]:
        return f"cpu (declared: {options.provider} is not there)"
    raise _wrong_provider(provider, session.get_providers())


def _wrong_provider(wanted: str, found: Sequence[str]) -> PermanentError:
    return PermanentError(
        Code.WRONG_PROVIDER,
        "the execution provider that was asked for is not the one that would run",
        hint="Install the extra `gpu` and its drivers, set embedder.provider, or set embedder.allow_cpu=true",
        wanted=wanted,
        found=list(found),
    )


def _broken(spec: EmbedderSpec, message: str, *, hint: str = "", **facts: object) -> PermanentError:
    return PermanentError(Code.MODEL_BROKEN, message, hint=hint, model=spec.id, **facts)


def _clean(text: str, limit: int) -> str:
    """At most `limit` characters, leading blanks aside; a lone surrogate becomes a question mark."""
    return text.lstrip()[:limit].encode("utf-8", "replace").decode("utf-8")


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
