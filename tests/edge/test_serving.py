"""The edge's HTTP API as it is served: whole tasks over a real socket, bodies and connections of all kinds, signals."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import socket
from collections.abc import AsyncIterator

import msgspec
import pytest

from helpers.edge_http import (
    ARMS,
    CLOSED,
    DECIDE,
    MEANS,
    REWARD,
    WINDOW,
    ask,
    check_problem,
    client_of,
    decided,
    eliminate,
    host,
    reward_of,
    running,
    task,
    wait,
    within_deadline,
)
from outvote.core import protocols
from outvote.core.messages import Tally
from outvote.edge.api import serve
from outvote.edge.bodies import LARGEST_BODY, Decision, TaskView
from outvote.edge.hosted_task import HostedTask
from outvote.edge.site import Edge
from outvote.log.records import UpSubject
from outvote.web.listener import ListenError

BETWEEN = 1.0
"""Seconds between two events, on the clock of a test."""

# ---- a task from its first event to its winner


@pytest.mark.parametrize(("protocol", "delta"), [("dme", 0.9), ("tally", 1e-12)])  # some 300 events each
def test_a_task_played_over_http_is_what_its_player_is_without(protocol: str, delta: float, edge: Edge) -> None:
    """Groups are counted a window later: meanwhile decisions go on."""
    described = task(protocol, arms=ARMS[:2], delta=delta, reward_window=BETWEEN * 20)
    clock = [0.0]
    edge._clock = lambda: clock[0]
    hosted = host(edge, described)
    server = protocols.server(described)
    twin = protocols.player(described, "ams", rng=random.Random(1))
    world = random.Random(2)

    async def scenario() -> None:
        async with client_of(edge) as client:
            events = 0
            while len(hosted.player.remaining) > 1:
                assert events < 2000
                answer = await client.post(DECIDE)
                assert answer.status_code == 200
                decision = msgspec.json.decode(answer.content, type=Decision)
                ticket = twin.decide(edge.now())
                assert (decision.variant, decision.ticket) == (ARMS[ticket.arm], str(ticket))
                reward = float(world.random() < MEANS[ticket.arm])
                assert (await client.post(REWARD, json={"ticket": str(ticket), "reward": reward})).status_code == 204
                twin.reward(ticket, reward, edge.now())
                clock[0] += BETWEEN
                told, kept = twin.tick(edge.now()), hosted.kept
                edge.tick()
                assert hosted.kept == kept + len(told)
                for message in told:
                    for elimination in server.receive("ams", message, edge.now()):
                        eliminate(hosted, *elimination.arms)
                        twin.receive(elimination)
                events += 1
            assert events > 200
            assert hosted.player.snapshot() == twin.snapshot()
            shown = msgspec.json.decode((await client.get("/v1/tasks/shop")).content, type=TaskView)
            assert (shown.finished, shown.remaining, shown.winner) == (True, ("green",), "green")
            assert shown.messages_kept == shown.messages_waiting == len(edge.store.messages("shop-1")) > 0
            for _ in range(300):
                assert (await client.post(DECIDE)).json()["variant"] == "green"

    within_deadline(scenario())


def test_a_stopped_task_goes_on_answering_and_says_that_it_is_stopped(edge: Edge) -> None:
    hosted = host(edge, task())
    counted = decided(edge)["ticket"]
    assert ask(edge, "GET", "/v1/tasks/shop").json()["stopped"] is False
    edge.on_record("outvote.live.shop-1.stop", b"{}")
    assert ask(edge, "GET", "/v1/tasks/shop").json()["stopped"] is True
    before = hosted.player.snapshot()
    assert decided(edge) == {"variant": "green", "ticket": "uncounted"}
    for ticket in (counted, "uncounted"):
        assert ask(edge, "POST", REWARD, json={"ticket": ticket, "reward": 1}).status_code == 204
    assert hosted.player.snapshot() == before  # nothing is learnt any more


def test_nothing_of_a_stopped_task_waits_any_more(edge: Edge) -> None:
    """It is not sent any more: who waits until all is sent would wait for ever."""
    host(edge, task("tally"))
    for _ in range(3):  # a whole tally
        decided(edge)
    wait(edge, CLOSED)
    edge.tick()
    decided(edge)
    shown = ask(edge, "GET", "/v1/tasks/shop").json()
    assert (shown["waiting"], shown["messages_kept"], shown["messages_waiting"]) == (1, 1, 1)
    edge.on_record("outvote.live.shop-1.stop", b"{}")
    shown = ask(edge, "GET", "/v1/tasks/shop").json()
    assert (shown["waiting"], shown["messages_kept"], shown["messages_waiting"]) == (0, 1, 0)


def seen(edge: Edge, name: str) -> int:
    """Of all variants, as the API shows it."""
    return sum(each[name] for each in ask(edge, "GET", "/v1/tasks/shop").json()["seen"])


def test_a_reward_that_is_repeated_is_taken_and_counted_once_and_the_largest_counts(edge: Edge) -> None:
    hosted = host(edge, task("tally"))
    decisions = [decided(edge) for _ in range(3)]
    for reward in (0, 1, 1, 0):
        assert ask(edge, "POST", REWARD, json=reward_of(decisions[0], reward)).status_code == 204
    assert seen(edge, "rewards") == sum(hosted.player.decisions.seen.successes) == 1
    once = hosted.player.snapshot()
    assert ask(edge, "POST", REWARD, json=reward_of(decisions[0])).status_code == 204
    assert hosted.player.snapshot() == once
    wait(edge, CLOSED)
    edge.tick()
    assert [(tally.successes, tally.trials) for tally in messages(edge, hosted)] == [(1, 3)]


def test_a_late_reward_and_one_of_a_variant_that_is_out_are_taken_and_counted_as_that(edge: Edge) -> None:
    hosted = host(edge, task("tally"))
    early, *_ = [decided(edge) for _ in range(6)]  # two whole tallies of 3
    wait(edge, WINDOW + 0.001)
    assert ask(edge, "POST", REWARD, json=reward_of(early)).status_code == 204
    assert [seen(edge, name) for name in ("rewards", "late", "refused", "out")] == [0, 1, 0, 0]
    last = decided(edge)
    eliminate(hosted, ARMS.index(last["variant"]))
    assert ask(edge, "POST", REWARD, json=reward_of(last)).status_code == 204
    assert [seen(edge, name) for name in ("rewards", "late", "refused", "out")] == [0, 1, 0, 1]
    wait(edge, CLOSED - WINDOW)
    edge.tick()
    assert [(tally.successes, tally.trials) for tally in messages(edge, hosted)] == [(0, 3), (0, 3)]


def test_the_reward_of_an_uncounted_decision_is_taken_and_changes_nothing(edge: Edge) -> None:
    hosted = host(edge, task())
    decided(edge)
    before = hosted.player.snapshot()
    for variant in (*ARMS, None):
        body = {"ticket": "uncounted", "reward": 1, "variant": variant}
        assert ask(edge, "POST", REWARD, json=body).status_code == 204
    assert hosted.player.snapshot() == before


def messages(edge: Edge, hosted: HostedTask) -> list[Tally]:
    """What the edge has to send."""
    found = []
    for sequence, payload in edge.store.messages(hosted.task_id):
        tally = hosted.coder.read_up(UpSubject("ams", hosted.task_id, "", sequence), payload)
        assert isinstance(tally, Tally)
        found.append(tally)
    return found


# ---- bodies and connections


async def exchange(port: int, sent: bytes) -> bytes:
    """Send bytes as they are and nothing after them, and read until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    writer.write_eof()
    received = await reader.read()
    writer.close()
    return received


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return int(head.split()[1]), await reader.readexactly(int(length[1])) if length else b""


