"""The checker against evidence that was doctored by hand: it finds what is wrong, and nothing where nothing is."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from faults.checker import Evidence, Finding, judge
from faults.proxy import Acknowledged
from faults.report import at_least, is_well, quantiles, summary, text
from faults.traffic import Told
from network.audit import Kept, Record
from outvote.core import protocols
from outvote.core.messages import Elimination
from outvote.core.task import Task
from outvote.network import admin_views
from outvote.network.history import DatedFold
from outvote.network.records import Coder, DownSubject, UpSubject, task_record

TASK = Task(name="shop", arms=["red", "green", "blue"], players=["e1", "e2"], epsilon=0, delta=0.1, protocol="tally")
MEANS = (0.9, 0.2, 0.1)
T = "shop-1"


def honest() -> Evidence:
    """A task that two edges play until it is decided, as a log and as everybody tells it."""
    rng = random.Random(3)
    coder, server = Coder(TASK), protocols.server(TASK)
    players = {name: protocols.player(TASK, name, rng=rng) for name in TASK.player_names}
    log = [Record(1, str(DownSubject(T, "task")), task_record(TASK))]
    messages: dict[str, dict[tuple[str, int], bytes]] = {name: {} for name in players}
    told: dict[tuple[str, str], Told] = {(name, "shop"): Counter() for name in players}
    announced, number = tuple(range(3)), 0
    while len(announced) > 1:
        for name, player in players.items():
            arm, ticket = player.decide()
            outcome = int(rng.random() < MEANS[arm])
            told[name, "shop"][TASK.arms[arm], outcome] += 1
            for message in player.reward(arm, outcome, ticket=ticket):
                payload = coder.up(message)
                messages[name][T, message.sequence] = payload
                where = UpSubject(name, T, f"life-{name}", message.sequence)
                log.append(Record(len(log) + 1, str(where), payload))
                for out in server.receive(name, message, incarnation=f"life-{name}"):
                    subject = DownSubject(T, "elim", number)
                    log.append(Record(len(log) + 1, str(subject), coder.down(announced, out)))
                    announced, number = tuple(each for each in announced if each not in out.arms), number + 1
                    for each in players.values():
                        each.receive(out)
    ups = [each for each in log if each.subject.startswith("outvote.up.")]
    return Evidence(
        log=log,
        acknowledged=[Acknowledged(each.subject, each.payload, each.number, 0.0) for each in ups],
        stores=[Kept(name, f"life-{name}", kept) for name, kept in messages.items()],
        servers={name: {T: seen(log)} for name in ("s1", "s2")},
        edges={name: {T: {"remaining": ["red"], "winner": "red", "messages_waiting": 0}} for name in players},
        told=told,
    )


def seen(log: list[Record]) -> dict[str, Any]:
    """As a server that has read this log tells it."""
    folded = DatedFold()
    for number, subject, payload in log:
        folded.apply(subject, payload, number)
    told = admin_views.description(folded.tasks[T], folded.histories[T])
    return dict(msgspec.json.decode(msgspec.json.encode(told)))


def kinds(evidence: Evidence) -> set[str]:
    return {each.kind for each in judge(evidence)}


@pytest.fixture(scope="module")
def good() -> Evidence:
    found = honest()
    assert len(found.log) > 8
    return found


def test_nothing_is_found_where_nothing_is_wrong(good: Evidence) -> None:
    assert judge(good) == []


def a_message(good: Evidence) -> Record:
    return next(each for each in good.log if each.subject.startswith("outvote.up.e1."))


def without(good: Evidence, record: Record) -> list[Record]:
    """The log of an engine that lost a record, and has given its number to the next."""
    kept = [each for each in good.log if each != record]
    return [Record(number, *each[1:]) for number, each in enumerate(kept, 1)]


def test_an_acknowledgement_before_the_commit_is_found_on_the_wire_and_in_the_store(good: Evidence) -> None:
    lost = a_message(good)
    found = judge(replace(good, log=without(good, lost)))
    assert any(each.kind == "lost" and each.what.startswith(f"{lost.subject} was acknowledged") for each in found)
    assert "lost" in kinds(replace(good, log=without(good, lost), acknowledged=()))
    assert "lost" in kinds(replace(good, log=without(good, lost), stores=(), damaged=frozenset(("e1", "e2"))))


def test_an_acknowledged_record_whose_place_has_another_content_is_lost(good: Evidence) -> None:
    first, *others = good.acknowledged
    assert kinds(replace(good, acknowledged=[first._replace(payload=b"other"), *others])) == {"lost"}


def test_a_tally_counted_twice_is_found(good: Evidence) -> None:
    twice = a_message(good)
    assert "counted twice" in kinds(replace(good, log=[*good.log, twice._replace(number=len(good.log) + 1)]))


def test_a_tally_under_another_incarnation_is_found_even_if_the_edge_had_lost_a_store(good: Evidence) -> None:
    """The users of the site have not said so much."""
    again = a_message(good)
    where = again.subject.replace("life-e1", "other")
    log = [*good.log, Record(len(good.log) + 1, where, again.payload)]
    servers = {name: {T: seen(log)} for name in good.servers}
    assert kinds(replace(good, log=log, servers=servers)) == {"counted twice"}
    assert kinds(replace(good, log=log, servers=servers, damaged=frozenset(["e1"]))) == {"counted twice"}
    told = {key: counter + counter for key, counter in good.told.items()}
    assert kinds(replace(good, log=log, servers=servers, damaged=frozenset(["e1"]), told=told)) == set()


def test_an_elimination_out_of_nothing_is_found(good: Evidence) -> None:
    out = Coder(TASK).down((0, 1, 2), Elimination((0,)))
    early = Record(2, str(DownSubject(T, "elim", 0)), out)
    log = [good.log[0], early, *(each for each in good.log[1:] if ".elim." not in each.subject)]
    log = [Record(number, *each[1:]) for number, each in enumerate(log, 1)]
    assert "unjustified" in kinds(replace(good, log=log))


def test_an_elimination_that_nobody_stored_is_found(good: Evidence) -> None:
    log = [each for each in good.log if ".elim." not in each.subject]
    assert "not recovered" in kinds(replace(good, log=log))


@pytest.mark.parametrize(
    ("field", "value"),
    [("winner", "blue"), ("remaining", ["red", "blue"]), ("refused", 1), ("messages", {"up": 0, "down": 0})],
)
def test_a_server_that_disagrees_is_found(good: Evidence, field: str, value: object) -> None:
    servers = {**good.servers, "s2": {T: {**good.servers["s2"][T], field: value}}}
    [found] = judge(replace(good, servers=servers))
    assert found.kind == "disagreement"
    assert found.what.startswith("s2 says")


def test_a_server_that_counts_otherwise_is_found(good: Evidence) -> None:
    view = json.loads(json.dumps(good.servers["s1"][T]))
    view["arms"][0]["trials"] += 3
    assert kinds(replace(good, servers={**good.servers, "s1": {T: view}})) == {"disagreement"}


def test_a_server_or_an_edge_that_does_not_know_a_task_or_knows_one_too_many_is_found(good: Evidence) -> None:
    assert kinds(replace(good, servers={**good.servers, "s1": {}})) == {"disagreement"}
    assert kinds(replace(good, edges={**good.edges, "e1": {}})) == {"disagreement"}
    more = {**good.edges["e1"], "other-1": good.edges["e1"][T]}
    assert kinds(replace(good, edges={**good.edges, "e1": more})) == {"disagreement"}


def test_an_edge_that_disagrees_or_has_something_to_send_still_is_found(good: Evidence) -> None:
    view = good.edges["e1"][T]
    assert kinds(replace(good, edges={"e1": {T: {**view, "winner": "blue"}}})) == {"disagreement"}
    assert kinds(replace(good, edges={"e1": {T: {**view, "remaining": ["blue"]}}})) == {"disagreement"}
    assert kinds(replace(good, edges={"e1": {T: {**view, "messages_waiting": 1}}})) == {"not recovered"}


def test_a_store_with_another_content_than_the_log_is_found(good: Evidence) -> None:
    first, second = good.stores
    key = next(iter(first.messages))
    other = Kept(first.edge, first.incarnation, {**first.messages, key: b"\x80\x80"})
    assert "counted twice" in kinds(replace(good, stores=[other, second]))


def test_a_task_of_the_next_rules_is_for_those_who_know_them(good: Evidence) -> None:
    record = TASK.to_json() | {"rules": 2, "name": "newer"}
    log = [*good.log, Record(len(good.log) + 1, "outvote.down.newer-1.task", json.dumps(record).encode())]
    assert kinds(replace(good, log=log)) == set()  # nobody of the next version is there
    assert kinds(replace(good, log=log, newer=frozenset(["s2"]))) == {"disagreement"}  # who ought to know it
    judging = {T: good.servers["s1"][T], "newer-1": good.servers["s1"][T]}
    assert kinds(replace(good, log=log, servers={"s1": judging})) == {"disagreement"}  # who cannot, and does


# ---- reports


def a_result(**changed: Any) -> dict[str, Any]:
    one = {
        "seed": 1,
        "seconds": 5.0,
        "findings": [],
        "faults": {"kill-edge": 2},
        "decided": [["tally", "0.1", False]],
        "records": 10,
        "acknowledged": 11,
        "events": 100,
        "touched": 0,
        "refused_stores": 0,
        "settled": 1.0,
        "recoveries": [["an edge", 0.5]],
    }
    return {**one, **changed}


def test_a_report_counts_faults_and_names_the_seed_of_an_anomaly() -> None:
    runs = [a_result(), a_result(seed=2, findings=[list(Finding("lost", "one is gone"))])]
    report = summary(runs, first_seed=1, engine="2.12.0")
    assert report["faults"] == {"kill-edge": 4}
    assert report["anomalies"]["lost"] == 1
    assert "- seed 2: lost: one is gone" in text(report)
    assert not is_well(report)
    assert is_well(summary(runs[:1], first_seed=1, engine="2.12.0"))


def test_more_wrong_winners_than_delta_allows_are_no_good_report() -> None:
    """Of 20 runs with δ = 0.1, 8 or more are wrong with probability 4.2e-4 only."""
    assert at_least(8, 20, 0.1) == pytest.approx(4.16e-4, rel=0.01)
    runs = [a_result(decided=[["tally", "0.1", wrong < 8]]) for wrong in range(20)]
    assert not is_well(summary(runs, first_seed=1, engine=""))
    runs = [a_result(decided=[["tally", "0.1", wrong < 4]]) for wrong in range(20)]
    assert is_well(summary(runs, first_seed=1, engine=""))


def test_quantiles_are_values_that_were_measured() -> None:
    assert quantiles([3.0, 1.0, 2.0]) == {"count": 3, "median": 2.0, "p95": 3.0, "max": 3.0}
    assert quantiles([]) == {"count": 0}
