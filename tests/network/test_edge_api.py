"""The edge's HTTP API: a real server on a real socket, a real store on disk; single answers are asked in process."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import signal
import socket
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import uvloop

from outvote.core import protocols
from outvote.core.messages import Elimination
from outvote.core.task import Task
from outvote.network.edge import Edge, HostedTask
from outvote.network.edge_api import (
    LARGEST_BODY,
    Decision,
    Health,
    TaskList,
    TaskView,
    make_app,
    openapi,
    serve,
)
from outvote.network.edge_store import EdgeStore
from outvote.network.http_server import ListenError
from outvote.network.problems import LONGEST_DETAIL, Problem

ARMS = ("green", "grün 🟢", "синий")
MEANS = (0.9, 0.4, 0.1)
DEADLINE = 20.0
REWARD = "/v1/tasks/shop/reward"
DECIDE = "/v1/tasks/shop/decide"


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    with EdgeStore(tmp_path / "edge.db") as store:
        yield Edge("ams", store, clock=time.monotonic, rng=random.Random(1))


def task(protocol: str = "dme", **options: Any) -> Task:
    epsilon = 0 if protocol == "tally" else 0.95
    chosen = {"arms": ARMS, "players": ["ams"], "epsilon": epsilon, "delta": 0.3, "protocol": protocol, "name": "shop"}
    return Task(**{**chosen, **options})


def host(edge: Edge, described: Task) -> HostedTask:
    """As if the fleet had told of it."""
    task_id = f"{described.name}-1"
    known = {task_id: {"record": described.to_json(), "stopped": False, "highest": -1}}
    edge.caught_up({"tasks": known, "deleted": []})
    return edge.tasks[described.name]


def eliminate(hosted: HostedTask, *arms: int) -> None:
    hosted.eliminate(hosted.coder.down(hosted.announced, Elimination(arms)))


@asynccontextmanager
async def running(edge: Edge) -> AsyncIterator[int]:
    """The API on a free port."""
    ports: asyncio.Queue[int] = asyncio.Queue()
    serving = asyncio.create_task(serve(edge, port=0, bound=ports.put_nowait))
    try:
        yield await ports.get()
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


@asynccontextmanager
async def client_of(edge: Edge) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        running(edge) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE, trust_env=False) as client,
    ):
        yield client


def within_deadline(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, DEADLINE))


async def in_process(app: Any, method: str, path: str, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://edge") as client:
        return await client.request(method, path, **options)


def ask(edge: Edge, method: str, path: str, **options: Any) -> httpx.Response:
    return asyncio.run(in_process(make_app(edge), method, path, **options))


def check_problem(answer: httpx.Response, status: int, kind: str, says: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = msgspec.json.decode(answer.content, type=Problem)
    assert problem.status == status
    assert problem.type == (f"urn:outvote:problem:{kind}" if kind else "about:blank")
    assert problem.title
    assert re.search(says, problem.detail), problem.detail


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
                assert (decision.index, int(decision.ticket)) == twin.decide()
                assert decision.arm == ARMS[decision.index]
                reward = float(world.random() < MEANS[decision.index])
                arm = decision.arm if events % 2 else decision.index
                body = {"arm": arm, "ticket": decision.ticket, "reward": reward}
                assert (await client.post(REWARD, json=body)).status_code == 204
                told = twin.reward(decision.index, reward, ticket=int(decision.ticket))
                assert hosted.new == list(told)
                edge.keep()
                for message in told:
                    for elimination in server.receive("ams", message):
                        eliminate(hosted, *elimination.arms)
                        twin.receive(elimination)
                events += 1
            assert events > 200
            assert hosted.player.snapshot() == twin.snapshot()
            shown = msgspec.json.decode((await client.get("/v1/tasks/shop")).content, type=TaskView)
            assert (shown.finished, shown.remaining, shown.winner) == (True, ("green",), "green")
            assert shown.messages_kept == shown.messages_waiting == edge.store.count("shop-1") > 0
            for _ in range(300):
                assert (await client.post(DECIDE)).json()["arm"] == "green"

    within_deadline(scenario())


def test_several_hundred_events_on_parallel_connections_are_all_counted_once(edge: Edge) -> None:
    hosted = host(edge, task(epsilon=0.1))

    async def player(client: httpx.AsyncClient) -> None:
        for _ in range(50):
            decision = (await client.post(DECIDE)).json()
            answer = await client.post(REWARD, json={"arm": decision["arm"], "ticket": decision["ticket"], "reward": 1})
            assert answer.status_code == 204

    async def scenario() -> None:
        async with client_of(edge) as client:
            await asyncio.gather(*(player(client) for _ in range(8)))
        state = hosted.player.snapshot()
        assert sum(state["pulls"]) == sum(state["totals"]) == 400

    within_deadline(scenario())


def test_a_stopped_task_goes_on_answering_and_says_that_it_is_stopped(edge: Edge) -> None:
    hosted = host(edge, task())
    assert ask(edge, "GET", "/v1/tasks/shop").json()["stopped"] is False
    edge.hear("outvote.live.shop-1.stop", b"{}")
    assert ask(edge, "GET", "/v1/tasks/shop").json()["stopped"] is True
    assert ask(edge, "POST", DECIDE).json() == {"arm": "green", "index": 0, "ticket": "0"}
    assert ask(edge, "POST", REWARD, json={"arm": "green", "reward": 0.5}).status_code == 204
    assert hosted.player.snapshot()["totals"] == [0, 0, 0]  # nothing is learnt any more


def test_late_and_dropped_rewards_are_taken_and_counted(edge: Edge) -> None:
    now = [0.0]
    edge._clock = lambda: now[0]
    hosted = host(edge, task("tally", reward_window=10.0))
    decisions = [ask(edge, "POST", DECIDE).json() for _ in range(6)]  # two whole tallies of 3
    now[0] = 11.0
    edge.keep()
    dropped = {name: decisions[0][name] for name in ("arm", "ticket")} | {"reward": 1}
    assert ask(edge, "POST", REWARD, json=dropped).status_code == 204
    gone = next(arm for arm in range(3) if ARMS[arm] != decisions[0]["arm"])
    eliminate(hosted, gone)
    assert ask(edge, "POST", REWARD, json={"arm": ARMS[gone], "reward": 1}).status_code == 204
    shown = ask(edge, "GET", "/v1/tasks/shop").json()
    assert (shown["late_rewards"], shown["dropped_rewards"]) == (1, 1)
    assert (shown["messages_kept"], shown["messages_waiting"]) == (2, 2)
    hosted.stored = 10
    shown = ask(edge, "GET", "/v1/tasks/shop").json()
    assert (shown["messages_kept"], shown["messages_waiting"]) == (2, 0)


# ---- what a reward may name


@pytest.mark.parametrize("ticket", ["0", 0, None])
@pytest.mark.parametrize("arm", ["green", 0])
def test_an_arm_is_a_name_or_an_index_and_a_ticket_a_string_a_number_or_none(
    arm: str | int, ticket: str | int | None, edge: Edge
) -> None:
    hosted = host(edge, task())
    ask(edge, "POST", DECIDE)
    assert ask(edge, "POST", REWARD, json={"arm": arm, "ticket": ticket, "reward": 1}).status_code == 204
    assert hosted.player.snapshot()["pulls"] == [1, 0, 0]


def test_a_string_of_digits_is_a_name_and_never_an_index(edge: Edge) -> None:
    hosted = host(edge, task(arms=["1", "0"]))
    ask(edge, "POST", DECIDE)
    assert ask(edge, "POST", REWARD, json={"arm": "1", "reward": 1}).status_code == 204
    assert hosted.player.snapshot()["pulls"] == [1, 0]


def test_a_task_created_anew_under_its_name_has_its_own_arms(edge: Edge) -> None:
    host(edge, task())
    app = make_app(edge)
    assert asyncio.run(in_process(app, "POST", DECIDE)).json()["arm"] == "green"
    assert asyncio.run(in_process(app, "POST", REWARD, json={"arm": "green", "reward": 1})).status_code == 204
    edge.hear("outvote.live.shop-1.delete", b"{}")
    edge._join("shop-2", task(arms=["left", "green"]).to_json())
    decisions = [asyncio.run(in_process(app, "POST", DECIDE)).json() for _ in range(2)]
    assert [decision["arm"] for decision in decisions] == ["left", "green"]
    asyncio.run(in_process(app, "POST", REWARD, json={"arm": "green", "reward": 1}))
    assert edge.tasks["shop"].player.snapshot()["pulls"] == [0, 1]


# ---- refusals

GOOD = {"arm": "green", "ticket": "0", "reward": 1}
REFUSALS = {
    "an unknown task, decide": ("POST", "/v1/tasks/none/decide", None, 404, "unknown-task", r"got 'none'.*\['shop'\]"),
    "an unknown task, reward": ("POST", "/v1/tasks/none/reward", GOOD, 404, "unknown-task", "got 'none'"),
    "an unknown task, shown": ("GET", "/v1/tasks/none", None, 404, "unknown-task", "got 'none'"),
    "a name with a dot": ("POST", "/v1/tasks/a.b/decide", None, 422, "invalid-name", "1 to 64 letters.*got 'a.b'"),
    "a name too long": ("POST", f"/v1/tasks/{'a' * 65}/reward", GOOD, 422, "invalid-name", "1 to 64 letters"),
    "a name with an escape": ("GET", "/v1/tasks/%C3%BC", None, 422, "invalid-name", "got 'ü'"),
    "an empty name": ("POST", "/v1/tasks//decide", None, 422, "invalid-name", "got ''"),
    "an unknown arm": ("POST", REWARD, GOOD | {"arm": "red"}, 404, "unknown-arm", r"got 'red', task 'shop' has \["),
    "a very long arm": ("POST", REWARD, GOOD | {"arm": "r" * 9999}, 404, "unknown-arm", "unknown arm"),
    "an index too large": ("POST", REWARD, GOOD | {"arm": 3}, 404, "unknown-arm", "got 3, allowed is .* 0 to 2"),
    "an index below 0": ("POST", REWARD, GOOD | {"arm": -1}, 404, "unknown-arm", "got -1"),
    "an index beyond all": ("POST", REWARD, GOOD | {"arm": 10**4000}, 404, "unknown-arm", "got 1000"),
    "a reward above 1": ("POST", REWARD, GOOD | {"reward": 1.5}, 422, "invalid-reward", "from 0 to 1, got 1.5"),
    "a reward below 0": ("POST", REWARD, GOOD | {"reward": -1}, 422, "invalid-reward", "from 0 to 1, got -1"),
    "no decision waits": ("POST", REWARD, {"arm": 1, "reward": 1}, 409, "no-outstanding-decision", "reward each"),
    "a ticket never issued": ("POST", REWARD, GOOD | {"ticket": "99"}, 409, "unknown-ticket", "issued 0 to"),
    "a ticket beyond all": ("POST", REWARD, GOOD | {"ticket": 10**30}, 409, "unknown-ticket", "issued 0 to"),
    "another arm's ticket": ("POST", REWARD, GOOD | {"ticket": "1"}, 409, "unknown-ticket", "belongs to arm 1"),
    "a ticket of letters": ("POST", REWARD, GOOD | {"ticket": "x"}, 422, "invalid-body", r"\$\.ticket.*such as"),
    "a ticket with a sign": ("POST", REWARD, GOOD | {"ticket": "+0"}, 422, "invalid-body", r"\$\.ticket"),
    "a ticket in Thai digits": ("POST", REWARD, GOOD | {"ticket": "๐"}, 422, "invalid-body", r"\$\.ticket"),
    "a ticket below 0": ("POST", REWARD, GOOD | {"ticket": -1}, 422, "invalid-body", r">= 0.*\$\.ticket"),
    "a ticket with a fraction": ("POST", REWARD, GOOD | {"ticket": 0.0}, 422, "invalid-body", r"\$\.ticket"),
    "an arm that is true": ("POST", REWARD, GOOD | {"arm": True}, 422, "invalid-body", r"got `bool` - at `\$\.arm`"),
    "a reward that is a string": ("POST", REWARD, GOOD | {"reward": "1"}, 422, "invalid-body", r"\$\.reward"),
    "a reward that is true": ("POST", REWARD, GOOD | {"reward": True}, 422, "invalid-body", r"\$\.reward"),
    "a reward beyond floats": ("POST", REWARD, b'{"arm": 0, "reward": 1e999}', 422, "invalid-body", "out of range"),
    "no reward": ("POST", REWARD, {"arm": 0}, 422, "invalid-body", "missing required field `reward`"),
    "a misspelt field": ("POST", REWARD, GOOD | {"tickt": "0"}, 422, "invalid-body", "unknown field `tickt`"),
    "a list": ("POST", REWARD, b"[]", 422, "invalid-body", "Expected `object`"),
    "no body": ("POST", REWARD, None, 400, "not-json", "must be JSON in UTF-8, such as"),
    "half a body": ("POST", REWARD, b'{"arm": "gre', 400, "not-json", "must be JSON"),
    "not a number": ("POST", REWARD, b'{"arm": 0, "reward": NaN}', 400, "not-json", "must be JSON"),
    "not UTF-8": ("POST", REWARD, b'{"arm": "\xff", "reward": 1}', 400, "not-json", "must be JSON in UTF-8"),
    "half a surrogate": ("POST", REWARD, b'{"arm": "\\ud800", "reward": 1}', 400, "not-json", "must be JSON"),
    "a body too large": ("POST", REWARD, b" " * (LARGEST_BODY + 1), 413, "body-too-large", "at most 65536 bytes"),
    "GET for decide": ("GET", DECIDE, None, 405, "", "method GET is not possible here, allowed is POST"),
    "PUT for reward": ("PUT", REWARD, GOOD, 405, "", "allowed is POST"),
    "POST for a task": ("POST", "/v1/tasks/shop", None, 405, "", "allowed is GET, HEAD"),
    "DELETE for all tasks": ("DELETE", "/v1/tasks", None, 405, "", "allowed is GET, HEAD"),
    "POST for health": ("POST", "/healthz", None, 405, "", "allowed is GET, HEAD"),
    "an unknown path": ("GET", "/v2/tasks", None, 404, "", "nothing is at '/v2/tasks': see /openapi.json"),
    "an unknown verb": ("POST", "/v1/tasks/shop/vote", None, 404, "", "nothing is at"),
    "a path below a verb": ("POST", "/v1/tasks/shop/decide/x", None, 404, "", "nothing is at"),
    "a path that ends in a slash": ("GET", "/v1/tasks/shop/", None, 404, "", "nothing is at"),
    "the root": ("GET", "/", None, 404, "", "nothing is at '/'"),
}


@pytest.mark.parametrize("protocol", ["dme", "tally"])
def test_every_refusal_has_its_status_and_its_problem_and_changes_nothing(protocol: str, edge: Edge) -> None:
    hosted = host(edge, task(protocol))

    async def scenario() -> None:
        async with client_of(edge) as client:
            first = (await client.post(DECIDE)).json()
            other = (first["index"] + 1) % 3
            edge.keep()
            before = hosted.player.snapshot()
            counted: dict[int, int] = {}
            for case, (method, path, body, status, kind, says) in REFUSALS.items():
                if protocol == "tally" and case in ("another arm's ticket", "no decision waits"):
                    continue  # which arm comes first differs: see below
                content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
                if protocol == "tally" and isinstance(body, dict) and body.get("arm") == "green":
                    content = json.dumps(body | {"arm": first["arm"]}).encode()
                answer = await client.request(method, path, content=content)
                check_problem(answer, status, kind, says)
                assert len(answer.json()["detail"]) <= LONGEST_DETAIL + 1
                if status == 405:
                    assert answer.headers["allow"] == ("POST" if path in (DECIDE, REWARD) else "GET, HEAD")
                counted[status] = counted.get(status, 0) + 1
                assert hosted.player.snapshot() == before, case
                assert not hosted.dirty, case
            answer = await client.post(REWARD, json={"arm": other, "reward": 1})
            check_problem(answer, 409, "no-outstanding-decision", "reward each decision once")
            answer = await client.post(REWARD, json={"arm": other, "ticket": first["ticket"], "reward": 1})
            check_problem(answer, 409, "unknown-ticket", f"belongs to arm {first['index']}")
            counted[409] += 2
            assert hosted.player.snapshot() == before
            metrics = read_metrics((await client.get("/metrics")).text)
            for status, count in counted.items():
                assert metrics[f'outvote_edge_refused_requests_total{{status="{status}"}}'] == count
            assert metrics["outvote_edge_decisions_total"] == 1
            assert metrics["outvote_edge_rewards_total"] == 0
            answer = await client.post(REWARD, json={"arm": first["arm"], "ticket": first["ticket"], "reward": 1})
            assert answer.status_code == 204

    within_deadline(scenario())


def test_a_second_reward_for_one_decision_is_refused(edge: Edge) -> None:
    hosted = host(edge, task())
    ask(edge, "POST", DECIDE)
    assert ask(edge, "POST", REWARD, json=GOOD).status_code == 204
    before = hosted.player.snapshot()
    check_problem(ask(edge, "POST", REWARD, json=GOOD), 409, "no-outstanding-decision", "under ticket 0")
    assert hosted.player.snapshot() == before


def test_an_unforeseen_error_is_a_500_without_internals_and_its_log_holds_nothing_of_the_request(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host(edge, task())

    def fail(name: str, arm: int, reward: float, ticket: int | None = None) -> None:
        raise RuntimeError(f"secret {name} {reward}")

    monkeypatch.setattr(edge, "reward", fail)
    answer = ask(edge, "POST", REWARD, json=GOOD | {"reward": 0.625})
    check_problem(answer, 500, "", "its log says where")
    for leaked in ("secret", "RuntimeError", "Traceback", ".py"):
        assert leaked not in answer.text
    [record] = caplog.records
    assert "RuntimeError" in record.getMessage()
    assert "in fail" in record.getMessage()
    assert "0.625" not in caplog.text
    assert "secret shop" not in caplog.text


# ---- bodies and connections


def head(length: str, *, path: str = REWARD) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: edge\r\n{length}\r\n\r\n".encode()


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
            second = json.dumps({"arm": ARMS[1], "ticket": "1", "reward": 1}).encode().ljust(LARGEST_BODY)
            assert (await client.post(REWARD, content=in_pieces(second))).status_code == 204

    within_deadline(scenario())


def test_an_announced_length_is_not_believed(edge: Edge) -> None:
    hosted = host(edge, task())
    body = json.dumps(GOOD).encode()

    async def scenario() -> None:
        async with running(edge) as port:
            edge.decide("shop")
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
            # What is no length at all, or two of them, or one besides chunks, never reaches the application.
            for lie in (
                "Content-Length: -1",
                "Content-Length: x",
                f"Content-Length: {len(body)}\r\nContent-Length: 5",
                f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked",
            ):
                assert re.findall(rb"HTTP/1.1 (\d+)", await exchange(port, head(lie) + body)) == [b"400"], lie
            # A chunk that is announced and does not come, and chunks that never end.
            chunked = head("Transfer-Encoding: chunked")
            assert await exchange(port, chunked + b"%x\r\n" % (len(body) + 5) + body) == b""
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(chunked + b"1000\r\n" + b" " * 4096 + b"\r\n")
            for _ in range(16):
                writer.write(b"1000\r\n" + b" " * 4096 + b"\r\n")
            assert (await read_answer(reader))[0] == 413
            writer.close()
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


def test_pipelined_requests_are_answered_in_order(edge: Edge) -> None:
    hosted = host(edge, task())

    async def scenario() -> None:
        async with running(edge) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            requests = []
            for event in range(60):
                body = json.dumps({"arm": ARMS[event % 3], "reward": 1}).encode()
                requests += [head("Content-Length: 0", path=DECIDE), head(f"Content-Length: {len(body)}") + body]
            writer.write(b"".join(requests))
            for event in range(60):
                status, content = await read_answer(reader)
                assert (status, json.loads(content)["arm"]) == (200, ARMS[event % 3])
                assert await read_answer(reader) == (204, b"")
            writer.close()
            assert hosted.player.snapshot()["pulls"] == [20, 20, 20]

    within_deadline(scenario())


def test_a_request_that_comes_byte_by_byte_is_whole_in_the_end(edge: Edge) -> None:
    host(edge, task())
    body = json.dumps(GOOD).encode()

    async def scenario() -> None:
        async with running(edge) as port:
            edge.decide("shop")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in head(f"Content-Length: {len(body)}") + body:
                writer.write(bytes([byte]))
                await asyncio.sleep(0)  # lets the server read what there is
            assert await read_answer(reader) == (204, b"")
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
                await serve(edge, port=port)
        with pytest.raises(ListenError, match=r"192\.0\.2\.1"):
            await serve(edge, "192.0.2.1", 0)
        with pytest.raises(ListenError, match="no address to listen on: got 'no such host'"):
            await serve(edge, "no such host", 0)
        with pytest.raises(ListenError, match="a port must be from 0 to 65535, got 70000"):
            await serve(edge, port=70000)

    within_deadline(scenario())


def test_the_signals_of_the_program_stay_its_own(edge: Edge) -> None:
    async def scenario() -> None:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        async with client_of(edge) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert {number: signal.getsignal(number) for number in handlers} == handlers

    within_deadline(scenario())


def test_it_runs_in_uvloop_as_well(edge: Edge) -> None:
    host(edge, task())

    async def scenario() -> None:
        async with client_of(edge) as client:
            assert (await client.post(DECIDE)).json() == {"arm": "green", "index": 0, "ticket": "0"}

    uvloop.run(asyncio.wait_for(scenario(), DEADLINE))


def test_nothing_of_a_request_is_logged_even_at_the_most_talkative_level(
    edge: Edge, caplog: pytest.LogCaptureFixture
) -> None:
    host(edge, task())
    caplog.set_level(1)

    async def scenario() -> None:
        async with running(edge) as port:
            logging.getLogger("test").warning("this log works")
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
                await client.post("/v1/tasks/shop/decide?secret=1", headers={"x-secret": "2"})
                await client.post(REWARD, json={"arm": "secret", "reward": 1}, headers={"x-secret": "2"})
            await exchange(port, b"secret nonsense\r\n\r\n")

    within_deadline(scenario())
    ours = [record for record in caplog.records if record.name.startswith(("uvicorn", "outvote", "test"))]
    said = {record.getMessage() for record in ours}
    assert said == {"this log works", "Invalid HTTP request received."}


# ---- what people and programs ask


def test_tasks_are_listed_by_name_with_all_there_is_to_know(edge: Edge) -> None:
    assert ask(edge, "GET", "/v1/tasks").json() == {"tasks": []}
    edge._join("web-7", task("tally", name="web", arms=4).to_json())
    edge._join("shop-1", task().to_json())
    listed = msgspec.json.decode(ask(edge, "GET", "/v1/tasks").content, type=TaskList)
    assert [(each.id, each.name, each.protocol) for each in listed.tasks] == [
        ("shop-1", "shop", "dme"),
        ("web-7", "web", "tally"),
    ]
    assert ask(edge, "GET", "/v1/tasks/shop").json() == {
        "id": "shop-1",
        "name": "shop",
        "protocol": "dme",
        "arms": list(ARMS),
        "remaining": list(ARMS),
        "finished": False,
        "winner": None,
        "stopped": False,
        "late_rewards": 0,
        "dropped_rewards": 0,
        "messages_kept": 0,
        "messages_waiting": 0,
    }


def test_health_says_whether_the_edge_is_connected(edge: Edge) -> None:
    class Connected:
        connected = True

    answer = ask(edge, "GET", "/healthz")
    assert answer.status_code == 200
    assert msgspec.json.decode(answer.content, type=Health) == Health("ok", "ams", False, 0)
    edge.link = Connected()  # type: ignore[assignment]
    assert ask(edge, "GET", "/healthz").json()["connected"] is True
    assert read_metrics(ask(edge, "GET", "/metrics").text)["outvote_edge_connected"] == 1


def test_head_is_answered_like_get_without_the_body(edge: Edge) -> None:
    async def scenario() -> None:
        async with client_of(edge) as client:
            for path in ("/healthz", "/v1/tasks", "/openapi.json"):
                with_body, without = await client.get(path), await client.head(path)
                assert (without.status_code, without.content) == (200, b"")
                assert without.headers["content-length"] == str(len(with_body.content))

    within_deadline(scenario())


METRIC = re.compile(r'([a-z_]+(?:\{status="\d{3}"\})?) (\d+)')


def read_metrics(text: str) -> dict[str, int]:
    """Prometheus' text format, as strictly as it is used here: each sample after the type of its family."""
    found: dict[str, int] = {}
    family = ""
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert kind == ("counter" if family.endswith("_total") else "gauge")
        elif not line.startswith("# HELP "):
            sample = METRIC.fullmatch(line)
            assert sample, line
            assert sample[1].partition("{")[0] == family
            assert sample[1] not in found
            found[sample[1]] = int(sample[2])
    return found


