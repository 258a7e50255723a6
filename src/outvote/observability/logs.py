"""The logs of server and edge on standard error: one line per event, as text or JSON.

No line contains data of a request: no body, header, address, user, reward or ticket. Decisions and rewards are not
logged: the time of a line would reveal the time of an event. Of a library's message, only its fixed words are kept.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from outvote.observability.once_per_minute import OncePerMinute

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")

Fields: TypeAlias = Mapping[str, Any]

_OWN: Final = "outvote_event"
"""The attribute of our own log records: name and fields of the event."""
_COUNT: Final = "outvote_count"
"""The attribute of a library's log record: how often it happened since it was last logged."""
_WORDS: Final = re.compile(r"[A-Za-z ,.:_-]*")
_PLAIN: Final = re.compile(r"[^\s\"=\\]+")


def event(logger: logging.Logger, level: int, name: str, /, **fields: object) -> None:
    """Log an event: a short name, stable across versions, and its fields."""
    if logger.isEnabledFor(level):
        logger.log(level, in_words(name, fields), extra={_OWN: (name, fields)}, stacklevel=2)


@contextmanager
def written(form: str, level: str) -> Iterator[None]:
    """Write all logs to standard error within this context."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(form))
    handler.addFilter(OfLibraries())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def line(form: str, at: float, level: str, name: str, fields: Fields) -> str:
    """Return one line without its newline; `at` is in seconds since 1970."""
    moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if form == "json":
        return json.dumps({"time": moment, "level": level, "event": name, **fields}, ensure_ascii=False)
    return f"{moment} {level:<7} {in_words(name, fields)}"


def last_words(level: str, name: str, text: str) -> None:
    """Write a line of JSON after the log was closed."""
    print(line("json", time.time(), level, name, {"text": text}), file=sys.stderr)


def in_words(name: str, fields: Fields) -> str:
    return " ".join([name, *(f"{key}={_value(value)}" for key, value in fields.items())])


def place_of(error: BaseException) -> str:
    """Where an error was raised, without its message, which may contain data of a request."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if not isinstance(value, str) or _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


class OfLibraries(logging.Filter):
    """Passes all our own records, and of libraries only warnings and errors, each at most once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._often = OncePerMinute[tuple[str, str]]()

    def filter(self, record: logging.LogRecord) -> bool:
        if hasattr(record, _OWN):
            return True
        if record.levelno < logging.WARNING:
            return False
        kind = record.name, _words(record)
        if not self._often.has_room_for(kind):
            kind = record.name, ""
        count = self._often.note(kind, record.created)
        setattr(record, _COUNT, count)
        return count > 0


class Lines(logging.Formatter):
    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        name, fields = getattr(record, _OWN, None) or ("library", _of_library(record))
        return line(self._form, record.created, record.levelname.lower(), name, fields)


def _words(record: logging.LogRecord) -> str:
    """The message up to the first value that was filled in, which may be an address."""
    words = _WORDS.match(record.msg if isinstance(record.msg, str) else type(record.msg).__qualname__)
    return words[0].strip() if words else ""


def _of_library(record: logging.LogRecord) -> Fields:
    """Fields of a library's record: its fixed words, and the type and place of an error."""
    fields: dict[str, Any] = {"logger": record.name, "says": _words(record), "count": getattr(record, _COUNT)}
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        fields |= {"error": type(error).__qualname__, "place": place_of(error)}
    return fields
