"""Everything that Outvote stores, sends and logs, field by field: what it is, and why it tells nothing of one user.

One rule: these schemas are closed. A field that is not here is a finding, in the tests and in `outvote audit`; and
docs/privacy.md has its tables from here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, get_args

import msgspec

from outvote.core.task import MAX_COUNT
from outvote.log.site_report import Notice
from outvote.presenters import task_fields

_COUNT: Final = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
_NAME: Final = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,80}\Z")]
_HEX: Final = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8,64}\Z")]
_WORDS: Final = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f]{1,64}\Z")]
KINDS: Final[Mapping[str, tuple[str, Any]]] = {
    "arm": ("the number of an arm, from 0", _COUNT),
    "count": ("a whole number, up to 2⁵³", _COUNT),
    "number": ("a number", float),
    "sum": ("a sum of rewards, from 0 up to the count of them", Annotated[float, msgspec.Meta(ge=0, le=MAX_COUNT)]),
    "share": ("a number from 0 to 1", Annotated[float, msgspec.Meta(ge=0, le=1)]),
    "flag": ("true or false", bool),
    "name": ("1 to 64 letters, digits, `_` or `-`", _NAME),
    "words": ("1 to 64 printable characters", _WORDS),
    "id": ("a name, and random digits", _NAME),
    "random": ("random hex digits", _HEX),
    "checksum": ("hex digits, made of the rest", _HEX),
    "choice": ("one of a fixed list of words", Any),
    "bytes": ("coded bits: see the message", Any),
    "json": ("JSON, of the fields told elsewhere here", Any),
    "text": ("words of the program's own", Any),
    "time": ("a time, in UTC", Any),
}
"""Of each kind what it can hold: for people, and as the type that values are checked with."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: where it stands, its kind, what it is, and why it can hold nothing of one user."""

    path: str
    kind: str
    what: str
    why: str
    optional: bool = False
    """It may be null, or missing."""


@dataclass(frozen=True)
class Schema:
    """All fields of one thing."""

    title: str
    fields: tuple[Field, ...]

    @functools.cached_property
    def by_path(self) -> dict[str, Field]:
        return {each.path: each for each in self.fields}


ROWS: Final[Mapping[str, Sequence[str]]] = {
    "groups[]": ("run", "number", "due", "counts"),
    "counts[]": ("arm", "left", "decided", "total"),
}
"""Lists whose places have names: by the end of their path."""

_SET_UP = "set by who set the fleet up, before any event"
_COUNTED = "a running count: it tells no event from another, and has no time in it"
_FROM_ALL = "the fleet's decision, made from all sites"


_GROUP: Final = (
    Field("run", "id", "random name of the process that opened the group", "drawn when it started"),
    Field("number", "count", "number of the group", "a group's, shared by all its decisions"),
    Field(
        "due",
        "count",
        "when it is counted, in milliseconds since 1970; none while it is open",
        "a window and a random delay after its last decision; gone when it is counted",
        optional=True,
    ),
    Field("counts[].arm", "arm", "an arm of the group", "the group has it, not one decision"),
    Field("counts[].left", "count", "decisions still to come", _COUNTED),
    Field("counts[].decided", "count", "decisions", _COUNTED),
    Field("counts[].total", "sum", "their rewards", "a sum; see “Exact sums” above"),
)
_SEEN: Final = {
    "decisions": "decisions that count, by arm",
    "rewards": "decisions with a reward, by arm",
    "successes": "decisions with a reward above 0, by arm",
    "late": "rewards after their window, by arm",
    "refused": "rewards for unknown decisions, by arm",
    "out": "rewards of arms that were out, by arm",
}
_SEALED: Final = (
    Field("kind", "choice", "`player`", "always the same"),
    Field("version", "count", "of the format", "the program's"),
    Field("task", "checksum", "fingerprint of the task", "made of the task alone"),
    Field("player", "name", "the edge's name", _SET_UP),
    Field("remaining[]", "arm", "arms that are not out", _FROM_ALL),
)
_DECISIONS: Final = (
    *(replace(field, path=f"decisions.groups[].{field.path}") for field in _GROUP),
    Field("decisions.next_number", "count", "number of the next group", "how many groups there were"),
    Field("decisions.uncounted", "count", "decisions not counted for lack of memory", _COUNTED),
    *(Field(f"decisions.seen.{name}[]", "count", what, _COUNTED) for name, what in _SEEN.items()),
    Field("checksum", "checksum", "over all of the above", "made of the rest"),
)

