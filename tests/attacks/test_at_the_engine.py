"""Attackers with an edge's credential and any client of NATS: what they may not do, the engine refuses."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import APIError

from attacks.conftest import Attack
from attacks.secured import SHOP, Secured
from fleet.places import read_claims
from helpers.bare_clients import Guest, let_go
from helpers.processes import DEADLINE, comes, until
from outvote.core.messages import Elimination, Tally
from outvote.engine.follower import ALREADY_THERE
from outvote.engine.nats_log import STREAM
from outvote.fleet.claims import creds, user_claims
from outvote.fleet.keys import new_key, read_key
from outvote.fleet.permissions import Permissions, edge_permissions
from outvote.log.records import DOWN, LIVE, SYNC, UP, Coder, DownSubject, UpSubject, task_record
from outvote.presenters.task_fields import task_of

EDGE = "a site with its own credential"
LET_IN = r"(?i)authorization"
"""How nats-py says that somebody was not let in."""
EVERYTHING = Permissions(publish=(">",), subscribe=(">",))


def tally() -> bytes:
    """A message that would count, were it let in."""
    return Coder(task_of(SHOP)).up(Tally(0, 3, 3, 0))


def violation(secured: Secured, attack: Callable[[Guest], Any]) -> None:
    """Make an attack that the engine must answer with a refusal, and log once."""
    before = len(secured.engine_lines())

    async def run() -> None:
        async with secured.intruder() as mallory:
            await mallory.denied(lambda: attack(mallory))

    asyncio.run(run())
    until(lambda: len(secured.engine_lines()) == before + 1, "it is logged, once")
    assert "mallory" in secured.engine_lines()[-1] or "Violation" in secured.engine_lines()[-1]


def forbidden(attack: Attack, what: str) -> None:
    """The row of what `violation` has shown."""
    attack.refused(
        what, by=EDGE, happened="the engine refuses it: permissions violation", logged="one line in the engine's log"
    )


def test_publish_as_another_edge(secured: Secured, attack: Attack) -> None:
    where = str(UpSubject("honest", secured.task_id(), "life", 0))
    violation(secured, lambda mallory: mallory.client.publish(where, tally()))
    forbidden(attack, "publish a tally as another site")


@pytest.mark.parametrize(
    ("kind", "subject"),
    [("messages", "outvote.up.honest.>"), ("messages", ">"), ("inbox", "_INBOX.honest.>"), ("inbox", "_INBOX.>")],
)
def test_read_what_is_not_for_it(secured: Secured, attack: Attack, kind: str, subject: str) -> None:
    violation(secured, lambda mallory: mallory.client.subscribe(subject))
    forbidden(attack, f"read another site's {kind}: subscribe to `{subject}`")


def test_answer_in_the_place_of_a_server(secured: Secured, attack: Attack) -> None:
    violation(secured, lambda mallory: mallory.client.subscribe(f"{SYNC}.*", queue="servers"))
    forbidden(attack, "answer other sites in the place of a server")


API = {
    "create a stream": ("STREAM.CREATE.MINE", {"name": "MINE", "subjects": ["mine"]}),
    "change the stream": (f"STREAM.UPDATE.{STREAM}", {"name": STREAM, "subjects": ["outvote.up.>"]}),
    "purge the stream": (f"STREAM.PURGE.{STREAM}", {}),
    "delete the stream": (f"STREAM.DELETE.{STREAM}", {}),
    "delete a record": (f"STREAM.MSG.DELETE.{STREAM}", {"seq": 1}),
    "read a record": (f"STREAM.MSG.GET.{STREAM}", {"seq": 1}),
    "follow the log": (f"CONSUMER.CREATE.{STREAM}", {"stream_name": STREAM, "config": {"ack_policy": "none"}}),
}


@pytest.mark.parametrize("what", API)
def test_use_the_engine_s_api(secured: Secured, attack: Attack, what: str) -> None:
    subject, body = API[what]
    payload = json.dumps(body).encode()
    violation(secured, lambda mallory: mallory.silence(f"$JS.API.{subject}", payload))
    forbidden(attack, f"{what} by the engine's API")


NOT_FOR_SERVERS = [
    *(f"$JS.API.STREAM.{call}.{STREAM}" for call in ("PURGE", "DELETE", "UPDATE", "MSG.DELETE", "SNAPSHOT", "RESTORE")),
    "$JS.API.STREAM.CREATE.OTHER",
    f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.mine",
    f"{UP}.mallory.shop.life.0",
    f"{LIVE}.shop.stop",
    "$SYS.REQ.CLAIMS.UPDATE",
    "anything",
]


def test_a_server_cannot_take_records_away(secured: Secured, attack: Attack) -> None:
    """Somebody has a server's credential: records can be added with it, not taken away, and not as an edge."""

    async def run() -> None:
        async with secured.intruder("server", creds=secured.kit("server") / "server.creds") as eve:
            for subject in NOT_FOR_SERVERS:
                await eve.denied(functools.partial(eve.client.publish, subject, b"{}"))
                assert f'"{subject.lower()}"' in eve.troubles[-1].lower()

    asyncio.run(run())
    attack.refused(
        "purge or delete the stream, delete a record",
        by="somebody with a server's credential",
        happened="the engine refuses it: permissions violation; the stream itself refuses deletions, too",
        logged="a line each in the engine's log",
    )


