"""One generation a case through the hub's own client, kept in a file: a run that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio

from bench.regen.cases import Case
from shared.memory.model import Kind
from shared.ports import DraftRequest, Generator
from shared.prompt import turns

_BYTES_A_TOKEN = 3
_LEAST_TOKENS = 48
_ROOM = 1.5


@dataclass(frozen=True)
class Made:
    """What the model answered for one case; `record` is the base that it was asked about."""

    key: str
    text: str
    failure: str
    tokens: int
    seconds: float
    record: str
    """Hexadecimal: a later gate judges against the base of the day, whatever the distiller does since."""
    prompt: str = ""
    """Digest of what the model was told."""


async def make(
    cases: Sequence[Case], generator: Generator, path: Path, at_once: int, neighbours: int
) -> dict[str, Made]:
    """A draft for every case; one that `path` has for the same base and prompt is not asked for again."""
    asked = {case.key: (case.record.hex(), _prompt(case, neighbours)) for case in cases}
    made = {key: draft for key, draft in read(path).items() if asked.get(key) == (draft.record, draft.prompt)}
    waiting = [case for case in cases if case.key not in made]
    limit = anyio.Semaphore(at_once)
    path.parent.mkdir(parents=True, exist_ok=True)
    _end_last_line(path)
    with path.open("a", encoding="utf-8") as out:

        async def one(case: Case) -> None:
            async with limit:
                started = time.perf_counter()
                draft = await generator.draft(_request(case, neighbours))
            seconds = time.perf_counter() - started
            kept = Made(case.key, draft.text, draft.failure, draft.tokens, seconds, *asked[case.key])
            made[case.key] = kept
            out.write(json.dumps(asdict(kept)) + "\n")
            out.flush()

        async with anyio.create_task_group() as tasks:
            for case in waiting:
                tasks.start_soon(one, case)
    return made


def _end_last_line(path: Path) -> None:
    """A run that was stopped may have left half a line."""
    if path.exists() and path.read_bytes()[-1:] not in (b"", b"\n"):
        with path.open("a", encoding="utf-8") as out:
            out.write("\n")


def read(path: Path) -> dict[str, Made]:
    """Drafts of earlier runs; a last line that was cut is left out."""
    if not path.exists():
        return {}
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            draft = Made(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[draft.key] = draft
    return found


def _prompt(case: Case, neighbours: int) -> str:
    told = json.dumps(turns(_request(case, neighbours)))
    return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def _request(case: Case, neighbours: int) -> DraftRequest:
    size = len(case.entry.text.encode())
    return DraftRequest(
        number=1,
        version=1,
        base_digest=bytes(16),
        origin=case.origin,
        target=case.target,
        residue=case.residue,
        invariants=case.invariants,
        neighbours=case.entry.neighbours[-neighbours:] if neighbours else (),
        max_tokens=max(_LEAST_TOKENS, round(_ROOM * size / _BYTES_A_TOKEN)),
        kind=Kind.MESSAGE,
        record=case.record,
    )
