"""Runs the arms side by side: keep-all first, then the others, two at a time, each over its own store."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import msgspec
from crystalmem_client import CrystalMemError

from crystalmem.demo.arms import ARMS, REFERENCE, Arm
from crystalmem.demo.driver import UNBOUND_BYTES, ArmRun, Plan
from crystalmem.demo.processes import Fleet
from crystalmem.demo.progress import Progress
from crystalmem.demo.results import ArmResult, CycleResult, StageRow
from crystalmem.demo.site import HubSite, Model
from crystalmem.demo.stream import Stream
from shared.errors import CrystalError
from shared.memory.cycle import LoopPoint, deficit, hysteresis
from shared.ports import Clock

# One driver thread and one busy daemon each: two arms fill the two cores that the demo is made for.
ARMS_AT_A_TIME = 2

Schedules = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Lineup:
    """Everything that all arms share; `run` does the work."""

    stream: Stream
    packed_bytes: tuple[int, ...]
    work: Path
    fleet: Fleet
    model: Model | None
    clock: Clock
    progress: Progress

    def run(self, schedules: Schedules, arms: tuple[Arm, ...]) -> dict[str, CycleResult]:
        """Keep-all once, for B0 and as every cycle's reference: no budget binds it."""
        first = next(iter(schedules))
        reference = self._one(ARMS[REFERENCE], "reference", schedules[first], UNBOUND_BYTES)
        results = self._side_by_side(schedules, arms, provision_of(reference))
        return {
            cycle: CycleResult(
                schedule=schedule,
                arms={
                    REFERENCE: over_schedule(reference, schedule),
                    **{arm.name: results[cycle, arm.name] for arm in arms if arm.name != REFERENCE},
                },
            )
            for cycle, schedule in schedules.items()
        }

    def _side_by_side(
        self, schedules: Schedules, arms: tuple[Arm, ...], provision: int
    ) -> dict[tuple[str, str], ArmResult]:
        # Those with a hub take longest: first, so that no core waits for them at the end.
        others = sorted((arm for arm in arms if arm.name != REFERENCE), key=lambda arm: not arm.hub)
        futures: dict[tuple[str, str], Future[ArmResult]] = {}
        with ThreadPoolExecutor(ARMS_AT_A_TIME) as pool:
            try:
                for arm in others:
                    for cycle, schedule in schedules.items():
                        futures[cycle, arm.name] = pool.submit(self._one, arm, cycle, schedule, provision)
                done, _ = wait(futures.values(), return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                # The other arm's thread waits for its daemon: without it the thread ends too.
                pool.shutdown(wait=False, cancel_futures=True)
                self.fleet.kill()
                raise
        return {key: future.result() for key, future in futures.items()}

    def _one(self, arm: Arm, cycle: str, schedule: tuple[float, ...], provision: int) -> ArmResult:
        name = f"{cycle}-{arm.name}"
        directory = self.work / name
        directory.mkdir()
        hub = HubSite(name, directory, self.fleet, self.model if arm.model else None) if arm.hub else None
        plan = Plan(arm, name, schedule, self.stream, self.packed_bytes, provision, directory)

        def tell(row: StageRow) -> None:
            self.progress.stage(name, row)

        try:
            result = ArmRun(plan, self.fleet, hub, self.clock, tell).run()
        except (CrystalError, CrystalMemError) as problem:
            # The other arm fails too once the fleet is killed: say which one was first.
            self.progress.say(f"{name}: {problem}")
            raise
        self.progress.finished(name, result)
        return result


def provision_of(reference: ArmResult) -> int:
    """B0: what keep-all's whole stream takes on disk, less an empty store (spec.md 3)."""
    return reference.final_disk_bytes - reference.empty_bytes


def over_schedule(reference: ArmResult, schedule: tuple[float, ...]) -> ArmResult:
    """Keep-all's one run read along another schedule: the same capabilities at other b."""
    rows = tuple(msgspec.structs.replace(row, b=b) for row, b in zip(reference.stages, schedule, strict=True))
    points = [LoopPoint(row.b, row.C, row.n, row.C_interval) for row in rows]
    loop = hysteresis(points) if points[0].capability > 0 else None
    return msgspec.structs.replace(reference, stages=rows, H=loop, D=deficit(points))
