"""What a draft looks like, before what it says: empty, echoed, wrapped, disguised, too long."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from shared.memory.vocabulary import KNOWN_WORDS
from shared.memory.words import INVISIBLE, canonical

# Nothing a model may write for one entry is longer, and what follows is linear but not free.
MOST_CHARACTERS = 1 << 20
_LINE_MARKS = (
    r"#{1,6}[ \t]+\S", r"[-*•+–][ \t]+\S", r"\d{1,3}[.)][ \t]+\S", r">[ \t]*\S", r"\|.*\|",
    r"[-=*_]{3,}[ \t]*$", r"```", r"~~~",
)  # fmt: skip
_INLINE_MARKS = (
    r"`[^`\n]+`", r"\*\*[^*\n]+\*\*", r"__[^_\n]+__", r"(?<!\w)\*[^*\s][^*\n]*\*(?!\w)",
    r"(?<!\w)_[^_\s][^_\n]*_(?!\w)", r"\[[^\]\n]+\]\([^)\n]*\)", r"</?[A-Za-z][\w-]*[^<>\n]*>",
    r"<\|[^|\n]*\|>",
    r"&(?:amp|lt|gt|quot|nbsp|#\d+);", r"^\s*[{\[]", r"[}\]]\s*$", r"\"[\w ]+\"\s*:", r"\\[nrt\"]",
)  # fmt: skip
_MARKED_LINE = rf"^[ \t]*(?:{'|'.join(_LINE_MARKS)})"
_MARKED_LINES = re.compile(_MARKED_LINE, re.MULTILINE)
_MARKUP = re.compile(rf"{_MARKED_LINE}|{'|'.join(_INLINE_MARKS)}", re.MULTILINE)
_INLINE_SIGN = re.compile(r"[`*_\[\]<&{}\"\\]")  # no mark inside a line is without one
_LABELS = (
    "notes?|facts|context|text|memory|entry|output|response|answer|summary|draft|result text|original text|"
    "restored text|rewritten text|rewritten|restored memory|user|assistant|system|json|reply|content|rewrite"
)
_LABEL = re.compile(
    r"(?:^|\n)[ \t]*(?:(?:here(?: is|'s)|this is|below is)\b[^.\n]{0,60}:"
    r"|(?:sure|certainly|of course|okay|ok)[!,.]"
    rf"|(?:{_LABELS})[ \t]*:"
    r"|facts that must\b|you restore\b|write it out again\b|as an ai\b|i hope this\b|let me know\b)",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"\b(?:as an ai\b|language model\b|i hope this helps|let me know if"
    r"|restored (?:memory|text)\b|complete text\b|facts that must\b)",
    re.IGNORECASE,
)
_TALKS_OF = (
    "as an ai", "language model", "hope this", "let me know", "restored ", "complete text", "facts that must",
)  # fmt: skip
_ALIKE = {
    "а": "a", "с": "c", "е": "e", "і": "i", "о": "o", "р": "p", "х": "x", "у": "y", "ѕ": "s", "ј": "j",
    "һ": "h", "ԁ": "d",
    "ԛ": "q", "ԝ": "w", "в": "b", "н": "h", "к": "k", "м": "m", "т": "t", "г": "r", "п": "n", "ь": "b",
    "α": "a", "ο": "o",
    "ε": "e", "ι": "i", "κ": "k", "ν": "v", "ρ": "p", "τ": "t", "υ": "u", "χ": "x", "β": "b", "η": "h",
    "ζ": "z",
    "ı": "i", "ɑ": "a", "ɡ": "g", "ł": "l", "օ": "o", "ո": "n", "ս": "u", "հ": "h", "ց": "g", "զ": "q",
    "ӏ": "l", "ǃ": "!", "γ": "y",
}  # fmt: skip
_ALIKE_LETTERS = re.compile(f"[{''.join(_ALIKE)}]")
_TABLE = str.maketrans(_ALIKE)
_FOREIGN = re.compile(r"[^\x00-\x7f]")


_NOTHING = frozenset(("null", "none", "nil", "n/a", "na", "undefined", "{}", "[]", "empty", "no text", "nan"))


def nothing(draft: str, rendered: str) -> bool:
    """True for what a program writes where it has no text."""
    said = draft.strip().strip("\"'.`").casefold()
    return said in _NOTHING and said != rendered.strip().strip("\"'.").casefold()


def cut_off(draft: str, rendered: str) -> str:
    """The last word of a draft that stops inside it, or where the residue's sentences end and it does not."""
    ended = draft.rstrip()
    if not ended or ended[-1] in _ENDS:
        return ""
    last = _LAST_WORD.search(ended)
    if last is None:
        return ""
    word = last[0].casefold()
    words = {found.casefold() for found in _WORD.findall(rendered)}
    if word in words or word in KNOWN_WORDS:
        return ""
    if rendered.rstrip()[-1:] in _ENDS or any(other.startswith(word) for other in words):
        return last[0]
    return ""


