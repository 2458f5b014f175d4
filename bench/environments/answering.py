"""Answers and their grades, the same for every text environment: a model's answer, and words found in texts.

Reader-free grades read the returned texts themselves; a model's answer goes through the same comparisons.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from bench.distill_locomo import content, tokens
from bench.environments.contract import Model, Question

_ARTICLE = frozenset(("a", "an", "the"))
_WORD = re.compile(r"\w+", re.UNICODE)
_DECLINES = re.compile(
    r"\b(?:not (?:mentioned|mention|stated|say|said|specified|provided|enough|available|known|recorded)"
    r"|did(?: not|n't) mention|no (?:information|mention|record|evidence)|unknown"
    r"|cannot (?:be )?(?:say|tell|answered|determined?)|(?:do|does)(?: not|n't) know)\b",
    re.IGNORECASE,
)


def normalised(text: str) -> tuple[str, ...]:
    """Words in order: compatibility forms folded, lower case, without punctuation and articles."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(word for word in _WORD.findall(folded) if word not in _ARTICLE)


def contains(text: str, wanted: str) -> bool:
    """Whether the words of `wanted` stand in a row in `text`; no words are contained nowhere."""
    return _in_a_row(normalised(text), normalised(wanted))


def contains_any(text: str, wanted: Sequence[str]) -> bool:
    """`contains` for the gold answer and its aliases."""
    words = normalised(text)
    return any(_in_a_row(words, normalised(one)) for one in wanted)


def token_f1(answer: str, gold: str) -> float:
    """F1 of the stems of both, articles left out; 0 where either has no words."""
    said, wanted = (Counter(word for word in tokens(text) if word not in _ARTICLE) for text in (answer, gold))
    shared = (said & wanted).total()
    if not shared:
        return 0.0
    precision, recall = shared / said.total(), shared / wanted.total()
    return 2 * precision * recall / (precision + recall)


def share_told(gold: str, texts: Sequence[str]) -> float:
    """The share of the gold's content stems that stand in the texts (all its stems where none carries
    content)."""
    wanted = set(content(gold)) or set(tokens(gold))
    if not wanted:
        return 0.0
    told = {word for text in texts for word in tokens(text)}
    return len(wanted & told) / len(wanted)


def declines(answer: str) -> bool:
    """Whether an answer says that memory does not hold it."""
    return bool(_DECLINES.search(answer))


def ask(model: Model, instruction: str, question: Question, texts: Sequence[str], max_tokens: int) -> str:
    """A model's answer from the returned texts alone; its last non-empty line."""
    shown = "\n".join(f"- {text}" for text in texts) or "(nothing)"
    prompt = f"{instruction}\n\nMemory:\n{shown}\n\nQuestion: {question.text}\nAnswer:"
    lines = [line.strip() for line in model.complete(prompt, max_tokens).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _in_a_row(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    size = len(wanted)
    return size > 0 and any(words[at : at + size] == wanted for at in range(len(words) - size + 1))
