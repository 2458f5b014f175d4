"""R3Mem: residues of falling size, turned back into text when they are read.

Does: a model is trained to compress history into levels (document, paragraph, entity) and to expand them
again; what a read touches is restored.
Source: arXiv 2502.15957 (ACL 2025 Findings; no official code located).
Ours: everything, since upstream trains weights and this is a store. Residues are a gist (half of the bytes),
a paragraph's gist (a quarter) and the entities (8 %), one call each; the least recently used entry goes down
first, one level over the whole store at a time, and is deleted only as entities. A read restores a hit by one
call from its residue and the other hits, where the full size fits the budget: at once, and unverified. What a
restored text lost of its residue's names and values is counted (`lost_invariants`) and not stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from bench.environments.contract import Item
from bench.policies import extractive
from bench.policies.asking import STRING, Asker, facts_of, schema
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row, evict_in_order, merge
from bench.policies.llm import Llm
from edge_agent.retrieval import cut

LEVELS: Mapping[str, float] = {"full": 1.0, "gist": 0.5, "paragraph": 0.25, "entities": 0.08}
"""The most bytes of a level, of the original's."""
_NAMES = tuple(LEVELS)
_WRITTEN_BYTES = "of"
_RESIDUE = schema(residue=STRING)
_RESTORED = schema(text=STRING)


def _compress(prompt: str, wanted: Mapping[str, Any]) -> str:
    told = facts_of(prompt)
    return json.dumps({"residue": _residue(told["text"], told["level"], told["limit_bytes"])})


def _residue(text: str, level: str, limit_bytes: int) -> str:
    if level == "entities":
        return extractive.entities(text, limit_bytes)
    return extractive.summarise([text], limit_bytes)


def _restore(prompt: str, wanted: Mapping[str, Any]) -> str:
    """The residue, and what others say of the things it names, as far as there is room."""
    told = facts_of(prompt)
    parts, about = [told["residue"]], extractive.words(told["residue"])
    left = told["limit_bytes"] - len(told["residue"].encode())
    for sentence in dict.fromkeys(one for text in told["neighbours"] for one in extractive.sentences(text)):
        size = len(sentence.encode()) + 1
        if size <= left and about & extractive.words(sentence) and sentence not in told["residue"]:
            parts.append(sentence)
            left -= size
    return json.dumps({"text": " ".join(parts)})


class R3Mem:
    """`write_backs` restored texts so far, `lost_invariants` names and values that they dropped."""

    name = "r3mem"
    budget_exempt = False
    traits = Traits(shortens=True, lengthens=True, calls_in_enforce=1, native_knob="derived")
    origin = Origin("R3Mem", "arXiv 2502.15957", "not found", "everything: upstream trains a model")

    def __init__(self, seed: int, llm: Llm | None) -> None:
        self._asker = Asker(llm, {"compress": _compress, "restore": _restore})
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in
        self.write_backs = 0
        self.lost_invariants = 0
        self._budget_bytes = math.inf

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """Whole."""
        host.add(item, now)
        return Report()

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """Restore what is below full and fits, best hit first."""
        report = Report()
        for number in hits:
            row = host.rows[number]
            shortened = _WRITTEN_BYTES in row.metadata
            if shortened and host.bytes() + _growth(row) <= self._budget_bytes:
                neighbours = [host.rows[other].text for other in hits if other != number]
                self._restore(host, row, neighbours, report)
        return report

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """The least recently used first, a level at a time; deletion last. A rise restores nothing."""
        report = Report()
        self._budget_bytes = budget_bytes
        if host.bytes() <= budget_bytes:
            return report
        rows = sorted(host.rows.values(), key=lambda row: (row.last_access, row.created, row.number))
        for level, origin in zip(_NAMES[1:], _NAMES, strict=False):
            for row in rows:
                if host.bytes() <= budget_bytes:
                    return report
                if row.rung == origin:
                    self._demote(host, row, level, report)
        merge(report, evict_in_order(host, [row.number for row in rows], budget_bytes))
        return report

    def _demote(self, host: Host, row: Row, level: str, report: Report) -> None:
        """To this level; an entry that gets no smaller has the level without a new text."""
        written_bytes = int(row.metadata.get(_WRITTEN_BYTES, row.text_bytes()))
        limit = int(LEVELS[level] * written_bytes)
        found = self._asker.ask(
            report,
            "compress",
            "Compress the text to this level (gist, paragraph's gist, or a list of entities with their"
            " relations), in limit_bytes.",
            _RESIDUE,
            text=row.text,
            level=level,
            limit_bytes=limit,
        )
        # What cannot be read is made by rule: the budget does not wait.
        text = cut(found["residue"] if found else _residue(row.text, level, limit), limit)
        report.demoted.append((row.item, row.rung, level))
        row.rung = level
        saved = row.text_bytes() - len(text.encode())
        if text.strip() and (saved > _mark_bytes(written_bytes) or _WRITTEN_BYTES in row.metadata):
            row.text = text
            row.metadata[_WRITTEN_BYTES] = str(written_bytes)
            host.touched(row.number)

    def _restore(self, host: Host, row: Row, neighbours: Sequence[str], report: Report) -> None:
        limit = row.text_bytes() + _growth(row)
        found = self._asker.ask(
            report,
            "restore",
            "Restore the full text behind the residue, with the help of its neighbours, in limit_bytes.",
            _RESTORED,
            residue=row.text,
            neighbours=list(neighbours),
            limit_bytes=limit,
        )
        text = cut(found["text"], limit) if found else ""
        if not text.strip() or text == row.text:
            return
        told = {*extractive.names(row.text), *extractive.values(row.text)}
        self.lost_invariants += len(told - {*extractive.names(text), *extractive.values(text)})
        self.write_backs += 1
        report.promoted.append((row.item, row.rung, "full"))
        row.text, row.rung = text, "full"
        row.metadata.pop(_WRITTEN_BYTES, None)
        host.touched(row.number)


def _growth(row: Row) -> int:
    """Bytes that a shortened entry's full text would add."""
    return int(row.metadata[_WRITTEN_BYTES]) - row.text_bytes()


def _mark_bytes(written_bytes: int) -> int:
    return len(_WRITTEN_BYTES) + len(str(written_bytes))
