"""`outvote.client` against a real edge: the common case, edges that are gone, slow or strange, what is sent again."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.processes import Running
from helpers.secured_edge import secured_edge
from outvote.client import AsyncClient, Client, Decision, EdgeError
from outvote.core.task import Task
from outvote.edge.store import EdgeStore

DEADLINE = 20.0
TASK = Task(
    name="shop",
    arms=["red", "green", "blue"],
    players=["ams"],
    epsilon=0,
    delta=0.05,
    protocol="tally",
    reward_window=600,
)
REFUSAL = b'{"detail": "as it is"}'


class EdgeProcess:
    """An edge that has a task in its store and no network."""

    def __init__(self, folder: Path, port: str = "0") -> None:
        self._running = Running(folder, "edge", "ams", "--nats", "nats://127.0.0.1:1", "--port", port)
        self.url, self.port = self._running.url("edge"), self._running.port("edge")
        self.task = "shop"
        """The one of the present test."""

    def counts(self) -> tuple[int, int]:
        """Decisions of this test's task, and how many of them have a reward."""
        shown = httpx.get(f"{self.url}/v1/tasks/{self.task}", timeout=DEADLINE, trust_env=False).json()
        return sum(each["decisions"] for each in shown["seen"]), sum(each["rewards"] for each in shown["seen"])

    def end(self) -> None:
        assert self._running.end(signal.SIGTERM)[0] == 0
        self._running.kill()


def store_tasks(folder: Path, names: Iterable[str]) -> None:
    with EdgeStore(folder / "outvote-edge-ams.db") as store:
        for name in names:
            store.put_task(f"{name}-1", json.dumps({**TASK.to_json(), "name": name}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store_tasks(tmp_path, ["shop"])
    return tmp_path


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EdgeProcess, Iterator[str]]]:
    """An edge for all tests that leave it running, and a task for each of them."""
    folder, names = tmp_path_factory.mktemp("edge"), [f"shop{number}" for number in range(40)]
    store_tasks(folder, names)
    running = EdgeProcess(folder)
    yield running, iter(names)
    running.end()


@pytest.fixture
def edge(lasting: tuple[EdgeProcess, Iterator[str]]) -> EdgeProcess:
    running, names = lasting
    running.task = next(names)
    return running


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where connections are refused."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def answering(answer: Callable[[], bytes | None]) -> Iterator[tuple[str, list[bytes]]]:
    """A program that is no edge: each request is kept, and gets what `answer` gives; None is silence."""
    requests: list[bytes] = []
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            requests.append(connection.recv(65_536))
            told = answer()
            if told is None:
                over.wait(DEADLINE)
            else:
                connection.sendall(told)

    def take(listener: socket.socket, threads: ThreadPoolExecutor) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # it was shut down
                return
            threads.submit(serve, connection)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as threads:
        threads.submit(take, listener, threads)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)


