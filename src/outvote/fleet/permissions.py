"""Who may do what at the engine: the one place that says so. What is not listed here is refused.

An edge sends only under its own name and hears only what all may hear and what is answered to it; a server takes part
in the log and cannot take anything out of it.

Edges are in an account of their own, apart from the log's. In one account an edge could name a record as the subject to
which its own message is to be answered, and the engine's acknowledgement would be stored there: as a record that stops
a task, for one. Between accounts the engine puts a subject of its own in the place of that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from outvote.core.errors import InvalidConfiguration
from outvote.engine.nats_log import STREAM
from outvote.log.records import DOWN, LIVE, SYNC, UP, check_name

INBOX: Final = "_INBOX"
"""Where answers come: each has its own below it."""
ANSWER: Final = "_R_"
"""Where answers to another account go: what the engine puts in the place of an edge's inbox."""
SERVER, SYSTEM = "server", "system"
"""Names under which servers and the operator's machine connect."""
CLAIMS_UPDATE: Final = "$SYS.REQ.CLAIMS.UPDATE"
"""Where engines hear what an account says now; each of a cluster answers."""
EDGE_PAYLOAD: Final = 256 * 1024
"""Bytes of the largest message of an edge. Records have at most 64 KiB; its question what it has missed lists the tasks
that it knows, at most 90 bytes each: so many are enough for 2,900 tasks with the longest names."""
EDGE_SUBSCRIPTIONS: Final = 8
"""An edge needs two, one for live news and one for answers; more are for the moment of a reconnection."""
_RESERVED: Final = re.compile(r"server|system|operator|engine(-[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Permissions:
    """What a user may do; -1 stands for no limit."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    payload: int = -1
    subscriptions: int = -1


@dataclass(frozen=True)
class Shared:
    """What the log's account offers to that of the edges: a service takes messages and answers, a stream gives them."""

    name: str
    subject: str
    kind: Literal["service", "stream"]


SHARED: Final = (
    Shared("up", f"{UP}.*.>", "service"),
    Shared("sync", f"{SYNC}.*", "service"),
    Shared("live", f"{LIVE}.>", "stream"),
)


def check_edge_name(name: object) -> str:
    """What an edge may be called: nothing that has a meaning in a subject, and none of the fleet's own names."""
    checked = check_name("an edge's name", name)
    if _RESERVED.fullmatch(checked):
        raise InvalidConfiguration(
            f"cannot be called {checked!r}: server, system, operator and engine are names of the fleet itself, and "
            "answers to them would reach the edge",
            field="edge",
        )
    return checked


def edge_permissions(name: str) -> Permissions:
    check_edge_name(name)
    return Permissions(
        publish=(f"{UP}.{name}.>", f"{SYNC}.{name}"),
        subscribe=(f"{LIVE}.>", f"{INBOX}.{name}.>"),
        payload=EDGE_PAYLOAD,
        subscriptions=EDGE_SUBSCRIPTIONS,
    )


def server_permissions() -> Permissions:
    """What goes down, answers to edges, and of JetStream what reading the log needs: the stream is created if it is not
    there. No other call of JetStream: no update, no purge, no deletion, no backup and no other stream. Nor can it send
    as an edge."""
    api = "$JS.API"
    return Permissions(
        publish=(
            f"{DOWN}.>",
            f"{ANSWER}.>",
            f"{api}.STREAM.CREATE.{STREAM}",
            f"{api}.STREAM.INFO.{STREAM}",
            f"{api}.STREAM.MSG.GET.{STREAM}",
            f"{api}.CONSUMER.CREATE.{STREAM}",
            f"{api}.CONSUMER.CREATE.{STREAM}.>",
            f"{api}.CONSUMER.INFO.{STREAM}.*",
            f"$JS.FC.{STREAM}.>",
        ),
        subscribe=(f"{SYNC}.*", f"{LIVE}.>", f"{INBOX}.{SERVER}.>"),
    )


def system_permissions() -> Permissions:
    """For the operator's machine: tell engines what the fleet's account says now, and see who is connected."""
    return Permissions(
        publish=(
            CLAIMS_UPDATE,
            "$SYS.REQ.SERVER.PING",
            "$SYS.REQ.SERVER.PING.*",
            "$SYS.REQ.ACCOUNT.*.CONNZ",
        ),
        subscribe=(f"{INBOX}.{SYSTEM}.>",),
    )