VOTES_STATE: Final = Schema(
    "State of a player of `dme` or `edme`",
    (
        *_SEALED,
        Field("last_arm", "arm", "the arm of the last decision", "arms take turns, whoever comes"),
        Field("pulls[]", "count", "decisions counted so far, by arm", _COUNTED),
        Field("totals[]", "sum", "their rewards, by arm", "a sum; see “Exact sums” above"),
        Field("epochs[].epoch", "count", "which epoch an instance is in", "how often enough events had come"),
        Field("epochs[].candidates[]", "arm", "arms not voted against", "a judgement of means over an epoch"),
        Field("epochs[].pulls_before[]", "count", "events before this epoch, by arm", _COUNTED),
        Field("epochs[].totals_before[]", "sum", "their rewards", "a sum; see “Exact sums” above"),
        Field("epochs[].tied", "flag", "the last epoch told no arms apart", "a judgement of means over an epoch"),
        Field("next_sequence", "count", "number of the next vote", "how many votes there were"),
        *_DECISIONS,
    ),
)
TALLY_STATE: Final = Schema(
    "State of a player of `tally`",
    (
        *_SEALED,
        Field("place", "count", "place in the cycle of arms", "how many groups there were"),
        Field("opened", "count", "tallies opened", "how many groups there were"),
        *_DECISIONS,
    ),
)
SAVED: Final = Schema(
    "What the store keeps of a task (`snapshots.body`)",
    (
        Field("player", "json", "the player's state, as above", "see there"),
        Field("eliminations", "count", "eliminations heard of", _FROM_ALL),
        Field("announced[]", "arm", "arms that are not out", _FROM_ALL),
        Field("stopped", "flag", "the task was stopped", "an operator's decision"),
        Field("killed", "flag", "its kill switch is on", "an operator's decision"),
        Field("switches", "count", "uses of that switch", "an operator's decision"),
    ),
)
STORE: Final = Schema(
    "Store of an edge: tables and columns",
    (
        Field("meta.key", "choice", "`incarnation`, `file`, `saves`, `clean` or `digest`", "a fixed list"),
        Field(
            "meta.value",
            "text",
            "random name of the store; device and inode of its file; number of durable writes; whether the "
            "last process ended in order; sum over all rows",
            "of the file, not of what users do; the number of writes counts ticks that had messages",
        ),
        Field("tasks.task_id", "id", "the task", _SET_UP),
        Field("tasks.record", "json", "the task as it was created", _SET_UP),
        Field("snapshots.task_id", "id", "the task", _SET_UP),
        Field("snapshots.body", "json", "what is kept of it: above", "see there"),
        Field("messages.task_id", "id", "the task", _SET_UP),
        Field("messages.sequence", "count", "the message's number", "how many groups there were"),
        Field("messages.payload", "bytes", "the message, as it is sent", "see the upward message"),
    ),
)
LOCK: Final = Schema(
    "Lock file beside the store",
    (
        Field("pid", "count", "process that holds the store", "the system's"),
        Field("incarnation", "random", "random name of the store", "drawn when the file was made"),
        Field("saves", "count", "number of durable writes", "counts ticks that had messages"),
    ),
)
UPWARD: Final = Schema(
    "Upward message: all that an edge says of what it learnt",
    (
        Field("subject.edge", "name", "who sends", _SET_UP),
        Field("subject.task_id", "id", "of which task", _SET_UP),
        Field("subject.incarnation", "random", "random name of the store", "drawn when the file was made"),
        Field("subject.sequence", "count", "the message's number", "how many groups there were"),
        Field("header.Nats-Expected-Stream", "choice", "`OUTVOTE`", "always the same"),
        Field("reply", "random", "where the engine answers", "a random start and a running number"),
        Field("payload.instance", "count", "of `edme`: which instance", "a judgement of means over an epoch"),
        Field("payload.arm", "arm", "of votes: which arm to drop", "a judgement of means over an epoch"),
        Field("payload.successes", "count", "of `tally`: successes of the group, noisy with a budget", _COUNTED),
        Field("payload.trials", "count", "of `tally`: the group's size, told by its length", "at least the floor"),
        Field("payload.end", "bytes", "a one and zeros up to a whole byte", "always the same for that length"),
    ),
)
QUESTION: Final = Schema(
    "Upward question: what did I miss?",
    (
        Field("incarnation", "random", "random name of the store", "drawn when the file was made"),
        Field("tasks.*", "count", "eliminations known, by task id", _FROM_ALL),
        Field(
            "reports.*.decisions",
            "count",
            "decisions so far, by task id, rounded down to a power of ten; nothing below 100",
            "a magnitude: it changes once in ten times as many events",
            optional=True,
        ),
        Field(
            "reports.*.notices[]",
            "choice",
            "warnings: `no_rewards`, `only_successes`, `late_rewards`, `refused_rewards`, `no_memory`",
            "of 100 events or more, as a share or as all of them",
            optional=True,
        ),
    ),
)
CONNECT: Final = Schema(
    "What an edge says when it connects",
    (
        Field("name", "name", "the edge's name", _SET_UP),
        Field("lang", "choice", "`python3`", "always the same"),
        Field("version", "text", "of the library", "the program's"),
        Field("protocol", "count", "of NATS", "the program's"),
        *(
            Field(name, "flag", "an option of NATS", "always the same")
            for name in ("verbose", "pedantic", "echo", "headers", "no_responders")
        ),
        Field("tls_required", "flag", "with TLS: an option of NATS", "always the same", optional=True),
        Field("jwt", "text", "with credentials: the edge's", _SET_UP, optional=True),
        Field("sig", "text", "with credentials: over the engine's random number", "made of both", optional=True),
    ),
)
TASK_RECORD: Final = Schema(
    "Downward: a task (`….task`), as its operator made it",
    (
        *(
            Field(field.core + end, kind, field.help, _SET_UP, optional=True)
            for field in task_fields.FIELDS
            for end, kind in field.kind.stored.items()
        ),
        Field("rules", "count", "version", _SET_UP),
    ),
)
DOWNWARD: Final = Schema(
    "Downward: the other records",
    (
        Field("elim.payload", "bytes", "coded: which arms are out", _FROM_ALL),
        Field("expect.traffic", "number", "events a day that operators expect", "said by operators", optional=True),
        Field("expect.baseline", "share", "mean reward that they expect", "said by operators", optional=True),
        Field("expect.difference", "share", "difference that they expect", "said by operators", optional=True),
        Field("kill", "flag", "kill switch", "said by operators"),
        Field("discount.edge", "name", "the edge that counts no more", "said by operators"),
        Field("stop", "json", "`{}`", "always the same"),
        Field("delete", "json", "`{}`", "always the same"),
    ),
)
ANSWER: Final = Schema(
    "Downward: the answer to a question",
    (
        Field("read", "count", "records that the server has read", "of the whole fleet"),
        Field("more", "flag", "ask again", "the size of the answer", optional=True),
        Field("deleted[]", "id", "tasks deleted", "said by operators", optional=True),
        Field("others[]", "id", "tasks that are for other sites", "said by operators", optional=True),
        Field("tasks.*.stopped", "flag", "stopped", "said by operators"),
        Field("tasks.*.highest", "number", "highest number of this edge's own messages", "its own, back"),
        Field("tasks.*.count", "count", "how many of them the log has", "its own, back"),
        Field("tasks.*.killed", "flag", "kill switch", "said by operators", optional=True),
        Field("tasks.*.switches", "count", "uses of it", "said by operators", optional=True),
        Field("tasks.*.record", "json", "a task that is new to the edge", "said by operators", optional=True),
        Field("tasks.*.eliminations[]", "bytes", "coded: which arms are out, in base64", _FROM_ALL, optional=True),
        Field("ask_again", "number", "seconds until the next question", "how large the fleet is", optional=True),
    ),
)

