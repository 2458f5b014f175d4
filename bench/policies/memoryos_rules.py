"""What stands in for a model in MemoryOS: continuity, topics, profile and knowledge, by extraction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.policies import extractive
from bench.policies.asking import facts_of
from bench.policies.similarity import cosine

_CONTINUES_AT = 0.3
_SUMMARY_BYTES = 160
_CHAIN_BYTES = 60
_PROFILE_BYTES = 400
_KEYWORDS = 5
_LEARNT = 3


def continuity(prompt: str, schema: Mapping[str, Any]) -> str:
    """A page that is like the one before extends its chain; else a chain begins."""
    told = facts_of(prompt)
    continues = bool(told["previous"]) and cosine(told["previous"], told["page"]) >= _CONTINUES_AT
    texts = [told["chain"], told["page"]] if continues else [told["page"]]
    return json.dumps({"continues": continues, "chain": extractive.summarise(texts, _CHAIN_BYTES)})


def topic(prompt: str, schema: Mapping[str, Any]) -> str:
    """The page's most telling sentences and most frequent words."""
    text = facts_of(prompt)["page"]
    summary = extractive.summarise([text], _SUMMARY_BYTES)
    return json.dumps({"summary": summary, "keywords": extractive.keywords(text, _KEYWORDS)})


def profile(prompt: str, schema: Mapping[str, Any]) -> str:
    """The most telling sentences of the earlier profile and the session."""
    told = facts_of(prompt)
    return json.dumps({"profile": extractive.summarise([told["profile"], *told["pages"]], _PROFILE_BYTES)})


def knowledge(prompt: str, schema: Mapping[str, Any]) -> str:
    """The most telling sentences that are not known."""
    told = facts_of(prompt)
    found = [sentence for text in told["pages"] for sentence in extractive.sentences(text)]
    new = [sentence for sentence in dict.fromkeys(found) if sentence not in told["known"]]
    ranked = sorted(range(len(new)), key=lambda at: (-extractive.worth(new[at]), at))
    return json.dumps({"knowledge": [new[at] for at in sorted(ranked[:_LEARNT])]})
