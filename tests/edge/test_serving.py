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
    DECIDE,
    GOOD,
    MEANS,
    REWARD,
    ask,
    check_problem,
    client_of,
    eliminate,
    host,
    running,
    task,
    within_deadline,
)
from outvote.core import protocols
from outvote.edge.api import serve
from outvote.edge.bodies import LARGEST_BODY, Decision, TaskView
from outvote.edge.site import NO_TICKET, Edge
from outvote.web.listener import ListenError

# ---- a task from its first event to its winner


@pytest.mark.parametrize(("protocol", "delta"), [("dme", 0.9), ("tally", 1e-12)])  # some 300 events each
def test_a_task_played_over_http_is_what_its_player_is_without(protocol: str, delta: float, edge: Edge) -> None:
    described = task(protocol, arms=ARMS[:2], delta=delta)
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
                arm = ARMS.index(decision.variant)
                assert (arm, int(decision.ticket)) == twin.decide()
                reward = float(world.random() < MEANS[arm])
                body = {"variant": decision.variant, "ticket": decision.ticket, "reward": reward}
                assert (await client.post(REWARD, json=body)).status_code == 204
                told = twin.reward(arm, reward, ticket=int(decision.ticket))
                assert hosted.new == list(told)
                edge.flush()
                for message in told:
                    for elimination in server.receive("ams", message):
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
    assert ask(edge, "GET", "/v1/tasks/shop").json()["stopped"] is False
    edge.on_record("outvote.live.shop-1.stop", b"{}")
    assert ask(edge, "GET", "/v1/tasks/shop").json()["stopped"] is True
    assert ask(edge, "POST", DECIDE).json() == {"variant": "green", "ticket": str(NO_TICKET)}
    assert ask(edge, "POST", REWARD, json={"variant": "green", "reward": 0.5}).status_code == 204
    assert hosted.player.snapshot()["totals"] == [0, 0, 0]  # nothing is learnt any more


def test_nothing_of_a_stopped_task_waits_any_more(edge: Edge) -> None:
    """It is not sent any more: who waits until all is sent would wait for ever."""
    now = [0.0]
    edge._clock = lambda: now[0]
    host(edge, task("tally", reward_window=10.0))
    for _ in range(3):  # a whole tally
        ask(edge, "POST", DECIDE)
    now[0] = 11.0
    edge.flush()
    assert ask(edge, "GET", "/v1/tasks/shop").json()["messages_waiting"] == 1
    edge.on_record("outvote.live.shop-1.stop", b"{}")
    shown = ask(edge, "GET", "/v1/tasks/shop").json()
    assert (shown["messages_kept"], shown["messages_waiting"]) == (1, 0)


def test_late_and_dropped_rewards_are_taken_and_counted(edge: Edge) -> None:
    now = [0.0]
    edge._clock = lambda: now[0]
    hosted = host(edge, task("tally", reward_window=10.0))
    decisions = [ask(edge, "POST", DECIDE).json() for _ in range(6)]  # two whole tallies of 3
    now[0] = 11.0
    edge.flush()
    dropped = {name: decisions[0][name] for name in ("variant", "ticket")} | {"reward": 1}
    assert ask(edge, "POST", REWARD, json=dropped).status_code == 204
    gone = next(arm for arm in range(3) if ARMS[arm] != decisions[0]["variant"])
    eliminate(hosted, gone)
    assert ask(edge, "POST", REWARD, json={"variant": ARMS[gone], "reward": 1}).status_code == 204
    shown = ask(edge, "GET", "/v1/tasks/shop").json()
    assert (shown["late_rewards"], shown["dropped_rewards"]) == (1, 1)
    assert (shown["messages_kept"], shown["messages_waiting"]) == (2, 2)
    hosted.unsent.clear()
    shown = ask(edge, "GET", "/v1/tasks/shop").json()
    assert (shown["messages_kept"], shown["messages_waiting"]) == (2, 0)


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
    body = json.dumps(GOOD).encode()

    async def in_pieces(content: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(content), 1000):
            yield content[start : start + 1000]

    async def scenario() -> None:
        async with client_of(edge) as client:
            await client.post(DECIDE)
            await client.post(DECIDE)
            before = hosted.player.snapshot()
            too_large = body.ljust(LARGEST_BODY + 1)
            for content in (too_large, in_pieces(too_large), b" " * 3_000_000, in_pieces(b" " * 3_000_000)):
                check_problem(await client.post(REWARD, content=content), 413, "body-too-large", "at most 65536 bytes")
                assert hosted.player.snapshot() == before
            largest = body.ljust(LARGEST_BODY)
            assert (await client.post(REWARD, content=largest)).status_code == 204
            second = json.dumps({"variant": ARMS[1], "ticket": "1", "reward": 1}).encode().ljust(LARGEST_BODY)
            assert (await client.post(REWARD, content=in_pieces(second))).status_code == 204

    within_deadline(scenario())


def test_an_announced_length_is_not_believed(edge: Edge) -> None:
    hosted = host(edge, task())
    body = json.dumps(GOOD).encode()

    async def scenario() -> None:
        async with running(edge) as port:
            edge.decide(edge.find("shop"))
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
