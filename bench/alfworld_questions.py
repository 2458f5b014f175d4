"""Questions about recorded episodes; the gold answers come from the engine's state facts, not from the text.

Kinds: `content` (what was in Y when it was opened), `place` (where was X found, and what else was there),
`step` (which step heated, cooled, cleaned or used X, and what stood beside it), `outcome` (won or not,
after how many steps, where X ended and beside what). A question is dropped when its gold answer is not in
what the episode showed, or when other episodes answer it nearly as well (`MAX_ELSEWHERE`): such a
question cannot tell whether the episode was kept.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bench.alfworld_agent import Record
from bench.reader_free import Index, content_tokens, share_found, words

MIN_NEIGHBOURS = 2  # fewer things make a gold answer that any episode of the home contains
MIN_NEW_TOKENS = 3  # gold tokens that the question itself does not give away
# Share of the gold that the best hits may give when the episode is gone; the words of a step are common.
MAX_ELSEWHERE = {"content": 0.6, "place": 0.6, "step": 0.7, "outcome": 0.6}
KIND_SHARES = {"content": 0.4, "place": 0.25, "step": 0.15, "outcome": 0.2}
DONE = {"heat": "heated", "cool": "cooled", "clean": "cleaned", "use": "used"}


@dataclass(frozen=True)
class Question:
    kind: str
    episode: int  # place in the stream
    question: str
    gold: str


@dataclass(frozen=True)
class Told:
    """An episode as it stands in the stream."""

    code: str  # e0133
    text: str
    record: Record


def outcome_words(record: Record) -> str:
    return f"{'won' if record.won else 'not won, given up'} after {len(record.steps)} steps"


def draw_questions(
    stream: Sequence[Told], seed: int, count: int, until: int, taken: Sequence[Question] = ()
) -> list[Question]:
    """`count` questions about the first `until` episodes, one of a kind about an episode, none twice."""
    gone = {(question.episode, question.kind) for question in taken}
    rng = random.Random(f"{seed}/questions/{until}")
    index = Index([told.text for told in stream])
    drawn: list[Question] = []
    for kind, share in KIND_SHARES.items():
        numbers = [number for number in range(until) if (number, kind) not in gone]
        rng.shuffle(numbers)
        wanted = round(count * share)
        for number in numbers:
            if wanted == 0:
                break
            asked = [
                q
                for q in questions_about(number, stream[number])
                if q.kind == kind and _is_sound(q, stream, index)
            ]
            if asked:
                drawn.append(rng.choice(asked))
                wanted -= 1
    return drawn


def questions_about(number: int, told: Told) -> list[Question]:
    """Every question that the state facts of an episode give rise to."""
    record = told.record
    where = f"In {record.home} during episode {told.code} ({record.task.rstrip('.')}),"
    found: list[Question] = []
    for name, things, opened in _first_views(record):
        seen = (
            "what was in {} when it was opened?"
            if opened
            else "what was on {} when the agent first came there?"
        )
        if len(things) > MIN_NEIGHBOURS:
            found.append(Question("content", number, f"{where} {seen.format(name)}", _listed(things)))
        for thing in things:
            beside = [other for other in things if other != thing]
            if len(beside) >= MIN_NEIGHBOURS:
                ask = f"{where} where was {thing} first found, and what else was there?"
                found.append(Question("place", number, ask, f"{name}: {_listed(beside)}"))
    return found + _step_questions(number, where, record) + _outcome_questions(number, where, record)


def _step_questions(number: int, where: str, record: Record) -> list[Question]:
    commands = [step.command for step in record.steps]
    for i, command in enumerate(commands):
        verb, _, rest = command.partition(" ")
        if verb not in DONE:
            continue
        taken = next((c for c in reversed(commands[:i]) if c.startswith("take ")), "")
        thing, _, source = taken.removeprefix("take ").partition(" from ")
        beside = (
            [other for other in _last_view(record, source, commands.index(taken)) if other != thing]
            if taken
            else []
        )
        if len(beside) >= MIN_NEIGHBOURS:
            target = _type(rest.partition(" with ")[0])
            ask = (
                f"{where} which step {DONE[verb]} the {target}, "
                f"and what stood beside the {_type(thing)} where it was taken?"
            )
            return [Question("step", number, ask, f"{command}; {source}: {_listed(beside)}")]
    return []


def _outcome_questions(number: int, where: str, record: Record) -> list[Question]:
    moved = [step.command for step in record.steps if step.command.startswith("move ")]
    if not moved:
        return []
    thing = moved[-1].removeprefix("move ").partition(" to ")[0]
    place = record.places[thing]
    beside = sorted(other for other, at in record.places.items() if at == place and other != thing)
    ask = (
        f"{where} was the task won, in how many steps, "
        f"and where did the {_type(thing)} that was moved last end up, beside what?"
    )
    if not beside:
        return []
    outcome = f"{'won' if record.won else 'not won'}, {len(record.steps)} steps"
    gold = f"{outcome}; {thing} to {place}; {_listed(beside)}"
    return [Question("outcome", number, ask, gold)]


def _first_views(record: Record) -> list[tuple[str, tuple[str, ...], bool]]:
    """(receptacle, things, opened?) when each inside was first shown, before a thing was moved."""
    views: dict[str, tuple[str, tuple[str, ...], bool]] = {}
    for step in record.steps:
        if step.command.startswith("take "):
            break
        if step.revealed and step.revealed[0] not in views:
            views[step.revealed[0]] = (*step.revealed, step.command.startswith("open "))
    return list(views.values())


def _last_view(record: Record, name: str, before: int) -> tuple[str, ...]:
    shown = [step.revealed[1] for step in record.steps[:before] if step.revealed and step.revealed[0] == name]
    return shown[-1] if shown else ()


def _is_sound(question: Question, stream: Sequence[Told], index: Index) -> bool:
    """The episode answers the question, the question does not, and no other episodes do."""
    if not set(words(question.gold)) <= set(words(stream[question.episode].text)):
        return False
    if len(content_tokens(question.gold) - content_tokens(question.question)) < MIN_NEW_TOKENS:
        return False
    elsewhere = index.hits(question.question, without=frozenset({question.episode}))
    return share_found(question.gold, elsewhere) <= MAX_ELSEWHERE[question.kind]


def _type(thing: str) -> str:
    return thing.rpartition(" ")[0]


def _listed(things: Sequence[str]) -> str:
    return ", ".join(things)