_ENDS = frozenset(".!?。\"')]»”")
_WORD = re.compile(r"[^\W_]+")
_LAST_WORD = re.compile(r"[^\W_]+$")


def hidden(draft: str, rendered: str) -> str:
    """A character that nobody sees and the residue does not have; empty without one."""
    if canonical(draft) is draft:
        return ""
    found = set("".join(INVISIBLE.findall(draft))).difference(rendered)
    return ascii(min(found)) if found else ""


def disguised(draft: str, rendered: str) -> str:
    """A word with look-alike letters of another script, that the residue does not have as it stands."""
    if draft.isascii() or not _FOREIGN.search(draft):
        return ""
    shown = set(canonical(rendered).casefold().split())
    plain = {word.translate(_TABLE) for word in shown}
    for word in canonical(draft).casefold().split():
        if word.isascii() or word in shown or not _ALIKE_LETTERS.search(word):
            continue
        bare = word.translate(_TABLE)
        if bare in plain or _mixed(word):
            return word
    return ""


def _mixed(word: str) -> bool:
    scripts = {unicodedata.name(letter, "?").split(" ", 1)[0] for letter in word if letter.isalpha()}
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"}) > 1


def wrapped(draft: str, rendered: str, *, lossy: bool = False) -> str:
    """Markup, or a model's talk about its own reply, that the residue does not have.

    lossy: the residue is not the whole original.
    """
    for pattern in _patterns(draft):
        for match in pattern.finditer(draft):
            piece = match[0].strip()
            start = draft.rfind("\n", 0, match.start() + 1) + 1
            end = draft.find("\n", max(start, match.start() + 1))
            line = draft[start : end if end >= 0 else len(draft)].strip()
            if lossy and piece[0] == ">":
                if match.start() == 0 and draft.count("\n>") == 0:
                    return piece[:40]
                continue  # an action's sign is the first thing that a transcript loses
            if pattern is not _TALK and (line[:24] in rendered or _opens(piece, rendered)):
                continue
            if pattern is not _TALK or piece not in rendered:
                return piece[:40]
    for mark in ("**", "__", "`", "~~", "<|"):
        if mark in draft and mark not in rendered:
            return mark
    inner = draft.strip()
    if len(inner) > 1 and inner[0] in "\"'“«" and inner[-1] in "\"'”»" and inner[0] not in rendered[:2]:
        return inner[0]
    return ""


def _patterns(draft: str) -> Iterator[re.Pattern[str]]:
    """What may stand in a draft: the slow ones only where a letter or a word of theirs does."""
    yield _MARKUP if _INLINE_SIGN.search(draft) else _MARKED_LINES
    yield _LABEL
    folded = draft.lower()
    if not draft.isascii() or any(words in folded for words in _TALKS_OF):
        yield _TALK


def _opens(piece: str, rendered: str) -> bool:
    """True where a line of the residue opens with the same mark: the draft may move its lines."""
    return any(line.lstrip().startswith(piece[:1]) for line in rendered.splitlines())
