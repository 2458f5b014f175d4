"""MiniWoB++ in the bench: episodes carried to other pages, recorded rewards, worlds and grades."""

from __future__ import annotations

from bench.environments.miniwob_episode import Element, Page, Step, act, digest, read, written

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