LOG_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "time": ("time", "when the line was written: of a tick, a start or a record, never of one decision or reward"),
    "level": ("choice", "debug, info, warning or error"),
    "event": ("choice", "what happened: one of the names below"),
    "version": ("text", "of the program"),
    "python": ("text", "version of Python"),
    "site": ("name", "a site's name"),
    "sites": ("name", "names of sites, or how many there are"),
    "api": ("text", "address at which it listens"),
    "engine": ("text", "address of the engine"),
    "tasks": ("count", "how many tasks there are"),
    "task": ("name", "a task's name"),
    "id": ("id", "a task's id"),
    "now": ("id", "the id of the task that takes its place"),
    "protocol": ("choice", "dme, edme or tally"),
    "variants": ("words", "variants of a new task, or those that are out"),
    "number": ("count", "number of the elimination"),
    "remaining": ("count", "variants left"),
    "winner": ("words", "the variant that is left"),
    "count": ("count", "how many, of whatever the line is about; how often it happened since it was last told"),
    "messages": ("count", "messages that count no more"),
    "records": ("count", "records in the log"),
    "replicas": ("count", "of the log"),
    "reason": ("choice", "why requests were refused: words of our own"),
    "tokens": ("count", "how many tokens are known"),
    "file": ("text", "name of a file of the installation"),
    "first_message": ("text", "when the first message can come: words of our own"),
    "rewards": ("count", "how many of the decisions have a reward"),
    "do": ("text", "advice: words of our own"),
    "error": ("text", "type of an error, or the words of one that no request caused"),
    "place": ("text", "lines of the program where an error was raised"),
    "logger": ("text", "which library speaks"),
    "says": ("text", "its own words, up to the first thing filled in"),
    "text": ("text", "last words of a command: why it ended"),
    "nats": ("text", "version of the engine"),
}
LOG_EVENTS: Final = frozenset(
    (
        "started",
        "stopped",
        "failed",
        "interrupted",
        "engine_connected",
        "engine_disconnected",
        "engine_reconnected",
        "engine_unreachable",
        "engine_forbids",
        "false_news",
        "credential_refused",
        "credential_renewed",
        "credential_not_renewed",
        "certificate_renewed",
        "certificate_not_loaded",
        "tokens_read",
        "tokens_not_read",
        "requests_refused",
        "requests_unfinished",
        "connections_turned_away",
        "library",
        "log_read",
        "log_not_replicated",
        "engine_certificate_renewed",
        "task_created",
        "task_stopped",
        "task_deleted",
        "task_held",
        "task_released",
        "task_killed",
        "task_revived",
        "variants_eliminated",
        "winner_found",
        "site_discounted",
        "site_with_several_lives",
        "records_refused",
        "sites_first_heard",
        "sites_silent",
        "sites_back",
        "task_joined",
        "task_left",
        "task_in_no_log",
        "task_not_readable",
        "catch_up_failed",
        "catch_up_works",
        "answer_not_understood",
        "request_failed",
        "messages_stored",
        "decisions_made",
        *get_args(Notice),
    )
)

