"""What a word can do in a clause: a bit mask per word, looked up once."""

from __future__ import annotations

from functools import lru_cache

from shared.memory.lexicon import FUNCTION_WORDS, NEGATIONS, UNITS
from shared.memory.vocabulary import IRREGULAR, PARTICIPLES, PHRASE_ROWS, VERBS, stem

FUNCTION = 1
VERB = 2  # could be a verb, by its stem
FINITE = 4  # is one by its form: past, third person, be, have, do, modal
PAST = 8  # could be a participle: opened, taken
BE = 16
PREPOSITION = 32
PRONOUN = 64
DETERMINER = 128
JOINT = 256  # may open a clause of its own
CONDITION = 512  # opens a clause without which the other says too much
ADVERB = 1024  # may stand between be and a participle
PHRASE = 2048  # may begin several words that stand for one

_BE = "am is are was were be been being get gets got getting 's 're"
_AUXILIARIES = (
    "have has had do does did will would can could shall should may might must cannot can't won't don't "
    "doesn't didn't isn't aren't wasn't weren't hasn't haven't hadn't couldn't wouldn't shouldn't mustn't "
    "i'm it's that's you're i've we've they're he's she's ain't"
)
_PREPOSITIONS = (
    "in on at from to by for with of into onto over under behind beside between through during before after "
    "until till since without against about via using inside outside within toward towards than near "
    "above below beneath underneath across along around among per as despite except off up down out past"
)
_PRONOUNS = "i me we us you he him she her it they them who whom myself himself herself itself themselves"
_DETERMINERS = (
    "a an the this that these those my your his her its our their some any every each no all both another "
    "which whose"
)
_JOINTS = "and or then because if unless until when whenever while since once so after before where ,"
_CONDITIONS = "if unless when whenever until while because once only except"
_ADVERBS = "not never also still just already always often only then now again soon been being once usually"

_NOUN_TOO = "plans orders plants stores shops parts trips tests rooms parcels files prints"


def _classes() -> dict[str, int]:
    table: dict[str, int] = {}
    rows = (
        (FINITE | BE | FUNCTION, _BE),
        (FINITE, _AUXILIARIES),
        (PREPOSITION, _PREPOSITIONS),
        (PRONOUN, _PRONOUNS),
        (DETERMINER, _DETERMINERS),
        (JOINT, _JOINTS),
        (CONDITION, _CONDITIONS),
        (ADVERB, _ADVERBS),
        (FUNCTION, " ".join(FUNCTION_WORDS)),
    )
    for bit, words in rows:
        for word in words.split():
            table[word] = table.get(word, 0) | bit
    for word in "be been being getting".split():  # noqa: SIM905
        table[word] &= ~FINITE
    return table


_LONGEST_WORD = 40  # what is longer is no word, and must not stay in memory
_KNOWN = _classes()
_NOUNS = frozenset(_NOUN_TOO.split())


def form(word: str) -> str:
    """What comparisons use: a word without its ending; words of grammar as they are."""
    return _short_form(word) if len(word) <= _LONGEST_WORD else word


def _form(word: str) -> str:
    return word if word in _KNOWN or word in NEGATIONS or not word.isalpha() else stem(word)


_short_form = lru_cache(maxsize=16384)(_form)

PHRASES: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
"""First form to (all forms, the words they stand for), longest first."""
for _said, _meant in PHRASE_ROWS:
    _forms = tuple(map(form, _said.split()))
    PHRASES.setdefault(_forms[0], []).append((_forms, tuple(_meant.split())))
PHRASE_STARTS = frozenset(said[:2] for listed in PHRASES.values() for said, _ in listed)
for _listed in PHRASES.values():
    _listed.sort(key=lambda pair: -len(pair[0]))


def tag(word: str) -> int:
    """The bits of a word in small letters."""
    return _short_tag(word) if len(word) <= _LONGEST_WORD else 0


def _tag(word: str) -> int:
    known = _KNOWN.get(word, 0)
    root = form(word)
    if root in PHRASES:
        known |= PHRASE
    if known & (FUNCTION | BE | DETERMINER | PREPOSITION | PRONOUN) or word in NEGATIONS or word in UNITS:
        return known
    if root in VERBS and not word.endswith("ings"):
        known |= VERB
        irregular = word in IRREGULAR
        if word.endswith("ed") or word in PARTICIPLES:
            known |= PAST
        if irregular or word.endswith("ed") or (word.endswith("s") and word not in _NOUNS and word != root):
            known |= FINITE
    elif word.endswith("ed") and len(word) > 4:
        known |= PAST | VERB | FINITE
    return known


_short_tag = lru_cache(maxsize=16384)(_tag)
