"""onnxruntime-genai behind one call: prefill in small chunks, then token by token, looking up in between."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge_agent.ondevice_wire import End, Finished, Generate, Progress
from shared.errors import Code, PermanentError
from shared.host.memory import resident_bytes
from shared.ports import Clock
from shared.prompt import unmarked

PACKAGE = "onnxruntime_genai"
INSTALL = "pip install '.[ondevice]' in crystalmem's repository"
# A recall waits for one chunk at most: 100 ms are promised, the rest is for the way there and a busy core.
_CHUNK_NS = 40_000_000
# On a busy core chunks go down to one token: slower to read, but the recall comes first.
_LEAST_CHUNK_TOKENS = 1
_MOST_CHUNK_TOKENS = 64


@dataclass
class _Call:
    """One call while it runs."""

    job: Generate
    prompt: Sequence[int]
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def progress(self) -> Progress:
        return Progress(self.job.job, self.prompt_tokens, self.completion_tokens)


class Engine:
    """A loaded model. Greedy: the same prompt gives the same text on the same machine."""

    def __init__(self, folder: Path, threads: int, memory_bytes: int, clock: Clock) -> None:
        self._genai: Any = _runtime()
        self._memory_bytes = memory_bytes
        self._clock = clock
        self._chunk_tokens = _LEAST_CHUNK_TOKENS
        self._context_tokens = _context_tokens(folder)
        try:
            config = self._genai.Config(str(folder))
            config.overlay(json.dumps(_session(threads)))
            self._model = self._genai.Model(config)
            self._tokenizer = self._genai.Tokenizer(self._model)
        except (RuntimeError, OSError, ValueError) as problem:
            raise PermanentError(
                Code.MODEL_BROKEN, f"the runtime refuses the model: {str(problem)[:300]}"
            ) from None
        except MemoryError:
            raise PermanentError(Code.NOT_ENOUGH_MEMORY, "no memory to load the model") from None

    def run(self, job: Generate, cancelled: Callable[[], bool], tell: Callable[[Progress], None]) -> Finished:
        """One call from prompt to end. Never raises for what the model or the runtime does."""
        try:
            prompt = self._prompt(job)
        except (RuntimeError, ValueError) as problem:
            return _finished(_Call(job, ()), End.FAILED, str(problem)[:300])
        call = _Call(job, prompt)
        room = min(job.max_prompt_tokens, self._context_tokens - job.max_tokens)
        if len(prompt) > room:
            return _finished(call, End.TOO_LONG, "")
        try:
            return self._generated(call, cancelled, tell)
        except MemoryError:
            return _finished(call, End.OUT_OF_MEMORY, "")
        except RuntimeError as problem:
            end = End.OUT_OF_MEMORY if "alloc" in str(problem).lower() else End.FAILED
            return _finished(call, end, str(problem)[:300])

    def _generated(
        self, call: _Call, cancelled: Callable[[], bool], tell: Callable[[Progress], None]
    ) -> Finished:
        generator = self._genai.Generator(self._model, self._params(call))
        end = self._prefill(generator, call, cancelled, tell)
        tokens: list[int] = []
        while end is None:
            call.completion_tokens += 1
            tell(call.progress())
            generator.generate_next_token()
            tokens.append(int(generator.get_next_tokens()[0]))
            if generator.is_done():
                # Stopped by an end mark of the model's, or by the length it was given.
                end = End.STOP if tokens[-1] in self._end_tokens() else End.LENGTH
            else:
                end = self._must_end(cancelled)
        if tokens and tokens[-1] in self._end_tokens():
            tokens.pop()
        text = str(self._tokenizer.decode(tokens)) if tokens else ""
        return _finished(call, end, text)

    def _prefill(
        self, generator: Any, call: _Call, cancelled: Callable[[], bool], tell: Callable[[Progress], None]
    ) -> End | None:
        """The prompt into the model, a chunk at a time, each as long as a recall may wait."""
        at = 0
        while at < len(call.prompt):
            end = self._must_end(cancelled)
            if end is not None:
                return end
            chunk = call.prompt[at : at + self._chunk_tokens]
            at += len(chunk)
            call.prompt_tokens = at
            tell(call.progress())
            started = self._clock.mono_ns()
            generator.append_tokens(chunk)
            self._pace(len(chunk), self._clock.mono_ns() - started)
        return self._must_end(cancelled)

    def _pace(self, tokens: int, took_ns: int) -> None:
        fitting = int(tokens * _CHUNK_NS / max(took_ns, 1))
        # Twice as long at most: one quick chunk says little.
        fitting = min(fitting, 2 * self._chunk_tokens, _MOST_CHUNK_TOKENS)
        self._chunk_tokens = max(fitting, _LEAST_CHUNK_TOKENS)

    def _must_end(self, cancelled: Callable[[], bool]) -> End | None:
        if cancelled():
            return End.CANCELLED
        return End.OUT_OF_MEMORY if resident_bytes() > self._memory_bytes else None

    def _params(self, call: _Call) -> Any:
        params = self._genai.GeneratorParams(self._model)
        params.set_search_options(max_length=len(call.prompt) + call.job.max_tokens, do_sample=False)
        for kind, guide in (("json_schema", call.job.schema), ("regex", call.job.pattern)):
            if guide:
                params.set_guidance(kind, guide)
        return params

    def _prompt(self, job: Generate) -> Sequence[int]:
        messages = [{"role": role, "content": unmarked(text)} for role, text in job.turns]
        text = self._tokenizer.apply_chat_template(json.dumps(messages), add_generation_prompt=True)
        return [int(token) for token in self._tokenizer.encode(text)]

    def _end_tokens(self) -> frozenset[int]:
        ends = self._tokenizer.eos_token_ids
        return frozenset(int(token) for token in ends)


def _runtime() -> Any:
    try:
        genai = importlib.import_module(PACKAGE)
    except ImportError as problem:
        raise PermanentError(
            Code.MODEL_ABSENT, f"{PACKAGE} cannot be imported ({problem}); install it with: {INSTALL}"
        ) from None
    # Some builds report their use to their makers; ours never does.
    getattr(genai, "disable_telemetry_events", _nothing)()
    return genai


def _session(threads: int) -> dict[str, object]:
    options = {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
    return {"model": {"decoder": {"session_options": options}}}


def _context_tokens(folder: Path) -> int:
    try:
        config = json.loads((folder / "genai_config.json").read_bytes())
        return int(config["model"]["context_length"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise PermanentError(
            Code.MODEL_BROKEN, f"genai_config.json names no context length: {problem!r}"[:300]
        ) from None


def _finished(call: _Call, end: End, text: str) -> Finished:
    return Finished(call.job.job, end, text, call.prompt_tokens, call.completion_tokens, resident_bytes())


def _nothing() -> None:
    """Where there is nothing to switch off."""