SCHEMAS: Final = (
    VOTES_STATE,
    TALLY_STATE,
    SAVED,
    STORE,
    LOCK,
    UPWARD,
    QUESTION,
    CONNECT,
    TASK_RECORD,
    DOWNWARD,
    ANSWER,
)


# ---- a thing against its schema


def leaves(value: object, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value in a JSON value, with its path."""
    names = next((names for end, names in ROWS.items() if at == end or at.endswith("." + end)), None)
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(each, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list | tuple):
        for place, each in enumerate(value):
            if names is None:
                yield from leaves(each, f"{at}[]")
            else:
                yield from leaves(each, f"{at}.{names[place] if place < len(names) else place}")
    else:
        yield at, value


def unexplained(schema: Schema, record: object) -> list[str]:
    """What in a thing its schema does not explain: fields that it does not have, and values of another kind."""
    found = []
    for path, value in leaves(record):
        field = schema.by_path.get(path) or schema.by_path.get(_unnamed(path))
        if field is None:
            found.append(f"{path} is no field of: {schema.title}")
        elif not (value is None and field.optional):
            words, kind = KINDS[field.kind]
            try:
                msgspec.convert(value, kind)
            except msgspec.ValidationError:
                found.append(f"{path} must be {words}, got {str(value)[:60]!r}")
    return found


def unexplained_line(line: Mapping[str, Any]) -> list[str]:
    """The same for a line of the log."""
    found = [f"{name} is no field of the log" for name in line if name not in LOG_FIELDS]
    if line.get("event") not in LOG_EVENTS:
        found.append(f"{str(line.get('event'))[:60]!r} is no event of the log")
    return found


def seen(records: Iterable[object]) -> set[str]:
    """The paths that occur, ids of tasks left out."""
    return {_unnamed(path) for path in {path for record in records for path, _ in leaves(record)}}


def _unnamed(path: str) -> str:
    """Without the id of a task."""
    return re.sub(r"^(tasks|reports)\.[^.]+", r"\1.*", path)