def test_metrics_count_what_was_done(edge: Edge) -> None:
    hosted = host(edge, task("tally"))
    app = make_app(edge)

    async def scenario() -> None:
        for _ in range(3):
            decision = (await in_process(app, "POST", DECIDE)).json()
            await in_process(app, "POST", REWARD, json={"arm": decision["arm"], "reward": 1})
        await in_process(app, "POST", REWARD, json={"arm": "green", "reward": 2})
        answer = await in_process(app, "GET", "/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        expected = {
            "outvote_edge_decisions_total": 3,
            "outvote_edge_rewards_total": 3,
            'outvote_edge_refused_requests_total{status="422"}': 1,
            "outvote_edge_tasks": 1,
            "outvote_edge_messages_waiting": 1,
            "outvote_edge_connected": 0,
        }
        assert read_metrics(answer.text) == expected
        edge.keep()
        assert read_metrics((await in_process(app, "GET", "/metrics")).text) == expected
        hosted.stored = edge.store.messages("shop-1")[-1][0]
        assert read_metrics((await in_process(app, "GET", "/metrics")).text)["outvote_edge_messages_waiting"] == 0

    asyncio.run(scenario())


def test_the_openapi_document_lists_exactly_what_is_answered(edge: Edge) -> None:
    host(edge, task())
    document = ask(edge, "GET", "/openapi.json").json()
    assert document == json.loads(json.dumps(openapi()))
    assert document["openapi"] == "3.1.0"
    offered = {(method, path) for path, item in document["paths"].items() for method in item if method != "parameters"}
    assert offered == {
        ("get", "/v1/tasks"),
        ("get", "/v1/tasks/{task}"),
        ("post", "/v1/tasks/{task}/decide"),
        ("post", "/v1/tasks/{task}/reward"),
        ("get", "/healthz"),
        ("get", "/metrics"),
        ("get", "/openapi.json"),
    }
    ask(edge, "POST", DECIDE)
    for method, path in sorted(offered):
        operation = document["paths"][path][method]
        assert ("{task}" in path) == ("parameters" in document["paths"][path])
        answer = ask(edge, method.upper(), path.replace("{task}", "shop"), json=GOOD if "reward" in path else None)
        described = operation["responses"][str(answer.status_code)]
        if answer.status_code != 204:
            assert list(described["content"]) == [answer.headers["content-type"].partition(";")[0]]
    for reference in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert reference in document["components"]["schemas"]


def test_the_openapi_document_names_every_refusal(edge: Edge) -> None:
    paths = openapi()["paths"]
    for method, path, _, status, _, _ in REFUSALS.values():
        template = re.sub(r"^/v1/tasks/[^/]*(/(decide|reward))?$", r"/v1/tasks/{task}\1", path)
        operation = paths.get(template, {}).get(method.lower())
        if operation is not None:
            assert str(status) in operation["responses"], (method, path, status)
            assert "application/problem+json" in operation["responses"][str(status)]["content"]
