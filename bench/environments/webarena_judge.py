"""WebArena-Verified's own evaluator, asked without any site: an answer and the requests that were sent.

Needs the package `webarena-verified` (extra `engines`); the bench's grades come from its recorded verdicts.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from bench.environments.webarena_workflow import Action, Json, Task

SITES = ("GITLAB", "SHOPPING", "SHOPPING_ADMIN", "REDDIT", "WIKIPEDIA", "MAP", "HOMEPAGE")
_FIRST_PORT = 8000
_BASES = {f"__{site}__": f"http://localhost:{_FIRST_PORT + n}" for n, site in enumerate(SITES)}
_HOME: Mapping[str, Json] = {"url": "__SHOPPING__/"}
"""What an agent that sends nothing has opened: the evaluator wants a trace."""
_PATTERN = frozenset("[](){}|\\*+?")


class Judge:
    """ImportError where the package is missing."""

    def __init__(self) -> None:
        from webarena_verified import WebArenaVerified
        from webarena_verified.types.config import WebArenaVerifiedConfig

        for name in ("WebArena-Verified", "webarena_verified"):
            # Every wrong answer is logged with a traceback.
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        sites = {name: {"urls": [base]} for name, base in _BASES.items()}
        self._evaluator = WebArenaVerified(config=WebArenaVerifiedConfig(environments=sites))
        self.version = version("webarena-verified")

    def score(self, task: int, action: Action) -> float:
        """The evaluator's score: 1 where the task is fulfilled, else 0."""
        trace = [_event(request) for request in action.requests] or [_event(_HOME)]
        answer = dict(action.answer)
        with warnings.catch_warnings():
            # Where warnings are errors, one inside would be a wrong answer to it.
            warnings.simplefilter("ignore")
            told = self._evaluator.evaluate_task(task_id=task, agent_response=answer, network_trace=trace)
        return float(told.score)


def tasks() -> list[Task]:
    """Every task whose evaluator block describes concrete requests; from the package's data."""
    asset = files("webarena_verified") / "assets/dataset/webarena-verified.json"
    found = [_task(record) for record in json.loads(asset.read_text(encoding="utf-8"))]
    return [task for task in found if task is not None]


def _task(record: Mapping[str, Any]) -> Task | None:
    expected: dict[str, list[Any]] = {"AgentResponseEvaluator": [], "NetworkEventEvaluator": []}
    for block in record["eval"]:
        expected[block["evaluator"]].append(block["expected"])
    requests = [_request(block) for block in expected["NetworkEventEvaluator"]]
    told = expected["AgentResponseEvaluator"][0]
    answer = {"task_type": told["task_type"].upper(), "status": told["status"]}
    if told.get("retrieved_data") is not None:
        answer["retrieved_data"] = told["retrieved_data"]
    concrete = tuple(request for request in requests if request is not None)
    if len(concrete) < len(requests):
        return None
    return Task(
        record["task_id"],
        record["intent_template_id"],
        tuple(record["sites"]),
        record["intent"],
        record["instantiation_dict"],
        concrete,
        answer,
    )


def _request(expected: Mapping[str, Any]) -> dict[str, Json] | None:
    """One request that the expectation describes; None where it is a pattern. Defaults are left out."""
    url, query = str(_first(expected["url"])), expected.get("query_params") or {}
    if url.startswith("^"):
        url = url[1:].rstrip("$").replace(".*", "")
        if _PATTERN & set(url):
            return None
    post = expected.get("post_data")
    named = [*query.items(), *(post or {}).items()]
    if any(str(name).startswith("$.") or str(_first(value)).startswith("^") for name, value in named):
        return None
    if query:
        url += ("&" if "?" in url else "?") + urlencode(
            {name: _first(value) for name, value in query.items()}
        )
    request = {
        "url": url,
        "method": expected.get("http_method") or "GET",
        "status": expected.get("response_status") or 200,
        "headers": {name: _first(value) for name, value in (expected.get("headers") or {}).items()},
        "post": post,
    }
    plain = {"method": "GET", "status": 200, "headers": {}, "post": None}
    return {name: value for name, value in request.items() if name == "url" or value != plain[name]}


def _event(request: Mapping[str, Json]) -> dict[str, Any]:
    """A request as an entry of a network trace (HAR)."""
    told = request.get("headers")
    headers = told if isinstance(told, dict) else {}
    status = request.get("status", 200)
    sent: dict[str, Any] = {
        "url": _placed(request["url"]),
        "method": request.get("method", "GET"),
        "queryString": [],
        "cookies": [],
        "headers": [
            {"name": name, "value": _placed(value)}
            for name, value in {"Accept": "text/html", **headers}.items()
        ],
    }
    if request.get("post"):
        sent["postData"] = {"mimeType": "application/json", "text": json.dumps(request["post"])}
    return {
        "startedDateTime": "2026-01-01T00:00:00Z",
        "request": sent,
        "response": {
            "status": status,
            "headers": [{"name": "Content-Type", "value": "text/html"}],
            "content": {"mimeType": "text/html", "text": ""},
            "redirectURL": _BASES["__SHOPPING__"] if isinstance(status, int) and 300 <= status < 400 else "",
        },
    }


def _placed(text: object) -> str:
    told = str(text)
    for name, base in _BASES.items():
        told = told.replace(name, base)
    return told


def _first(value: Json) -> Json:
    return value[0] if isinstance(value, list) and value else value
