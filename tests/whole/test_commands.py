"""`outvote server`, `edge` and `task` as an operator meets them: real processes, killed and interrupted."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from helpers.processes import (
    DEADLINE,
    OUTVOTE,
    Running,
    Start,
    an_edge,
    complaints,
    gone,
    listens,
    request,
    until,
)
from outvote.cli import task as task_command
from outvote.cli.main import main
from outvote.cli.serving import Failed
from outvote.cli.task_show import when

WINDOW = ["--reward-window", "20s"]
CREATE = ["create", "--name", "shop", "--variants", "red,green,blue", "--sites", "ams,fra", *WINDOW]
ELECTION = ["create", "--name", "votes", "--protocol", "dme", "--variants", "4", "--sites", "3", *WINDOW]
VOTES = [*ELECTION, "--epsilon", ".5"]
EXPECTED = {"traffic": 50_000, "baseline": 0.1, "difference": 0.02}
SAID = ["--traffic", "5e4", "--baseline", ".1", "--difference", ".02"]
MEANS = {"red": 0.2, "green": 0.9, "blue": 0.1}


def task(capsys: pytest.CaptureFixture[str], server: Running, *arguments: str) -> dict[str, Any]:
    """What `outvote task … --json` prints."""
    assert main(["task", "--server", server.url("server"), *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return dict(json.loads(out))


def refused(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    """The one line of an error."""
    assert main(list(arguments)) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.removeprefix(f"outvote {arguments[0]}: error: ").rstrip("\n")


def serve_users(edge: Running, name: str, events: int, rng: random.Random) -> None:
    for _ in range(events):
        decision = request(f"{edge.url('edge')}/v1/tasks/{name}/decide", method="POST")
        reward = int(rng.random() < MEANS[decision["variant"]])
        request(f"{edge.url('edge')}/v1/tasks/{name}/reward", {"ticket": decision["ticket"], "reward": reward})


def test_a_watched_task_is_printed_at_every_change_until_it_is_stopped(
    server: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    task(capsys, server, *CREATE)
    watch = [*OUTVOTE, "task", "watch", "shop", "--server", server.url("server")]
    with (
        subprocess.Popen([*watch, "--json"], stdout=subprocess.PIPE, text=True) as watching,
        subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as in_words,
    ):
        assert watching.stdout is not None
        assert in_words.stdout is not None
        assert json.loads(watching.stdout.readline())["status"] == "running"
        line = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+  STATUS, 3 variants left: red, green, blue; 0 messages, 0 bits\n"
        assert re.fullmatch(line.replace("STATUS", "running"), in_words.stdout.readline())
        task(capsys, server, "stop", "shop")
        assert json.loads(watching.stdout.readline())["status"] == "stopped"
        assert re.fullmatch(line.replace("STATUS", "stopped"), in_words.stdout.readline())
        assert (watching.stdout.readline(), in_words.stdout.readline()) == ("", "")
        assert (watching.wait(DEADLINE), in_words.wait(DEADLINE)) == (0, 0)


def test_a_task_is_deleted_once_a_person_says_so(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    task(capsys, server, *CREATE)
    delete = [*OUTVOTE, "task", "delete", "shop", "--server", server.url("server")]
    refusal = subprocess.run(delete, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert refusal.returncode == 2
    assert refusal.stderr == "outvote task: error: nobody can be asked here: give --yes to delete it\n"
    for answer, code, said in (
        ("n", 1, "error: nothing was deleted"),
        ("\4", 1, "error: nothing"),
        ("y", 0, "deleted shop"),
    ):
        ours, theirs = pty.openpty()
        os.write(ours, answer.encode() + b"\n")
        asked = subprocess.run(delete, stdin=theirs, capture_output=True, text=True)
        os.close(ours)
        os.close(theirs)
        assert asked.returncode == code
        assert asked.stderr.startswith("delete shop and all that it learnt? [y/N] ")
        assert said in asked.stderr + asked.stdout
    assert task(capsys, server, "list")["tasks"] == []


def test_a_watch_that_is_interrupted_leaves_the_task_alone(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    task(capsys, server, *CREATE)
    watch = [*OUTVOTE, "task", "watch", "shop", "--server", server.url("server"), "--json"]
    with subprocess.Popen(watch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=DEADLINE)
    assert (watching.returncode, err) == (130, "outvote task: interrupted, the task goes on\n")
    assert task(capsys, server, "show", "shop")["status"] == "running"


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_server_that_is_told_to_stop_leaves_no_process_and_no_port_behind(
    server: Running, start: Start, by: signal.Signals, code: int
) -> None:
    edge = an_edge(start, server, "ams")
    assert not gone(server.pid("engine"))
    ended, out, err = server.end(by)
    assert (ended, out) == (code, "")
    assert complaints(err) == (["outvote server: interrupted, everything was stopped in order"] if code else [])
    assert gone(server.pid("engine"))
    assert not listens(server.url("server"))
    assert not listens(server.url("nats"))
    ended, out, err = edge.end(by)  # its engine has gone before it
    assert (ended, out) == (code, "")
    disconnected, *rest = complaints(err)
    assert disconnected.endswith("warning engine_disconnected")
    assert rest == (["outvote edge: interrupted, its state was saved"] if code else [])
    assert not listens(edge.url("edge"))


def test_a_server_that_is_killed_takes_its_engine_with_it_and_the_next_one_goes_on(
    server: Running, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    made = task(capsys, server, *CREATE)
    server.end(signal.SIGKILL)
    until(lambda: gone(server.pid("engine")))
    again = start("server", "--port", "0", "--engine-port", "0", "--store", "log")
    assert again.ready["tasks"] == 1
    assert task(capsys, again, "show", "shop")["id"] == made["id"]
    second = start("server", "--nats", again.url("nats"), "--port", "0")
    assert second.ready["pids"]["engine"] is None
    assert task(capsys, second, "show", "shop")["id"] == made["id"]
    assert second.end(signal.SIGTERM)[0] == 0
    assert not gone(again.pid("engine"))


def test_a_server_whose_engine_is_killed_says_so_and_the_next_one_goes_on(
    server: Running, start: Start, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = task(capsys, server, *CREATE)
    os.kill(server.pid("engine"), signal.SIGKILL)
    code, out, err = server.ended()
    assert (code, out) == (1, "")
    assert complaints(err)[-1] == (
        "outvote server: error: the engine (nats-server) ended with signal SIGKILL, so the server ended too: start it "
        "again, unless systemd, compose or Kubernetes does. Nothing that was acknowledged is lost. "
        f"{tmp_path / 'log' / 'engine.log'} may say why it ended"
    )
    assert not listens(server.url("server"))
    same = ("--port", server.port("server"), "--engine-port", server.port("nats"), "--store", "log")
    assert task(capsys, start("server", *same), "show", "shop")["id"] == made["id"]


def test_an_edge_serves_what_it_knows_while_the_engine_is_unreachable(
    server: Running, start: Start, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    task(capsys, server, *CREATE)
    edge = an_edge(start, server, "ams")
    until(lambda: bool(request(f"{edge.url('edge')}/v1/tasks")["tasks"]))
    assert edge.end(signal.SIGINT)[0] == 130
    server.end(signal.SIGKILL)
    alone = an_edge(start, server, "ams")
    assert alone.ready["tasks"] == ["shop"]
    serve_users(alone, "shop", 20, random.Random(1))
    assert request(f"{alone.url('edge')}/healthz")["connected"] is False
    store = alone.ready["store"]
    assert store == str(tmp_path / "outvote-edge-ams.db")
    twice = refused(capsys, 1, "edge", "fra", "--nats", server.url("nats"), "--port", "0", "--store", store)
    assert twice.startswith(f"the store {store} is in use by process {alone.pid('edge')}")
    code, _, err = alone.end(signal.SIGTERM)
    [unreachable] = complaints(err)
    assert code == 0
    assert "warning engine_unreachable" in unreachable


def test_a_task_is_created_from_a_file_and_options_come_on_top(
    server: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "shop.toml"
    file.write_text('name = "shop"\nvariants = ["red", "green"]\nsites = 5\nfloor = 7\nreward_window = 60\n')
    task(capsys, server, "create", "--file", str(file), "--sites", "ams,fra", "--privacy-budget", "2")
    record = task(capsys, server, "show", "shop")["task"]
    assert (record["variants"], record["sites"]) == (["red", "green"], ["ams", "fra"])
    assert (record["protocol"], record["epsilon"], record["delta"]) == ("tally", 0, 0.05)
    assert (record["floor"], record["privacy_budget"], record["reward_window"]) == (7, 2, 60)


def test_tasks_are_tables_for_people(
    server: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    at = ["--server", server.url("server")]

    def told(*arguments: str) -> str:
        assert main(["task", *arguments, *at]) == 0
        return capsys.readouterr().out

    assert "no tasks" in told("list")
    assert told(*CREATE).startswith("created shop (shop-")
    told(*VOTES)
    listed = told("list", "--json", str(tmp_path / "tasks.json"))
    assert [line.split()[-1] for line in listed.splitlines()] == ["bound", "none", "36"]
    assert len(json.loads((tmp_path / "tasks.json").read_text())["tasks"]) == 2
    shop = told("show", "shop")
    assert "tally on 3 variants, 2 sites, ε 0, δ 0.05: running" in shop
    assert "0.000 and 1.000" in shop
    assert re.search(r"\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+ \(\d+ s ago\): created\n", shop)
    assert "expected" not in shop
    assert "no bound" in shop
    votes = told("show", "votes")
    assert "0 of 2" in votes
    assert "bound 36" in votes
    assert told("stop", "votes").startswith("stopped votes (votes-")
    assert re.search(r"ago\): created\n.* ago\): stopped\n$", told("show", "votes"))
    assert "stopped" in told("watch", "votes")
    assert told("delete", "votes", "--yes") == "deleted votes\n"


def test_what_is_expected_of_a_task_is_said_with_it_or_later(
    server: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = task(capsys, server, *CREATE, *SAID)
    assert (made["name"], made["expectation"]) == ("shop", EXPECTED)
    assert task(capsys, server, "show", "shop")["expectation"] == EXPECTED
    monkeypatch.setenv("COLUMNS", "120")
    at = ["task", "--server", server.url("server")]
    assert main([*at, "expect", "shop", "--traffic", "1e6"]) == 0
    assert capsys.readouterr().out == "expected of shop from now on: 1,000,000 events a day\n"
    assert task(capsys, server, "show", "shop")["expectation"] == {**dict.fromkeys(EXPECTED), "traffic": 1e6}
    assert task(capsys, server, "expect", "shop", *SAID) == EXPECTED
    assert main([*at, "show", "shop"]) == 0
    assert "expected: 50,000 events a day, baseline 0.1, difference 0.02\n" in capsys.readouterr().out
    assert "expectation" not in task(capsys, server, *VOTES)


def test_a_task_whose_expectation_was_not_stored_is_said_to_be_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(server: str, method: str, path: str, body: object = None, *, holds: str = "") -> dict[str, Any]:
        if method == "POST":
            return {"id": "shop-1", "name": "shop"}
        raise Failed("not confirmed")

    monkeypatch.setattr(task_command, "ask", answer)
    assert refused(capsys, 1, "task", *CREATE, *SAID) == (
        "shop (shop-1) was created, but not what is expected of it: not confirmed. Say it again with: outvote task "
        "expect shop --traffic 50000 --baseline 0.1 --difference 0.02"
    )


def test_sites_are_listed_with_their_state(
    server: Running, start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    at = ["task", "sites", "--server", server.url("server")]
    assert main(at) == 0
    assert capsys.readouterr().out == "no sites; outvote edge starts one\n"
    task(capsys, server, *CREATE)
    an_edge(start, server, "ams")
    until(lambda: task(capsys, server, "sites")["counts"]["alive"] == 1)
    found = task(capsys, server, "sites")
    assert [(each["site"], each["state"]) for each in found["sites"]] == [("ams", "alive"), ("fra", "awaited")]
    assert main([*at, "--json", str(tmp_path / "sites.json")]) == 0
    header, ams, fra, told = capsys.readouterr().out.splitlines()
    assert header.split() == ["site", "state", "last", "sign", "messages", "bits", "lives"]
    assert ams.split()[:2] == ["ams", "alive"]
    assert ams.split()[3:] == ["s", "ago", "0", "0"]
    assert fra.split() == ["fra", "awaited", "never", "0", "0"]
    assert told == "2 sites: 1 alive, 1 awaited"
    assert json.loads((tmp_path / "sites.json").read_text())["silent_after"] == found["silent_after"]


def test_times_are_told_in_the_zone_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert when(1e9, 1e9 + 120) == "2001-09-09 10:46:40 JST (2 min ago)"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_what_cannot_be_done_is_one_line_and_an_exit_code(
    server: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    at = ["task", "--server", server.url("server")]
    made = task(capsys, server, *CREATE)
    taken = refused(capsys, 1, *at, *CREATE, "--delta", ".1")
    assert taken == f"name must be a new one, got 'shop', which {made['id']} has: delta is 0.05, asked is 0.1"
    one = ["create", "--name", "x", "--variants", "red", "--sites", "2", *WINDOW]
    assert refused(capsys, 2, *at, *one).startswith("variants must")
    assert "epsilon" in refused(capsys, 2, *at, *ELECTION)
    for window in ("0", "0.5s", "8d"):
        assert "from 1 second to 7 days" in refused(capsys, 2, *at, *CREATE, "--reward-window", window)
    without = refused(capsys, 2, *at, *CREATE[: -len(WINDOW)])
    assert without.startswith("reward_window must be given: how long after a decision may its reward come, like 60s")
    assert "name must be given" in refused(capsys, 2, *at, "create", "--variants", "2", *WINDOW)
    file = tmp_path / "wrong.toml"
    for text, error in (
        ('name = "x"\ncolour = 3', "colour is no field of a task: use name, variants"),
        ("name = ", "must be TOML"),
        ('name = "x"\nwhen = 2020-01-01', "numbers, texts and lists of them only"),
    ):
        file.write_text(text)
        assert error in refused(capsys, 2, *at, "create", "--file", str(file))
    assert "cannot be read" in refused(capsys, 2, *at, "create", "--file", str(tmp_path / "none.toml"))
    for action in (["show"], ["stop"], ["delete", "--yes"], ["watch"], ["expect", *SAID]):
        assert refused(capsys, 1, *at, *action, "no") == "unknown task: got 'no', there are shop"


def test_a_server_that_does_not_answer_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as nobody:  # bound, and not listening
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        for action in (["list"], ["sites"], ["show", "shop"], ["watch", "shop"], ["expect", "shop", *SAID], CREATE):
            error = refused(capsys, 1, "task", "--server", url, *action)
            assert error.startswith(f"no server answers at {url}: Connection refused; start one with outvote server")


def test_what_is_taken_is_refused_before_anything_is_started(
    server: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    port = str(urlsplit(server.url("server")).port)
    busy = refused(capsys, 1, "server", "--port", port, "--store", str(tmp_path / "other"))
    assert busy.startswith(f"cannot listen on '127.0.0.1', port {port}: [Errno 98] Address already in use")
    assert not (tmp_path / "other").exists()
    folder = refused(capsys, 1, "server", "--port", "0", "--engine-port", "0", "--store", str(tmp_path / "log"))
    assert f"in use by another engine (of process {server.pid('server')})" in folder
    store = str(tmp_path / "a.db")
    edge = refused(capsys, 1, "edge", "a", "--nats", server.url("nats"), "--port", port, "--store", store)
    assert edge.startswith(f"cannot listen on '127.0.0.1', port {port}")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["server", "--nats", "nats://h:1", "--store", "x"], "--nats names an engine that runs already"),
        (["edge", "ams"], "nats is needed to find the fleet: give --kit FOLDER, or --nats URL"),
        (["edge", "--nats", "nats://127.0.0.1:1"], "name is needed: give NAME, or --kit FOLDER"),
        (["edge", "ams", "--nats", "nats://10.0.0.5:4322"], "it would connect to '10.0.0.5', which others can reach"),
        (["edge", "ams", "--nats", "nats://127.0.0.1:1", "--host", "::"], "listens at '::', which others can reach"),
        (["edge", "ams", "--nats", "nats://127.0.0.1:1", "--store", "/"], "a store is a file"),
        (["edge", "--kit", "nowhere"], "kit 'nowhere' cannot be read: kit.json: No such file or directory"),
        (["server", "--host", "0.0.0.0"], "the API for operators listens at '0.0.0.0', which others can reach"),
        (["server", "--engine-host", "10.0.0.5"], "the engine listens at '10.0.0.5', which others can reach"),
        (["task", "show", ".."], "task must be a name or an id, got '..'"),
        (["task", *CREATE, "--reward-window", "soon"], "reward_window must be a duration like 90, 60s, 30m, 2h or 1d"),
        (["task", "expect", "shop"], "nothing is expected: give --traffic, --baseline or --difference"),
        (
            ["task", *CREATE, "--baseline", ".9", "--difference", ".2"],
            "at most 1 together with baseline, got 0.2 and 0.9",
        ),
    ],
)
def test_bad_usage_is_refused_with_exit_code_2(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error in refused(capsys, 2, *arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["server", "--port", "99999"], "must be a whole number from 1 to 65535, or 0 for a free one, got '99999'"),
        (["server", "--engine-port", "1.5"], "must be a whole number from 1 to 65535, or 0 for a free one, got '1.5'"),
        (["server", "--nats", "http://h"], "nats://127.0.0.1:4322, or several separated by commas, got 'http://h'"),
        (["task"], "the following arguments are required: ACTION"),
        (["task", "expect", "shop", "--traffic", "nan"], "must be a number like 50000, 50,000, 0.05 or 5%, got 'nan'"),
        (["task", "--server", "h:8600", "list"], "must be an address like http://127.0.0.1:8600, got 'h:8600'"),
    ],
)
def test_arguments_that_cannot_be_are_one_line(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert error in err
    assert err.count("\n") == 1
