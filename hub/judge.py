"""The last resort of the gate: a model's yes or no about what the rules leave open, as a probability.

It is asked only where no rule failed; what it does not answer clearly counts as no.
"""

from __future__ import annotations

import math

import msgspec

from hub.answer import Answer, shaped

TOP_LOGPROBS = 10
# Together less than this on yes and no: the model did not answer the question.
_LEAST_MASS = 0.5
# More than all of it, rounding aside: these are no probabilities.
_MOST_MASS = 1.01


class _Candidate(msgspec.Struct, frozen=True):
    token: str
    logprob: float


class _Place(msgspec.Struct, frozen=True):
    top_logprobs: tuple[_Candidate, ...]


class _Logprobs(msgspec.Struct, frozen=True):
    content: tuple[_Place, ...]


def p_yes(answer: Answer) -> float | None:
    """p(yes) / (p(yes) + p(no)) at the first word; None where the reply does not tell."""
    told = shaped(answer.choices[0].logprobs, _Logprobs) if answer.choices else None
    if told is None or not told.content:
        return None
    mass = {"yes": 0.0, "no": 0.0}
    seen: set[str] = set()
    for candidate in told.content[0].top_logprobs:
        if not -math.inf < candidate.logprob <= 0.0:
            return None
        word = candidate.token.strip().strip(".,!\"'").casefold()
        if word in mass:
            if candidate.token in seen:
                return None
            seen.add(candidate.token)
            mass[word] += math.exp(candidate.logprob)
    total = mass["yes"] + mass["no"]
    return mass["yes"] / total if _LEAST_MASS <= total <= _MOST_MASS else None
