"""Regenerators of the bench behind the real port (edge_agent.drafting.LocalGenerator), each labelled.

A language model at an OpenAI-compatible endpoint is the real one. The others are deterministic: `exact` is an
oracle that knows the originals, `extractive` and `hallucinating` are stand-ins that show how the loop behaves
when a model adds little, or makes things up. Their results are never told without that label.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping

import numpy as np

from hub.model import OpenAIGenerator
from shared.errors import Code, InputError
from shared.memory.model import Ladder, Rung
from shared.memory.schedules import chance
from shared.ports import Clock, Draft, DraftRequest, RungCodec
from shared.prompt import estimate_tokens, prompt_tokens
from shared.replies import unfit

URL_VARIABLE = "CRYSTALMEM_BENCH_REGEN_URL"
MODEL_VARIABLE = "CRYSTALMEM_BENCH_REGEN_MODEL"
KEY_VARIABLE = "CRYSTALMEM_BENCH_REGEN_KEY"
KINDS = ("exact", "extractive", "hallucinating", "endpoint")
HALLUCINATION_RATE = 0.3
"""Share of drafts that hold an invented fact: about what the paper's gate rejects from trace (27.5 %)."""

_ENDPOINT_TIMEOUT_S = 120.0
_BYTES_PER_TOKEN = 4
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_VALUE = re.compile(r"\b(?:\d[\w:.,-]*\d|\d+|[A-Z][a-z]{2,})\b")
_WORD = re.compile(r"\w{3,}")


class Local:
    """What the deterministic ones have in common: always there, and charged like a model of that prompt."""

    stand_in = True
    name = ""

    @property
    def model(self) -> str:
        """The label that every draft carries."""
        return self.name

    @property
    def available(self) -> bool:
        """Always."""
        return True

    def fitted(self, request: DraftRequest) -> DraftRequest:
        """It takes any."""
        return request

    async def draft(self, request: DraftRequest) -> Draft:
        """The text, charged as the prompt and answer would be."""
        text = self.text(request)
        answer = math.ceil(len(text.encode()) / _BYTES_PER_TOKEN)
        tokens = min(prompt_tokens(request) + answer, estimate_tokens(request))
        return Draft(text, self.model, tokens)

    def text(self, request: DraftRequest) -> str:
        """What is drafted."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Nothing is open."""


class Exact(Local):
    """The oracle of Prop. 6 and of upper bounds: what the target rung of the true original shows."""

    name = "oracle: the true original"

    def __init__(self, originals: Mapping[int, str], codec: RungCodec, ladder: Ladder) -> None:
        self._originals = originals
        self._codec = codec
        self._ladder = ladder

    def text(self, request: DraftRequest) -> str:
        """Verbatim."""
        original = self._originals[request.number]
        if request.target is Rung.FULL:
            return original
        return self._codec.render(self._codec.drop(original, self._ladder, request.target).record)


class Extractive(Local):
    """The residue, then the neighbours' sentences that share most words with it, while there is room."""

    name = "stand-in: residue and neighbours"

    def text(self, request: DraftRequest) -> str:
        """At most what the request allows."""
        room = request.max_tokens * _BYTES_PER_TOKEN
        told = [request.residue]
        room -= len(request.residue.encode())
        known = _words(request.residue)
        for sentence in _by_overlap(request, known):
            size = len(sentence.encode()) + 1
            if size <= room:
                told.append(sentence)
                room -= size
        return " ".join(told)


