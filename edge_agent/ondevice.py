"""The on-device model as the daemon uses it: loaded when needed, bounded, interrupted by recalls, restarted.

Nothing here blocks the loop, and nothing the model does ends the daemon: it may crash, hang or talk nonsense.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import anyio

from edge_agent.ondevice_process import ModelProcess
from edge_agent.ondevice_state import Answer, Counts, OnDeviceOptions, Phase, Prompt, check_memory
from edge_agent.ondevice_wire import (
    FORMAT,
    Cancel,
    End,
    Finished,
    Generate,
    Load,
    Loaded,
    Progress,
    Refused,
    ToParent,
)
from shared import metrics
from shared.errors import CrystalError
from shared.host.log import clean, get_logger
from shared.host.memory import available_bytes
from shared.host.model_folder import Manifest, read_manifest
from shared.ports import Clock
from shared.units import MIB

# Measured (docs/ondevice.md): weights, a copy made while loading, the runtime itself, and a call's cache.
NEED_FACTOR = 3.0
NEED_BASE_BYTES = 256 * MIB
# After so many deaths without a call in between that ended well, it stays down until the daemon restarts.
MOST_DEATHS = 5
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
# A refusal (memory, folder, package) may have another answer later.
_REFUSED_WAIT_S = 60.0
# Loading reads and hashes some hundred MB; a token or a chunk takes a fraction of a second.
_LOAD_SILENCE_S = 180.0
_SILENCE_S = 30.0
# A call that is neither silent nor done: two minutes are some thousand tokens even of a busy board.
CALL_S = 120.0
_LOOK_S = 1.0
# Recalls that keep cancelling it would spend the cap on prompts that are never finished.
_LONGEST_CALM_S = 60.0
_NS = 1_000_000_000
_log = get_logger("ondevice")


class OnDevice:
    """One model, one call at a time."""

    def __init__(
        self,
        options: OnDeviceOptions,
        clock: Clock,
        start: Callable[[], Awaitable[ModelProcess]] = ModelProcess.start,
        available: Callable[[], int | None] = available_bytes,
    ) -> None:
        self._options = options
        self._clock = clock
        self._start = start
        self._available = available
        self._turn = anyio.Lock()
        self._process: ModelProcess | None = None
        self._phase = Phase.ABSENT if options.folder is None else Phase.ASLEEP
        self._job = 0
        self._flying: ModelProcess | None = None
        self._spent = (0, 0)
        self._interrupts = 0
        self._cancels_in_a_row = 0
        self._calm_until_mono_ns = 0
        self._deaths_in_a_row = 0
        self._not_before_mono_ns = 0
        self._last_used_mono_ns = clock.mono_ns()
        self._problem = "" if options.folder is not None else options.why_absent
        self._model = ""
        self._resident_bytes = 0
        self.counts = Counts()

    @property
    def available(self) -> bool:
        """Whether a call should be tried now."""
        now = self._clock.mono_ns()
        if self._phase in {Phase.ABSENT, Phase.GIVEN_UP} or now < self._calm_until_mono_ns:
            return False
        return self._process is not None or now >= self._not_before_mono_ns

    @property
    def model(self) -> str:
        """The model's name, once it was loaded."""
        return self._model

    @property
    def phase(self) -> Phase:
        """Where it stands now."""
        over = self._phase is Phase.WAITING and self._clock.mono_ns() >= self._not_before_mono_ns
        return Phase.ASLEEP if over else self._phase

    @property
    def problem(self) -> str:
        """Why it is not there; empty while nothing is wrong."""
        return self._problem

    @property
    def resident_bytes(self) -> int:
        """What its process held when it last said so; 0 while none runs."""
        return self._resident_bytes if self._process is not None else 0

    @property
    def max_prompt_tokens(self) -> int:
        """A longer prompt is not run."""
        return self._options.max_prompt_tokens

    def interrupt(self) -> None:
        """A recall needs the board: the call in flight ends before its next token."""
        self._interrupts += 1
        if self._flying is not None:
            self._flying.send(Cancel(self._job))

    async def generate(self, prompt: Prompt) -> Answer:
        """One call. Never raises for what the model does; a cancelled caller ends the process."""
        seen = self._interrupts
        async with self._turn:
            if prompt.surely_over(self._options.max_prompt_tokens):
                return self._booked(Answer(End.TOO_LONG, model=self._model))
            process = await self._awake()
            if process is None:
                return self._booked(Answer(End.UNAVAILABLE))
            if self._interrupts != seen:
                # The recall came while it loaded.
                return self._booked(Answer(End.CANCELLED, model=self._model))
            self._phase, self._flying, self._spent = Phase.BUSY, process, (0, 0)
            self._job += 1
            try:
                if process.send(self._message(prompt)):
                    answer = await self._answer(process)
                else:
                    answer = Answer(End.TOO_LONG, model=self._model)
            except BaseException:
                # The caller is gone (the daemon stops): nobody would hear the rest.
                await self._drop(Phase.ASLEEP)
                raise
            finally:
                self._flying = None
                self._last_used_mono_ns = self._clock.mono_ns()
            if self._process is not None:
                self._phase = Phase.READY
            return self._booked(answer)

    async def run(self) -> None:
        """Give the memory back when unused for long; until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_S)
            if self._process is None or self._turn.statistics().locked:
                continue
            async with self._turn:
                idle_s = (self._clock.mono_ns() - self._last_used_mono_ns) / _NS
                if self._process.dead:
                    await self._died(End.CRASHED)
                elif idle_s >= self._options.idle_unload_s:
                    _log.info("unloaded", model=self._model, idle_s=round(idle_s))
                    await self._drop(Phase.ASLEEP)

    async def aclose(self) -> None:
        """End the process."""
        await self._drop(Phase.ASLEEP)

    # --- a call -------------------------------------------------------------------------------------------

    def _message(self, prompt: Prompt) -> Generate:
        return Generate(
            job=self._job,
            turns=prompt.turns,
            max_tokens=prompt.max_tokens,
            max_prompt_tokens=self._options.max_prompt_tokens,
            schema=prompt.schema,
            pattern=prompt.pattern,
        )

    async def _answer(self, process: ModelProcess) -> Answer:
        until_ns, overdue = self._clock.mono_ns() + round(CALL_S * _NS), False
        while True:
            left_s = (until_ns - self._clock.mono_ns()) / _NS
            message = await self._heard(process, min(left_s, _SILENCE_S)) if left_s > 0 else End.SILENT
            if isinstance(message, Progress) and message.job == self._job:
                self._spent = message.prompt_tokens, message.completion_tokens
            elif isinstance(message, Finished) and message.job == self._job:
                answer = self._finished(message)
                stopped = overdue and answer.end is End.CANCELLED
                return replace(answer, end=End.OVERDUE) if stopped else answer
            elif message is End.SILENT and not overdue and self._clock.mono_ns() >= until_ns:
                # It is asked to stop, as for a recall, and has as long for it as for anything it says.
                until_ns, overdue = self._clock.mono_ns() + round(_SILENCE_S * _NS), True
                process.send(Cancel(self._job))
            else:
                # Dead, silent, or saying what nobody asked: it goes, and what it had computed is charged.
                how = message if isinstance(message, End) else End.GARBAGE
                await self._died(how)
                return Answer(how, "", self._model, *self._spent)

    def _finished(self, message: Finished) -> Answer:
        self._resident_bytes = message.resident_bytes
        if message.end in {End.FAILED, End.OUT_OF_MEMORY}:
            _log.warning("call failed", end=message.end.value, reason=clean(message.text, 300))
            return Answer(message.end, "", self._model, message.prompt_tokens, message.completion_tokens)
        self._deaths_in_a_row, self._problem = 0, ""
        spent = message.prompt_tokens, message.completion_tokens
        return Answer(message.end, message.text, self._model, *spent)

    def _booked(self, answer: Answer) -> Answer:
        if answer.end is End.CANCELLED:
            self._cancels_in_a_row += 1
            calm_s = min(2.0 ** (self._cancels_in_a_row - 1), _LONGEST_CALM_S)
            self._calm_until_mono_ns = self._clock.mono_ns() + round(calm_s * _NS)
        elif answer.end is not End.UNAVAILABLE:
            self._cancels_in_a_row = 0
        counts = self.counts
        counts.calls += 1
        counts.tokens += answer.tokens
        counts.cancelled += answer.end is End.CANCELLED
        counts.ends[answer.end.value] = counts.ends.get(answer.end.value, 0) + 1
        metrics.ONDEVICE_CALLS.labels(end=answer.end.value).inc()
        metrics.ONDEVICE_TOKENS.inc(answer.tokens)
        return answer

    async def _heard(self, process: ModelProcess, silence_s: float) -> ToParent | End:
        """The next message; SILENT when none comes for so long."""
        heard: ToParent | End = End.SILENT

        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await self._clock.sleep(silence_s)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            heard = await process.receive()
            tasks.cancel_scope.cancel()
        return heard

    # --- coming and going -----------------------------------------------------------------------------------

    async def _awake(self) -> ModelProcess | None:
        """The loaded model; None where there is none now, and `problem` says why."""
        if self._process is not None and self._process.dead:
            await self._died(End.CRASHED)
        if self._process is not None:
            return self._process
        folder = self._options.folder
        if folder is None or self._phase is Phase.GIVEN_UP:
            return None
        if self._clock.mono_ns() < self._not_before_mono_ns:
            return None
        try:
            manifest = await anyio.to_thread.run_sync(read_manifest, folder, FORMAT)
            free = await anyio.to_thread.run_sync(self._available)
            check_memory(manifest.model, self.needed_bytes(manifest), free)
        except CrystalError as problem:
            self._refused(str(problem))
            return None
        return await self._loaded(folder, manifest)

    def needed_bytes(self, manifest: Manifest) -> int:
        """What its process may hold at most."""
        return self._options.memory_bytes or round(NEED_BASE_BYTES + NEED_FACTOR * manifest.size_bytes)

    async def _loaded(self, folder: Path, manifest: Manifest) -> ModelProcess | None:
        self._phase = Phase.LOADING
        try:
            process = self._process = await self._start()
        except OSError as problem:
            self._refused(f"no process can be started: {problem.strerror or problem}")
            return None
        try:
            process.send(Load(str(folder), self._options.threads, self.needed_bytes(manifest)))
            message = await self._heard(process, _LOAD_SILENCE_S)
        except BaseException:
            await self._drop(Phase.ASLEEP)
            raise
        if isinstance(message, Loaded):
            self._phase, self._model = Phase.READY, message.model
            self._resident_bytes, self._problem = message.resident_bytes, ""
            metrics.ONDEVICE_RESIDENT_BYTES.set(message.resident_bytes)
            self.counts.restarts += self._deaths_in_a_row > 0
            _log.info("loaded", model=message.model, seconds=message.seconds, bytes=message.resident_bytes)
            return process
        if isinstance(message, Refused):
            await self._drop(Phase.WAITING)
            self._refused(clean(message.message, 500))
        else:
            await self._died(message if isinstance(message, End) else End.GARBAGE)
        return None

    def _refused(self, why: str) -> None:
        """Not there for now; the daemon goes on without it."""
        if why != self._problem:
            _log.warning("no on-device model", reason=clean(why, 500))
        self._problem = why
        self._phase = Phase.WAITING
        self._not_before_mono_ns = self._clock.mono_ns() + round(_REFUSED_WAIT_S * _NS)

    async def _died(self, how: End) -> None:
        """Its process crashed, hangs or talks nonsense: it goes, and the next start waits."""
        self.counts.deaths += 1
        self._deaths_in_a_row += 1
        deaths = self._deaths_in_a_row
        given_up = deaths >= MOST_DEATHS
        code = await self._drop(Phase.GIVEN_UP if given_up else Phase.WAITING)
        wait_s = min(_FIRST_WAIT_S * 2 ** (deaths - 1), _LONGEST_WAIT_S)
        self._not_before_mono_ns = self._clock.mono_ns() + round(wait_s * _NS)
        self._problem = f"{how.value}, exit code {code}; {deaths} in a row" + (
            "; given up until the daemon restarts" if given_up else f"; next try in {wait_s:g} s"
        )
        metrics.ONDEVICE_DEATHS.labels(how=how.value).inc()
        _log.warning("the model process is gone", how=how.value, exit_code=code, deaths=deaths, wait_s=wait_s)

    async def _drop(self, phase: Phase) -> int | None:
        process, self._process = self._process, None
        if self._phase is not Phase.ABSENT:
            self._phase = phase
        metrics.ONDEVICE_RESIDENT_BYTES.set(0)
        return None if process is None else await process.end()
