"""Attackers with a site's credential who send nonsense under its own name: it is stored, and counts for nothing."""

from __future__ import annotations

import asyncio
import random

import pytest
from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError
from nats.js.errors import APIError

from attacks.conftest import Attack
from attacks.secured import Secured
from attacks.test_at_the_engine import EDGE
from helpers.processes import DEADLINE, comes, until
from outvote.engine.nats_log import STREAM, stream_config
from outvote.log.records import SYNC, UpSubject

SEED = 9
FLOOD = 3000


def refused(secured: Secured, task: str = "shop") -> int:
    return int(secured.operator.get(f"/v1/tasks/{task}").json()["refused"])


def store(secured: Secured, payloads: list[bytes], *, life: str, task: str = "shop") -> None:
    """Under mallory's name, all of them acknowledged."""
    task_id = secured.task_id(task)

    async def run() -> None:
        async with secured.intruder() as mallory:
            stream = mallory.client.jetstream(timeout=DEADLINE)
            for begin in range(0, len(payloads), 200):
                await asyncio.gather(
                    *(
                        stream.publish(str(UpSubject("mallory", task_id, life, begin + place)), payload, stream=STREAM)
                        for place, payload in enumerate(payloads[begin : begin + 200])
                    )
                )

    asyncio.run(run())


def test_random_and_truncated_payloads(secured: Secured, attack: Attack) -> None:
    """No message of three arms' tallies of 3 has more than a byte; an empty one has no code."""
    rng = random.Random(SEED)
    nonsense = [b"", b"\x00", *(rng.randbytes(rng.randint(2, 400)) for _ in range(48))]
    before, told = refused(secured), len(secured.events("records_refused"))
    store(secured, nonsense, life="nonsense")
    until(lambda: refused(secured) == before + len(nonsense), "all of it is refused")
    until(lambda: len(secured.events("records_refused")) > told, "it is logged")
    assert len(secured.events("records_refused")) <= told + 2  # the first at once, the others together
    attack.refused(
        "send random, empty and truncated payloads",
        by=EDGE,
        happened="stored and refused by every server: counted as refused, otherwise without effect",
        logged="`records_refused`, at most one line a minute for each site and task",
    )


def test_oversized_payloads(secured: Secured, attack: Attack) -> None:
    largest = stream_config().max_msg_size
    assert largest is not None
    where = UpSubject("mallory", secured.task_id(), "large", 0)

    async def run() -> None:
        async with secured.intruder() as mallory:
            with pytest.raises(APIError, match="message size exceeds"):
                await mallory.client.jetstream(timeout=DEADLINE).publish(str(where), bytes(largest + 1), stream=STREAM)
        async with secured.intruder() as mallory:
            mallory.client._max_payload = 1 << 30  # what the engine told is not looked at
            await mallory.client.publish(str(where), bytes(400 * 1024))
            await comes(lambda: not mallory.client.is_connected, "the engine has ended the connection")
        async with secured.intruder() as mallory:
            with pytest.raises(MaxPayloadError):
                await mallory.client.publish(f"{SYNC}.mallory", bytes(2 << 20))

    asyncio.run(run())
    attack.refused(
        "send oversized payloads",
        by=EDGE,
        happened="over 64 KiB the stream refuses it, over 256 KiB the engine ends the connection",
        logged="one line in the engine's log",
    )


def test_a_flood(secured: Secured, attack: Attack) -> None:
    """Many lives and many messages, as fast as they are taken: others are heard meanwhile, and memory has a bound."""
    before, told = refused(secured, "votes"), len(secured.events("records_refused"))
    rng = random.Random(SEED)
    store(secured, [rng.randbytes(9) for _ in range(FLOOD)], life="flood", task="votes")
    secured.application.post("/v1/tasks/votes/decide").raise_for_status()  # the honest site is served meanwhile
    until(lambda: refused(secured, "votes") == before + FLOOD, "all of it was read and refused")
    assert len(secured.events("records_refused")) <= told + 2
    attack.refused(
        f"flood the log with {FLOOD:,} messages",
        by=EDGE,
        happened="stored and refused by every server; others are served and counted meanwhile. The engine has no limit "
        "of a rate: revoke the site, and bound the disk with `fleet init --disk`",
        logged="`records_refused`, at most one line a minute, and the alert OutvoteRecordsRefused",
    )


def test_questions_that_are_none(secured: Secured, attack: Attack) -> None:
    async def run() -> None:
        async with secured.intruder() as mallory:
            for nonsense in (b"", b"[]", b"\xff\xfe", b"{" * 5000, b'{"tasks": "all", "incarnation": {}}'):
                try:
                    await mallory.client.request(f"{SYNC}.mallory", nonsense, timeout=0.5)
                except (TimeoutError, NatsError):
                    continue
            assert "tasks" in await mallory.ask()  # the server goes on answering

    asyncio.run(run())
    attack.refused(
        "ask a server nonsense",
        by=EDGE,
        happened="no answer, or that of somebody who knows nothing yet; the next good question is answered",
        logged="nothing",
    )
