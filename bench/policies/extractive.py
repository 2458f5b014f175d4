"""The summarising rule of every stand-in: sentences of the text itself, chosen by what they name.

Deterministic, no model; a summary never says what the text does not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from edge_agent.retrieval import cut
from shared.memory.lexicon import STOP_WORDS

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?=\S)[^.!?\n]*)*[.!?]*")
_VALUE = re.compile(r"\b\d[\w:.,-]*\d\b|\b\d+\b")
_NAME = re.compile(r"\b[A-Z][\w'-]+")
_WORD = re.compile(r"[^\W_]{3,}")
_LEAD = re.compile(r"^(?:\[[^\]\n]{1,60}\]\s*)?(?:[A-Z][\w .'-]{0,30}:\s)?")
_ANCHOR_WORTH = 2
_FEW_WORDS = 3
_MOST_FACTS = 8


@lru_cache(maxsize=16_384)
def sentences(text: str) -> tuple[str, ...]:
    """In order, trimmed, none empty."""
    return tuple(found.strip() for found in _SENTENCE.findall(text) if found.strip())


@lru_cache(maxsize=16_384)
def words(text: str) -> frozenset[str]:
    """Content words, folded."""
    return frozenset(word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS)


@lru_cache(maxsize=16_384)
def values(text: str) -> frozenset[str]:
    """Numbers, dates and codes."""
    return frozenset(_VALUE.findall(text))


@lru_cache(maxsize=16_384)
def names(text: str) -> tuple[str, ...]:
    """Capitalised words that are no stop words, in order, each once."""
    return tuple(dict.fromkeys(name for name in _NAME.findall(text) if name.casefold() not in STOP_WORDS))


def worth(sentence: str) -> float:
    """How much a sentence tells a byte: values and names count double."""
    told = len(words(sentence)) + _ANCHOR_WORTH * (len(values(sentence)) + len(names(sentence)))
    return told / (10 + len(sentence.encode()))


def summarise(texts: Sequence[str], cap_bytes: float) -> str:
    """The most telling sentences that fit, in their order; a cut one where none fits. At most `cap_bytes`."""
    limit = max(0, int(cap_bytes))
    found = list(dict.fromkeys(sentence for text in texts for sentence in sentences(text)))
    if not found or not limit:
        return ""
    ranked = sorted(range(len(found)), key=lambda place: (-worth(found[place]), place))
    chosen: list[int] = []
    left = limit + 1
    for place in ranked:
        size = len(found[place].encode()) + 1
        if size <= left:
            chosen.append(place)
            left -= size
    if not chosen:
        return cut(found[ranked[0]], limit).rstrip()
    return " ".join(found[place] for place in sorted(chosen))


def keywords(text: str, most: int) -> list[str]:
    """The most frequent content words; ties alphabetically."""
    counts = Counter(word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS)
    return [word for word, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:most]]


def facts(text: str, most: int = _MOST_FACTS) -> list[str]:
    """Short statements: sentences that tell something, each with the text's date and speaker in front.

    Neighbouring ones are joined until there are at most `most`.
    """
    lead = _LEAD.match(text)
    front = lead.group() if lead else ""
    told = [one for one in sentences(text[len(front) :]) if values(one) or len(words(one)) >= _FEW_WORDS]
    if not told:
        return [text]
    step = -(-len(told) // most)
    return [front + " ".join(told[at : at + step]) for at in range(0, len(told), step)]


def entities(text: str, cap_bytes: float) -> str:
    """Names and values of a text in order, separated by commas; content words where it names nothing."""
    found = [*names(text), *sorted(values(text) - set(names(text)))] or keywords(text, 12)
    kept: list[str] = []
    left = int(cap_bytes) + 2
    for one in dict.fromkeys(found):
        left -= len(one.encode()) + 2
        if left < 0:
            break
        kept.append(one)
    return ", ".join(kept)
