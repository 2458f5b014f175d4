"""SF: numbered facts, the higher number holds, and chains of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.datasets import data_directory
from bench.environments import sf_facts
from bench.environments.contract import Question, Size, World
from bench.environments.sf import Sf
from bench.runner.asking import walk
from shared.errors import Code, InputError
from shared.memory.model import Kind
from tests.unit.bench_env_checks import Parrot, check_promises, everything, keep_all, mean_g

SIZE = Size(2, 100, 40, 12)
FIXTURE = Path(__file__).parents[1] / "fixtures" / "bench" / "mquake_cases.json"


def test_promises() -> None:
    worlds = check_promises(Sf, SIZE)
    assert {item.kind for world in worlds for item in world.items} == {Kind.MEMORY}
    assert {question.category for world in worlds for question in world.measuring} == {
        "single_hop",
        "multi_hop",
    }


def test_a_whole_store_answers_everything_and_an_empty_one_nothing() -> None:
    environment = Sf()
    worlds = environment.worlds(0, SIZE)
    assert mean_g(environment, worlds, lambda world: []) == 0.0
    assert mean_g(environment, worlds, everything) == 1.0
    assert keep_all(environment, worlds) == [100.0] * 7


def test_real_cases_where_they_are_at_hand() -> None:
    data = data_directory()
    environment = Sf(data)
    if data is None or not (data / "sf").is_dir():
        assert "written by us" in environment.provenance
        return
    assert "MQuAKE" in environment.provenance
    worlds = environment.worlds(0, SIZE)
    assert mean_g(environment, worlds, everything) == 1.0
    assert min(keep_all(environment, worlds)) > 95.0


def test_old_objects_come_first_and_are_cited() -> None:
    (world,) = Sf().worlds(2, Size(1, 120, 40, 5))
    for at, item in enumerate(world.items):
        assert item.text.startswith(f"Fact {at}: ")
    told: dict[str, list[str]] = {}
    for item in world.items:
        told.setdefault(_subject_and_relation(item.text), []).append(item.id)
    by_id = {item.id: item for item in world.items}
    assert all(len(ids) == 2 and ids[0] in by_id[ids[1]].links for ids in told.values())


def test_the_official_format_is_read_and_contradicted_cases_are_left_out() -> None:
    cases, edits = sf_facts.cases(json.loads(FIXTURE.read_text(encoding="utf-8")))
    assert [case.id for case in cases] == ["1", "2"]
    assert len(edits) == 4
    assert ("Westland", "The capital of {} is") not in edits
    assert edits["Norland", "The capital of {} is"].names == ("Port Amiel", "Amiel")
    assert cases[0].names == ("Port Amiel", "Amiel")


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Sf, Callable[[str], Question]]:
    (tmp_path / "sf").mkdir()
    (tmp_path / "sf" / "cases.json").write_bytes(FIXTURE.read_bytes())
    environment = Sf(tmp_path)
    assert "2 multi-hop cases" in environment.provenance
    known: dict[str, Question] = {}
    for seed in range(20):
        for world in environment.worlds(seed, Size(1, 8, 8, 8)):
            for group in (world.measuring, *world.serving, *world.later):
                known |= {question.text: question for question in group}
    return environment, known.__getitem__


def test_the_higher_number_holds_whatever_the_order(asked: tuple[Sf, Callable[[str], Question]]) -> None:
    environment, question = asked
    capital = question("What is the capital of Norland?")
    old, new = (
        "Fact 3: The capital of Norland is Graz-on-Sea.",
        "Fact 17: The capital of Norland is Port Amiel.",
    )
    assert environment.g(capital, [old, new], None) == environment.g(capital, [new, old], None) == 1.0
    assert environment.g(capital, [old], None) == 0.0
    assert environment.g(capital, [new, old.replace("Fact 3", "Fact 30")], None) == 0.0
    assert environment.g(capital, [f"{old} {new}"], None) == 1.0  # merged into one entry
    assert environment.g(capital, ["The capital of Norland is Port Amiel."], None) == 0.0  # number lost
    assert (
        environment.g(capital, ["Fact 17 capital Norland Amiel"], None) == 1.0
    )  # shortened, an alias is left
    assert environment.g(capital, ["Fact 17: The capital of Norland is"], None) == 0.0
    assert environment.g(capital, ["Fact 17: Port Amiel"], None) == 0.0
    assert environment.g(capital, ["Fact 17: The capital of Port Amiel is Norland."], None) == 0.0


def test_relations_of_one_subject_are_kept_apart(asked: tuple[Sf, Callable[[str], Question]]) -> None:
    environment, question = asked
    country = "Fact 9: Paper Lanterns was created in the country of Norland."
    creator = "Fact 12: Paper Lanterns was created by Ines Vold."
    assert environment.g(question("Who created Paper Lanterns?"), [country], None) == 0.0
    assert environment.g(question("Who created Paper Lanterns?"), [country, creator], None) == 1.0
    asked_country = question("In which country was Paper Lanterns created?")
    assert environment.g(asked_country, [country, creator], None) == 1.0
    assert environment.g(asked_country, [creator], None) == 0.0


def test_a_chain_is_walked_fact_by_fact(asked: tuple[Sf, Callable[[str], Question]]) -> None:
    environment, question = asked
    chain = question("Who is the child of the creator of Paper Lanterns?")
    facts = {
        "paper lanterns was created by": "Fact 12: Paper Lanterns was created by Ines Vold.",
        "ines vold's child is": "Fact 20: Ines Vold's child is Ruben Vold.",
    }
    texts: list[list[str]] = []
    queries = []
    for query in walk(environment, chain, texts, None):
        queries.append(query)
        texts.append([facts[query]] if query in facts else [])
    assert queries == [chain.text, *facts]
    assert environment.g(chain, list(facts.values()), None) == 1.0
    assert environment.g(chain, list(facts.values())[:1], None) == 0.0
    assert environment.g(chain, list(facts.values())[1:], None) == 0.0
    stale = "Fact 30: Paper Lanterns was created by Tom Arne."
    assert environment.g(chain, [*facts.values(), stale], None) == 0.0
    # Nothing found: the agent stops asking. A model asks once.
    assert _queries(environment, chain, []) == [chain.text, "paper lanterns was created by"]


def test_a_model_is_graded_by_containment(asked: tuple[Sf, Callable[[str], Question]]) -> None:
    environment, question = asked
    capital = question("What is the capital of Norland?")
    assert environment.g(capital, ["x"], Parrot("It is Amiel.")) == 1.0
    assert (
        environment.g(capital, ["x"], Parrot("Graz-on-Sea")) == environment.g(capital, [], Parrot("")) == 0.0
    )
    assert environment.follow_up(capital, [["x"]], Parrot("")) == ""


@pytest.mark.parametrize(
    "raw",
    [b"", b"{}", b"[]", b"[1]", b"\xff\xfe", b'[{"case_id": 1}]', b"[" * 20_000, b'"text"', b"null"],
    ids=["empty", "object", "no case", "number", "bytes", "fields", "deep", "text", "null"],
)
def test_a_file_in_another_layout_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "sf").mkdir()
    (tmp_path / "sf" / "cases.json").write_bytes(raw)
    with pytest.raises(InputError, match=r"cases\.json") as caught:
        Sf(tmp_path)
    assert caught.value.code is Code.BAD_INPUT_FILE


@pytest.mark.parametrize(
    "change",
    [{"prompt": "no slot"}, {"prompt": 3}, {"subject": ""}, {"target_new": {}}, {"question": "\ud800"}],
    ids=["no slot", "number", "no subject", "no object", "surrogate"],
)
def test_a_broken_case_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    records = json.loads(FIXTURE.read_text(encoding="utf-8"))
    records[0]["requested_rewrite"][0] |= change
    (tmp_path / "sf").mkdir()
    (tmp_path / "sf" / "cases.json").write_text(json.dumps(records), encoding="utf-8")
    with pytest.raises(InputError, match="MQuAKE"):
        Sf(tmp_path)


def _queries(environment: Sf, question: Question, texts: list[str]) -> list[str]:
    returned: list[list[str]] = []
    asked = []
    for query in walk(environment, question, returned, None):
        asked.append(query)
        returned.append(texts)
    return asked


def _subject_and_relation(text: str) -> str:
    """A fact of our own set without its number and object (which starts at the last name)."""
    body = re.sub(r"^Fact \d+: ", "", text)
    for front in ("was written by", "is employed by", "is married to", "was founded by", "in the town of"):
        if front in body:
            return body.split(front)[0] + front
    return body.rsplit(" is ", 1)[0]


def test_worlds_are_as_large_as_asked() -> None:
    (world,) = Sf().worlds(0, Size(1, 60, 20, 5))
    assert isinstance(world, World)
    assert 40 <= len(world.items) <= 60