def response(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


class Both:
    """The asynchronous client with the calls of the other, so that one test serves both."""

    def __init__(self, url: str, **options: Any) -> None:
        self._client = AsyncClient(url, **options)
        self._loop = asyncio.new_event_loop()

    def decide(self, task: str, **options: Any) -> Decision:
        return self._loop.run_until_complete(self._client.decide(task, **options))

    def reward(self, decision: Decision, value: float | None = None, **options: Any) -> bool:
        return self._loop.run_until_complete(self._client.reward(decision, value, **options))

    @contextmanager
    def decision(self, task: str, **options: Any) -> Iterator[Decision]:
        block = self._client.decision(task, **options)
        found = self._loop.run_until_complete(block.__aenter__())
        try:
            yield found
        except BaseException as error:
            if not self._loop.run_until_complete(block.__aexit__(type(error), error, None)):
                raise
        else:
            self._loop.run_until_complete(block.__aexit__(None, None, None))

    def __enter__(self) -> Both:
        self._loop.run_until_complete(self._client.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.run_until_complete(self._client.__aexit__(None, None, None))
        self._loop.close()


Kind = type[Client] | type[Both]


@pytest.fixture(params=[Client, Both], ids=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


def test_a_decision_is_made_and_rewarded_in_two_lines(edge: EdgeProcess, kind: Kind) -> None:
    with kind(edge.url, timeout=DEADLINE) as client:
        with client.decision(edge.task, fallback="green") as decision:
            decision.reward(True)
        assert decision.decided
        assert decision.variant in TASK.arms
        assert decision.value == 1.0
    assert edge.counts() == (1, 1)


def test_a_block_sends_what_it_was_told_to_and_nothing_after_an_error(edge: EdgeProcess, kind: Kind) -> None:
    with kind(edge.url, timeout=DEADLINE) as client:
        with client.decision(edge.task):
            pass  # no reward is a reward of 0
        with client.decision(edge.task, otherwise=None):
            pass  # nor is any sent
        with client.decision(edge.task) as decision:
            assert client.reward(decision, 1)  # sent by hand, and again at the end
        with pytest.raises(ZeroDivisionError), client.decision(edge.task):
            raise ZeroDivisionError
    assert edge.counts() == (4, 2)


def test_a_later_request_rewards_a_decision_that_was_made_anew(edge: EdgeProcess, kind: Kind) -> None:
    with kind(edge.url, timeout=DEADLINE) as client:
        shown = client.decide(edge.task)
        assert client.reward(Decision(edge.task, shown.variant, shown.ticket), 1)
    assert edge.counts() == (1, 1)


def test_a_decision_may_be_rewarded_again_and_is_counted_once(edge: EdgeProcess, kind: Kind) -> None:
    with kind(edge.url, timeout=DEADLINE) as client:
        decisions = [client.decide(edge.task) for _ in range(2)]
        for value in (0, 1, 1, 0.5):
            assert client.reward(decisions[0], value)
    assert edge.counts() == (2, 1)


def test_a_decision_of_another_edge_is_refused(edge: EdgeProcess, kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    with kind(edge.url, timeout=DEADLINE) as client:
        shown = client.decide(edge.task)
        others = Decision(edge.task, shown.variant, f"AAAAAAAA{shown.ticket[8:]}")
        with pytest.raises(EdgeError, match=r"the edge answered 409: .* Send it to the edge that decided") as refused:
            client.reward(others, 1)
        assert refused.value.status == 409
        assert not client.reward(others, 1, strict=False)
    assert edge.counts() == (1, 0)
    assert "failed (status 409): rewards are lost" in caplog.text
    assert others.ticket not in caplog.text


def test_nothing_is_sent_for_a_decision_that_is_not_counted(nobody: str, kind: Kind) -> None:
    with kind(nobody) as client:
        for ticket in ("uncounted", ""):
            decision = Decision("shop", "green", ticket)
            assert (decision.decided, decision.counted) == (bool(ticket), False)
            assert not client.reward(decision, 1)


def test_what_cannot_be_is_refused_before_it_is_sent(edge: EdgeProcess, kind: Kind) -> None:
    with kind(edge.url, timeout=DEADLINE) as client:
        decision = client.decide(edge.task)
        for value in (1.5, -1, float("nan")):
            with pytest.raises(ValueError, match="a number from 0 to 1"):
                client.reward(decision, value)
        with pytest.raises(ValueError, match="a reward is needed"):
            client.reward(decision)
    with pytest.raises(ValueError, match="must be an address like"):
        kind("127.0.0.1:8700")


def test_names_cannot_lead_elsewhere(edge: EdgeProcess, kind: Kind) -> None:
    with kind(edge.url, timeout=DEADLINE) as client:
        own = edge.task
        for name in ("no", f"{own}/reward?", f"../{own}", f"a {own}", "ü", f"{own}#", "%2e", "..", ""):
            with pytest.raises(EdgeError) as refused:
                client.decide(name)
            assert refused.value.status in (404, 422)
    assert edge.counts()[0] == 0


def test_an_application_goes_on_without_an_edge_and_one_line_says_so(
    nobody: str, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    with kind(nobody) as client:
        for _ in range(3):
            with client.decision("shop", fallback="green") as decision:
                decision.reward(1)
            assert (decision.variant, decision.decided) == ("green", False)
        assert client.decide("shop", fallback="blue").variant == "blue"
        assert not client.reward(decision, 1)
    lines = [record for record in caplog.records if record.name == "outvote.client"]
    assert [(line.levelno, line.getMessage()) for line in lines] == [
        (
            logging.WARNING,
            "decide at the edge for task 'shop' failed (no answer): the fallback is shown. Said once until it works "
            "again",
        )
    ]


def test_without_a_fallback_the_error_says_where_nobody_answers(nobody: str, kind: Kind) -> None:
    with kind(nobody, timeout=0.2) as client, pytest.raises(EdgeError, match=f"no edge answers at {nobody}") as missing:
        client.decide("shop")
    assert missing.value.status is None


def test_trouble_is_told_again_after_it_had_ended(folder: Path, kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    first = EdgeProcess(folder)
    with kind(first.url) as client:
        assert client.decide("shop", fallback="green").decided
        first.end()
        assert not client.decide("shop", fallback="green").decided
        assert not client.decide("shop", fallback="green").decided
        second = EdgeProcess(folder, first.port)
        assert client.decide("shop", fallback="green").decided
        second.end()
        assert not client.decide("shop", fallback="green").decided
    assert len([record for record in caplog.records if record.name == "outvote.client"]) == 2


def test_a_task_that_the_edge_does_not_know_yet_is_the_fallback_too(
    edge: EdgeProcess, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    with kind(edge.url, timeout=DEADLINE) as client:
        assert not client.decide("new", fallback="green").decided
        assert client.decide(edge.task, fallback="green").decided
    assert "for task 'new' failed (status 404)" in caplog.text


def test_an_edge_that_restarts_is_waited_for(folder: Path, kind: Kind) -> None:
    first = EdgeProcess(folder)
    with kind(first.url, timeout=DEADLINE) as client, ThreadPoolExecutor(1) as threads:
        decision = client.decide("shop")
        first.end()
        restarted = threads.submit(EdgeProcess, folder, first.port)
        assert client.reward(decision, 1)
        assert client.decide("shop").decided
        assert restarted.result().counts() == (2, 1)
        restarted.result().end()


def test_a_reward_that_was_not_answered_is_sent_again_and_a_decision_is_not_asked_for_again(kind: Kind) -> None:
    for answer in (b"", b"HTTP/1.1 ", response("503 Unavailable", REFUSAL)):  # gone, broken, failed
        with answering(lambda answer=answer: answer) as (url, requests), kind(url) as client:  # type: ignore[misc]
            with pytest.raises(EdgeError):
                client.reward(Decision("shop", "green", "17"), 1)
            assert len(requests) > 1
            assert {each.split()[1] for each in requests} == {b"/v1/tasks/shop/reward"}
            requests.clear()
            with pytest.raises(EdgeError):
                client.decide("shop")
            assert not client.decide("shop", fallback="green").decided
            assert len(requests) == 2


def test_a_reward_that_was_not_answered_is_taken_in_the_end(kind: Kind) -> None:
    answers = [b"", response("500 Failed", REFUSAL), response("204 No Content", b"")]
    with answering(lambda: answers.pop(0)) as (url, requests), kind(url, timeout=DEADLINE) as client:
        assert client.reward(Decision("shop", "green", "17"), 1)
    assert len(requests) == 3


def test_an_edge_that_says_nothing_has_the_time_that_the_client_gives_it(kind: Kind) -> None:
    with answering(lambda: None) as (url, requests), kind(url, timeout=0.2) as client:
        with pytest.raises(EdgeError) as failed:
            client.reward(Decision("shop", "green", "17"), 1)
        assert failed.value.status is None
        assert not client.decide("shop", fallback="green").decided
    assert len(requests) == 2


def test_a_reward_that_was_refused_is_not_sent_again(kind: Kind) -> None:
    with answering(lambda: response("409 Conflict", REFUSAL)) as (url, requests), kind(url) as client:
        with pytest.raises(EdgeError, match="409: as it is") as refused:
            client.reward(Decision("shop", "green", "17"), 1)
        assert (refused.value.status, len(requests)) == (409, 1)


def test_what_is_no_edge_is_an_error_and_with_a_fallback_none(kind: Kind) -> None:
    for body in (b"<html>", b"[]", b"{}", b'{"variant": "red"}'):
        with answering(lambda body=body: response("200 OK", body)) as (url, _), kind(url, timeout=DEADLINE) as client:  # type: ignore[misc]
            with pytest.raises(EdgeError, match="is no edge"):
                client.decide("shop")
            assert client.decide("shop", fallback="green").variant == "green"


def test_proxies_of_the_environment_are_not_for_the_edge(
    edge: EdgeProcess, nobody: str, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, nobody)
    with kind(edge.url, timeout=DEADLINE) as client:
        assert client.decide(edge.task).decided


def test_threads_share_a_client(edge: EdgeProcess) -> None:
    with Client(edge.url, timeout=DEADLINE) as client, ThreadPoolExecutor(8) as threads:

        def serve(event: int) -> None:
            with client.decision(edge.task) as decision:
                decision.reward(event % 2)

        list(threads.map(serve, range(80)))
        once = client.decide(edge.task)
        assert all(threads.map(lambda _: client.reward(once, 1), range(16)))
    assert edge.counts() == (81, 81)


def test_tasks_share_an_asynchronous_client(edge: EdgeProcess) -> None:
    async def run() -> None:
        async with AsyncClient(edge.url, timeout=DEADLINE) as client:

            async def serve(event: int) -> None:
                async with client.decision(edge.task, fallback="green") as decision:
                    decision.reward(event % 2)

            await asyncio.gather(*(serve(event) for event in range(80)))

    asyncio.run(run())
    assert edge.counts() == (80, 80)


# ---- an edge that wants to know who asks


def test_a_token_and_whom_to_trust_are_all_that_a_secured_edge_needs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with secured_edge(tmp_path) as edge:
        secret = edge.holders.secrets["shop"]
        with Client(edge.url, token=secret, ca=edge.ca, timeout=DEADLINE) as client:
            decision = client.decide("shop")
            assert client.reward(decision, 1)
            assert client.evaluate("shop").decision.variant in TASK.arms
            assert secret not in repr(client)
            assert secret not in repr(vars(client))

        async def scenario() -> None:
            async with AsyncClient(edge.url, token=secret, ca=str(edge.ca), timeout=DEADLINE) as client:
                assert await client.reward(await client.decide("shop"), 0)
                assert secret not in repr(vars(client))

        asyncio.run(scenario())
        with Client(edge.url, token=edge.holders.secrets["former"], ca=edge.ca, timeout=DEADLINE) as client:
            with pytest.raises(EdgeError, match="expired") as refused:
                client.decide("shop")
            assert refused.value.status == 401
            assert client.decide("shop", fallback="red").variant == "red"
        with Client(edge.url, token=secret) as client, pytest.raises(EdgeError, match="certificate"):
            client.decide("shop")  # an authority that this machine does not know
        _, _, err = edge.running.end(signal.SIGTERM)
    for text in (caplog.text, err):
        for each in edge.holders.secrets.values():
            assert each not in text
    assert "requests_refused reason=expired count=1" in err


def test_a_token_does_not_go_over_the_network_in_plaintext() -> None:
    with pytest.raises(ValueError, match="in plaintext: use https, got 'http://10"):
        Client("http://10.0.0.7:8700", token="outvote-x")
    Client("http://127.0.0.1:8700", token="outvote-x").close()


@pytest.mark.parametrize("token", ["", "two words", "line\n", "é"])
def test_what_cannot_be_a_token_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII without spaces") as refused:
        Client(token=token)
    assert not token or token not in str(refused.value)
    with pytest.raises(FileNotFoundError):
        Client("https://127.0.0.1:1", ca="/nowhere.pem")
