"""The records of the log: their subjects and contents. Pure: no sockets.

| record | subject | content |
|---|---|---|
| a task is created, stopped, deleted | `outvote.down.<task-id>.task`, `.stop`, `.delete` | JSON |
| an edge's message | `outvote.up.<edge>.<task-id>.<incarnation>.<sequence>` | the coded message |
| the n-th elimination | `outvote.down.<task-id>.elim.<n>` | the coded elimination |
| the n-th expectation that operators state for a task | `outvote.down.<task-id>.expect.<n>` | JSON |
| the n-th use of a task's kill switch | `outvote.down.<task-id>.kill.<n>` | JSON: true or false |
| the n-th discount of an edge in a task | `outvote.down.<task-id>.discount.<n>` | JSON: its name |

A subject holds one record for ever: the first one stored wins, and a repetition is refused. So every record is safe
to send again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from outvote.core.codes import pack, unpack
from outvote.core.errors import InvalidConfiguration, InvalidTask, MalformedMessage, one_of
from outvote.core.messages import Elimination, UpMessage
from outvote.core.registry import networked
from outvote.core.task import LONGEST_WINDOW, NAME, Task

TOKEN = r"[A-Za-z0-9_-]{1,80}"
"""Pattern of names and ids; other characters could be wildcards to the engine."""
_NUMBER = "0|[1-9][0-9]{0,15}"
"""No leading zeros, so that a record has one subject only."""
_UP = re.compile(rf"outvote\.up\.({TOKEN})\.({TOKEN})\.({TOKEN})\.({_NUMBER})")
_DOWN = re.compile(
    rf"outvote\.(?:down|live)\.({TOKEN})\.(?:(task|stop|delete)|(elim|expect|kill|discount)\.({_NUMBER}))"
)

SHORTEST_WINDOW = 1.0
"""The shortest reward window of a task on the network, in seconds."""

UP, DOWN, LIVE, SYNC = "outvote.up", "outvote.down", "outvote.live", "outvote.sync"


class UpSubject(NamedTuple):
    """Subject of an edge's message. `incarnation` identifies the store that the edge sends from."""

    edge: str
    task_id: str
    incarnation: str
    sequence: int

    def __str__(self) -> str:
        return f"{UP}.{self.edge}.{self.task_id}.{self.incarnation}.{self.sequence}"


@dataclass(frozen=True, slots=True)
class DownSubject:
    """Subject of a record for all edges. Kinds: task, stop, delete; with a number: elim, expect, kill, discount."""

    task_id: str
    kind: str
    number: int | None = None

    def __str__(self) -> str:
        return f"{DOWN}.{self.task_id}.{self.kind}" + ("" if self.number is None else f".{self.number}")


def parse(subject: str) -> UpSubject | DownSubject:
    """Parse a subject of the log (`outvote.up.…`, `outvote.down.…`) or of live news (`outvote.live.…`)."""
    if (up := _UP.fullmatch(subject)) is not None:  # the most frequent kind
        return UpSubject(up[1], up[2], up[3], int(up[4]))
    if (down := _DOWN.fullmatch(subject)) is not None:
        return DownSubject(down[1], down[2] or down[3], int(down[4]) if down[4] else None)
    raise MalformedMessage(f"no subject of this network: {subject[:200]!r}")


def check_name(what: str, name: object) -> str:
    """Return a name that is valid in a subject; raise `InvalidConfiguration` otherwise."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidConfiguration(f"{what} must be 1 to 64 letters, digits, '_' or '-', got {name!r}")
    return name


def task_record(task: Task) -> bytes:
    return json.dumps(task.to_json(), sort_keys=True, ensure_ascii=False).encode()


def read_task(payload: bytes | Mapping[str, Any]) -> Task:
    """Parse a task's record, as the log has it or as an answer of catch-up does. Raises `OutvoteError`."""
    record: Any = payload
    if isinstance(payload, bytes):
        try:
            record = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise MalformedMessage(f"a task must be JSON: {error}") from None
    task = Task.from_json(record)
    check_protocol(task)
    check_window(task.reward_window)
    return task


def check_protocol(task: Task) -> None:
    """Raise `InvalidTask` for a protocol that can only be simulated."""
    if not task.entry.on_network:
        problem = f"must be one of {one_of(networked())}, got {task.protocol!r}, which can only be simulated"
        raise InvalidTask(problem, field="protocol", code="choice")


def check_window(seconds: object) -> None:
    """Raise `InvalidTask` for a reward window that no task on the network can have."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not SHORTEST_WINDOW <= seconds <= LONGEST_WINDOW:  # type: ignore[operator]
        raise InvalidTask(
            f"must be from 1 second to 7 days (1 to {LONGEST_WINDOW:.0f}, in seconds), got {repr(seconds)[:40]}",
            field="reward_window",
            code="range" if number else "type",
        )


def switch_record(killed: bool) -> bytes:
    return json.dumps(killed).encode()


def read_switch(payload: bytes) -> bool:
    if payload not in (b"true", b"false"):
        raise MalformedMessage(f"a kill switch is true or false, got {payload[:20]!r}")
    return payload == b"true"


def discount_record(edge: str) -> bytes:
    return json.dumps({"edge": check_name("an edge's name", edge)}).encode()


def read_discount(payload: bytes) -> str:
    """Read the name of the edge whose messages before this record no longer count."""
    try:
        record: Any = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise MalformedMessage(f'a discount must be JSON, like {{"edge": "paris"}}: {error}') from None
    if not isinstance(record, dict) or set(record) != {"edge"}:
        raise MalformedMessage(f'a discount is like {{"edge": "paris"}}, got {payload[:80]!r}')
    return check_name("an edge's name", record["edge"])


class Coder:
    """Encodes and decodes the messages of one task."""

    def __init__(self, task: Task) -> None:
        self._codebook = task.entry.codebook(task)

    def up(self, message: UpMessage) -> bytes:
        return pack(self._codebook.encode(message))

    def read_up(self, subject: UpSubject, payload: bytes) -> UpMessage:
        return self._codebook.decode_up(unpack(payload), player=subject.edge, sequence=subject.sequence)

    def down(self, announced: Sequence[int], message: Elimination) -> bytes:
        """Encode an elimination. `announced` are the arms before it."""
        return pack(self._codebook.encode_down(announced, message))

    def read_down(self, announced: Sequence[int], payload: bytes) -> Elimination:
        return self._codebook.decode_down(announced, unpack(payload))
