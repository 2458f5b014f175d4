"""What we read of an endpoint's reply: whatever a stranger sends comes to typed values or to None."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

import msgspec

# More than so many times the most that we thought possible is no count: texts of random letters take twice.
_MOST_OVER = 4
# Nor is less: tokens of usual text have 3 to 5 bytes, runs of spaces and long words a few more.
_LONGEST_COUNTED_BYTES = 16
_MOST_DIGITS = 40
# Drawn as nothing, or turning what is drawn round; tabs, line ends and the joiners of scripts may stay.
_HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_T = TypeVar("_T")


class Message(msgspec.Struct, frozen=True):
    """What the model wrote."""

    content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """The only one that is asked for."""

    finish_reason: str | None = None
    message: Message | None = None
    logprobs: object = None


class Answer(msgspec.Struct, frozen=True):
    """A chat completion; `usage` and `logprobs` are read apart, a draft does without them."""

    model: str = ""
    choices: tuple[Choice, ...] = ()
    usage: object = None

    @property
    def written(self) -> str | None:
        """The first choice's text."""
        message = self.choices[0].message if self.choices else None
        return message.content if message else None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int


class _Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str


def read(body: bytes) -> Answer | None:
    """The one place where a reply is parsed: strict UTF-8 whatever its headers say, each key once."""
    return shaped(_json(body), Answer)


def shaped(value: object, kind: type[_T]) -> _T | None:
    """A parsed value as `kind`; None where it is not."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def draft_text(content: str | None) -> str | None:
    """The draft in the reply; None where it is not what the schema asks for, or must not be stored."""
    reply = shaped(_json((content or "").encode("utf-8", "surrogatepass")), _Reply)
    if reply is None or _HIDDEN.search(reply.text):
        return None
    # Half a character may come as an escape.
    return reply.text if reply.text.isascii() or _storable(reply.text) else None


def counted(answer: Answer, prompt: Iterable[str], most: int) -> int | None:
    """Tokens read and written; None where the endpoint does not say, or says what cannot be."""
    usage = shaped(answer.usage, _Usage)
    if usage is None or usage.prompt_tokens <= 0 or usage.completion_tokens < 0:
        return None
    written = (answer.written or "").encode("utf-8", "surrogatepass")
    if written and not usage.completion_tokens:
        return None
    tokens = usage.prompt_tokens + usage.completion_tokens
    moved_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in prompt) + len(written)
    return tokens if moved_bytes <= _LONGEST_COUNTED_BYTES * tokens and tokens <= _MOST_OVER * most else None


def _json(body: bytes) -> object:
    """None for what is no JSON, too deep, or says a thing twice."""
    try:
        return json.loads(
            body.decode(), object_pairs_hook=_once, parse_constant=_no_number, parse_int=_whole_number
        )
    except (ValueError, RecursionError):
        return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    told = dict(pairs)
    if len(told) != len(pairs):
        raise ValueError("a key stands twice")
    return told


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _whole_number(digits: str) -> int:
    # Reading a number of a million digits takes minutes where Python has no limit of its own (before 3.10.7).
    if len(digits) > _MOST_DIGITS:
        raise ValueError("no such number is counted here")
    return int(digits)


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
