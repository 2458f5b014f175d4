"""Where models are built: a virtual environment of its own, so that torch never comes near the daemons."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from shared.errors import Code, PermanentError, TransientError
from shared.units import GIB, format_bytes

# Resolved together and measured (docs/ondevice.md). torch: the CPU build where pip is told of one.
REQUIREMENTS = (
    "torch==2.13.0",
    "transformers==5.19.0",
    "gguf==0.19.0",
    "sentencepiece>=0.2",
    "protobuf>=5",
    "accelerate>=1.10",
    "onnx==1.23.2",
    "onnx-ir==1.1.0",
    "onnxruntime==1.32.0",
    "onnxruntime-genai==0.18.0",
)
NAME = ".build-environment"
# With a CPU build of torch; the public build for graphics cards is three times as large.
_NEEDED_BYTES = int(1.8 * GIB)
_OLDEST, _NEWEST = (3, 11), (3, 14)
_PROBE = "import ensurepip, venv, sys; print('%d.%d' % sys.version_info[:2])"
_TOLD_LINES = 6


def python_of(base: Path, say: Callable[[str], None]) -> Path:
    """The interpreter of the environment below `base`, made where none of these versions is finished."""
    environment = base / NAME
    interpreter, stamp = environment / "bin" / "python", environment / f".finished-{_stamp()}"
    if stamp.is_file() and interpreter.exists():
        return interpreter
    python, version = _find_python()
    _require_space(base)
    say(f"making the build environment with Python {version}: torch, transformers and the ONNX builder")
    say(f"  in {environment}, about 1.4 GB; delete it when no more models are to be built")
    shutil.rmtree(environment, ignore_errors=True)
    run([python, "-m", "venv", str(environment)], "the build environment cannot be made")
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    # Only wheels: building a source package would run its code.
    run([*pip, "--only-binary", ":all:", *REQUIREMENTS], "the build tools cannot be installed")
    stamp.touch()
    return interpreter


def run(command: Sequence[str], what_fails: str) -> None:
    """Run one step, told to stay off the network where it listens; TransientError tells its last lines."""
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONNOUSERSITE": "1",
    }
    for name in ("PYTHONPATH", "PYTHONHOME"):
        environment.pop(name, None)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, env=environment
        )
    except OSError as problem:
        raise _failed(what_fails, command, problem.strerror or str(problem)) from problem
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        ended = f"ended by signal {-done.returncode} (out of memory?)" if done.returncode < 0 else ""
        raise _failed(what_fails, command, " / ".join([*lines[-_TOLD_LINES:], ended])[-1200:])


def _failed(what: str, command: Sequence[str], reason: str) -> TransientError:
    full = "No space left" in reason
    return TransientError(
        Code.DISK_FULL if full else Code.MODEL_ABSENT,
        what,
        hint="Run the command again: finished steps are kept",
        step=" ".join(command[:4])[:200],
        reason=reason,
    )


def _find_python() -> tuple[str, str]:
    for candidate in _candidates():
        try:
            told = subprocess.run(
                [candidate, "-c", _PROBE], capture_output=True, text=True, check=False, timeout=30
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        version = told.stdout.strip()
        if told.returncode == 0 and _fits(version):
            return candidate, version
    raise PermanentError(
        Code.MODEL_ABSENT,
        "building a model needs Python 3.11 to 3.14 with the venv module, and none was found",
        hint="Install one (for example: apt-get install python3.12-venv), or copy a prepared folder here;"
        " the daemon itself runs on 3.10 all the same",
    )


def _candidates() -> Iterator[str]:
    yield sys.executable
    for minor in range(_NEWEST[1], _OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found:
            yield found
        yield from map(str, sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"), reverse=True))


def _fits(version: str) -> bool:
    numbers = version.split(".")
    return (
        len(numbers) == 2
        and all(map(str.isdecimal, numbers))
        and (_OLDEST <= (int(numbers[0]), int(numbers[1])) <= _NEWEST)
    )


def _require_space(base: Path) -> None:
    base.mkdir(parents=True, exist_ok=True)
    require_space(base, _NEEDED_BYTES, "not enough space for the build environment")


def require_space(folder: Path, needed_bytes: int, what: str) -> None:
    """TransientError(DISK_FULL) with both numbers."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise TransientError(
            Code.DISK_FULL,
            what,
            hint=f"Free {format_bytes(needed_bytes - free)}, or name another folder with --dir",
            needed_bytes=needed_bytes,
            free_bytes=free,
            path=str(folder),
        )


def _stamp() -> str:
    return hashlib.sha256("\n".join(REQUIREMENTS).encode()).hexdigest()[:16]
