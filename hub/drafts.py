"""Admitted drafts, kept with their entries: a lost reply is answered from here, never by generating again."""

from __future__ import annotations

from dataclasses import dataclass

from shared.host.db import Database
from shared.units import MIB
from shared.wire import DraftAsk

# Beside the archive's quota: drafts can be made again for tokens, layers cannot be made again at all.
_SHARE_OF_QUOTA = 16
_LEAST_BYTES = MIB
_MATCH = "version = ? AND base_digest = ? AND target = ?"


@dataclass(frozen=True)
class KeptDraft:
    """One admitted draft. `stage`: when it was charged."""

    text: str
    model: str
    tokens: int
    stage: int
    judged: bool


class Drafts:
    """One tenant's admitted drafts, the oldest out first. Every call runs inside the caller's transaction."""

    def __init__(self, database: Database, quota_bytes: int) -> None:
        self._database = database
        self._limit_bytes = max(quota_bytes // _SHARE_OF_QUOTA, _LEAST_BYTES)

    def find(self, edge: str, ask: DraftAsk) -> KeptDraft | None:
        """The draft of exactly this base and rung."""
        row = self._database.query_one(
            "SELECT text, model, tokens, stage, judged FROM draft WHERE public_id ="
            f" (SELECT public_id FROM entry WHERE edge = ? AND number = ?) AND {_MATCH}",
            (edge, ask.number, ask.version, ask.base_digest, ask.target),
        )
        if row is None:
            return None
        text, model, tokens, stage, judged = row
        return KeptDraft(text, model, tokens, stage, bool(judged))

    def keep(self, edge: str, ask: DraftAsk, draft: KeptDraft) -> bool:
        """False where the hub does not know the entry: it could not be forgotten with it."""
        entry = self._database.query_one(
            "SELECT public_id FROM entry WHERE edge = ? AND number = ?", (edge, ask.number)
        )
        if entry is None or len(draft.text.encode()) > self._limit_bytes:
            return False
        self._database.execute(
            "INSERT OR REPLACE INTO draft (public_id, version, base_digest, target, stage, text, model,"
            " tokens, judged) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(entry[0], ask.version, ask.base_digest, ask.target, draft.stage),
                *(draft.text, draft.model, draft.tokens, draft.judged),
            ),
        )
        self._trim()
        return True

    def _trim(self) -> None:
        """Drop the oldest beyond the limit."""
        self._database.execute(
            "DELETE FROM draft WHERE kept IN (SELECT kept FROM (SELECT kept, sum(length(CAST(text AS BLOB)))"
            " OVER (ORDER BY kept DESC) AS newer_bytes FROM draft) WHERE newer_bytes > ?)",
            (self._limit_bytes,),
        )
