"""The policies' model at a real endpoint on loopback that speaks the OpenAI API."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.policies import openai_llm, registry
from bench.policies.asking import STRING, Asker, schema
from bench.policies.contract import Report
from bench.policies.host import HostArm
from bench.policies.llm import StandIn
from bench.policies.openai_llm import OpenAiLlm
from bench.policies.reply_schema import read_json
from shared.errors import Code, InputError, TransientError
from tests.scripted_openai import Script, ScriptedOpenAI, scripted_openai_thread

from .bench_policy_checks import item, texts

_WANTED = schema(text=STRING)


@contextmanager
def _served(*script: Script, timeout_s: float = 10.0) -> Iterator[tuple[ScriptedOpenAI, OpenAiLlm]]:
    with scripted_openai_thread(*script) as endpoint:
        llm = OpenAiLlm(endpoint.url, "model-1", timeout_s=timeout_s)
        try:
            yield endpoint, llm
        finally:
            llm.close()


def test_a_request_is_what_the_api_asks_for() -> None:
    with _served() as (endpoint, llm):
        assert json.loads(llm.complete("summarise", "Say it shorter.", _WANTED)) == {"text": "A good draft."}
    [request] = endpoint.requests
    assert (request["model"], request["temperature"]) == ("model-1", 0)
    assert request["messages"][-1] == {"role": "user", "content": "Say it shorter."}
    assert request["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "summarise", "schema": _WANTED},
    }
    assert not llm.stand_in
    assert llm.name == "model-1"


@pytest.mark.parametrize(
    "step",
    [
        Script.ERROR_500,
        Script.ERROR_400,
        Script.RATE_LIMITED,
        Script.UNAVAILABLE,
        Script.CUT,
        Script.CUT_BODY,
        Script.NOT_JSON_AT_ALL,
        Script.HALF_JSON,
    ],
)
def test_no_answer_is_a_transient_error_that_names_the_model(step: Script) -> None:
    with _served(step) as (endpoint, llm):
        with pytest.raises(TransientError) as problem:
            llm.complete("summarise", "x", _WANTED)
        assert len(endpoint.requests) == 1, "no second layer of retries"
    assert problem.value.code is Code.TIMED_OUT
    assert problem.value.facts["model"] == "model-1"
    assert openai_llm.URL_VARIABLE in problem.value.hint


def test_a_silent_endpoint_is_given_up() -> None:
    with _served(Script.SILENT, timeout_s=0.2) as (_, llm), pytest.raises(TransientError):
        llm.complete("summarise", "x", _WANTED)


@pytest.mark.parametrize(
    "step", [Script.WRONG_JSON, Script.UNKNOWN_KEYS, Script.NO_CHOICES, Script.SURROGATE]
)
def test_what_cannot_be_read_is_asked_for_once_more(step: Script) -> None:
    with _served(step) as (endpoint, llm):
        report, asker = Report(), Asker(llm, {})
        found = asker.ask(report, "summarise", "x", _WANTED)
        unreadable = 0 if step is Script.UNKNOWN_KEYS else 1
        assert found is not None
        assert found["text"] == "A good draft."
        assert len(endpoint.requests) == report.model_calls == 1 + unreadable
        assert asker.spent.unreadable == unreadable
        assert report.model_tokens == asker.spent.tokens["summarise"] > 0


def test_half_a_character_never_reaches_a_store() -> None:
    with _served(Script.BARE_SURROGATE) as (_, llm):
        assert json.loads(llm.complete("summarise", "x", _WANTED)) == {"text": "A ? draft."}
    with pytest.raises(ValueError, match="half a character"):
        read_json('{"text": "a \\ud800 b"}', _WANTED)
    assert read_json('{"text": "a \\ud83d\\ude00 b"}', _WANTED) == {"text": "a \U0001f600 b"}


def test_a_policy_works_with_the_model_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_openai_thread() as endpoint:
        monkeypatch.setenv(openai_llm.URL_VARIABLE, endpoint.url)
        monkeypatch.setenv(openai_llm.MODEL_VARIABLE, "model-1")
        arm = registry.make("amem", 0)
        assert isinstance(arm, HostArm)
        assert not arm.stand_in
        report = arm.write(item("a", "Ann has a boat."))
        assert texts(arm.host) == ["Ann has a boat."], "A-MEM cannot read this model, and loses nothing"
        assert report.model_calls == len(endpoint.requests) == 2
        arm.close()


def test_the_environment_names_a_model_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(openai_llm.URL_VARIABLE, raising=False)
    assert openai_llm.from_environment() is None
    assert StandIn({}).stand_in
    monkeypatch.setenv(openai_llm.URL_VARIABLE, "http://127.0.0.1:9/v1")
    monkeypatch.delenv(openai_llm.MODEL_VARIABLE, raising=False)
    with pytest.raises(InputError, match="no model"):
        openai_llm.from_environment()
    monkeypatch.setenv(openai_llm.MODEL_VARIABLE, "m")
    one, other = openai_llm.from_environment(), openai_llm.from_environment()
    assert one is other, "one pool of connections"
    assert one is not None
    with pytest.raises(TransientError):
        one.complete("summarise", "x", _WANTED)


def test_a_run_without_a_model_does_not_load_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(openai_llm.URL_VARIABLE, raising=False)
    code = (
        "import sys; from bench.policies import registry;"
        " registry.make('mars', 0); print('openai' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
