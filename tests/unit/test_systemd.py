"""The unit files, checked by systemd's own tool without a running systemd."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from shared.config import EdgeConfig, HubConfig, load

UNITS = Path(__file__).resolve().parents[2] / "systemd"
NAMES = ("crystalmem-edge", "crystalmem-hub")
ANALYZE = shutil.which("systemd-analyze")
MAX_EXPOSURE = 1.6

needs_systemd = pytest.mark.skipif(
    ANALYZE is None, reason="systemd-analyze is not installed here: the unit files were NOT checked"
)


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    assert ANALYZE is not None
    return subprocess.run([ANALYZE, *map(str, arguments)], capture_output=True, text=True, check=False)


def installed(folder: Path, name: str, *drop_ins: Path) -> Path:
    """The unit as it would be installed here: the same, but with a program that exists."""
    unit = folder / f"{name}.service"
    text = (UNITS / unit.name).read_text("utf-8")
    unit.write_text(re.sub(r"^ExecStart=.*", "ExecStart=/bin/true", text, flags=re.MULTILINE), "utf-8")
    for drop_in in drop_ins:
        target = folder / f"{unit.name}.d"
        target.mkdir()
        shutil.copy(drop_in, target)
    return unit


def settings(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (UNITS / f"{name}.service").read_text("utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def exposure(unit: Path) -> float:
    result = analyze("security", "--offline=true", "--no-pager", unit)
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", result.stdout)
    assert match, result.stdout + result.stderr
    return float(match[1])


@needs_systemd
@pytest.mark.parametrize("name", NAMES)
def test_a_unit_verifies_without_a_word(tmp_path: Path, name: str) -> None:
    result = analyze("verify", "--man=no", installed(tmp_path, name))
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


@needs_systemd
def test_verify_would_have_found_a_mistake(tmp_path: Path) -> None:
    unit = installed(tmp_path, "crystalmem-edge")
    unit.write_text(unit.read_text("utf-8") + "\n[Service]\nProtectHone=yes\n", "utf-8")
    assert "ProtectHone" in analyze("verify", "--man=no", unit).stderr


@needs_systemd
@pytest.mark.parametrize("name", NAMES)
def test_a_unit_is_hardened(tmp_path: Path, name: str) -> None:
    unit = installed(tmp_path, name)
    assert exposure(unit) <= MAX_EXPOSURE
    assert analyze("security", "--offline=true", "--threshold=16", unit).returncode == 0


@needs_systemd
def test_a_bare_unit_would_not_pass(tmp_path: Path) -> None:
    bare = tmp_path / "bare.service"
    bare.write_text("[Service]\nExecStart=/bin/true\n", "utf-8")
    assert exposure(bare) > 9
    assert analyze("security", "--offline=true", "--threshold=16", bare).returncode != 0


@needs_systemd
@pytest.mark.parametrize("name", NAMES)
def test_the_drop_in_is_known_to_the_systemd_it_is_for(tmp_path: Path, name: str) -> None:
    result = analyze("verify", "--man=no", installed(tmp_path, name, UNITS / "restart-delay.conf"))
    version = re.search(r"systemd (\d+)", analyze("--version").stdout)
    assert version
    said = result.stdout + result.stderr
    if int(version[1]) >= 254:
        assert said == ""
    else:  # the older one names the two keys and nothing else
        assert re.findall(r"'(\w+)'", said) == ["RestartSteps", "RestartMaxDelaySec"]


@pytest.mark.parametrize("name", NAMES)
def test_a_unit_says_what_the_daemon_needs(name: str) -> None:
    unit = settings(name)
    verb = name.removeprefix("crystalmem-")
    assert unit["Type"] == ["notify"]
    assert unit["WatchdogSec"] == ["30"]
    assert unit["Restart"] == ["on-failure"]
    assert unit["User"] == unit["Group"] == unit["StateDirectory"] == [name]
    assert unit["LoadCredential"] == [f"{verb}.key:/etc/crystalmem/keys/{verb}.key"]
    assert unit["ExecStart"] == [
        f"/opt/crystalmem/bin/crystalmem {verb} run --config /etc/crystalmem/{verb}.toml"
    ]
    assert "time-sync.target" in unit["After"][0]
    assert f"u {name} " in (UNITS / "crystalmem.sysusers.conf").read_text("utf-8")


def test_the_sample_configurations_load_and_fit_the_units() -> None:
    edge = load(UNITS / "edge.toml", EdgeConfig)
    hub = load(UNITS / "hub.toml", HubConfig)
    assert edge.link.key_file == "/run/credentials/crystalmem-edge.service/edge.key"
    assert hub.key_file == "/run/credentials/crystalmem-hub.service/hub.key"
    assert edge.door.socket.startswith("/run/crystalmem-edge/")
    assert settings("crystalmem-edge")["RuntimeDirectory"] == ["crystalmem-edge"]