def head(length: str, *, path: str = REWARD) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n".encode()


def test_a_body_of_64_kib_is_read_and_one_byte_more_is_not(edge: Edge) -> None:
    hosted = host(edge, task())

    async def in_pieces(content: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(content), 1000):
            yield content[start : start + 1000]

    async def scenario() -> None:
        async with client_of(edge) as client:
            first, second = [json.dumps(reward_of((await client.post(DECIDE)).json())).encode() for _ in range(2)]
            before = hosted.player.snapshot()
            too_large = first.ljust(LARGEST_BODY + 1)
            for content in (too_large, in_pieces(too_large), b" " * 3_000_000, in_pieces(b" " * 3_000_000)):
                check_problem(await client.post(REWARD, content=content), 413, "body-too-large", "at most 65536 bytes")
                assert hosted.player.snapshot() == before
            assert (await client.post(REWARD, content=first.ljust(LARGEST_BODY))).status_code == 204
            assert (await client.post(REWARD, content=in_pieces(second.ljust(LARGEST_BODY)))).status_code == 204
            assert hosted.player.decisions.seen.rewards == [1, 1, 0]

    within_deadline(scenario())


def test_an_announced_length_is_not_believed(edge: Edge) -> None:
    hosted = host(edge, task())
    body = json.dumps({"ticket": str(edge.decide(hosted)), "reward": 1}).encode()

    async def scenario() -> None:
        async with running(edge) as port:
            before = hosted.player.snapshot()
            # Too much is announced: refused at the first piece, without waiting for the rest.
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head("Content-Length: 10000000000000") + body)
            assert (await read_answer(reader))[0] == 413
            writer.close()
            # More is announced than comes: the requester has gone, and nothing is taken.
            assert await exchange(port, head(f"Content-Length: {len(body) + 1}") + body) == b""
            # Less is announced than comes: what was announced is no JSON, and what follows is no request.
            answer = await exchange(port, head(f"Content-Length: {len(body) - 1}") + body)
            assert set(re.findall(rb"HTTP/1.1 (\d+)", answer)) == {b"400"}
            assert hosted.player.snapshot() == before

    within_deadline(scenario())


