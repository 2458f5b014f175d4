"""MiniWoB++ in the bench: episodes carried to other pages, recorded rewards, worlds and grades."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.environments.contract import Question, Size, World
from bench.environments.miniwob import MiniWob
from bench.environments.miniwob_episode import Element, Page, Step, act, digest, general, read, written
from bench.environments.miniwob_recording import Recorded, recording
from bench.environments.registry import make
from shared.errors import InputError

_LOGIN = Page(
    "login-user",
    1,
    'Enter the username "ann" and the password "7" into the text fields and press login.',
    {"username": "ann", "password": "7"},
    (
        Element(3, "label", "Username"),
        Element(4, "input_text", "", "Username"),
        Element(6, "input_password", "", "Password"),
        Element(7, "button", "Login"),
    ),
)
_OTHER = Page(
    "login-user",
    2,
    'Enter the username "7" and the password "a"nn" into the text fields and press login.',
    {"username": "7", "password": 'a"nn'},
    (
        Element(2, "input_text", "", "Search"),
        Element(5, "input_password", "", "Password"),
        Element(8, "input_text", "", "Username"),
        Element(9, "button", "Cancel"),
        Element(10, "button", "Login"),
    ),
)
_PLAYED = (4, "ann", 6, "7", 7)


def test_an_episode_reads_back_as_it_was_written() -> None:
    (episode,) = read(["noise", written(_LOGIN, _PLAYED)])
    assert (episode.utterance, episode.slots) == (_LOGIN.utterance, _LOGIN.slots)
    assert episode.steps == [
        Step("input_text", "", 1, "Username"),
        Step(text="ann"),
        Step("input_password", "", 1, "Password"),
        Step(text="7"),
        Step("button", "Login"),
    ]
    assert act(_LOGIN, [written(_LOGIN, _PLAYED)]) == _PLAYED


def test_the_procedure_is_carried_to_another_page_by_texts_and_slots() -> None:
    assert act(_OTHER, [written(_LOGIN, _PLAYED)]) == (8, "7", 5, 'a"nn', 10)
    assert act(_LOGIN, [written(_OTHER, (8, "7", 5, 'a"nn', 10))]) == _PLAYED


def test_numbers_of_elements_follow_a_slot_and_a_missing_element_ends_it() -> None:
    def boxes(seed: int, count: int, target: str) -> Page:
        elements = tuple(Element(10 + n, "input_text") for n in range(count))
        return Page("focus-text-2", seed, f"Focus into box {target}.", {"target": target}, elements)

    text = written(boxes(1, 3, "3"), (12,))
    assert act(boxes(2, 3, "2"), [text]) == (11,)
    assert act(boxes(3, 3, "4"), [text]) is None
    assert act(boxes(4, 3, "x"), [text]) is None
    assert act(_LOGIN, [text]) is None


def test_the_same_utterance_is_preferred_and_an_episode_without_actions_is_none() -> None:
    text = written(_LOGIN, _PLAYED)
    same = written(_LOGIN, (7,))
    assert act(_LOGIN, [written(_OTHER, (8,)), same]) == (7,)
    assert act(_LOGIN, [text.replace("do: ", "did: ")]) is None
    assert act(_LOGIN, [text.replace("task: ", "")]) is None
    lines = text.splitlines()
    assert act(_LOGIN, ["\n".join(lines[:5])]) == _PLAYED[:2]


def test_hostile_text_is_no_episode_and_stops_nothing() -> None:
    texts = [
        "task: x\nslots: " + "[" * 100_000,
        'task: x\nslots: {"a": 3}\ndo: click b number 99999999999999999999\ndo: type "\\u12"\ndo: type "',
        'do: type "x"\n\0',
        'task: x\ndo: type "\\ud800"\ndo: click button number 0',
    ]
    assert [(episode.slots, len(episode.steps)) for episode in read(texts)] == [({}, 0), ({}, 1), ({}, 2)]
    page = Page("t", 0, "x", {}, (Element(1, "button", "A"),))
    assert act(page, texts[3:]) is None
    assert len(digest(("\ud800", 1))) == len(digest(())) == 16


# --- what was recorded --------------------------------------------------------------------------------


def everything() -> dict[str, Recorded]:
    return {
        f"miniwob-{task}-{each.page.seed}": each
        for task, pages in recording().pages.items()
        for each in pages
    }


def test_every_page_rewarded_its_demonstration_and_not_less_of_it() -> None:
    assert len(recording().pages) == 22
    for each in everything().values():
        assert each.rewarded(each.actions) is True
        assert act(each.page, [written(each.page, each.actions)]) is not None
        assert each.rewarded(each.actions[:-1]) is not True


def test_every_replay_of_an_episode_of_the_same_form_was_played() -> None:
    pages = list(everything().values())
    for each in pages[::9]:
        form = general(each.page.utterance, each.page.slots)
        for other in pages:
            if general(other.page.utterance, other.page.slots) == form:
                actions = act(each.page, [written(other.page, other.actions)])
                assert actions is None or each.rewarded(actions) is not None


# --- worlds -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick() -> World:
    return MiniWob().worlds(0, MiniWob().size("quick"))[0]


@pytest.mark.parametrize("preset", ["quick", "full"])
def test_worlds_have_their_size_and_measure_tasks_that_were_written_first(preset: str) -> None:
    environment = make("miniwob", None)
    size = environment.size(preset)
    (world,) = environment.worlds(3, size)
    assert (len(world.items), len(world.measuring)) == (size.items, size.measuring)
    assert [len(asked) for asked in world.serving] == [size.serving] * 7
    pages = everything()
    first = {pages[item.id.replace("episode-", "miniwob-")].page.task for item in world.stages[0]}
    late = {pages[item.id.replace("episode-", "miniwob-")].page.task for item in world.items} - first
    assert {pages[question.id].page.task for question in world.measuring} == first
    assert late
    assert {pages[question.id].page.task for question in world.later[6]} == late
    assert world.later[0] == ()
    assert {question.category for question in world.measuring} == {"common", "rare"}


def test_worlds_are_decided_by_the_seed(quick: World) -> None:
    environment = MiniWob(Path("/nowhere"))
    assert environment.worlds(0, environment.size("quick")) == (quick,)
    assert environment.worlds(1, environment.size("quick")) != (quick,)


def test_no_page_is_both_measured_and_served_or_written_and_asked(quick: World) -> None:
    measured = {question.id for question in quick.measuring}
    assert len(measured) == len(quick.measuring)
    others = {question.id for part in (*quick.serving, *quick.later) for question in part}
    assert not measured & others
    assert not (measured | others) & {item.id.replace("episode-", "miniwob-") for item in quick.items}
    met: set[str] = set()
    for item in quick.items:
        assert set(item.links) <= met
        met.add(item.id)
    times = [item.time for item in quick.items]
    assert times == sorted(set(times))
    assert any(item.links for item in quick.items)


def test_a_question_tells_its_utterance_and_no_action(quick: World) -> None:
    pages = everything()
    asked = [*quick.measuring, *(question for part in quick.serving for question in part)]
    assert all(question.text == pages[question.id].page.utterance for question in asked)


# --- grades -------------------------------------------------------------------------------------------


def test_full_memory_wins_most_pages_and_empty_memory_none(quick: World) -> None:
    environment = MiniWob()
    texts = [item.text for item in quick.stages[0]]
    full = [environment.g(question, texts, None) for question in quick.measuring]
    assert all(environment.g(question, [], None) == 0.0 for question in quick.measuring)
    assert sum(full) / len(full) > 0.8
    assert environment.unrecorded[0] == 0
    assert environment.g(quick.measuring[0], ["\0", "task: ", "do: click button number 1"], None) == 0.0


class Says:
    """A model with one reply."""

    name = "scripted"

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.prompt = ""

    def complete(self, prompt: str, max_tokens: int) -> str:
        self.prompt = prompt
        return self.reply


def test_a_models_actions_get_the_same_verdict(quick: World) -> None:
    environment, question = MiniWob(), quick.measuring[0]
    each = everything()[question.id]
    right = "[" + ", ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in each.actions) + "]"
    model = Says(f"So: {right} is it.")
    assert environment.g(question, ["some text"], model) == 1.0
    assert "some text" in model.prompt
    assert each.page.utterance in model.prompt
    assert all(element.tag in model.prompt for element in each.page.elements)
    assert environment.unrecorded == (0, 1)


@pytest.mark.parametrize("reply", ["", "no", "[", "[]", "[null]", "[true]", "[[1]]", "[" * 20_000])
def test_a_reply_without_actions_is_graded_nothing(quick: World, reply: str) -> None:
    environment = MiniWob()
    assert environment.g(quick.measuring[0], ["text"], Says(reply)) == 0.0
    assert environment.unrecorded == (0, 0)


def test_unrecorded_actions_count_as_nothing_and_are_told(quick: World) -> None:
    environment = MiniWob()
    assert environment.g(quick.measuring[0], [], Says('[1, "\\ud800", 99999]')) == 0.0
    assert environment.unrecorded == (1, 1)
    assert "1 of 1 grades were not recorded" in environment.provenance


@pytest.mark.parametrize("name", ["", "miniwob-", "miniwob-click-test-99999", "webarena-1"])
def test_a_question_of_another_environment_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="not a question of miniwob"):
        MiniWob().g(Question(name, "?"), [], None)


_SIZE = Size(1, 100, 60, 20)


@pytest.mark.parametrize(
    "size",
    [
        replace(_SIZE, items=0),
        replace(_SIZE, items=-5),
        replace(_SIZE, items=10_000),
        replace(_SIZE, measuring=-1),
        replace(_SIZE, measuring=600),
        replace(_SIZE, serving=-1),
    ],
)
def test_a_size_that_cannot_be_had_is_refused(size: Size) -> None:
    with pytest.raises(InputError, match="miniwob has not so many pages"):
        MiniWob().worlds(0, size)
    with pytest.raises(InputError, match="no such preset"):
        MiniWob().size("huge")
