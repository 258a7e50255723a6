"""Structured logs of server and edge on standard error: one line for each thing that happened, as text or as JSON.

No line holds anything of a request: no body, header, address, user, reward or ticket. None is written for a decision or
a reward either: its time would be the time of an event. Of what libraries say, only words of their own are kept.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import structlog
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from outvote.network.once_per_minute import OncePerMinute

_COUNT: Final = "outvote_count"
"""The attribute of a library's record: how often it happened since it was last told."""
_WORDS: Final = re.compile(r"[A-Za-z ,.:_-]*")


def get_logger(name: str) -> BoundLogger:
    """Return the logger of a module: `_log.info("task_joined", task="shop")`.

    An event has a short name, which stays the same in all versions, and fields. It goes to the standard library's
    logger of this name, so nothing is written until `written` or an application says where.
    """
    logger: BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=BoundLogger,
        cache_logger_on_first_use=True,
    )
    return logger


@contextmanager
def written(form: str, level: str) -> Iterator[None]:
    """Write everything that is logged meanwhile to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form))
    handler.addFilter(LibraryFilter())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def formatter(form: str) -> ProcessorFormatter:
    """Render lines as `json`, or as `text` for people: key=value, which logfmt parsers read too."""
    if form == "json":
        renderer: Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    else:
        renderer = structlog.processors.LogfmtRenderer()
    return ProcessorFormatter(
        foreign_pre_chain=[redact],
        processors=[
            ProcessorFormatter.remove_processors_meta,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            in_order,
            renderer,
        ],
        use_get_message=False,  # what a library fills in may be of a request
    )


def redact(_logger: WrappedLogger, _level: str, event: EventDict) -> EventDict:
    """Keep of what a library says its own words, up to the first thing filled in; of an error its type and place."""
    record: logging.LogRecord = event["_record"]
    kept: dict[str, Any] = {"event": "library", "logger": record.name, "says": _words(record)}
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        kept |= {"error": type(error).__qualname__, "place": place_of(error)}
    kept["count"] = getattr(record, _COUNT, 1)
    return kept | {"_record": record, "_from_structlog": False}


def in_order(_logger: WrappedLogger, _level: str, event: EventDict) -> EventDict:
    first = {key: event.pop(key) for key in ("time", "level", "event")}
    return {**first, **event}


def place_of(error: BaseException) -> str:
    """Return where it was raised. Its message may hold anything, and is not told."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames)


class LibraryFilter(logging.Filter):
    """Lets through all that is ours. Of libraries it lets through warnings and errors, each at most once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._often = OncePerMinute[tuple[str, str]]()

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, dict):  # structlog hands events over like this
            return True
        if record.levelno < logging.WARNING:
            return False
        kind = record.name, _words(record)
        if not self._often.has_room_for(kind):
            kind = record.name, ""
        count = self._often.note(kind, record.created)
        setattr(record, _COUNT, count)
        return count > 0


def _words(record: logging.LogRecord) -> str:
    """Return what it says up to the first thing that was filled in, which may be an address."""
    said = _WORDS.match(record.msg if isinstance(record.msg, str) else type(record.msg).__qualname__)
    return said[0].strip() if said else ""