@pytest.mark.parametrize("kind", ["elimination", "task", "stop", "kill switch", "live news"])
def test_speak_as_a_server(secured: Secured, attack: Attack, kind: str) -> None:
    task_id = secured.task_id()
    down = Coder(task_of(SHOP)).down((0, 1, 2), Elimination((0, 1)))
    subject, payload = {
        "elimination": (str(DownSubject(task_id, "elim", 0)), down),
        "task": (str(DownSubject("mine-1", "task")), task_record(task_of({**SHOP, "name": "mine"}))),
        "stop": (str(DownSubject(task_id, "stop")), b"{}"),
        "kill switch": (str(DownSubject(task_id, "kill", 0)), b"true"),
        "live news": (str(DownSubject(task_id, "elim", 0)).replace(DOWN, LIVE), down),
    }[kind]
    violation(secured, lambda mallory: mallory.client.publish(subject, payload))
    told = secured.application.get("/v1/tasks/shop").json()
    assert len(told["remaining"]) == 3
    assert not told["stopped"]
    attack.refused(
        f"publish a record of a server: {kind}",
        by=EDGE,
        happened="the engine refuses it: permissions violation; other sites hear nothing",
        logged="one line in the engine's log",
    )


@pytest.mark.parametrize("place", [DOWN, LIVE])
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("how", ["a message", "a question"])
def test_have_an_answer_put_where_others_listen(
    secured: Secured, attack: Attack, place: str, how: str, marked: bool
) -> None:
    """The engine acknowledges a message, and a server answers a question, wherever the sender says: say, on the subject
    of a record that stops a task, or of the news that it was stopped. With the marks of such news, if they are sent
    back."""
    task_id = secured.task_id("votes")
    trap = f"{place}.{task_id}.stop"
    subject, payload = {
        "a message": (str(UpSubject("mallory", task_id, f"trap-{place[8:]}-{marked}", 0)), b"\xff"),
        "a question": (f"{SYNC}.mallory", b'{"incarnation": "a", "tasks": {}}'),
    }[how]
    marks = {"Nats-Stream": STREAM, "Nats-Subject": str(DownSubject(task_id, "stop"))} if marked else None

    async def run() -> None:
        async with secured.intruder() as mallory:
            await mallory.client.publish(subject, payload, reply=trap, headers=marks)
            await mallory.client.flush()
            await mallory.ask()  # what came before it was answered, too

    asyncio.run(run())
    secured.speak_of("votes")
    assert not secured.application.get("/v1/tasks/votes").json()["stopped"]
    told = secured.events("false_news", secured.edge_log)
    assert place == DOWN or 1 <= len(told) <= 2
    said = f"have {how}{' that has the marks of news' if marked else ''} answered"
    attack.refused(
        f"{said} on the subject of a record that stops a task, `{place}.TASK.stop`",
        by=EDGE,
        happened="the log is in an account that the answer does not reach"
        if place == DOWN
        else "sites take only what the engine marks as a copy of a record",
        logged="nothing" if place == DOWN else "`false_news`, at most one line a minute, at the other sites",
    )


def test_repeat_a_message(secured: Secured, attack: Attack) -> None:
    """Its own subject holds a message already: a second is refused, the same or another."""
    where = str(UpSubject("carol", secured.task_id("votes"), "life", 0))

    async def run() -> list[int]:
        codes = []
        async with secured.intruder("carol") as carol:
            stream = carol.client.jetstream(timeout=DEADLINE)
            await stream.publish(where, b"\xff", stream=STREAM)
            for payload in (b"\xff", b"\x00"):
                with pytest.raises(APIError) as refused:
                    await stream.publish(where, payload, stream=STREAM)
                codes.append(refused.value.err_code or 0)
        return codes

    assert asyncio.run(run()) == [ALREADY_THERE, ALREADY_THERE]
    attack.refused(
        "replay a message, or put another in its place",
        by=EDGE,
        happened="the engine refuses it: the subject has its one message",
        logged="nothing: honest sites send again, too",
    )


