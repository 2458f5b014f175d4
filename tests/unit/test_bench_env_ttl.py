"""TTL: labelled utterances, and the label of an unseen one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.datasets import data_directory
from bench.environments.contract import Size
from bench.environments.ttl import Ttl
from shared.errors import Code, InputError
from tests.unit.bench_env_checks import Parrot, check_promises, everything, keep_all, mean_g

SIZE = Size(2, 80, 24, 8)
FIXTURE = Path(__file__).parents[1] / "fixtures" / "bench" / "intents.json"


def test_promises() -> None:
    check_promises(Ttl, SIZE)


def test_a_whole_store_does_well_and_an_empty_one_nothing() -> None:
    environment = Ttl()
    worlds = environment.worlds(0, SIZE)
    assert mean_g(environment, worlds, lambda world: []) == 0.0
    assert min(keep_all(environment, worlds)) > 60.0
    # Everything at once is no answer: the vote goes by rank.
    assert mean_g(environment, worlds, everything) < 0.5


def test_real_sets_where_they_are_at_hand() -> None:
    data = data_directory()
    environment = Ttl(data)
    if data is None or not (data / "ttl").is_dir():
        assert "written by us" in environment.provenance
        return
    worlds = environment.worlds(0, Size(3, 80, 24, 8))
    assert {question.category for world in worlds for question in world.measuring} == {
        path.stem for path in (data / "ttl").glob("*.json")
    }
    assert min(keep_all(environment, worlds)) > 55.0


def test_every_measured_label_is_met_before_stage_1_and_late_ones_after() -> None:
    environment = Ttl()
    for world in environment.worlds(1, Size(2, 100, 40, 8)):
        early = [item.text for item in world.stages[0]]
        labels = {text.split(":")[0] for text in early}
        for question in world.measuring:
            assert sum(environment.g(question, [f"{label}: x"], None) for label in labels) == 1.0
        for part in range(1, 7):
            written = {item.text.split(":")[0] for stage in world.stages[1 : part + 1] for item in stage}
            for question in world.later[part]:
                assert sum(environment.g(question, [f"{label}: x"], None) for label in written) == 1.0
                assert not any(environment.g(question, [f"{label}: x"], None) for label in labels)
        assert world.later[6]


def test_an_example_cites_the_one_of_its_label_before() -> None:
    (world, _) = Ttl().worlds(2, SIZE)
    label = {item.id: item.text.split(":")[0] for item in world.items}
    for item in world.items:
        assert {label[cited] for cited in item.links} <= {label[item.id]}
    assert sum(len(item.links) for item in world.items) == len(world.items) - len(set(label.values()))


@pytest.fixture
def environment(tmp_path: Path) -> Ttl:
    (tmp_path / "ttl").mkdir()
    (tmp_path / "ttl" / "shop.json").write_bytes(FIXTURE.read_bytes())
    return Ttl(tmp_path)


def test_the_official_layout_is_read(environment: Ttl) -> None:
    assert "shop (2 labels)" in environment.provenance
    (world,) = environment.worlds(0, Size(1, 20, 10, 4))
    told = {item.text.split(": ", 1)[1] for item in world.items}
    assert told == {
        "When does my parcel arrive?",
        "Has the parcel been sent yet",
        "my parcel is late",
        "I want to send this coat back",
        "How do I return a coat?",
        "money back for the coat please",
    }
    asked = {question.text for group in (world.measuring, *world.serving) for question in group}
    # A test row that is also an example is not asked.
    assert asked <= {
        "where is my parcel",
        "is the parcel late or lost?",
        "can I return the coat",
        "the coat goes back",
    }


def test_votes_go_by_rank_and_are_shared_by_the_labels_of_a_text(environment: Ttl) -> None:
    (world,) = environment.worlds(0, Size(1, 20, 10, 4))
    right = next(
        item.text.split(":")[0]
        for item in world.items
        if environment.g(world.measuring[0], [item.text], None) == 1.0
    )
    question = world.measuring[0]

    def g(*texts: str) -> float:
        return environment.g(question, texts, None)

    assert g(f"{right}: a") == g(f"{right.lower()} a") == 1.0
    assert g("Label 1: a", f"{right}: b") == 0.0
    assert g("Label 1: a", f"{right}: b", f"{right}: c", f"{right}: d") == 1.0
    assert g(f"{right}: a", "Label 1: b", "Label 1: c") == 1.0
    assert g(f"Label 1: a {right}: b", f"{right}: c") == 1.0
    assert g("no label", "") == g(right.replace("Label ", "")) == 0.0


def test_a_model_names_the_number(environment: Ttl) -> None:
    (world,) = environment.worlds(0, Size(1, 20, 10, 4))
    labels = {item.text.split(":")[0].removeprefix("Label ") for item in world.items}
    grades = [environment.g(world.measuring[0], ["x"], Parrot(f"label: {label}")) for label in labels]
    assert sorted(grades) == [0.0, 1.0]
    assert environment.g(world.measuring[0], ["x"], Parrot("none of them")) == 0.0


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"train": [], "test": []}',
        b'{"train": [["a", "b"]]}',
        b'{"train": [["a"]], "test": [["b"]]}',
        b'{"train": [["a", 1]], "test": [["b", 1]]}',
        json.dumps({"train": [["a", "x"]], "test": [["b", "x"]]}).encode(),
    ],
    ids=["empty", "list", "bytes", "no rows", "no test", "no label", "number", "one label"],
)
def test_a_file_in_another_layout_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "ttl").mkdir()
    (tmp_path / "ttl" / "shop.json").write_bytes(raw)
    with pytest.raises(InputError, match=r"shop\.json") as caught:
        Ttl(tmp_path)
    assert caught.value.code is Code.BAD_INPUT_FILE
