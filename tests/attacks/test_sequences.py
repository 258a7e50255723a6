"""What a site learns of others, and what it can change, with the headers of its own messages.

NATS has no way to forbid an edge a header: permissions are about subjects. So some of it cannot be refused. These tests
show exactly what is visible then, and what is not: docs/security.md and docs/privacy.md say the same.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from attacks.conftest import Attack
from attacks.secured import Secured
from attacks.test_at_the_engine import EDGE, forbidden, violation
from helpers.bare_clients import Guest
from helpers.processes import DEADLINE, until
from outvote.engine.follower import NOT_THERE
from outvote.engine.nats_log import STREAM
from outvote.log.records import DOWN, LIVE, UP, DownSubject, UpSubject, parse

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
OF = "Nats-Expected-Last-Subject-Sequence-Subject"
NEVER = str(2**53)
"""A place in the log that no record has: what expects it is not stored."""


class Watcher:
    """A site that sends under its own name only, to look at what others do."""

    def __init__(self, secured: Secured, intruder: Guest, life: str) -> None:
        self.client = intruder.client
        self.ask = intruder.ask
        self._task_id = secured.task_id("votes")
        self._life = life
        self._numbers = itertools.count()

    async def send(self, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """What the engine says to a message of its own that is of no use to anybody."""
        subject = str(UpSubject("mallory", self._task_id, self._life, next(self._numbers)))
        answer = await self.client.request(subject, b"\xff", headers=headers, timeout=DEADLINE)
        return dict(json.loads(answer.data))

    async def place(self, subject: str) -> int:
        """The place in the log of the last record on a subject of anybody; 0 is none. That number is all that is said,
        and nothing is stored."""
        answer = await self.send({EXPECTED: NEVER, OF: subject})
        number = int(answer["error"]["description"].rpartition(" ")[2])
        refusal = {"code": 400, "err_code": NOT_THERE, "description": f"wrong last sequence: {number}"}
        assert answer == {"error": refusal, "stream": STREAM, "seq": 0}
        return number


@asynccontextmanager
async def watcher(secured: Secured, life: str) -> AsyncIterator[Watcher]:
    async with secured.intruder() as mallory:
        yield Watcher(secured, mallory, life)


async def api(client: Any, call: str, **question: object) -> dict[str, Any]:
    """What the engine tells who may read the log."""
    answer = await client.request(f"$JS.API.STREAM.{call}.{STREAM}", json.dumps(question).encode(), timeout=DEADLINE)
    return dict(json.loads(answer.data))


@asynccontextmanager
async def reader(secured: Secured) -> AsyncIterator[Any]:
    """Somebody who knows what is really there: with a server's credential."""
    async with secured.intruder("server", creds=secured.kit("server") / "server.creds") as server:
        yield server.client


async def last_record(client: Any, subject: str) -> dict[str, Any]:
    return dict((await api(client, "MSG.GET", last_by_subj=subject))["message"])


async def log_end(client: Any) -> int:
    return int((await api(client, "INFO"))["state"]["last_seq"])


def learn(secured: Secured) -> None:
    """The honest site has nine more visitors, sends what it has learnt, and all of it is counted."""

    def kept() -> int:
        return int(secured.application.get("/v1/tasks/shop").json()["messages_kept"])

    before = kept()
    secured.learn()
    until(lambda: before < kept() == secured.messages("honest"), "it has sent something, and the server has read it")


# ---- what is visible


def test_a_site_sees_when_another_sends_and_the_numbers_of_its_messages(secured: Secured) -> None:
    task_id = secured.task_id()
    of_honest = f"{UP}.honest.{task_id}"

    async def run() -> None:
        async with watcher(secured, "watch") as mallory, reader(secured) as server:
            first = await mallory.place(f"{of_honest}.>")
            assert first == (await last_record(server, f"{of_honest}.>"))["seq"]
            learning = asyncio.create_task(asyncio.to_thread(learn, secured))
            async with asyncio.timeout(DEADLINE):
                while await mallory.place(f"{of_honest}.>") == first:  # so it sees the moment at which it sends
                    pass
            await learning

            places: list[int] = []
            while not places or places[-1]:  # each number by itself, whatever the store is called
                places.append(await mallory.place(f"{of_honest}.*.{len(places)}"))
            sent = len(places) - 1  # and so how many there are
            assert sent == secured.messages("honest")
            assert len(set(places)) == len(places)
            assert await mallory.place(f"{UP}.*.{task_id}.>") >= max(places)  # also of all sites together

    asyncio.run(run())


def test_a_site_sees_that_another_begins_with_a_new_store(secured: Secured) -> None:
    task_id = secured.task_id("votes")

    async def run() -> None:
        async with watcher(secured, "lives") as mallory, secured.intruder("carol") as carol:
            places = []
            for life in ("one", "two"):
                await carol.client.request(str(UpSubject("carol", task_id, life, 7)), b"\xff", timeout=DEADLINE)
                places.append(await mallory.place(f"{UP}.carol.{task_id}.*.7"))
            assert 0 < places[0] < places[1]

    asyncio.run(run())


