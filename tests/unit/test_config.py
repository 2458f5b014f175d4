"""Configuration: defaults, units, and refusals that name the key and the fix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.config import EdgeConfig, HubConfig, known_keys, load
from shared.errors import Code, PermanentError
from shared.units import MIB

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


def refused(path: Path | None, overrides: dict[str, object] | None = None) -> PermanentError:
    with pytest.raises(PermanentError) as caught:
        load(path, EdgeConfig, overrides)
    assert caught.value.code is Code.BAD_CONFIG
    return caught.value


def test_nothing_has_to_be_configured() -> None:
    assert load(None, EdgeConfig).memory.provision_bytes == 64 * MIB
    assert load(None, HubConfig).model.url == ""


def test_sizes_and_durations_may_carry_units(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text('[memory]\nprovision_bytes = "3MiB"\nstage_max_s = "2m"\n')
    config = load(file, EdgeConfig, {"memory.rho": 0.2})
    assert (config.memory.provision_bytes, config.memory.stage_max_s, config.memory.rho) == (
        3 * MIB,
        120.0,
        0.2,
    )


def test_an_unknown_key_names_the_nearest_known_one() -> None:
    problem = refused(None, {"memory.provison_bytes": 5})
    assert "provison_bytes" in problem.message
    assert "provision_bytes" in problem.hint


@pytest.mark.parametrize(
    "overrides",
    [
        {"memory.ladder": "wooden"},
        {"memory.rho": 1.5},
        {"memory.rho": "much"},
        {"memory.provision_bytes": "12 parsecs"},
        {"memory.provision_bytes": 0},
        {"archive.mode": "sometimes"},
        {"link.endpoint": "tcp://127.0.0.1:1"},
        {"door.listen": "127.0.0.1:1"},
        {"tenant.name": "x", "tenant": 5},
        {"tenant": 5},
        {"tenant": ""},
        {"tenant": "A/1"},
        {"tenant": "home "},
        {"tenant": "x" * 65},
    ],
)
def test_a_bad_value_is_refused(overrides: dict[str, object]) -> None:
    refused(None, overrides)


@pytest.mark.parametrize("content", [b"\xff", b"a = [", b"= 3"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "edge.toml"
    file.write_bytes(content)
    assert str(file) in str(refused(file))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "missing" in refused(tmp_path / "none.toml").message


def test_the_page_lists_every_key_and_no_other() -> None:
    listed = {name.split(".")[-1] for name in re.findall(r"^\| `([a-z_.]+)`", DOCS.read_text("utf-8"), re.M)}
    # `model` is a table of the hub and a key of `embedder`.
    tables = {"memory", "archive", "link", "door", "idle", "ondevice", "embedder"}
    assert listed == (known_keys(EdgeConfig) | known_keys(HubConfig)) - tables


@pytest.mark.parametrize(
    "overrides",
    [
        {"model.url": "http://127.0.0.1:1/v1"},
        {"model.name": "m"},
        {"model.urls": ["http://127.0.0.1:1/v1"]},
        {"model.url": "127.0.0.1:8011", "model.name": "m"},
        {"model.urls": ["http://127.0.0.1:1/v1", "file:///etc"], "model.name": "m"},
        {"model.url": "http://h/v1", "model.name": "m", "model.stall_s": 0},
        {"model.url": "http://h/v1", "model.name": "m", "model.judge_threshold": 1.5},
        {"model.url": "http://h/v1", "model.name": "m", "model.prompt_tokens": 10},
        {"model.url": "http://h/v1", "model.name": "m", "model.max_in_flight": 0},
    ],
)
def test_a_model_that_cannot_be_asked_is_refused(overrides: dict[str, object]) -> None:
    with pytest.raises(PermanentError) as caught:
        load(None, HubConfig, overrides)
    assert caught.value.code is Code.BAD_CONFIG


def test_endpoints_are_named_once_and_in_order() -> None:
    urls = ["http://b/v1", "http://a/v1", "http://b/v1"]
    model = load(None, HubConfig, {"model.url": "http://a/v1", "model.urls": urls, "model.name": "m"}).model
    assert model.endpoints == ("http://a/v1", "http://b/v1")
