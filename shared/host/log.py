"""Structured logs on stderr: JSON for the journal, plain lines for a person, library logs included."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from structlog.stdlib import BoundLogger
from structlog.typing import Processor

ELLIPSIS = "…"


def configure(*, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send every log of this process to `stream` (stderr), one line each; the composition root calls it."""
    stream = sys.stderr if stream is None else stream
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: list[Processor] = (
        [structlog.dev.ConsoleRenderer()]
        if stream.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=True)]
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
            foreign_pre_chain=before,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *before,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> BoundLogger:
    """A logger whose lines carry `name`; facts go in as keywords, never into the event text."""
    logger: BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def clean(text: str, limit: int = 200) -> str:
    """A peer's text made fit for a log or a terminal: printable, one line, at most `limit` characters."""
    # Cut before and after: escaping a hostile megabyte would cost as much as reading it.
    shown = text[: limit + 1]
    escaped = "".join(
        mark if mark.isprintable() else mark.encode("unicode_escape").decode("ascii") for mark in shown
    )
    return escaped if len(escaped) <= limit else escaped[: limit - len(ELLIPSIS)] + ELLIPSIS
