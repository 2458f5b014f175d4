"""WebArena in the bench: workflows as text and carried to siblings, recorded verdicts, worlds and grades."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from bench.environments import webarena
from bench.environments.contract import Question, Size, World
from bench.environments.registry import make
from bench.environments.webarena import WebArena
from bench.environments.webarena_recording import recording
from bench.environments.webarena_workflow import Task, act, read, written
from bench.record_webarena import left_of, replays
from shared.errors import InputError

_SHIP = Task(
    id=1,
    template=7,
    sites=("shopping_admin",),
    intent="Give order #304 the tracking\nnumber 13 of USPS Ground",
    slots={"order": 304, "tracking": "13", "service": "USPS Ground", "empty": ""},
    requests=(
        {"url": "__SHOPPING_ADMIN__/save/304/?by=USPS+Ground", "method": "POST", "post": {"304": "304"}},
    ),
    answer={"task_type": "MUTATE", "status": "SUCCESS"},
)


def _told(*values: object) -> dict[str, object]:
    return {"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": list(values)}


_WHERE = Task(3, 8, ("map",), "Where is B", {"x": "B"}, (), _told("B Street", 2.5, {"a": [None]}, "7"))
_SIBLING = {"order": 3041, "tracking": "304", "service": "Acme Air", "empty": ""}


def test_a_workflow_reads_back_as_it_was_written() -> None:
    text = written(_SHIP)
    (flow,) = read([text])
    assert flow.intent == "Give order #304 the tracking number 13 of USPS Ground"
    assert (flow.slots, tuple(flow.requests), flow.answer) == (_SHIP.slots, _SHIP.requests, _SHIP.answer)
    assert act(_SHIP.intent, _SHIP.slots, ["noise", text]).requests == _SHIP.requests


def test_a_sibling_swaps_slot_values_and_never_keys_or_parts_of_numbers() -> None:
    asked = "Give order #3041 the tracking number 304 of Acme Air"
    action = act(asked, _SIBLING, [written(_SHIP)])
    # The key 304 stays; what was put in (304 for 13) is not swapped again.
    assert action.requests == (
        {"url": "__SHOPPING_ADMIN__/save/3041/?by=Acme+Air", "method": "POST", "post": {"304": "3041"}},
    )
    assert act("Another template", {}, [written(_SHIP)]) is None


def test_the_same_intent_is_preferred_to_a_better_ranked_sibling() -> None:
    other = replace(_WHERE, id=4, intent="Where is A", slots={"x": "A"}, answer=_told("1"))
    texts = [written(other), written(_WHERE)]
    assert act(_WHERE.intent, _WHERE.slots, texts).answer == _told("B Street", 2.5, {"a": [None]}, "7")
    assert act("Where is C", {"x": "C"}, texts[:1]).answer == _told("1")


def test_a_lost_line_is_lost_and_an_answer_is_made_of_what_was_sent() -> None:
    lines = written(_SHIP).splitlines()
    assert act(_SHIP.intent, _SHIP.slots, ["\n".join(lines[:3])]).answer == {
        "task_type": "RETRIEVE",
        "status": "SUCCESS",
    }
    assert act(_SHIP.intent, _SHIP.slots, ["\n".join(lines[:4])]).answer["task_type"] == "MUTATE"
    cut = "\n".join(lines)[:-5]
    assert read([cut])[0].answer is None
    assert act(_SHIP.intent, _SHIP.slots, [cut.replace("intent: ", "")]) is None


def test_hostile_text_is_no_workflow_and_stops_nothing() -> None:
    deep = "[" * 100_000
    texts = ["", "\0", "intent: x\nslots: [1]\nanswer: 7\nrequest: {}\nrequest: " + deep, "request: {}"]
    (flow,) = read(texts)
    assert act("x", {}, [f"intent: x\nanswer: RETRIEVE\nvalue: {deep}"]).answer == _told(deep)
    assert (flow.slots, flow.requests, flow.answer) == ({}, [], None)
    assert read([json.dumps({"intent": "x"})]) == []


def test_a_residue_still_says_its_answer() -> None:
    near, far = (
        "Where B\nanswer RETRIEVE SUCCESS\nvalue B Street\n2.5",
        "many things else\nRETRIEVE\nA Street",
    )
    assert act(_WHERE.intent, _WHERE.slots, [far, near]).answer == _told("B Street", 2.5)
    assert act(_WHERE.intent, _WHERE.slots, [far]) is None
    # What it should send is gone: there is nothing to do.
    assert act(_WHERE.intent, _WHERE.slots, ["Where B\nPOST save\nanswer MUTATE SUCCESS"]) is None
    # A whole workflow of the template is preferred.
    other = replace(_WHERE, intent="Where is A", slots={"x": "A"}, answer=_told("1"))
    assert act(_WHERE.intent, _WHERE.slots, [near, written(other)]).answer == _told("1")


def test_an_action_has_one_digest_whatever_the_order_of_its_keys() -> None:
    text = written(_SHIP)
    turned = text.replace('"method":"POST","post":{"304":"304"}', '"post":{"304":"304"},"method":"POST"')
    assert turned != text
    first, second = (act(_SHIP.intent, _SHIP.slots, [each]) for each in (text, turned))
    assert first.digest == second.digest
    fewer = act(_SHIP.intent, _SHIP.slots, [text.replace("request: ", "lost: ")])
    assert first.digest != fewer.digest


# --- the recorded verdicts ----------------------------------------------------------------------------


def test_every_recorded_task_scores_with_its_own_workflow_and_not_with_nothing() -> None:
    recorded = recording()
    assert len(recorded.tasks) == 643
    for task in recorded.tasks.values():
        assert recorded.score(task.id, act(task.intent, task.slots, [written(task)])) == 1.0
        assert act(task.intent, task.slots, []) is None


def test_whatever_is_left_of_a_siblings_entry_has_a_recorded_verdict() -> None:
    recorded = recording()
    tasks = list(recorded.tasks.values())
    for task in random.Random(5).sample(tasks, 15):
        for other in (each for each in tasks if each.template == task.template):
            played = replays(task, left_of(written(other)))
            missing = [action for action in played.values() if recorded.score(task.id, action) is None]
            assert not missing, (task.id, other.id)


# --- worlds -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick() -> World:
    return WebArena().worlds(0, WebArena().size("quick"))[0]


@pytest.mark.parametrize("preset", ["quick", "full"])
def test_worlds_have_their_size_and_measure_only_what_was_written_first(preset: str) -> None:
    environment = make("webarena", None)
    size = environment.size(preset)
    (world,) = environment.worlds(3, size)
    assert (len(world.items), len(world.measuring)) == (size.items, size.measuring)
    assert [len(asked) for asked in world.serving] == [size.serving] * 7
    shares = [sum(q.category == "own" for q in world.measuring) / size.measuring]
    assert shares == pytest.approx([1 / 6], abs=0.02)
    known = {item.id.removeprefix("workflow-") for item in world.stages[0]}
    written_ever = {item.id.removeprefix("workflow-") for item in world.items}
    template = {str(task.id): task.template for task in recording().tasks.values()}
    early = {template[name] for name in known}
    for question in world.measuring:
        name = question.id.removeprefix("webarena-")
        assert (name in known) if question.category == "own" else (name not in written_ever)
        assert template[name] in early
    late = {template[name] for name in written_ever - known}
    asked = {template[q.id.removeprefix("webarena-")] for q in world.measuring if q.category == "sibling"}
    assert not late & asked


def test_worlds_are_decided_by_the_seed(quick: World) -> None:
    environment = WebArena(Path("/nowhere"))
    assert environment.worlds(0, environment.size("quick")) == (quick,)
    assert environment.worlds(1, environment.size("quick")) != (quick,)


def test_serving_and_measuring_are_disjoint_and_times_and_links_run_forward(quick: World) -> None:
    measured = {question.id for question in quick.measuring}
    assert len(measured) == len(quick.measuring)
    assert not measured & {q.id for part in (*quick.serving, *quick.later) for q in part}
    met: set[str] = set()
    for item in quick.items:
        assert set(item.links) <= met
        met.add(item.id)
    times = [item.time for item in quick.items]
    assert times == sorted(set(times))
    assert any(item.links for item in quick.items)


def test_a_question_tells_its_intent_and_what_is_only_asked_is_never_written(quick: World) -> None:
    tasks = recording().tasks
    asked = [*quick.measuring, *(q for part in quick.serving for q in part)]
    for question in asked:
        assert question.text == tasks[int(question.id.removeprefix("webarena-"))].intent
    only_asked = [q for q in asked if q.category == "sibling"]
    stream = {item.text for item in quick.items}
    assert not stream & {written(tasks[int(q.id.removeprefix("webarena-"))]) for q in only_asked}


# --- grades -------------------------------------------------------------------------------------------


def test_full_memory_is_near_the_papers_share_and_empty_memory_is_nothing(quick: World) -> None:
    environment = WebArena()
    texts = [item.text for item in quick.stages[0]]
    full = {q.id: environment.g(q, texts, None) for q in quick.measuring}
    assert all(environment.g(q, [], None) == 0.0 for q in quick.measuring)
    assert all(full[q.id] == 1.0 for q in quick.measuring if q.category == "own")
    assert 0.2 < sum(full.values()) / len(full) < 0.45
    assert environment.unrecorded[0] == 0
    assert environment.g(quick.measuring[0], ["\0", "{" * 9999, ""], None) == 0.0


class Says:
    """A model with one reply."""

    name = "scripted"

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.prompt = ""

    def complete(self, prompt: str, max_tokens: int) -> str:
        self.prompt = prompt
        return self.reply


def test_a_models_action_gets_the_same_verdict_and_it_sees_only_intent_and_texts(quick: World) -> None:
    environment, tasks = WebArena(), recording().tasks
    question = quick.measuring[-1]
    task = tasks[int(question.id.removeprefix("webarena-"))]
    right = {"requests": list(task.requests), "answer": task.answer}
    model = Says(f"Here it is:\n```json\n{json.dumps(right, indent=1)}\n```")
    assert environment.g(question, ["some text"], model) == 1.0
    assert "some text" in model.prompt
    assert question.text in model.prompt
    assert json.dumps(task.answer) not in model.prompt


@pytest.mark.parametrize("reply", ["", "no", "{", "{}", '{"answer": 3}', '{"a":' * 20_000, "[1]"])
def test_a_reply_without_an_action_is_graded_nothing(quick: World, reply: str) -> None:
    environment = WebArena()
    assert environment.g(quick.measuring[0], ["text"], Says(reply)) == 0.0
    assert environment.unrecorded == (0, 0)


def test_an_unrecorded_action_goes_to_the_evaluator_or_is_counted_as_nothing(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Says('{"requests": [{"url": "made up"}, 7], "answer": {"status": "made up"}}')
    environment = WebArena()
    monkeypatch.setattr(webarena, "_evaluator", lambda: None)
    assert environment.g(quick.measuring[0], [], model) == 0.0
    assert environment.unrecorded == (1, 1)
    assert "1 of 1 grades were not recorded: graded 0" in environment.provenance
    monkeypatch.setattr(webarena, "_evaluator", lambda: lambda task, action: float(len(action.requests)))
    assert environment.g(quick.measuring[0], [], model) == 1.0
    assert "the evaluator was asked" in environment.provenance


@pytest.mark.parametrize(
    "name", ["", "webarena-", "webarena-99999", "webarena-x", "webarena-²", "webarena-" + "9" * 5000, "sf-1"]
)
def test_a_question_of_another_environment_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="not a question of webarena"):
        WebArena().g(Question(name, "?"), [], None)


_SIZE = Size(1, 100, 60, 20)


@pytest.mark.parametrize(
    "size",
    [
        replace(_SIZE, items=0),
        replace(_SIZE, items=10_000),
        replace(_SIZE, measuring=-1),
        replace(_SIZE, measuring=600),
        replace(_SIZE, serving=-1),
    ],
)
def test_a_size_that_cannot_be_had_is_refused(size: Size) -> None:
    with pytest.raises(InputError, match="webarena has not so many"):
        WebArena().worlds(0, size)
    with pytest.raises(InputError, match="no such preset"):
        WebArena().size("huge")