def test_a_site_sees_neither_what_another_sends_nor_names_that_it_does_not_know(secured: Secured) -> None:
    task_id = secured.task_id()
    of_honest = f"{UP}.honest.{task_id}"

    async def run() -> None:
        async with watcher(secured, "blind") as mallory, reader(secured) as server:
            end = await log_end(server)
            record = await last_record(server, f"{of_honest}.>")
            told = parse(record["subject"])
            assert isinstance(told, UpSubject)
            whole = f"{of_honest}.{told.incarnation}.{told.sequence}"
            assert await mallory.place(whole) == record["seq"]  # for who knows the name already,
            for guess in (f"{told.incarnation[:15]}*", f"{told.incarnation[:1]}>"):  # who cannot find it bit by bit
                assert await mallory.place(f"{of_honest}.{guess}.{told.sequence}") == 0
            for guess in ("nobody", "h*", "hones*"):  # nor who there is
                assert await mallory.place(f"{UP}.{guess}.{task_id}.>") == 0
            assert await log_end(server) == end  # that it looked changes nothing

    asyncio.run(run())


def test_a_site_sees_how_long_the_log_is(secured: Secured) -> None:
    """In three ways, of which two are of use to honest sites: none tells who has sent."""

    async def run() -> None:
        async with watcher(secured, "length") as mallory, reader(secured) as server:
            stored = await mallory.send()
            assert stored == {"stream": STREAM, "seq": await log_end(server)}
            refused = await mallory.send({"Nats-Expected-Last-Sequence": NEVER})
            assert refused["error"]["description"] == f"wrong last sequence: {stored['seq']}"
            async with asyncio.timeout(DEADLINE):
                while (await mallory.ask())["read"] < stored["seq"]:
                    await asyncio.sleep(0.01)

    asyncio.run(run())


def test_ids_of_messages_are_visible_and_honest_sites_give_none(secured: Secured) -> None:
    """Who gives its message an id tells everybody that it was used, and which one was the last."""
    where = str(UpSubject("carol", secured.task_id("votes"), "ids", 0))

    async def run() -> None:
        async with (
            watcher(secured, "ids") as mallory,
            secured.intruder("carol") as carol,
            reader(secured) as server,
        ):
            sent = await carol.client.request(where, b"\xff", headers={"Nats-Msg-Id": "mine"}, timeout=DEADLINE)
            assert await mallory.send({"Nats-Msg-Id": "mine"}) == json.loads(sent.data) | {"duplicate": True}
            refused = await mallory.send({"Nats-Expected-Last-Msg-Id": "other"})
            assert refused["error"]["description"] == "wrong last msg ID: mine"
            record = await last_record(server, f"{UP}.honest.>")
            assert b"Nats-Msg-Id" not in base64.b64decode(record["hdrs"])

    asyncio.run(run())


# ---- what is refused

FORBIDDEN = {
    "replace the whole log": ({"Nats-Rollup": "all"}, "rollup not permitted"),
    "replace a record": ({"Nats-Rollup": "sub"}, "rollup not permitted"),
    "be forgotten after a second": ({"Nats-TTL": "1s"}, "per-message TTL is disabled"),
    "be added to a number": ({"Nats-Incr": "+1"}, "message counters is disabled"),
    "be stored later as a record that stops a task": (
        {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "{stop}"},
        "message schedules is disabled",
    ),
    "be stored later with what another site sent": (
        {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "{own}", "Nats-Schedule-Source": "{honest}"},
        "message schedules is disabled",
    ),
    "end what was to be stored later": (
        {"Nats-Schedule-Next": "purge", "Nats-Scheduler": "{honest}"},
        "message schedules",
    ),
    "be stored with others or not at all": (
        {"Nats-Batch-Id": "a", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
        "atomic publish is disabled",
    ),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_header_that_would_change_the_log(secured: Secured, attack: Attack, what: str) -> None:
    headers, says = FORBIDDEN[what]
    task_id = secured.task_id()
    names = {"stop": str(DownSubject(task_id, "stop")), "own": f"{UP}.mallory.{task_id}.later.0"}

    async def run() -> None:
        async with watcher(secured, "header") as mallory, reader(secured) as server:
            end, record = await log_end(server), await last_record(server, f"{UP}.honest.>")
            filled = {name: value.format(**names, honest=record["subject"]) for name, value in headers.items()}
            answer = await mallory.send(filled)
            assert says in answer["error"]["description"]
            assert await log_end(server) == end
            assert await last_record(server, f"{UP}.honest.>") == record

    asyncio.run(run())
    attack.refused(
        f"a header that asks for a message to {what}",
        by=EDGE,
        happened="the engine refuses it: the stream allows none of this",
        logged="nothing",
    )


@pytest.mark.parametrize("where", ["its own inbox", "news", "the log"])
def test_have_a_message_traced(secured: Secured, attack: Attack, where: str) -> None:
    """The engine tells, on a subject of the sender's choice, which way a message took."""
    task_id = secured.task_id()
    trace = {
        "its own inbox": "_INBOX.mallory.trace",
        "news": f"{LIVE}.{task_id}.stop",
        "the log": f"{DOWN}.{task_id}.stop",
    }[where]
    subject = str(UpSubject("mallory", task_id, "trace", 0))
    headers = {"Nats-Trace-Dest": trace}
    violation(secured, lambda mallory: mallory.client.publish(subject, b"\xff", headers=headers))
    forbidden(attack, f"have the way of a message told to {where} (`Nats-Trace-Dest`)")
