"""What the edge agent's passes run on in the bench: time by events, seeded randomness, one thread, scratch.

None of it decides anything: passes, values, prices and gate are the product's own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import anyio

from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Ladder, Rung
from shared.ports import Clock, DroppedLayer, RungCodec, RungRecord, Verdict
from shared.units import GIB

P = ParamSpec("P")
T = TypeVar("T")

_EVENT_NS = 1_000_000
_START_WALL_NS = 1_800_000_000 * 1_000_000_000
_MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - tried first because it is not a disk; each run makes its own
_LEAST_FREE_BYTES = GIB
_RESULTS_KEPT = 50_000
SCRATCH_VARIABLE = "CRYSTALMEM_BENCH_SCRATCH"


class EventClock:
    """ports.Clock that events move: what is decided by time is the same on every machine.

    `sleep` alone takes real time: only the link waits, and what it waits for is real.
    """

    def __init__(self) -> None:
        self._now_ns = 0

    def advance(self) -> None:
        """One event more."""
        self._now_ns += _EVENT_NS

    def wall_ns(self) -> int:
        """Counted from a fixed day."""
        return _START_WALL_NS + self._now_ns

    def mono_ns(self) -> int:
        """A millisecond an event."""
        return self._now_ns

    async def sleep(self, seconds: float) -> None:
        """Let others run."""
        await anyio.sleep(seconds)


class CountedRng:
    """ports.Rng: the same numbers for the same seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0

    def random(self) -> float:
        """Uniform in [0, 1)."""
        return int.from_bytes(self.bytes(7), "big") / 2.0**56

    def bytes(self, count: int) -> bytes:
        """`count` bytes."""
        drawn = b""
        while len(drawn) < count:
            self._drawn += 1
            drawn += blake2b(f"{self._seed}:{self._drawn}".encode(), digest_size=32).digest()
        return drawn[:count]


class CountedIds:
    """ports.IdSource: 1, 2, 3 as 16 bytes."""

    def __init__(self) -> None:
        self._last = 0

    def new_id(self) -> bytes:
        """The next one."""
        self._last += 1
        return self._last.to_bytes(16, "big")


class OwnThread(WorkerThread):
    """The bench drives an arm from one thread, which owns the store: jobs run where they are asked."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, Pulse(name, clock))

    async def run(self, job: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The job's result or its error."""
        return job(*args, **kwargs)


class RememberedCodec:
    """A ports.RungCodec's own bytes, kept: seeds and policies distil the same texts again and again."""

    def __init__(self, codec: RungCodec) -> None:
        self._codec = codec
        self._kept: OrderedDict[Hashable, object] = OrderedDict()

    @property
    def levelling(self) -> int:
        """The codec's."""
        return self._codec.levelling

    def level(self, original: str, ladder: Ladder) -> bytes:
        """The codec's."""
        return self._of(("level", original, ladder.name), lambda: self._codec.level(original, ladder))

    def drop(self, original: str, ladder: Ladder, to: Rung, chosen: tuple[int, ...] = ()) -> RungRecord:
        """The codec's."""
        key = ("drop", original, ladder.name, to, chosen)
        return self._of(key, lambda: self._codec.drop(original, ladder, to, chosen))

    def lower(self, record: bytes, ladder: Ladder, to: Rung) -> RungRecord:
        """The codec's."""
        return self._of(("lower", record, ladder.name, to), lambda: self._codec.lower(record, ladder, to))

    def layers(self, original: str, ladder: Ladder, chosen: tuple[int, ...] = ()) -> tuple[DroppedLayer, ...]:
        """The codec's."""
        key = ("layers", original, ladder.name, chosen)
        return self._of(key, lambda: self._codec.layers(original, ladder, chosen))

    def join(self, layers: Sequence[DroppedLayer], ladder: Ladder) -> str:
        """The codec's; cheap, and checked by its digest anyway."""
        return self._codec.join(layers, ladder)

    def render(self, record: bytes) -> str:
        """The codec's."""
        return self._of(("render", record), lambda: self._codec.render(record))

    def invariants(self, record: bytes) -> tuple[str, ...]:
        """The codec's."""
        return self._codec.invariants(record)

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        """The codec's."""
        return self._codec.gate(record, draft, neighbours, strict=strict)

    def _of(self, key: Hashable, make: Callable[[], T]) -> T:
        if key in self._kept:
            self._kept.move_to_end(key)
            return cast("T", self._kept[key])
        made = make()
        self._kept[key] = made
        if len(self._kept) > _RESULTS_KEPT:
            self._kept.popitem(last=False)
        return made


class OpenGate(RememberedCodec):
    """The ablation without the verification operator: every draft is admitted as it comes."""

    def gate(self, record: bytes, draft: str, neighbours: Sequence[str], *, strict: bool) -> Verdict:
        """Yes."""
        return Verdict(admitted=True)


def scratch_directory(prefix: str) -> Path:
    """A new directory for a store that lives for one run.

    $CRYSTALMEM_BENCH_SCRATCH, or memory where the machine has plenty (an fsync there costs nothing and
    what is measured does not depend on it), or where temporary files go.
    """
    named = os.environ.get(SCRATCH_VARIABLE)
    if named:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=named))
    roomy = _MEMORY_DISK.is_dir() and shutil.disk_usage(_MEMORY_DISK).free > _LEAST_FREE_BYTES
    return Path(tempfile.mkdtemp(prefix=prefix, dir=_MEMORY_DISK if roomy else None))
