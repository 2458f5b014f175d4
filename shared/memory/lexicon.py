"""Closed word lists of the gate and the distiller. Changing one changes verdicts and levels."""

from __future__ import annotations

# Function words carry no fact of their own; negations do, and the polarity check has them.
_STOP_WORDS = (
    "a an the this that these those there here and or if so then than as of to in on at for with by "
    "from into onto up down out over under about after before while when where which who whom whose "
    "what why how is are was were be been being am do does did doing done have has had having will "
    "would can could should shall may might must i me my mine we us our ours you your yours he him his "
    "she her hers it its they them their theirs not no nor just also too very really some any all both "
    "each more most other such only own same again once now but however i'm it's that's you're i've "
    "we've they're he's she's let's don't doesn't didn't isn't aren't wasn't weren't can't won't oh hey "
    "hi wow yeah"
)
_NEGATIONS = "no not never none nothing nobody nowhere neither nor without cannot can't won't unable"
# A contrast starts a claim of its own: "apples but not pears" negates pears only.
_CONTRASTS = "but however although though whereas while yet"
_NUMBERS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_CALENDAR = (
    "january february march april may june july august september october november december jan feb mar "
    "apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday "
    "yesterday today tomorrow"
)
# Wording a writer may choose freely. Never antonyms, never a change of who or how many.
_SYNONYMS = (
    "take pick grab get fetch",
    "put place set",
    "go move walk head travel",
    "see notice spot find",
    "say tell mention",
    "begin start",
    "end finish complete",
    "task goal job",
    "big large",
    "buy purchase",
    "contain hold include",
)
_IRREGULAR = (
    "took:take taken:take got:get went:go gone:go saw:see seen:see found:find said:say told:tell "
    "began:begin bought:buy held:hold"
)

STOP_WORDS = frozenset(_STOP_WORDS.split())
NEGATIONS = frozenset(_NEGATIONS.split())
CONTRASTS = frozenset(_CONTRASTS.split())
NUMBERS = {word: str(value) for value, word in enumerate(_NUMBERS.split(), start=2)}
CALENDAR = frozenset(_CALENDAR.split())
SYNONYMS = {word: group.split()[0] for group in _SYNONYMS for word in group.split()}
IRREGULAR = dict(pair.split(":") for pair in _IRREGULAR.split())