def forged(secured: Secured, folder: Path, kind: str) -> Path:
    """A credential that somebody has made."""
    account = read_key(secured.fleet / "keys" / "account.seed", "account")
    user, now = new_key("user"), time.time()
    may = edge_permissions("mallory")
    if kind == "signed by a key of its own":
        claims = user_claims(new_key("account"), user.public, name="mallory", may=may, now=now, expires=None)
    elif kind == "expired":
        claims = user_claims(account, user.public, name="mallory", may=may, now=now - 100, expires=now - 10)
    else:
        good = (secured.kit("mallory") / "edge.creds").read_text()
        claims = next(line for line in good.splitlines() if line.startswith("ey"))
        if kind == "changed to allow everything":
            head, _, signature = claims.split(".")
            wider = user_claims(account, user.public, name="mallory", may=EVERYTHING, now=now, expires=None)
            claims = ".".join((head, wider.split(".")[1], signature))
        else:
            assert kind == "stolen without its key"
            assert read_claims(claims)["sub"] != user.public
    path = folder / "forged.creds"
    path.write_text(creds(claims, user))
    return path


@pytest.mark.parametrize(
    "kind", ["signed by a key of its own", "changed to allow everything", "stolen without its key", "expired"]
)
def test_a_credential_that_is_none(secured: Secured, attack: Attack, tmp_path: Path, kind: str) -> None:
    before = len(secured.engine_lines())

    async def run() -> None:
        async with secured.intruder(creds=forged(secured, tmp_path, kind)):
            raise AssertionError("it was let in")

    with pytest.raises(NatsError, match=LET_IN):
        asyncio.run(run())
    until(lambda: len(secured.engine_lines()) > before, "it is logged")
    attack.refused(
        f"connect with a credential that is {kind}",
        by="anybody who reaches the engine",
        happened="the engine does not let it in: authorization violation",
        logged="one line in the engine's log",
    )


def closed_by(secured: Secured, credential: Path, name: str, cut: Callable[[], object]) -> None:
    """A live connection is cut off, and what is sent after that does not arrive."""
    where = str(UpSubject(name, secured.task_id(), "after", 0))

    async def run() -> None:
        async with secured.intruder(name, creds=credential) as live:
            await live.client.flush()
            await asyncio.to_thread(cut)
            await comes(lambda: live.client.is_closed, "the connection is ended")
            with pytest.raises(NatsError):
                await live.client.publish(where, tally())

    async def let_in() -> bool:
        """In the second in which it expires, a credential is good, but not for long."""
        try:
            async with secured.intruder(name, creds=credential):
                return True
        except NatsError as error:
            return re.search(LET_IN, str(error)) is None

    asyncio.run(run())
    until(lambda: not asyncio.run(let_in()), "it is not let in again")


def test_a_credential_that_expires_on_a_live_connection(secured: Secured, attack: Attack, tmp_path: Path) -> None:
    account = read_key(secured.fleet / "keys" / "account.seed", "account")
    user, now = new_key("user"), time.time()
    claims = user_claims(
        account, user.public, name="mallory", may=edge_permissions("mallory"), now=now, expires=now + 4
    )
    path = tmp_path / "short.creds"
    path.write_text(creds(claims, user))
    closed_by(secured, path, "mallory", lambda: None)
    attack.refused(
        "go on with a live connection after the credential has expired",
        by=EDGE,
        happened="the engine ends the connection at once, and does not let it in again",
        logged="one line in the engine's log",
    )


def test_a_credential_that_is_revoked_on_a_live_connection(secured: Secured, attack: Attack) -> None:
    secured.command("add", "trent")
    closed_by(secured, secured.kit("trent") / "edge.creds", "trent", lambda: secured.command("revoke", "trent"))
    attack.refused(
        "go on with a live connection after the credential was revoked",
        by=EDGE,
        happened="the engine ends the connection at once, and does not let it in again",
        logged="one line in the engine's log",
    )


def test_without_a_credential(secured: Secured, attack: Attack) -> None:
    async def run() -> None:
        client = Client()
        options = {"tls": secured.trust(), "tls_handshake_first": True, "allow_reconnect": False}
        with pytest.raises(NatsError, match=LET_IN):
            await client.connect(secured.nats, connect_timeout=DEADLINE, **options)  # type: ignore[arg-type]
        await let_go(client)

    asyncio.run(run())
    attack.refused(
        "connect without a credential",
        by="anybody who reaches the engine",
        happened="the engine does not let it in: authorization violation",
        logged="one line in the engine's log",
    )
