"""The embedder on small real graphs: both poolings, both sets of inputs, and every way to be wrong."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from edge_agent.embedder import EmbedderOptions, OnnxEmbedder, load_embedder, refuse_both_runtimes
from edge_agent.embedder_spec import SPEC_FILE, EmbedderSpec, Pooling, encode_spec
from edge_agent.vectors import check_signature
from shared.config import default_models_dir
from shared.errors import Code, PermanentError
from tests.tiny_embedder import BROKEN, make_embedder, row_of

WIDTH = 64
MINILM = Path(os.environ.get("CRYSTALMEM_MODELS") or default_models_dir()) / "minilm"


@pytest.fixture(params=[Pooling.MEAN, Pooling.CLS])
def pooling(request: pytest.FixtureRequest) -> Pooling:
    return Pooling(request.param)


@pytest.fixture
def folder(tmp_path: Path, pooling: Pooling) -> Path:
    make_embedder(tmp_path / "tiny", pooling=pooling, width=WIDTH)
    return tmp_path / "tiny"


def load(folder: Path, **options: Any) -> OnnxEmbedder:
    return load_embedder(folder, EmbedderOptions(**options))


def refused(folder: Path, runtime: Any = None, **options: Any) -> PermanentError:
    with pytest.raises(PermanentError) as caught:
        load_embedder(folder, EmbedderOptions(**options), runtime)
    return caught.value


def test_vectors_are_unit_and_in_the_order_of_the_texts(folder: Path) -> None:
    texts = ["the red car is parked by the old house", "cat", "bread bread", "the red car is parked"]
    embedder = load(folder, batch=2)
    together = embedder.passages(texts)
    assert together.shape == (4, WIDTH)
    assert together.dtype == np.float32
    assert np.abs(np.linalg.norm(together, axis=1) - 1).max() < 1e-5
    # Padding of a neighbour, however far off its state, changes nothing.
    alone = np.concatenate([embedder.passages([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-5
    assert np.abs(embedder.query(texts[1]) - together[1]).max() < 1e-5
    assert embedder.passages([]).shape == (0, WIDTH)


def test_words_that_mean_the_same_are_near(folder: Path) -> None:
    embedder = load(folder)
    automobile, car, bread = embedder.passages(["automobile", "car", "bread"])
    assert automobile @ car > 0.95
    assert automobile @ bread < 0.6


def test_mean_is_over_real_tokens_and_cls_is_the_first(tmp_path: Path) -> None:
    make_embedder(tmp_path / "m", pooling=Pooling.MEAN, width=WIDTH)
    marks = 0.01 * (row_of("[CLS]", WIDTH) + row_of("[SEP]", WIDTH))
    expected = (row_of("cat", WIDTH) + row_of("bread", WIDTH) + marks) / 4
    found = load(tmp_path / "m").query("cat bread")
    assert np.abs(found - expected / np.linalg.norm(expected)).max() < 1e-5
    make_embedder(tmp_path / "c", pooling=Pooling.CLS, width=WIDTH)
    first = 0.02 * row_of("<s>", WIDTH) + row_of("cat", WIDTH) + 0.01 * row_of("</s>", WIDTH)
    assert np.abs(load(tmp_path / "c").query("cat") - first / np.linalg.norm(first)).max() < 1e-5


def test_prefixes_stand_before_each_side(tmp_path: Path) -> None:
    make_embedder(tmp_path / "t", width=WIDTH, query_prefix="red ", passage_prefix="blue ")
    with_prefix = load(tmp_path / "t")
    make_embedder(tmp_path / "u", width=WIDTH)
    plain = load(tmp_path / "u")
    assert np.array_equal(with_prefix.query("car"), plain.query("red car"))
    assert np.array_equal(with_prefix.passages(["car"])[0], plain.query("blue car"))
    assert with_prefix.signature != plain.signature


@pytest.mark.parametrize(
    "text",
    ["", " \n\t ", "\ud800", "car \udfff car", "\u200f\u202e", "木", "x" * 3_000_000, "car " * 999_999],
)
def test_any_text_has_a_vector(folder: Path, text: str) -> None:
    embedder = load(folder)
    assert np.isfinite(embedder.query(text)).all()
    assert np.isfinite(embedder.passages([text, "car"])).all()


def test_a_long_text_is_cut_at_the_models_length(tmp_path: Path) -> None:
    make_embedder(tmp_path / "t", width=WIDTH, max_tokens=8)
    embedder = load(tmp_path / "t")
    assert np.array_equal(embedder.query("car " * 6), embedder.query("car " * 6 + "bread " * 500))
    assert not np.array_equal(embedder.query("car " * 5), embedder.query("car " * 5 + "bread"))


def test_a_model_that_gives_nan_is_an_error_and_no_vector(folder: Path) -> None:
    embedder = load(folder)
    with pytest.raises(PermanentError) as caught:
        embedder.query(BROKEN)
    assert caught.value.code is Code.MODEL_BROKEN
    with pytest.raises(PermanentError):
        embedder.passages(["car", BROKEN])
    assert np.isfinite(embedder.query("car")).all()


def test_other_weights_under_the_same_name_are_another_model(tmp_path: Path) -> None:
    make_embedder(tmp_path / "t", width=WIDTH)
    before = load(tmp_path / "t").signature
    assert load(tmp_path / "t").signature == before
    graph = onnx.load(str(tmp_path / "t" / "model.onnx"))
    graph.doc_string = "trained longer"
    onnx.save(graph, str(tmp_path / "t" / "model.onnx"))
    description = json.loads((tmp_path / "t" / SPEC_FILE).read_text())
    (tmp_path / "t" / SPEC_FILE).write_text(json.dumps(description | {"weights_sha256": ""}))
    after = load(tmp_path / "t").signature
    assert after.model == before.model
    with pytest.raises(PermanentError) as caught:
        check_signature(before, after)
    assert caught.value.code is Code.WRONG_EMBEDDER
    assert before.weights in caught.value.message
    assert after.weights in caught.value.message


def test_a_description_that_lies_is_refused_at_the_start(tmp_path: Path) -> None:
    spec = make_embedder(tmp_path / "t", width=WIDTH)

    def with_spec(**changes: Any) -> PermanentError:
        fields = {name: getattr(spec, name) for name in EmbedderSpec.__struct_fields__}
        (tmp_path / "t" / SPEC_FILE).write_bytes(encode_spec(EmbedderSpec(**(fields | changes))))
        return refused(tmp_path / "t")

    for changes, word in (
        ({"width": 32}, "shape"),
        ({"output": "pooler"}, "run"),
        ({"weights_sha256": "0" * 64}, "weights"),
        ({"tokenizer_file": "absent.json"}, "tokenizer"),
    ):
        problem = with_spec(**changes)
        assert problem.code is Code.MODEL_BROKEN
        assert word in problem.message
        assert problem.facts["model"] == "tiny"
    problem = with_spec(model_file="absent.onnx")
    assert (problem.code, "docs/recall.md" in problem.hint) == (Code.MODEL_ABSENT, True)
    (tmp_path / "t" / "model.onnx").write_bytes(b"no graph")
    assert with_spec(weights_sha256="").message == "the model cannot be loaded"


def test_an_absent_folder_says_how_to_get_it(tmp_path: Path) -> None:
    problem = refused(tmp_path / "minilm")
    assert problem.code is Code.MODEL_ABSENT
    assert "crystalmem models prepare minilm" in problem.hint


def test_an_absent_library_says_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    problem = refused(folder)
    assert problem.code is Code.MODEL_ABSENT
    assert "extra `cpu`" in problem.hint


def test_both_runtimes_at_once_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_both_runtimes()
    info = tmp_path / "site" / "onnxruntime_gpu-1.23.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.23.0\n")
    monkeypatch.syspath_prepend(str(info.parent))
    problem = refused(folder)
    assert problem.code is Code.BAD_CONFIG
    assert "pip uninstall onnxruntime onnxruntime-gpu" in problem.hint


class Runtime:
    """onnxruntime of another machine: `built` are offered, `first` is what a session ends up with."""

    SessionOptions = onnxruntime.SessionOptions

    def __init__(self, built: list[str], first: str) -> None:
        self._built = built
        self._first = first
        self.threads = 0

    def get_available_providers(self) -> list[str]:
        return self._built

    def InferenceSession(self, path: str, options: Any, providers: list[str]) -> Any:  # noqa: N802 - its name
        self.asked, self.threads = providers, options.intra_op_num_threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        first = self._first

        class Session:
            run, get_inputs = session.run, session.get_inputs

            @staticmethod
            def get_providers() -> list[str]:
                return [first]

        return Session()


CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


def test_the_provider_asked_for_must_be_the_sessions_first(folder: Path) -> None:
    there = Runtime([CUDA, CPU], CUDA)
    assert load_embedder(folder, EmbedderOptions("cuda", threads=3), there).provider == "cuda"
    assert (there.asked, there.threads) == ([CUDA, CPU], 3)
    # Not built in; and built in, but its libraries are missing: the session falls back without a word.
    for runtime in (Runtime([CPU], CPU), Runtime([CUDA, CPU], CPU)):
        problem = refused(folder, runtime, provider="cuda")
        assert problem.code is Code.WRONG_PROVIDER
        assert "embedder.allow_cpu" in problem.hint
        declared = load_embedder(folder, EmbedderOptions("cuda", allow_cpu=True), runtime)
        assert declared.provider == "cpu (declared: cuda is not there)"
    assert (
        refused(folder, Runtime([CUDA, CPU], CUDA), provider="tensorrt", allow_cpu=False).code
        is Code.WRONG_PROVIDER
    )


def test_the_real_runtime_says_cpu(folder: Path) -> None:
    assert load(folder).provider == "cpu"
    assert refused(folder, provider="tensorrt").code is Code.WRONG_PROVIDER


@pytest.mark.skipif(
    not MINILM.is_dir(), reason=f"{MINILM} is not prepared: make test-models prepares and runs this"
)
def test_minilm_knows_what_is_meant() -> None:
    embedder = load(MINILM)
    stored = embedder.passages(
        ["Ann adopted a puppy last week.", "The invoice is due on Friday.", "Bob moved to Oslo for his job."]
    )
    for query, place in (
        ("Who got a dog?", 0),
        ("When must the bill be paid?", 1),
        ("Where does Bob live?", 2),
    ):
        assert int(np.argmax(stored @ embedder.query(query))) == place
    assert stored.shape == (3, 384)
