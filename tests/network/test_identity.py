"""Two processes with one identity, by mistake or by copying: refused where it can be seen, and never a silent loss."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from network.audit import faults, read_log, read_store, replayed
from network.processes import DEADLINE, OUTVOTE, Running, Start, an_edge, request, sent_all, until
from network.visitors import Visitors, counted
from outvote.cli.main import main

EQUAL = {"red": 0.5, "green": 0.5}
"""Tallies go on for ever: with probability 1 − 1e-9, by the task's δ."""
UNEQUAL = {"red": 0.9, "green": 0.1}
SEED = 33
TALLY = ["create", "--name", "shop", "--arms", "red,green", "--players", "ams,fra,lis", "--delta", "1e-9"]
VOTES = [*TALLY[:-1], ".9", "--protocol", "dme", "--epsilon", ".95"]
"""Of votes against an arm two are needed: 1.5 is half of the three players."""


def visitors(number: int, means: dict[str, float] = EQUAL) -> Visitors:
    return Visitors("shop", means, random.Random(f"{SEED} {number}"))


def kept(number: int) -> Callable[[dict[str, Any]], bool]:
    """Whether an edge has kept so many messages."""
    return lambda view: view.get("messages_kept", 0) >= number


def shown(server: Running) -> dict[str, Any]:
    return request(server.url("server") + "/v1/tasks/shop")


def lives(told: dict[str, Any]) -> list[tuple[str, str, int]]:
    """What an operator sees of the lives of edges: name, incarnation and last message, sorted."""
    return sorted(
        (edge["edge"], life["incarnation"], life["last_sequence"])
        for edge in told["edges"]
        for life in edge["incarnations"]
    )


def two_of_one_name(start: Start, server: Running, messages: int, means: dict[str, float], at_once: int = 6) -> None:
    """Two edges of one name on two stores play and send, at the same time, so many messages each, and end."""
    edges = [an_edge(start, server, "ams", "--store", f"{number}.db") for number in range(2)]
    for number, edge in enumerate(edges):
        assert visitors(number, means).visit(edge, done=kept(messages), at_once=at_once)
    for edge in edges:
        sent_all(edge)
        assert edge.end(signal.SIGTERM)[0] == 0


def test_a_second_process_on_one_store_is_refused_and_told_who_holds_it(server: Running, start: Start) -> None:
    holder = an_edge(start, server, "ams")
    command = [*OUTVOTE, "edge", "ams", "--nats", server.url("nats"), "--port", "0", "--store", holder.ready["store"]]
    second = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == (
        f"outvote edge: error: the store {holder.ready['store']} is in use by process {holder.pid('edge')}: "
        "stop that edge, or give this one a store of its own\n"
    )
    assert request(f"{holder.url('edge')}/healthz")["status"] == "ok"


def test_tallies_of_two_machines_with_one_name_are_all_counted_and_both_are_seen(
    server: Running, start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["task", "--server", server.url("server"), *TALLY]) == 0
    two_of_one_name(start, server, 4, EQUAL)
    stores = [read_store("ams", tmp_path / f"{number}.db") for number in range(2)]
    until(lambda: shown(server)["messages"]["up"] == sum(len(each.messages) for each in stores))
    log = read_log(server.url("nats"))
    assert faults(log, stores) == []
    folded = replayed(log, shown(server)["id"])
    seen = sum((counted(folded.task, "ams", store.messages) for store in stores), start=type(visitors(0).told)())
    for arm in shown(server)["arms"]:
        assert arm["successes"] == seen[arm["arm"], 1]
        assert arm["trials"] == seen[arm["arm"], 0] + seen[arm["arm"], 1]
    capsys.readouterr()
    assert main(["task", "--server", server.url("server"), "show", "shop", "--json"]) == 0
    told = lives(json.loads(capsys.readouterr().out))
    assert told == sorted(("ams", each.incarnation, max(n for _, n in each.messages)) for each in stores)


def test_two_machines_with_one_name_have_one_vote_against_an_arm_and_both_are_seen(
    server: Running, start: Start, tmp_path: Path
) -> None:
    """Each votes against green: by Hoeffding it sees it as the better arm with probability exp(−182·.8²) at most."""
    assert main(["task", "--server", server.url("server"), *VOTES]) == 0
    two_of_one_name(start, server, 1, UNEQUAL, at_once=60)
    until(lambda: shown(server)["messages"]["up"] == 2)
    stores = [read_store("ams", tmp_path / f"{number}.db") for number in range(2)]
    log = read_log(server.url("nats"))
    assert faults(log, stores, gapless=True) == []
    told = shown(server)
    assert lives(told) == sorted(("ams", each.incarnation, 0) for each in stores)
    assert [arm["votes"] for arm in told["arms"]] == [[0], [1]]
    assert (told["status"], told["refused"], told["edge_count"]) == ("running", 0, 1)
    folded = replayed(log, told["id"])  # nothing was a duplicate: the second is a vote of its own life, and counts once
    assert folded.ledger.up_messages == 2
    another = an_edge(start, server, "fra")
    assert visitors(2, UNEQUAL).visit(another, done=lambda view: view.get("winner") == "red", at_once=60)
    assert shown(server)["winner"] == "red"


def test_a_copied_store_goes_on_as_another_life_and_both_lives_are_whole(
    server: Running, start: Start, tmp_path: Path
) -> None:
    assert main(["task", "--server", server.url("server"), *TALLY]) == 0
    people = visitors(0)
    first = an_edge(start, server, "ams")
    assert people.visit(first, done=kept(3))
    sent_all(first)
    assert first.end(signal.SIGTERM)[0] == 0
    original = Path(first.ready["store"])
    shutil.copyfile(original, tmp_path / "copy.db")
    before = read_store("ams", original)

    copy = an_edge(start, server, "ams", "--store", "copy.db")
    assert copy.ready["tasks"] == ["shop"]
    assert request(f"{copy.url('edge')}/v1/tasks/shop")["messages_kept"] == 0
    again = an_edge(start, server, "ams")  # on the original
    assert visitors(1).visit(copy, done=kept(3))
    assert people.visit(again, done=kept(len(before.messages) + 1))
    for edge in (copy, again):
        sent_all(edge)
        assert edge.end(signal.SIGTERM)[0] == 0

    stores = [read_store("ams", original), read_store("ams", tmp_path / "copy.db")]
    assert stores[0].incarnation == before.incarnation
    assert before.messages.items() <= stores[0].messages.items()
    until(lambda: shown(server)["messages"]["up"] == sum(len(each.messages) for each in stores))
    log = read_log(server.url("nats"))
    assert faults(log, stores) == []
    assert replayed(log, shown(server)["id"]).refused == 0
    assert len(lives(shown(server))) == 2
