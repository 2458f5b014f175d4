"""The reader-free answerer: how much of the gold answer stands in what recall returned."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Function words carry no answer; everything else, numbers included, counts.
_FUNCTION_WORDS = """
a an and are as at be been by did do does for from had has have he her his i in into is it its of on or
she that the their them then there they this to was were when where which who will with you your
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_WORD = re.compile(r"\w+")


def content_tokens(text: str) -> frozenset[str]:
    """Distinct words and numbers of a text without function words, case and width folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return frozenset(_WORD.findall(folded)) - STOP_WORDS


def grade(gold: str, texts: Iterable[str]) -> float:
    """g: the share of the gold answer's content tokens found in the texts, 0 when there are none to find."""
    wanted = content_tokens(gold)
    if not wanted:
        return 0.0
    found: set[str] = set()
    for text in texts:
        found |= wanted & content_tokens(text)
    return len(found) / len(wanted)
