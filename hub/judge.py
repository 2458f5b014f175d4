"""The last resort of the gate: a model's yes or no about what the rules leave open, as a probability.

It is asked only where no rule failed; what it does not answer clearly counts as no.
"""

from __future__ import annotations

import math

from openai.types.chat import ChatCompletion

TOP_LOGPROBS = 10
# Together less than this on yes and no: the model did not answer the question.
_LEAST_MASS = 0.5


def p_yes(completion: ChatCompletion) -> float | None:
    """p(yes) / (p(yes) + p(no)) at the first word; None where the reply does not tell."""
    try:
        first = completion.choices[0].logprobs.content[0].top_logprobs  # type: ignore[union-attr,index]
        mass = {"yes": 0.0, "no": 0.0}
        for candidate in first:
            word = candidate.token.strip().strip(".,!\"'").casefold()
            if word in mass:
                mass[word] += math.exp(min(float(candidate.logprob), 0.0))
    except (AttributeError, IndexError, TypeError, ValueError):
        return None
    total = mass["yes"] + mass["no"]
    # A NaN is no answer either.
    return mass["yes"] / total if total >= _LEAST_MASS else None
