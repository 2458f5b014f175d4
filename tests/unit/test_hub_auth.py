"""Key files and the allow-list."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub.auth import AllowListFile, Edge, allow, new_keys, parse_allow_list, render_allow_list
from shared.errors import Code, CrystalError, InputError, PermanentError
from shared.host.keys import load_pair, load_public, new_pair
from shared.scope import EdgeName, TenantName

KEY = new_pair().public
OTHER = new_pair().public


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_secret_file_is_closed_whatever_the_umask(tmp_path: Path, open_umask: None) -> None:
    files = new_keys(tmp_path / "keys", "edge-1")
    assert stat.S_IMODE(files.secret_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.public_file.stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700


def test_a_strict_umask_leaves_the_public_file_readable(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        files = new_keys(tmp_path, "edge-1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(files.public_file.stat().st_mode) == 0o644


def test_both_files_are_of_one_pair(tmp_path: Path) -> None:
    files = new_keys(tmp_path, "edge-1")
    pair = load_pair(files.secret_file)
    assert pair.public == load_public(files.public_file)
    assert pair.secret.decode() not in repr(pair)


def test_keys_are_never_overwritten(tmp_path: Path) -> None:
    before = load_pair(new_keys(tmp_path, "edge-1").secret_file)
    with pytest.raises(PermanentError) as caught:
        new_keys(tmp_path, "edge-1")
    assert caught.value.code is Code.BAD_KEY_FILE
    assert load_pair(tmp_path / "edge-1.key") == before
    (tmp_path / "edge-1.key").unlink()
    with pytest.raises(PermanentError):
        new_keys(tmp_path, "edge-1")  # the public half is still there
    assert not (tmp_path / "edge-1.key").exists()


def test_a_name_is_not_a_path(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        new_keys(tmp_path, "../edge")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_secret_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = new_keys(tmp_path, "edge-1").secret_file
    path.chmod(mode)
    with pytest.raises(PermanentError) as caught:
        load_pair(path, {})
    assert caught.value.code is Code.BAD_KEY_FILE
    assert "chmod 600" in caught.value.hint
    assert load_pair(path, {"CREDENTIALS_DIRECTORY": str(tmp_path)})  # systemd's directory is closed itself


@pytest.mark.parametrize(
    "text", ["", "x", "crystalmem-curve-public " + "a" * 40, "crystalmem-curve-secret short"]
)
def test_a_file_that_is_no_secret_key_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "edge.key"
    path.write_text(text, "ascii")
    path.chmod(0o600)
    with pytest.raises(PermanentError) as caught:
        load_pair(path)
    assert caught.value.facts["path"] == str(path)


def test_missing_and_unreadable_key_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="no such key file"):
        load_public(tmp_path / "none.pub")
    (tmp_path / "bytes.pub").write_bytes(b"\xff\xfe")
    with pytest.raises(PermanentError, match="cannot be read"):
        load_public(tmp_path / "bytes.pub")


def test_an_allow_list_reads_back_as_it_was_written() -> None:
    edges = (
        Edge(EdgeName("edge-1"), (KEY, OTHER), (TenantName("a"), TenantName("b.c"))),
        Edge(EdgeName("edge.2"), (), ()),
    )
    allowed = parse_allow_list(render_allow_list(edges))
    assert allowed.edges == edges
    assert allowed.edge_of(KEY) == allowed.edge_of(OTHER) == edges[0]
    assert allowed.edge_of(b"?" * 40) is None


def test_an_empty_file_lists_nobody() -> None:
    assert parse_allow_list("").edges == ()


@pytest.mark.parametrize(
    "text",
    [
        "[edges",
        "edges = 1",
        "[other]",
        '[edges.e]\nkeys = ["short"]\ntenants = []',
        f'[edges.e]\nkeys = ["{"ü" * 40}"]\ntenants = []',
        '[edges.e]\nkeys = "x"\ntenants = []',
        "[edges.e]\nkeys = [1]\ntenants = []",
        "[edges.e]\nkeys = []",
        "[edges.e]\nkeys = []\ntenants = []\nrole = 1",
        "[edges.E]\nkeys = []\ntenants = []",
        '[edges.e]\nkeys = []\ntenants = ["../t"]',
        f'[edges.e]\nkeys = ["{KEY.decode()}", "{KEY.decode()}"]\ntenants = []',
        "".join(f'[edges.{name}]\nkeys = ["{KEY.decode()}"]\ntenants = []\n' for name in "ef"),
    ],
)
def test_a_wrong_allow_list_is_refused_as_a_whole(text: str) -> None:
    with pytest.raises(CrystalError) as caught:
        parse_allow_list(text)
    assert caught.value.code in {Code.BAD_CONFIG, Code.BAD_REQUEST}


def test_the_file_is_read_again_when_it_changed_and_missing_means_nobody(tmp_path: Path) -> None:
    path = tmp_path / "edges.toml"
    file = AllowListFile(path)
    file.load()
    assert file.current.edges == ()
    path.write_text(render_allow_list([Edge(EdgeName("e"), (KEY,), ())]), "utf-8")
    file.load()
    assert file.current.edge_of(KEY) is not None
    held = file.current
    file.load()
    assert file.current is held  # unchanged: not parsed again
    path.write_bytes(b"\xff")
    with pytest.raises(PermanentError):
        file.load()
    assert file.current is held
    path.unlink()
    file.load()
    assert file.current.edges == ()


def test_allow_adds_and_merges_and_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "edges.toml"
    first, second = new_pair().public, new_pair().public
    allow(path, Edge(EdgeName("orin-1"), (first,), (TenantName("home"),)))
    allow(path, Edge(EdgeName("orin-2"), (second,), (TenantName("home"),)))
    allow(path, Edge(EdgeName("orin-1"), (first,), (TenantName("lab"),)))
    listed = {str(edge.name): edge for edge in parse_allow_list(path.read_text("utf-8")).edges}
    assert listed["orin-1"].tenants == ("home", "lab")
    assert listed["orin-1"].keys == (first,)
    assert listed["orin-2"].tenants == ("home",)
    before = path.read_bytes()
    with pytest.raises(PermanentError):
        allow(path, Edge(EdgeName("orin-3"), (first,), (TenantName("home"),)))
    assert path.read_bytes() == before
