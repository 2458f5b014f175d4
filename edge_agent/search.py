"""Lexical retrieval: BM25 over an in-memory FTS5 index that is a function of the durable bytes alone."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

# A term in more than this share of the entries ranks nothing and costs a scan of them all
# (four common terms at 100 k entries: 70 ms); it is dropped while rarer terms remain.
_COMMON_SHARE = 0.25
_MIN_RARE_TERMS = 3
_MAX_TERMS = 48
# An identifier in at most this many entries names them: they go first.
_SHORTCUT_ENTRIES = 3
_SHORTEST_STEM = 4
# SQLite's least limit of placeholders; a query of 16 KB may have more words.
_MAX_LOOKED_UP = 999
_MAX_KEPT = 20_000

# Words that make a question and say nothing of what is asked: left out of a query while others remain.
# On LoCoMo evidence that is worth .07 of recall@10 (docs/recall.md). Entries are indexed with every word.
_QUESTION_WORDS = (
    "a an and are at be been by did do does for from had has have her his how i in is it me my of on or s"
    " she he that the their they this to was we were what when where which who whom whose why will with"
    " would you your"
)

_WORD = re.compile(r"[^\W_]+(?:[-_.:/][^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿豈-﫿]+")


@dataclass(frozen=True)
class Scored:
    """One candidate; higher is better."""

    number: int
    score: float


@dataclass(frozen=True)
class SearchResult:
    """Candidates, best first. named: so many of the first were named by an identifier of the query."""

    hits: tuple[Scored, ...]
    named: int = 0

    @property
    def shortcut(self) -> bool:
        """True where an identifier named the first of them."""
        return self.named > 0


class LexicalIndex:
    """BM25 by entry number. Owned by the store's thread."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None)
        self._db.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE VIRTUAL TABLE entries USING fts5"
            "(terms, tokenize = \"unicode61 remove_diacritics 0 tokenchars '_'\");"
            "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(entries, row);"
        )
        self._count = 0
        # Document frequencies asked for since the index last changed.
        self._looked_up: dict[str, int] = {}

    def __len__(self) -> int:
        return self._count

    def put(self, number: int, text: str) -> None:
        """Index or re-index one entry."""
        self.remove(number)
        self._db.execute("INSERT INTO entries (rowid, terms) VALUES (?, ?)", (number, " ".join(terms(text))))
        self._count += 1

    def put_many(self, texts: Iterable[tuple[int, str]]) -> None:
        """Index or re-index many entries."""
        self._db.execute("BEGIN")
        for number, text in texts:
            self.put(number, text)
        self._db.execute("COMMIT")

    def remove(self, number: int) -> None:
        """Forget one entry; an unknown number is fine."""
        self._looked_up.clear()
        self._count -= self._db.execute("DELETE FROM entries WHERE rowid = ?", (number,)).rowcount

    def search(self, query: str, limit: int) -> SearchResult:
        """At most `limit` candidates; an empty query or store gives none."""
        frequency = self._frequencies(dict.fromkeys(_asked(query)))
        if not frequency or limit <= 0:
            return SearchResult(())
        rows = self._match(self._selective(frequency), limit)
        named = [
            term for term, count in frequency.items() if _is_identifier(term) and count <= _SHORTCUT_ENTRIES
        ]
        if not named:
            return SearchResult(tuple(rows))
        ranked = {row.number: row.score for row in rows}
        first = self._match(named, _SHORTCUT_ENTRIES)
        lead = sorted(first, key=lambda row: (-ranked.get(row.number, row.score), row.number))
        chosen = {row.number for row in lead}
        top = rows[0].score if rows else 0.0
        lifted = [Scored(row.number, top + ranked.get(row.number, row.score)) for row in lead]
        rest = [row for row in rows if row.number not in chosen]
        return SearchResult(tuple((lifted + rest)[:limit]), min(len(lifted), limit))

    def close(self) -> None:
        """Free the index."""
        self._db.close()

    def _match(self, wanted: list[str], limit: int) -> list[Scored]:
        expression = " OR ".join(f'"{term}"' for term in wanted)
        rows = self._db.execute(
            "SELECT rowid, bm25(entries) FROM entries WHERE entries MATCH ? ORDER BY rank, rowid LIMIT ?",
            (expression, limit),
        )
        return [Scored(int(number), -float(rank)) for number, rank in rows]

    def _selective(self, frequency: dict[str, int]) -> list[str]:
        """The terms worth ranking by, in the query's order."""
        rarest = sorted(frequency, key=lambda term: frequency[term])[:_MAX_TERMS]
        limit = max(1.0, _COMMON_SHARE * self._count)
        rare = [term for term in rarest if frequency[term] <= limit]
        kept = set(rare if len(rare) >= _MIN_RARE_TERMS else rarest)
        return [term for term in frequency if term in kept]

    def _frequencies(self, wanted: dict[str, None]) -> dict[str, int]:
        """In how many entries each term stands, in the order wanted; terms of no entry are left out."""
        names = list(wanted)[:_MAX_LOOKED_UP]
        unknown = [term for term in names if term not in self._looked_up]
        if unknown:
            places = ", ".join("?" * len(unknown))
            rows = self._db.execute(
                f"SELECT term, doc FROM vocabulary WHERE term IN ({places})",
                unknown,
            )
            if len(self._looked_up) > _MAX_KEPT:
                self._looked_up = {term: self._looked_up[term] for term in names if term in self._looked_up}
            self._looked_up.update(dict.fromkeys(unknown, 0))
            self._looked_up.update((str(term), int(count)) for term, count in rows)
        return {term: count for term in names if (count := self._looked_up[term])}


def terms(text: str) -> list[str]:
    """Search terms: words, parts of compound identifiers, 1- and 2-grams of unspaced scripts."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    found: list[str] = []
    for match in _WORD.finditer(folded):
        word = match.group()
        parts = _PART.findall(word)
        for part in parts:
            found.extend(_grams(part) if _UNSPACED.search(part) else [_stem(part)])
        if len(parts) > 1:
            found.append("_".join(parts))
    return found


def _asked(query: str) -> list[str]:
    """The terms of a query that say what is asked."""
    found = terms(query)
    return [term for term in found if term not in _SAYS_NOTHING] or found


def _grams(word: str) -> list[str]:
    grams: list[str] = []
    position = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > position:
            grams.append(word[position : run.start()])
        glyphs = run.group()
        grams.extend(glyphs)
        grams.extend(glyphs[i : i + 2] for i in range(len(glyphs) - 1))
        position = run.end()
    if position < len(word):
        grams.append(word[position:])
    return grams


def _stem(word: str) -> str:
    """Light English suffix stripping, so that the vocabulary can be asked for a term's frequency."""
    if not word.isascii() or len(word) < _SHORTEST_STEM or word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    for suffix in ("ing", "ed", "es", "s", "e"):
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM - 1:
            return word[: -len(suffix)]
    return word


def _is_identifier(term: str) -> bool:
    has_digit = any(letter.isdigit() for letter in term)
    return has_digit and (len(term) >= 4 or "_" in term) and any(letter.isalpha() for letter in term)


_SAYS_NOTHING = frozenset(terms(_QUESTION_WORDS))
