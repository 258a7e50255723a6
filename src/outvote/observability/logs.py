"""What server and edge write to standard error: one line for each thing that happened, for people or for programs.

No line holds anything of a request: no body, header, address, user, reward or ticket. None is written for a decision or
a reward either: its time would be the time of an event. Of what libraries say, only words of their own are kept.
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
"""The attribute of a record that was made here: its name and its fields."""
_COUNT: Final = "outvote_count"
"""The attribute of a library's record: how often it happened since it was last told."""
_WORDS: Final = re.compile(r"[A-Za-z ,.:_-]*")
_PLAIN: Final = re.compile(r"[^\s\"=\\]+")


def event(logger: logging.Logger, level: int, name: str, /, **fields: object) -> None:
    """Something happened: a short name that stays the same in all versions, and what belongs to it."""
    if logger.isEnabledFor(level):
        logger.log(level, in_words(name, fields), extra={_OWN: (name, fields)}, stacklevel=2)


@contextmanager
def written(form: str, level: str) -> Iterator[None]:
    """Everything that is logged meanwhile goes to standard error."""
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
    """One line, without its end; `at` is in seconds since 1970."""
    moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if form == "json":
        return json.dumps({"time": moment, "level": level, "event": name, **fields}, ensure_ascii=False)
    return f"{moment} {level:<7} {in_words(name, fields)}"


def last_words(level: str, name: str, text: str) -> None:
    """A line of JSON by a command whose log is closed already."""
    print(line("json", time.time(), level, name, {"text": text}), file=sys.stderr)


def in_words(name: str, fields: Fields) -> str:
    return " ".join([name, *(f"{key}={_value(value)}" for key, value in fields.items())])


def place_of(error: BaseException) -> str:
    """Where it was raised; its message may hold anything, and is not told."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if not isinstance(value, str) or _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


class OfLibraries(logging.Filter):
    """Lets through all that is ours. Of libraries it lets through warnings and errors, each at most once a minute."""

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
    """Up to the first thing that was filled in, which may be an address."""
    said = _WORDS.match(record.msg if isinstance(record.msg, str) else type(record.msg).__qualname__)
    return said[0].strip() if said else ""


def _of_library(record: logging.LogRecord) -> Fields:
    """Its words; of an error its type and its place."""
    fields: dict[str, Any] = {"logger": record.name, "says": _words(record), "count": getattr(record, _COUNT)}
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        fields |= {"error": type(error).__qualname__, "place": place_of(error)}
    return fields
