"""bench.regen: cases from real data or shipped episodes, drafts resumed, three gates over one generation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.regen import cases as regen_cases
from bench.regen.cases import Case, Entry, cases, episodes, stems
from bench.regen.drafts import Made, make, read
from bench.regen.measure import tallies
from hub.model import OpenAIGenerator
from shared.memory.model import Rung
from tests.scripted_openai import TOKENS, Script, scripted_openai

TEXT = (
    "Sofia: I booked the train to Porto for 14 May, it leaves at 9:40 and costs 32 euros, and my brother"
    " Ken comes along with the red kayak that he bought last summer."
)
ENTRY = Entry("one", TEXT, ("Ken: When?", "Sofia: Soon."), (stems("Porto"), stems("red kayak")))


def test_an_entry_is_asked_about_at_every_lossy_rung_for_the_next_one_up() -> None:
    made = cases([ENTRY])
    assert [(case.origin, case.target) for case in made] == [
        (Rung.COMPRESSED, Rung.FULL),
        (Rung.SKELETAL, Rung.COMPRESSED),
        (Rung.TRACE, Rung.SKELETAL),
    ]
    sizes = [len(case.residue) for case in made]
    assert sizes == sorted(sizes, reverse=True)
    assert len({case.key for case in made}) == 3


def test_shipped_episodes_are_there_where_the_dialogues_are_not() -> None:
    found = episodes(5)
    assert len(found) == 5
    assert found == episodes(5)
    assert all(len(entry.text) > 200 for entry in found)


def test_the_word_measure_reads_endings_and_number_words_alike() -> None:
    assert stems("The two kayaks walked") == stems("2 kayak walking")
    assert stems("not a dog") != stems("a cat")


async def test_drafts_are_made_once_and_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "drafts.jsonl"
    wanted = cases([ENTRY])
    async with scripted_openai(Script.GOOD, Script.TRUNCATED) as endpoint:
        generator = OpenAIGenerator(endpoint.url, "m", "none", 5.0)
        await make(wanted[:2], generator, path, 1, 1)
        with path.open("a", encoding="utf-8") as out:
            out.write('{"key": "cut')  # the run was stopped in the middle of a line
        made = await make(wanted, generator, path, 2, 1)
        assert len(endpoint.requests) == 3
        assert "Sofia: Soon." in endpoint.requests[0]["messages"][-1]["content"]
        assert "Ken: When?" not in endpoint.requests[0]["messages"][-1]["content"]
        # A base that is levelled otherwise by now is asked about anew.
        moved = replace(wanted[0], record=wanted[1].record)
        await make([moved], generator, path, 1, 1)
        assert len(endpoint.requests) == 4
        # So is one about whom the model was told something else.
        await make(wanted[2:], generator, path, 1, 2)
        assert len(endpoint.requests) == 5
        await generator.aclose()
    assert {draft.failure for draft in made.values()} == {"", "truncated"}
    assert {draft.tokens for draft in read(path).values()} == {TOKENS}
    assert len(read(path)) == 3


def _made(case: Case, text: str, failure: str = "") -> Made:
    return Made(case.key, text, failure, 10, 0.5, case.record.hex())


def test_one_draft_is_counted_under_each_gate() -> None:
    case = next(case for case in cases([ENTRY]) if case.origin is Rung.SKELETAL)
    foreign = f"{case.residue}, and Rome cost 77 dollars."
    none = tallies([case], {case.key: _made(case, foreign)}, "none")[None]
    assert (none.admitted, none.foreign_numbers, none.foreign_names, none.polluted) == (1, 1, 1, 1)
    strict = tallies([case], {case.key: _made(case, foreign)}, "strict")[None]
    assert (strict.admitted, sum(strict.reasons.values()), strict.polluted) == (0, 1, 0)
    whole = tallies([case], {case.key: _made(case, TEXT)}, "none")
    assert whole[None].gained == whole[None].gainable > 0
    assert whole[None].lost == whole[None].polluted == 0
    assert whole[Rung.SKELETAL] == whole[None]
    thin = tallies([case], {case.key: _made(case, "Sofia.")}, "paper")[None]
    assert (thin.admitted, thin.reasons["thin"]) == (0, 1)
    failed = tallies([case], {case.key: _made(case, "", "truncated")}, "none")[None]
    assert (failed.admitted, failed.reasons["truncated"], failed.tokens) == (0, 1, 10)


def test_only_turns_that_alone_hold_an_answer_are_taken(tmp_path: Path) -> None:
    folder = tmp_path / "locomo"
    folder.mkdir()
    long = TEXT.removeprefix("Sofia: ")
    (folder / "locomo_1.json").write_text(
        '[{"sample_id": "c1", "conversation": {"speaker_a": "Ken", "speaker_b": "Sofia",'
        ' "session_1": [{"speaker": "Ken", "dia_id": "D1:1", "text": "When?"},'
        f' {{"speaker": "Sofia", "dia_id": "D1:2", "text": "{long}"}}]}},'
        ' "qa": [{"question": "Where?", "answer": "Porto", "evidence": ["D1:2"], "category": 4},'
        ' {"question": "Who?", "answer": "Napoleon", "evidence": ["D1:2"], "category": 4},'
        ' {"question": "Both?", "answer": "Porto", "evidence": ["D1:1", "D1:2"], "category": 1},'
        ' {"question": "Trick?", "answer": "Porto", "evidence": ["D1:2"], "category": 5}]}]',
        encoding="utf-8",
    )
    [entry] = regen_cases.dialogue(tmp_path, 10)
    assert (entry.id, entry.answers, entry.neighbours) == ("c1-D1:2", (stems("Porto"),), ("Ken: When?",))
    assert regen_cases.dialogue(tmp_path / "nowhere", 10) == []
