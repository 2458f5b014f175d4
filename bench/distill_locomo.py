"""Which answers still stand in what each rung keeps of their evidence turns (LoCoMo), ours beside two peers.

Strict: every content token of the gold answer is in the kept text of its evidence; soft: the share of them.
Asked is every question with an answer, evidence that resolves, and all its tokens in the whole evidence.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.datasets import ADVERSARIAL, Conversation
from edge_agent.distill import PlainDistiller
from shared.memory import spans
from shared.memory.model import LADDERS

# The weights were fitted on these; the others are apart.
TUNED_ON = frozenset({"conv-26", "conv-42", "conv-44", "conv-49"})
_STOP_WORDS = (
    "a an the and or but if of to in on at for with by from as is are was were be been being am i me my we "
    "us our you your he him his she her it its they them their this that these those so just really very too "
    "also do does did done have has had will would can could should not no yes oh hey hi wow yeah what who "
    "when where why how which there here than then about into out up down over some any all more most much "
    "many one get got getting go going know think like love thanks thank sounds great awesome good nice "
    "cool let's i'm it's that's you're i've we've can't don't didn't"
)
_STOP = frozenset(_STOP_WORDS.split())
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten"
_NUMBERS = {word: str(value) for value, word in enumerate(_NUMBER_WORDS.split()) if value} | {
    "once": "1",
    "twice": "2",
}
_TIME_WORDS = (
    "january february march april may june july august september october november december monday tuesday "
    "wednesday thursday friday saturday sunday yesterday today tomorrow week month year weekend last next ago"
)
_TIMES = frozenset(_TIME_WORDS.split())
_ENDINGS = ("'s", "ing", "ies", "ed", "es", "s", "ly")
_WORD = re.compile(r"[a-z0-9']+")
_NOT_A_LETTER = re.compile(r"[^A-Za-z0-9']")

Keep = Callable[[str, float], str]
"""Text of a turn and a share of its bytes, to the text that is kept."""


@dataclass(frozen=True)
class Asked:
    """A question that can be answered from its evidence: the turns' texts, and the tokens of the answer."""

    conversation: str
    evidence: tuple[str, ...]
    gold: tuple[str, ...]


@dataclass(frozen=True)
class Kept:
    """Shares, 0 to 1; `share`: bytes kept of bytes there, over every turn."""

    strict: float
    soft: float
    share: float


def turn_texts(conversation: Conversation, *, captions: bool) -> dict[str, str]:
    """Turns by id as they would be remembered."""
    return {turn.id: turn.said if captions else f"{turn.speaker}: {turn.text}" for turn in conversation.turns}


def eligible(conversations: Iterable[Conversation], *, captions: bool) -> list[Asked]:
    """Every question that its whole evidence answers."""
    found = []
    for conversation in conversations:
        texts = turn_texts(conversation, captions=captions)
        for question in conversation.questions:
            gold = tuple(content(question.answer))
            evidence = tuple(texts[turn_id] for turn_id in question.evidence)
            if question.category == ADVERSARIAL and not question.answer:
                continue
            if gold and evidence and set(gold) <= {word for text in evidence for word in tokens(text)}:
                found.append(Asked(conversation.id, evidence, gold))
    return found


def grade(asked: Sequence[Asked], texts: Collection[str], keep: Keep, share: float) -> Kept:
    """Keep `share` of every text, and ask."""
    kept = {text: keep(text, share) for text in dict.fromkeys(texts)}
    seen = {text: frozenset(tokens(rest)) for text, rest in kept.items()}
    strict = soft = 0.0
    for question in asked:
        there = frozenset().union(*(seen[text] for text in question.evidence))
        hits = sum(word in there for word in question.gold)
        strict += hits == len(question.gold)
        soft += hits / len(question.gold)
    size = sum(len(text.encode()) for text in texts)
    size_kept = sum(len(kept[text].encode()) for text in texts)
    return Kept(strict / len(asked), soft / len(asked), size_kept / size)


def ours() -> Keep:
    """What recall shows of the rung whose aim is that share, its gaps as blanks: nothing else is known."""
    ladder, distiller = LADDERS["product"], PlainDistiller()
    rungs = {spec.text_fraction: spec.rung for spec in ladder.lossy}

    def keep(text: str, share: float) -> str:
        return spans.render(spans.lower(spans.whole(distiller.distil(text, ladder), 1), rungs[share]))

    return keep


def key_words(texts: Sequence[str]) -> Keep:
    """The peer behind the figures to beat: the rarest words of the conversation, by its own counts."""
    counts = Counter(word for text in texts for word in set(tokens(text)))

    def keep(text: str, share: float) -> str:
        words = text.split()
        worth = dict(_worth(words, counts, len(texts)))
        cap, used, chosen = int(len(text.encode()) * share), 1, []
        for at in sorted(worth, key=lambda at: -worth[at]):
            cost = len(words[at].encode()) + 1
            if worth[at] > 0 and used + cost <= cap:
                chosen.append(at)
                used += cost
        return " ".join([words[0][0], *(words[at] for at in sorted(chosen))])

    return keep


def _worth(words: Sequence[str], counts: Mapping[str, int], total: int) -> Iterator[tuple[int, float]]:
    """Place and worth of every word behind the speaker."""
    for at in range(1, len(words)):
        bare = _NOT_A_LETTER.sub("", words[at])
        small = bare.lower()
        if not bare:
            yield at, -1.0
        elif small in _STOP:
            yield at, 0.1
        else:
            worth = math.log(total / (1 + counts.get(_stem(small), 0)) + 1) - 0.05 * len(words[at])
            if any(letter.isdigit() for letter in bare) or small in _TIMES or small in _NUMBERS:
                worth += 3
            if bare[0].isupper() and at > 1 and not words[at - 1].endswith((".", "!", "?", ":")):
                worth += 2
            yield at, worth


def sentences(texts: Sequence[str]) -> Keep:
    """The other peer: whole sentences, those with the rarest words."""
    counts = Counter(word for text in texts for word in set(tokens(text)))

    def keep(text: str, share: float) -> str:
        said = re.split(r"(?<=[.!?])\s+", text.split(": ", 1)[-1])
        worth = []
        for at, sentence in enumerate(said):
            words = content(sentence)
            rarity = sum(math.log(len(texts) / (1 + counts[word]) + 1) for word in words)
            worth.append((rarity / math.sqrt(1 + len(words)), at))
        cap, used, chosen = int(len(text.encode()) * share), 2, []
        for _, at in sorted(worth, reverse=True):
            cost = len(said[at].encode()) + 1
            if used + cost <= cap:
                chosen.append(at)
                used += cost
        if not chosen:
            best = max(worth)[1]
            return f"{text[0]} {said[best].encode()[: max(0, cap - 2)].decode(errors='ignore')}"
        return " ".join([text[0], *(said[at] for at in sorted(chosen))])

    return keep


def tokens(text: str) -> list[str]:
    """Stems of the words, numbers as digits."""
    return [_stem(word) for word in _WORD.findall(text.lower().replace("\u2019", "'"))]


def content(text: str) -> list[str]:
    """The tokens that carry something."""
    return [word for word in tokens(text) if word not in _STOP]


def _stem(word: str) -> str:
    word = _NUMBERS.get(word, word)
    for ending in _ENDINGS:
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word[: -len(ending)]
    return word
