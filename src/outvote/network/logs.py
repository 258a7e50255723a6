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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")

Fields: TypeAlias = Mapping[str, Any]

PAUSE: Final = 60.0
"""Seconds between two lines of a kind that requesters can cause."""
OFTEN: Final = frozenset({"request_failed"})
"""Events of that kind; the warnings of libraries are too."""
MOST_KINDS: Final = 100

_OWN: Final = "outvote_event"
"""The attribute of a record that was made here: its name and its fields."""
_TIMES: Final = "outvote_times"
"""How often it happened since it was last told."""
_WORDS: Final = re.compile(r"[A-Za-z ,.:_-]*")
_PLAIN: Final = re.compile(r"[^\s\"=\\]+")


def event(logger: logging.Logger, level: int, name: str, /, **fields: object) -> None:
    """Something happened: a short name that stays the same in all versions, and what belongs to it."""
    if logger.isEnabledFor(level):
        logger.log(level, in_words(name, fields), extra={_OWN: (name, fields)}, stacklevel=2)


class Tallied:
    """An event that requesters can cause as often as they like: told at once, then once a minute at most, with how
    often it was. Reasons are words of our own."""

    def __init__(
        self, logger: logging.Logger, level: int, name: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger = logger
        self._level = level
        self._name = name
        self._clock = clock
        self._told: dict[str, float] = {}
        self._waiting: Counter[str] = Counter()

    def note(self, reason: str = "", *, count: int = 1) -> None:
        self._waiting[reason] += count
        self.tell()

    def tell(self) -> None:
        """What waits, of that whose minute is over."""
        if not self._waiting:
            return
        now = self._clock()
        for reason, count in list(self._waiting.items()):
            if now - self._told.get(reason, now - PAUSE) >= PAUSE:
                self._told[reason] = now
                del self._waiting[reason]
                event(self._logger, self._level, self._name, **({"reason": reason} if reason else {}), count=count)


@contextmanager
def written(form: str, level: str) -> Iterator[None]:
    """Everything that is logged meanwhile goes to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(form))
    handler.addFilter(Seldom())
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


class Seldom(logging.Filter):
    """Lets through all that is ours; of libraries what they warn of. What a requester can cause as often as they like
    is told once a minute, with a count: nobody outside can fill a disk."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[tuple[str, str], tuple[float, int]] = {}
        """When each was told last, and how often it was left out since."""

    def filter(self, record: logging.LogRecord) -> bool:
        name, _ = getattr(record, _OWN, ("", None))
        if name and name not in OFTEN:
            return True
        if record.levelno < logging.WARNING:
            return False
        key = record.name, name or _words(record)
        last, left_out = self._told.get(key, (-PAUSE, 0))
        if record.created - last < PAUSE:
            self._told[key] = last, left_out + 1
            return False
        if len(self._told) >= MOST_KINDS:
            self._told.clear()
        self._told[key] = record.created, 0
        setattr(record, _TIMES, left_out + 1)
        return True


class Lines(logging.Formatter):
    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        name, fields = getattr(record, _OWN, None) or ("library", _of_library(record))
        times = getattr(record, _TIMES, 1)
        if times > 1:
            fields = {**fields, "times": times}
        return line(self._form, record.created, record.levelname.lower(), name, fields)


def _words(record: logging.LogRecord) -> str:
    """Up to the first thing that was filled in, which may be an address."""
    said = _WORDS.match(record.msg if isinstance(record.msg, str) else type(record.msg).__qualname__)
    return said[0].strip() if said else ""


def _of_library(record: logging.LogRecord) -> Fields:
    """Its words; of an error its type and its place."""
    fields: dict[str, Any] = {"logger": record.name, "says": _words(record)}
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        fields |= {"error": type(error).__qualname__, "place": place_of(error)}
    return fields
