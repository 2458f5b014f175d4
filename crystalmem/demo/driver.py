"""Drives one arm over one cycle, through the public door only, and measures from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from crystalmem_client import Client, CrystalMemError, Recall

from crystalmem.demo.answerer import grade
from crystalmem.demo.arms import REFERENCE, Arm
from crystalmem.demo.episodes import Episode, Question
from crystalmem.demo.journal import Journal, public_id, text_digest
from crystalmem.demo.processes import Daemon, Fleet, Value, run_checker, write_config
from crystalmem.demo.results import ArmResult, StageRow
from crystalmem.demo.site import TENANT, HubSite
from crystalmem.demo.stream import Stage, Stream
from shared.errors import Code, TransientError
from shared.host.files import directory_bytes
from shared.memory.cycle import LoopPoint, deficit, hysteresis, loop_point
from shared.ports import Clock

K = 5
MAX_BYTES = 4096
# The hub dies right after this stage's last write, whose deltas are on their way.
HUB_DIES_IN_STAGE = 4
# Background work runs in `settle` only, and a squeeze waits for the hub instead of losing exactness on a busy
# machine: so that what happens depends on the seed and not on the time of day.
NEVER_S = 86_400.0
GRACE_S = 60.0
SETTLE_S = 60.0
LINK_TRIES = 6000
LINK_WAIT_S = 0.01
UNSETTLED = frozenset({"link_down", "timed_out"})
LINKED = frozenset({"ready", "sending"})
# Keep-all's provision: a budget that never binds.
UNBOUND_BYTES = 1 << 40


@dataclass(frozen=True)
class Plan:
    """What one run of an arm needs to know."""

    arm: Arm
    name: str
    schedule: Sequence[float]
    stream: Stream
    packed_bytes: Sequence[int]
    provision_bytes: int
    directory: Path


@dataclass
class _Tally:
    """What the door said it did during one stage."""

    promoted: int = 0
    tokens: int = 0
    lost_exact: int = 0
    link_up_bytes: int = 0
    link_down_bytes: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def add(self, settled: dict[str, Any]) -> None:
        self.promoted += settled["promoted"]
        self.lost_exact += settled["lost_exact"]
        self.tokens += settled["tokens"]
        self.link_up_bytes += settled["link_up_bytes"]
        self.link_down_bytes += settled["link_down_bytes"]
        self.rejected.update(settled["rejected"])


class ArmRun:
    """One arm, one cycle, one fresh store."""

    def __init__(
        self, plan: Plan, fleet: Fleet, hub: HubSite | None, clock: Clock, tell: Callable[[StageRow], None]
    ) -> None:
        self._plan = plan
        self._fleet = fleet
        self._hub = hub
        self._clock = clock
        self._tell = tell
        self._name = plan.name
        self._data = plan.directory / "edge"
        self._empty_bytes = 0
        self._capability: float | None = None

    def run(self) -> ArmResult:
        """The whole cycle; the daemons are down when it returns."""
        started = self._clock.mono_ns()
        if self._hub is not None:
            self._hub.start()
        edge = self._start_edge()
        self._empty_bytes = directory_bytes(self._data / "memory")
        with (
            self._client() as client,
            Journal(self._journal) as journal,
        ):
            empty = fmean(self._grades(client, self._plan.stream.fixed))
            self._write(client, journal, self._plan.stream.before, paced=False)
            self._settle(client, _Tally())
            rows, points = self._stages(client, journal)
            identical, entries = self._identical(client)
            final = client.budget()
            # While it runs, as the empty store was measured: a stop drops the shared-memory file.
            final_disk_bytes = directory_bytes(self._data / "memory")
        edge.stop()
        if self._hub is not None:
            self._hub.stop()
        return ArmResult(
            title=self._plan.arm.title,
            policy=self._plan.arm.policy,
            ladder=self._plan.arm.ladder,
            archive=self._plan.arm.archive,
            eviction=self._plan.arm.eviction,
            budget_exempt=self._plan.arm.policy == REFERENCE,
            H=hysteresis(points) if points[0].capability > 0 else None,
            D=deficit(points),
            identical=identical,
            entries=entries,
            byte_identical=identical == entries,
            empty_capability=100.0 * empty,
            empty_bytes=self._empty_bytes,
            final_logical_bytes=int(final["logical_bytes"]),
            final_disk_bytes=final_disk_bytes,
            hub_kills=self._hub.kills if self._hub is not None else 0,
            wall_s=(self._clock.mono_ns() - started) / 1e9,
            check=run_checker(self._journal, self._data, self._hub.tenant_file if self._hub else None),
            stages=tuple(rows),
        )

    @property
    def _journal(self) -> Path:
        return self._plan.directory / "journal.jsonl"

    @property
    def _socket(self) -> str:
        return str(self._fleet.socket_path(self._name))

    def _client(self) -> Client:
        return Client(self._socket, tenant=TENANT, timeout_s=SETTLE_S + 30)

    def _start_edge(self) -> Daemon:
        arm, config = self._plan.arm, self._plan.directory / "edge.toml"
        link: dict[str, Value] = self._hub.link_table() if self._hub is not None else {}
        write_config(
            config,
            {
                "tenant": TENANT,
                "data_dir": str(self._data),
                "memory": {
                    "provision_bytes": self._plan.provision_bytes,
                    "policy": arm.policy,
                    "ladder": arm.ladder,
                    "eviction": arm.eviction,
                },
                "archive": {"mode": arm.archive, "grace_s": GRACE_S},
                "idle": {"window_s": NEVER_S, "patience_s": NEVER_S},
                # By words alone: the same figures on every machine, whatever models it holds.
                "embedder": {"model": "none"},
                "door": {"socket": self._socket},
                "link": link,
            },
        )
        return self._fleet.start(self._name, ["edge", "run", "--config", str(config)])

    def _stages(self, client: Client, journal: Journal) -> tuple[list[StageRow], list[LoopPoint]]:
        rows, points = [], []
        for stage, b in zip(self._plan.stream.stages, self._plan.schedule, strict=True):
            row, point = self._stage(client, journal, stage, b)
            rows.append(row)
            points.append(point)
            self._capability = point.capability
            self._tell(row)
        return rows, points

    def _stage(self, client: Client, journal: Journal, stage: Stage, b: float) -> tuple[StageRow, LoopPoint]:
        """Budget, settle, measure, serve, write, settle: a stage is measured before its own writes."""
        started = self._clock.mono_ns()
        tally, violations = _Tally(), []
        budget = self._plan.provision_bytes
        if self._plan.arm.policy != REFERENCE:
            budget = round(b * self._plan.provision_bytes)
            swept = client.set_budget(bytes=budget, capability=self._capability)
            violations += self._violations("when the sweep was done", swept, swept["disk_bytes"], budget)
        self._settle(client, tally)
        report = client.budget()
        disk = directory_bytes(self._data / "memory")
        violations += self._violations("settled", report, disk, budget)
        point = loop_point(b, self._grades(client, self._plan.stream.fixed))
        later = self._grades(client, self._plan.stream.askable(self._plan.stream.later, stage.number))
        ungraded = self._serve(client, stage.served)
        self._write(client, journal, stage.writes, paced=True)
        if stage.number == HUB_DIES_IN_STAGE and self._hub is not None:
            self._hub.kill_and_restart()
        self._settle(client, tally)
        after = client.budget()
        disk_after = directory_bytes(self._data / "memory")
        violations += self._violations("after the writes", after, disk_after, budget)
        row = StageRow(
            stage=stage.number,
            b=b,
            budget_bytes=budget,
            packed_bytes=self._plan.packed_bytes[stage.number - 1],
            logical_bytes=int(report["logical_bytes"]),
            disk_bytes=disk,
            floor_bytes=int(report["floor_bytes"]),
            C=point.capability,
            n=point.n,
            C_interval=point.interval,
            C_later=loop_point(b, later).capability if later else None,
            n_later=len(later),
            rungs=dict(report["rungs"]),
            evicted=int(report["evicted"]),
            lost_exact=tally.lost_exact,
            promoted=tally.promoted,
            rejected=dict(sorted(tally.rejected.items())),
            tokens=tally.tokens,
            link_up_bytes=tally.link_up_bytes,
            link_down_bytes=tally.link_down_bytes,
            seconds=(self._clock.mono_ns() - started) / 1e9,
            entries=sum(report["rungs"].values()),
            served=len(stage.served),
            ungraded=ungraded,
            writes=len(stage.writes),
            disk_after_writes_bytes=disk_after,
            logical_after_writes_bytes=int(after["logical_bytes"]),
            violations=tuple(violations),
        )
        return row, point

    def _grades(self, client: Client, questions: Sequence[Question]) -> list[float]:
        """g of each question; measuring changes nothing in the store."""
        return [
            grade(question.gold, _texts(self._recall(client, question, record=False)))
            for question in questions
        ]

    def _serve(self, client: Client, questions: Iterable[Question]) -> int:
        """Recall, answer, grade; how many grades found their recall closed: a budget keeps few open."""
        late = 0
        for question in questions:
            answer = self._recall(client, question, record=True)
            read = len(question.question) + sum(len(hit.text.encode("utf-8")) for hit in answer.hits)
            try:
                client.outcome(
                    str(answer.recall_id), grade(question.gold, _texts(answer)), tokens=-(-read // 4)
                )
            except CrystalMemError as problem:
                if problem.code != Code.UNKNOWN_RECALL.value:
                    raise
                late += 1
        return late

    @staticmethod
    def _recall(client: Client, question: Question, *, record: bool) -> Recall:
        return client.recall(question.question, k=K, max_bytes=MAX_BYTES, record=record)

    def _write(self, client: Client, journal: Journal, episodes: Iterable[Episode], *, paced: bool) -> None:
        """`paced` = each write waits until the hub has the one before."""
        for episode in episodes:
            if paced:
                self._drain(client)
            entry = public_id(episode.id)
            journal.intend(entry, 1, text_digest(episode.text))
            client.remember(
                episode.text,
                id=entry.hex(),
                kind=episode.kind,
                links=[public_id(link).hex() for link in episode.links],
                created=episode.time,
            )
            journal.acknowledge(entry, 1)

    def _identical(self, client: Client) -> tuple[int, int]:
        """How many of all written entries the door gives back byte for byte, and how many there were."""
        stream = self._plan.stream
        written = [*stream.before, *(episode for stage in stream.stages for episode in stage.writes)]
        same = 0
        for episode in written:
            try:
                same += client.get(public_id(episode.id).hex())["text"] == episode.text
            except CrystalMemError as problem:
                if problem.code != Code.UNKNOWN_ID.value:
                    raise
        return same, len(written)

    def _settle(self, client: Client, tally: _Tally) -> None:
        """Until nothing is left to promote or to archive."""
        self._drain(client)
        settled = client.settle(timeout_s=SETTLE_S)
        tally.add(settled)
        if settled["state"] in UNSETTLED:
            raise TransientError(
                Code.TIMED_OUT, f"the store did not settle: {settled['state']}", arm=self._name
            )

    def _drain(self, client: Client) -> None:
        """Until the hub has acknowledged everything: what is unsent is charged, so it would move entries."""
        if self._hub is None:
            return
        for _ in range(LINK_TRIES):
            link = client.status()["link"]
            if link["waiting"] == 0 and link["state"] in LINKED:
                return
            self._fleet.pause(LINK_WAIT_S)
        raise TransientError(
            Code.TIMED_OUT, "the hub did not take the edge's deltas", link=link, arm=self._name
        )

    def _violations(self, when: str, report: dict[str, Any], disk: int, budget: int) -> list[str]:
        """Broken byte promises: by the store's own account, and by the files' sizes."""
        found = []
        if report["logical_bytes"] > budget:
            found.append(f"{when}: logical {report['logical_bytes']} > budget {budget}")
        if disk > budget + self._empty_bytes:
            found.append(f"{when}: disk {disk} > budget {budget} + empty store {self._empty_bytes}")
        return found


def _texts(answer: Recall) -> list[str]:
    return [hit.text for hit in answer.hits]
