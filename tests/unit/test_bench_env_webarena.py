"""WebArena in the bench: workflows as text and carried to siblings, recorded verdicts, worlds and grades."""

from __future__ import annotations

import json

from bench.environments.webarena_workflow import Task, act, read, written

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
    other = Task(2, 7, ("map",), "Where is A", {"x": "A"}, (), {"retrieved_data": ["1"]})
    same = Task(3, 7, ("map",), "Where is B", {"x": "B"}, (), {"retrieved_data": ["2"]})
    assert act("Where is B", {"x": "B"}, [written(other), written(same)]).answer == {"retrieved_data": ["2"]}


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
    assert (flow.slots, flow.requests, flow.answer) == ({}, [], None)
    assert read([json.dumps({"intent": "x"})]) == []


def test_an_action_has_one_digest_whatever_the_order_of_its_keys() -> None:
    text = written(_SHIP)
    turned = text.replace(
        '{"task_type":"MUTATE","status":"SUCCESS"}', '{"status":"SUCCESS","task_type":"MUTATE"}'
    )
    assert turned != text
    first, second = (act(_SHIP.intent, _SHIP.slots, [each]) for each in (text, turned))
    assert first.digest == second.digest
    fewer = act(_SHIP.intent, _SHIP.slots, [text.replace("request: ", "lost: ")])
    assert first.digest != fewer.digest