class Hallucinating(Extractive):
    """As `extractive`, and at a rate a value of the residue is told of something else."""

    name = "stand-in: invents facts"

    def __init__(self, seed: int, rate: float = HALLUCINATION_RATE) -> None:
        self._seed = seed
        self._rate = rate

    def text(self, request: DraftRequest) -> str:
        """The same entry, rung and stage always go the same way."""
        honest = super().text(request)
        draws = [self._draw(request, salt) for salt in range(3)]
        if draws[0] >= self._rate:
            return honest
        values = sorted(set(_VALUE.findall(request.residue)))
        others = sorted(
            {value for text in request.neighbours for value in _VALUE.findall(text)} - set(values)
        )
        invented = others[int(draws[2] * len(others))] if others else f"{int(draws[2] * 900) + 100}"
        if values:
            swapped = values[int(draws[1] * len(values))]
            return re.sub(rf"\b{re.escape(swapped)}\b", invented, honest)
        return f"{honest} It was changed to {invented}."

    def _draw(self, request: DraftRequest, salt: int) -> float:
        seed = self._seed * 8191 + request.stage * 131 + int(request.target) * 17 + salt
        return float(chance(np.array([request.number], np.int64), seed)[0])


class Endpoint:
    """A real model: the hub's own caller of OpenAI-compatible endpoints, at the edge's side of the loop."""

    stand_in = False

    def __init__(self, url: str, name: str, clock: Clock, api_key: str = "none") -> None:
        self._url, self._name, self._clock, self._api_key = url, name, clock, api_key
        self._caller: OpenAIGenerator | None = None

    @property
    def name(self) -> str:
        """The model's."""
        return self._name

    @property
    def model(self) -> str:
        """The model's name."""
        return self._name

    @property
    def available(self) -> bool:
        """It is asked; a failure is a draft with a reason."""
        return True

    def fitted(self, request: DraftRequest) -> DraftRequest:
        """It takes any."""
        return request

    async def draft(self, request: DraftRequest) -> Draft:
        """One call; a reply that is no draft of this residue is a failure, as at the hub."""
        if self._caller is None:
            # Bound to the loop that it is first used in.
            self._caller = OpenAIGenerator(
                self._url, self._name, self._api_key, _ENDPOINT_TIMEOUT_S, self._clock
            )
        draft = await self._caller.draft(request)
        if draft.failure:
            return draft
        reason = unfit(request.residue, draft.text)
        return Draft(draft.text, draft.model, draft.tokens, reason, draft.estimated)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._caller is not None:
            await self._caller.aclose()
            self._caller = None


def generator(
    kind: str, seed: int, originals: Mapping[int, str], codec: RungCodec, ladder: Ladder, clock: Clock
) -> Local | Endpoint | None:
    """The regenerator of this kind; "" = none. `endpoint`: the model that the environment names.

    Raises InputError(BAD_REQUEST) for another kind, or for `endpoint` where none is named.
    """
    if not kind:
        return None
    if kind == "exact":
        return Exact(originals, codec, ladder)
    if kind == "extractive":
        return Extractive()
    if kind == "hallucinating":
        return Hallucinating(seed)
    if kind != "endpoint":
        raise InputError(
            Code.BAD_REQUEST, "no such regenerator", name=kind, hint=f"One of: {', '.join(KINDS)}"
        )
    url, name = os.environ.get(URL_VARIABLE, ""), os.environ.get(MODEL_VARIABLE, "")
    if not (url and name):
        raise InputError(
            Code.BAD_REQUEST, "no model is named", hint=f"Set {URL_VARIABLE} and {MODEL_VARIABLE}"
        )
    return Endpoint(url, name, clock, os.environ.get(KEY_VARIABLE, "none"))


def at_hand() -> str:
    """`endpoint` where the environment names one, else the extractive stand-in."""
    return "endpoint" if os.environ.get(URL_VARIABLE) else "extractive"


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _by_overlap(request: DraftRequest, known: frozenset[str]) -> Iterator[str]:
    """The neighbours' sentences that share a word with the residue, the most first."""
    sentences = [
        sentence.strip()
        for text in request.neighbours
        for sentence in _SENTENCE.findall(text)
        if sentence.strip()
    ]
    shared = [(len(known & _words(sentence)), at, sentence) for at, sentence in enumerate(sentences)]
    for count, _, sentence in sorted(shared, key=lambda row: (-row[0], row[1])):
        if count:
            yield sentence
