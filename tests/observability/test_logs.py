"""What server and edge write to standard error: every line can be read by a program, tells what happened to the fleet,
and holds nothing of any request.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import random
import re
import signal
import socket
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from dashboard.stories import held
from helpers.edge_http import REWARD
from helpers.processes import Running, Start, an_edge, complaints, request, until, well
from outvote import __version__
from outvote.cli.main import main
from outvote.engine.nats_log import NatsLog
from outvote.log.catch_up import Question
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.records import DownSubject, UpSubject, discount_record
from outvote.observability.logs import event, written
from outvote.observability.once_per_minute import MAX_KINDS, PAUSE
from outvote.presenters.site_words import NOTICES
from outvote.server import event_log as journal
from outvote.server import monitor
from outvote.server.event_log import MOST_NAMES, OTHERS, EventLog
from outvote.server.liveness import SILENT_AFTER
from outvote.server.sync_server import SyncServer

ROOT = Path(__file__).parents[2]
MARK = "zebra7531"
"""What users send; no log may hold it."""
USER = {"User-Agent": MARK, "X-Forwarded-For": f"203.0.113.77, {MARK}", "Cookie": f"user={MARK}", "Accept": MARK}
SHOP: dict[str, Any] = {
    "name": "shop", "protocol": "tally", "variants": ["red", "green"], "sites": 1, "reward_window": 1, "epsilon": 0,
    "delta": 0.3,
}  # fmt: skip
TICKET = "mPq2_x7B.17.1.5.9995000000000"
"""Of another process."""
AT_LEAST = {"time", "level", "event"}


def events_of(text: str) -> list[dict[str, Any]]:
    """Every line is one object with the fields that all have."""
    found = []
    for line in text.splitlines():
        told = json.loads(line)
        assert set(told) >= AT_LEAST
        assert told["time"].endswith("Z")
        datetime.fromisoformat(told["time"])
        assert told["level"] in ("debug", "info", "warning", "error")
        assert re.fullmatch(r"[a-z_]+", told["event"])
        found.append(told)
    return found


def names(told: list[dict[str, Any]]) -> list[str]:
    return [each["event"] for each in told]


def users(edge: Running, done: Callable[[], bool]) -> int:
    """Events with marked headers and bodies, until it is done; how many."""
    rng, events = random.Random(1), 0
    at = f"{edge.url('edge')}/v1/tasks/shop"
    with httpx.Client(headers=USER, trust_env=False) as client:
        while not done():
            for _ in range(100):
                decision = client.post(f"{at}/decide?user={MARK}", content=MARK).json()
                reward = {"red": 0.1250437, "green": 0.8750437}[decision["variant"]] if rng.random() < 0.1 else 0
                reward = reward or int(rng.random() < {"red": 0.1, "green": 0.9}[decision["variant"]])
                body = {"ticket": decision["ticket"], "reward": reward}
                assert client.post(f"{at}/reward?user={MARK}", json=body).status_code == 204
                events += 1
    return events


def bother(url: str) -> None:
    """Everything that is refused, and what is no HTTP at all."""
    with httpx.Client(base_url=url, headers=USER, trust_env=False) as client:
        for method, path, body in (
            ("POST", REWARD, f'{{"variant": "{MARK}", "reward": 1}}'),
            ("POST", REWARD, f'{{"ticket": "{TICKET}", "reward": 0.531946, "user": "{MARK}"}}'),
            ("POST", REWARD, f'{{"ticket": "{TICKET}", "reward": 0.531946, "variant": "{MARK}"}}'),
            ("POST", REWARD, f'{{"ticket": "{MARK}", "reward": 0.531946}}'),
            ("POST", REWARD, f'{{"ticket": "{TICKET}", "reward": 0.531946}}'),
            ("POST", REWARD, MARK),
            ("POST", REWARD, "x" * 70_000),
            ("POST", f"/v1/tasks/{MARK}/decide", ""),
            ("POST", f"/v1/tasks/%00{MARK}%0a{{}}/decide", ""),
            ("GET", f"/{MARK}/%22?{MARK}", ""),
            ("PUT", f"/v1/tasks/{MARK}/stop", MARK),
            ("POST", "/v1/tasks", f'{{"name": "{MARK}"}}'),
            (MARK.upper(), "/metrics", ""),
        ):
            assert client.request(method, path, content=body).status_code >= 400
    parts = urlsplit(url)
    for nonsense in (
        f"{MARK} nonsense\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: {MARK}\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        f"POST /v1/tasks HTTP/1.1\r\nHost: {MARK}\r\nContent-Length: 99\r\n\r\n{MARK}",
    ):
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=5) as connection:
            connection.sendall(nonsense.encode())
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass


async def forge(url: str, task_id: str, count: int) -> None:
    """Records that are no messages, as nobody but an attacker would store them."""
    async with await NatsLog.connect(url, name="forger") as link:
        for number in range(count):
            await link.append(str(UpSubject("mallory", task_id, "life", number)), b"no message at all")


def test_everything_that_happens_to_a_fleet_is_told_as_json_and_nothing_of_any_request(start: Start) -> None:
    log = ("--log", "json", "--log-level", "debug")
    server = start("server", "--port", "0", "--engine-port", "0", "--store", "log", *log)
    edge = an_edge(start, server, "ams", *log)
    tasks, here = f"{server.url('server')}/v1/tasks", f"{edge.url('edge')}/v1/tasks"
    task_id = request(tasks, SHOP)["id"]
    until(lambda: bool(request(here)["tasks"]), "the edge has joined")
    for url in (server.url("server"), edge.url("edge")):
        bother(url)
    events = users(edge, lambda: request(f"{tasks}/shop")["status"] == "finished")
    until(lambda: request(f"{here}/shop")["winner"] == "green", "the edge has heard of it")
    asyncio.run(forge(server.url("nats"), task_id, 40))
    until(lambda: request(f"{tasks}/shop")["refused"] >= 40, "forged records are refused")
    second = start("server", "--nats", server.url("nats"), "--port", "0", *log)
    request(f"{tasks}/shop/stop", method="POST")
    until(lambda: bool(request(f"{here}/shop")["stopped"]), "the edge has stopped it")
    request(f"{tasks}/shop", method="DELETE")
    until(lambda: not request(here)["tasks"], "the edge has left it")
    os.kill(server.pid("engine"), signal.SIGKILL)
    ended = {"server": server.ended()}  # it goes with its engine
    start("server", "--port", "0", "--engine-port", server.port("nats"), "--store", "log", *log)
    until(lambda: bool(request(f"{edge.url('edge')}/healthz")["connected"]), "the edge is back")
    until(lambda: well(second), "the other server is back")

    written_by = {}
    ended |= {"second": second.end(signal.SIGTERM), "edge": edge.end(signal.SIGTERM)}
    for who, (code, out, err) in ended.items():
        assert (code, out) == (1 if who == "server" else 0, "")
        for marked in (MARK, MARK.upper(), "203.0.113", "50437", "31946", '"ticket"', '"reward"'):
            assert marked not in err, marked
        assert re.search(r"[\w-]{8}(\.\d+){3}\.\d{13}", err) is None, "a ticket"
        written_by[who] = events_of(err)

    told = written_by["server"]
    assert {
        "started", "engine_connected", "log_read", "task_created", "variants_eliminated", "winner_found",
        "records_refused", "task_stopped", "task_deleted", "stopped", "failed",
    } <= set(names(told))  # fmt: skip
    by_name = {each["event"]: each for each in told}
    assert by_name["started"]["version"] == __version__
    assert by_name["started"]["api"] == server.url("server")
    assert by_name["started"]["engine"] == server.url("nats")
    assert by_name["log_read"] | {"records": 0, "tasks": 0, "sites": 0} == by_name["log_read"]
    fell = by_name["variants_eliminated"]
    assert (fell["id"], fell["variants"], fell["number"], fell["remaining"]) == (task_id, ["red"], 0, 1)
    assert by_name["winner_found"]["winner"] == "green"
    refused = [each for each in told if each["event"] == "records_refused"]
    assert {(each["site"], each["id"]) for each in refused} == {("mallory", task_id)}
    assert refused[0]["count"] == 1  # the others are told a minute later, if the test takes so long
    assert len(refused) <= 2
    assert names(told)[-1] == "failed"
    assert "the engine (nats-server) ended with signal SIGKILL" in by_name["failed"]["text"]
    assert len(told) < 40

    told = written_by["edge"]
    assert {
        "started", "engine_connected", "task_joined", "decisions_made", "variants_eliminated", "messages_stored",
        "task_stopped", "task_left", "engine_disconnected", "engine_reconnected", "stopped",
    } <= set(names(told))  # fmt: skip
    made = [each for each in told if each["event"] == "decisions_made"]
    assert [each["count"] for each in made] == [10**power for power in range(2, 2 + len(made))], "powers of ten"
    stored = [each["count"] for each in told if each["event"] == "messages_stored"]
    assert len(told) - len(stored) < 40 < events  # no line for an event
    assert {each["level"] for each in told if each["event"] == "messages_stored"} == {"debug"}

    told = written_by["second"]  # what was there before it came is one line
    assert names(told).count("log_read") == 1
    assert not {"task_created", "variants_eliminated", "winner_found", "records_refused"} & set(names(told))
    assert {"task_stopped", "task_deleted", "engine_disconnected", "engine_reconnected"} <= set(names(told))


def test_lines_for_people_can_be_read_by_people(server: Running, start: Start) -> None:
    edge = an_edge(start, server, "ams")
    request(f"{server.url('server')}/v1/tasks", SHOP)
    until(lambda: bool(request(f"{edge.url('edge')}/v1/tasks")["tasks"]))
    for process, expected in ((edge, "task_joined task=shop id=shop-"), (server, "task_created task=shop id=shop-")):
        code, _, err = process.end(signal.SIGTERM)
        assert (code, complaints(err)) == (0, [])
        lines = err.splitlines()
        for line in lines:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info   |warning) [a-z_]+( \w+=.+)*", line)
        assert expected in err
        assert lines[-1].split()[2] == "stopped"


def test_what_a_command_says_when_it_fails_or_is_interrupted_is_a_line_of_the_log_too(
    server: Running, start: Start, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    edge = an_edge(start, server, "ams", "--log", "json", "--log-level", "error")
    code, _, err = edge.end(signal.SIGINT)
    [last] = events_of(err)
    assert (code, last["event"], last["level"]) == (130, "interrupted", "info")
    store = str(tmp_path / "other.db")
    taken = ["edge", "a", "--nats", server.url("nats"), "--port", server.port("server"), "--store", store]
    assert main([*taken, "--log", "json"]) == 1
    last = events_of(capsys.readouterr().err)[-1]
    assert (last["event"], last["level"]) == ("failed", "error")
    assert "cannot listen on" in last["text"]
    assert main(taken) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("outvote edge: error: cannot listen on")


def test_the_documents_list_every_event() -> None:
    sources = (ROOT / "src" / "outvote").rglob("*.py")
    written_there = {
        name for path in sources for name in re.findall(r'logging\.[A-Z]+, "([a-z_]+)"', path.read_text("utf-8"))
    }
    document = (ROOT / "docs" / "operations.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:both|server|edge) \| (`.*) \|$", document, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == written_there | set(NOTICES) | {
        "failed", "interrupted", "library",
    }  # fmt: skip


def test_of_what_libraries_say_only_their_own_words_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    before = logging.getLogger().handlers[:]
    with written("json", "debug"):
        library = logging.getLogger("uvicorn.error")
        library.warning("Invalid request from %s:%d", "203.0.113.77", 99)
        library.error(f"lost 203.0.113.77 {MARK}\nsecond line {MARK}")
        library.error(OSError(MARK))
        library.info("told nobody")
        try:
            raise ValueError(MARK)
        except ValueError:
            library.exception("Exception in ASGI application\n")
        event(logging.getLogger("outvote.edge.site"), logging.DEBUG, "done", percent="5 %s %d", name="Ω 1")
        for _ in range(500):  # whoever is outside may cause as many as they like
            library.warning("Invalid request from %s:%d", "203.0.113.77", 99)
        later = logging.makeLogRecord({"name": library.name, "msg": "Invalid request from %s", "args": (MARK,)})
        later.levelno, later.levelname, later.created = logging.WARNING, "WARNING", later.created + PAUSE
        library.handle(later)
    assert logging.getLogger().handlers == before
    invalid, lost, raised, failed, done, again = events_of(out.getvalue())
    assert (invalid["event"], invalid["logger"], invalid["level"]) == ("library", "uvicorn.error", "warning")
    assert invalid["says"] == "Invalid request from"
    assert (invalid["count"], again["says"], again["count"]) == (1, "Invalid request from", 501)
    assert lost["says"] == "lost"
    assert raised["says"] == "OSError"
    assert (failed["says"], failed["error"]) == ("Exception in ASGI application", "ValueError")
    assert "test_logs.py" in failed["place"]
    assert (done["percent"], done["name"]) == ("5 %s %d", "Ω 1")
    for marked in ("203.0", MARK):
        assert marked not in out.getvalue()


# ---- what a server tells, without an engine


class NoLink:
    connected = True


def told_in(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    return [each.outvote_event for each in caplog.records if each.name == journal.__name__]  # type: ignore[attr-defined]


def test_a_task_that_is_held_back_and_released_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    state, told = LogState(), EventLog()
    records = [*held().records, (str(DownSubject("shop-1", "discount", 0)), discount_record("bog"))]
    for number, (subject, payload) in enumerate(records, 1):
        for happened in state.apply(Record(subject, payload, number, 10.0)):
            told.note(happened, state, 0.0)
        if number == 1:  # before it has caught up: not a word
            told.begin(state)
    assert [name for name, _ in told_in(caplog)] == ["log_read", "task_held", "site_discounted", "task_released"]
    assert told_in(caplog)[1][1] == {"task": "shop", "id": "shop-1"}


def test_two_lives_under_one_name_are_told_once_a_minute_and_those_of_the_past_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state, told, number = LogState(), EventLog(), 0

    def send(site: str, life: str, at: float) -> list[tuple[str, int]]:
        nonlocal number
        number += 1
        subject = str(UpSubject(site, "shop-1", life, number)) if number > 1 else held().records[0][0]
        caplog.clear()
        for happened in state.apply(Record(subject, held().records[0][1] if number == 1 else b"", number, at)):
            told.note(happened, state, at)
        told.look((), at)
        lines = [fields for name, fields in told_in(caplog) if name == "site_with_several_lives"]
        assert all("lost or copied, or two processes run under this name: stop all but one" in x["do"] for x in lines)
        return [(fields["site"], fields["count"]) for fields in lines]

    for site, life in (("", ""), ("bog", "old"), ("bog", "new"), ("lim", "a"), ("lim", "b"), ("osl", "only")):
        assert send(site, life, 0.0) == []
    told.begin(state)
    assert send("bog", "new", 0.0) == send("osl", "only", 0.0) == []  # a store that was replaced long ago
    assert send("osl", "second", 0.0) == [("osl", 1)]
    assert send("lim", "a", 0.0) == []
    assert send("lim", "b", 1.0) == [("lim", 1)]  # both are at work: this server was not there when it began
    assert [send("lim", life, 2.0) for life in "aabb"] == [[]] * 4
    assert send("lim", "b", 1.0 + PAUSE) == [("lim", 2)]
    assert send("lim", "b", 2.0 + 2 * PAUSE) == []


def test_edges_that_come_go_and_come_back_are_told_together(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(monitor, "LOOK_EVERY", 0.001)
    now = 1000.0

    async def run() -> None:
        nonlocal now
        server, asked = SyncServer(NoLink(), clock=lambda: now), Question("life", {})  # type: ignore[arg-type]
        looking = asyncio.create_task(server.look_around())

        async def look(count: int) -> None:
            async with asyncio.timeout(10):
                while len(told_in(caplog)) < count:
                    await asyncio.sleep(0.001)

        for number in range(30):
            server.monitor.on_question(f"edge-{number:02}", asked)
        await look(1)
        now += SILENT_AFTER + 1
        server.monitor.on_question("edge-00", asked)
        await look(2)
        server.monitor.on_question("edge-07", asked)
        await look(3)
        looking.cancel()

    asyncio.run(run())
    heard, silent, back = told_in(caplog)
    assert heard == ("sites_first_heard", {"count": 30, "sites": [f"edge-{number:02}" for number in range(MOST_NAMES)]})
    assert (silent[0], silent[1]["count"]) == ("sites_silent", 29)
    assert back == ("sites_back", {"count": 1, "sites": ["edge-07"]})


def test_a_flood_of_records_that_are_refused_is_a_line_a_minute_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    told = EventLog()
    for number in range(10 * MAX_KINDS):  # names can be made up
        told._note_often(f"edge-{number}", "shop-1", 1000.0)
    assert len(told_in(caplog)) == MAX_KINDS + 1
    told.look((), 1000.0 + PAUSE)
    name, fields = told_in(caplog)[-1]
    assert (name, fields["site"], fields["count"]) == ("records_refused", OTHERS, 9 * MAX_KINDS - 1)