def test_a_connection_goes_on_after_a_refusal_and_after_a_body_that_was_not_read(edge: Edge) -> None:
    host(edge, task())
    large = b" " * 200_000

    async def scenario() -> None:
        async with running(edge) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for sent, status in (
                (head("Content-Length: 0", path=DECIDE), 200),
                (head("Content-Length: 3") + b"no!", 400),
                (head(f"Content-Length: {len(large)}") + large, 413),
                (head(f"Content-Length: {len(large)}", path=DECIDE) + large, 200),
                (head("Content-Length: 0", path="/nowhere"), 404),
                (head("Content-Length: 0", path=DECIDE), 200),
            ):
                writer.write(sent)
                assert (await read_answer(reader))[0] == status
            writer.close()

    within_deadline(scenario())


# ---- the server


def test_it_listens_on_loopback_alone_and_frees_its_port_when_it_stops(edge: Edge) -> None:
    async def scenario() -> None:
        async with running(edge) as port:
            with socket.socket() as probe:
                probe.setblocking(False)
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.get_running_loop().sock_connect(probe, ("127.0.0.2", port))
        with socket.socket() as successor:
            successor.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            successor.bind(("127.0.0.1", port))

    within_deadline(scenario())


def test_an_address_that_cannot_be_had_is_refused_with_what_to_do(edge: Edge) -> None:
    async def scenario() -> None:
        async with running(edge) as port:
            with pytest.raises(ListenError, match=rf"'127.0.0.1', port {port}: .*choose another port"):
                await serve(edge, "127.0.0.1", port)
        with pytest.raises(ListenError, match=r"192\.0\.2\.1"):
            await serve(edge, "192.0.2.1", 0)
        with pytest.raises(ListenError, match="no address to listen on: got 'no such host'"):
            await serve(edge, "no such host", 0)
        with pytest.raises(ListenError, match="a port must be from 0 to 65535, got 70000"):
            await serve(edge, "127.0.0.1", 70000)

    within_deadline(scenario())


def test_the_signals_of_the_program_stay_its_own(edge: Edge) -> None:
    async def scenario() -> None:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        async with client_of(edge) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert {number: signal.getsignal(number) for number in handlers} == handlers

    within_deadline(scenario())
