"""The checker against evidence that was doctored by hand: it finds what is wrong, and nothing where nothing is."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from faults.checker import Evidence, judge
from faults.in_force import Action, served_otherwise
from faults.proxy import Acknowledged
from faults.reading import Finding, fold
from faults.told import Group, Told
from helpers.audit import StoredMessages
from outvote.core import protocols
from outvote.core.messages import Elimination
from outvote.core.task import Task
from outvote.log.history import Discount
from outvote.log.log import Record
from outvote.log.log_state import TaskState
from outvote.log.records import Coder, DownSubject, UpSubject, task_record
from outvote.server.admin import views as admin_views

TASK = Task(
    name="shop", arms=["red", "green", "blue"], players=["e1", "e2"], epsilon=0, delta=0.1, protocol="tally",
    reward_window=1.0,
)  # fmt: skip
MEANS = (0.9, 0.2, 0.1)
T = "shop-1"


def record(number: int, subject: str, payload: bytes, stored: float = 0.0) -> Record:
    return Record(subject, payload, number, stored)


def in_order(log: list[Record]) -> list[Record]:
    """With the numbers that an engine gives."""
    return [each._replace(sequence=number) for number, each in enumerate(log, 1)]


def honest(events: int = 10**6) -> Evidence:
    """A task that two edges play until it is decided, or for so many events each, as a log and as all tell it."""
    rng = random.Random(4)
    coder, server = Coder(TASK), protocols.server(TASK)
    players = {name: protocols.player(TASK, name, rng=rng) for name in TASK.player_names}
    log = [record(1, str(DownSubject(T, "task")), task_record(TASK))]
    messages: dict[str, dict[tuple[str, int], bytes]] = {name: {} for name in players}
    told = {(name, "shop"): Told() for name in players}
    announced, number, now = tuple(range(3)), 0, 10**12
    while len(announced) > 1 and events:
        events, now = events - 1, now + 100
        for name, player in players.items():
            ticket = player.decide(now)
            [group] = told[name, "shop"].groups.setdefault(ticket.group, [Group(ticket.arm)])
            group.least = group.most = ticket.place + 1
            group.not_before = now / 1000 + 1
            if rng.random() < MEANS[ticket.arm]:
                group.sure.add(ticket.place)
                group.possible.add((ticket.place, 1))
                player.reward(ticket, 1.0, now)
            for message in player.tick(now):
                payload = coder.up(message)
                messages[name][T, message.sequence] = payload
                where = UpSubject(name, T, f"life-{name}", message.sequence)
                log.append(record(len(log) + 1, str(where), payload, now / 1000))
                for out in server.receive(name, message, now, incarnation=f"life-{name}"):
                    subject = DownSubject(T, "elim", number)
                    log.append(record(len(log) + 1, str(subject), coder.down(announced, out)))
                    announced, number = tuple(each for each in announced if each not in out.arms), number + 1
                    for each in players.values():
                        each.receive(out)
    ups = [each for each in log if each.subject.startswith("outvote.up.")]
    return Evidence(
        log=log,
        acknowledged=[Acknowledged(each.subject, each.payload, each.sequence, 0.0) for each in ups],
        stores=[StoredMessages(name, f"life-{name}", kept) for name, kept in messages.items()],
        servers={name: {T: seen(log)} for name in ("s1", "s2")},
        edges={name: {T: at_an_edge(log)} for name in players},
        told=told,
    )


def seen(log: list[Record]) -> dict[str, Any]:
    """As a server that has read this log tells it."""
    told = admin_views.description(fold(log).tasks[T])
    return dict(msgspec.json.decode(msgspec.json.encode(told)))


def at_an_edge(log: list[Record]) -> dict[str, Any]:
    """As an edge that has caught up tells it."""
    told = seen(log)
    return {each: told[each] for each in ("remaining", "winner", "stopped", "killed")} | {"messages_waiting": 0}


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


def without(good: Evidence, lost: Record) -> list[Record]:
    """The log of an engine that lost a record, and has given its number to the next."""
    return in_order([each for each in good.log if each != lost])


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
    assert "counted twice" in kinds(replace(good, log=[*good.log, twice._replace(sequence=len(good.log) + 1)]))


def test_a_tally_under_another_incarnation_is_found_even_if_the_edge_had_lost_a_store(good: Evidence) -> None:
    """The users of the site have not said so much."""
    again = a_message(good)
    where = again.subject.replace("life-e1", "other")
    log = [*good.log, again._replace(subject=where, sequence=len(good.log) + 1)]
    servers = {name: {T: seen(log)} for name in good.servers}
    assert kinds(replace(good, log=log, servers=servers)) == {"counted twice"}
    assert kinds(replace(good, log=log, servers=servers, damaged=frozenset(["e1"]))) == {"counted twice"}
    told = {
        key: Told({number: 2 * groups for number, groups in each.groups.items()}) for key, each in good.told.items()
    }
    assert kinds(replace(good, log=log, servers=servers, damaged=frozenset(["e1"]), told=told)) == set()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("counted twice", {"most": 2}),
        ("counted twice", {"possible": set(), "sure": set()}),
        ("lost", {"least": 8}),
        ("lost", {"sure": set(range(8)), "possible": {(place, 1) for place in range(8)}}),
        ("wrong", {"arm": 2}),
        ("wrong", {"not_before": 10**9 + 10**6}),
    ],
)
def test_a_tally_that_says_what_its_users_do_not_know_is_found(
    good: Evidence, kind: str, change: dict[str, Any]
) -> None:
    told = good.told["e1", "shop"]
    number, [group] = next((number, each) for number, each in told.groups.items() if each[0].sure and each[0].arm == 0)
    otherwise = Told({**told.groups, number: [replace(group, **change)]})
    found = judge(replace(good, told={**good.told, ("e1", "shop"): otherwise}))
    assert [each.kind for each in found] == [kind]
    missing = Told({each: groups for each, groups in told.groups.items() if each != number})
    assert kinds(replace(good, told={("e1", "shop"): missing})) == {"counted twice"}


def test_a_reward_that_was_refused_and_ought_not_to_be_is_lost(good: Evidence) -> None:
    told = replace(good.told["e1", "shop"], refused=["AAAAAAAA.0.0.0.1000000000000"])
    assert kinds(replace(good, told={("e1", "shop"): told})) == {"lost"}


def test_an_elimination_out_of_nothing_is_found(good: Evidence) -> None:
    out = Coder(TASK).down((0, 1, 2), Elimination((0,)))
    early = record(2, str(DownSubject(T, "elim", 0)), out)
    log = in_order([good.log[0], early, *(each for each in good.log[1:] if ".elim." not in each.subject)])
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
    view["variants"][0]["trials"] += 3
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


def test_a_store_with_another_content_than_the_log_or_without_a_message_of_it_is_found(good: Evidence) -> None:
    first, second = good.stores
    key, *others = first.messages
    for messages in ({**first.messages, key: b"\x80\x80"}, {each: first.messages[each] for each in others}):
        assert "counted twice" in kinds(replace(good, stores=[first._replace(messages=messages), second]))


def test_two_stores_that_pass_for_one_are_found(good: Evidence) -> None:
    assert Finding("counted twice", "two stores have one incarnation") in judge(
        replace(good, stores=[*good.stores, good.stores[0]])
    )


# ---- what operators did

STOP, KILL, REVIVE, DELETE, CREATE = (f"{each}-task" for each in ("stop", "kill", "revive", "delete", "create"))


@pytest.fixture(scope="module")
def open_task() -> Evidence:
    """The same task, not decided yet."""
    found = honest(events=30)
    assert judge(found) == []
    assert len(seen(list(found.log))["remaining"]) == 3
    return found


def done(evidence: Evidence, *subjects: str, payload: bytes = b"{}", **changed: Any) -> Evidence:
    """Operators have put these into the log, and everybody has heard of it."""
    log = [*evidence.log]
    for each in subjects:
        log.append(record(len(log) + 1, f"outvote.down.{T}.{each}", payload))
    gone = "delete" in subjects
    servers = {name: {} if gone else {T: seen(log)} for name in evidence.servers}
    edges = {name: {} if gone else {T: at_an_edge(log)} for name in evidence.edges}
    stores = [each._replace(messages={}) if gone else each for each in evidence.stores]
    return replace(evidence, **{"log": log, "servers": servers, "edges": edges, "stores": stores} | changed)


def action(kind: str, *, acknowledged: bool = True, target: str = "shop", task_id: str = T) -> Action:
    return Action(kind, target, task_id, acknowledged)


@pytest.mark.parametrize(
    ("kind", "subject", "payload"),
    [(STOP, "stop", b"{}"), (DELETE, "delete", b"{}"), (KILL, "kill.0", b"true"), (REVIVE, "kill.0", b"false")],
)
def test_what_was_acknowledged_to_an_operator_and_is_not_in_the_log_is_lost(
    open_task: Evidence, kind: str, subject: str, payload: bytes
) -> None:
    assert kinds(replace(open_task, actions=[action(kind)])) == {"lost"}
    assert kinds(replace(open_task, actions=[action(kind, acknowledged=False)])) == set()
    assert kinds(done(open_task, subject, payload=payload, actions=[action(kind)])) == set()
    assert kinds(done(open_task, subject, payload=payload, actions=[action(kind, acknowledged=False)])) == set()


@pytest.mark.parametrize("field", ["stopped", "killed"])
def test_a_server_or_an_edge_that_does_not_know_of_a_stop_or_a_kill_is_found(open_task: Evidence, field: str) -> None:
    well = done(open_task, "stop" if field == "stopped" else "kill.0", payload=b"true")
    assert judge(well) == []
    for change in (
        {"servers": {**well.servers, "s2": {T: {**well.servers["s2"][T], field: False}}}},
        {"edges": {**well.edges, "e2": {T: {**well.edges["e2"][T], field: False}}}},
    ):
        assert kinds(replace(well, **change)) == {"disagreement"}  # type: ignore[arg-type]


def test_an_elimination_that_follows_from_what_came_after_a_stop_is_found(good: Evidence) -> None:
    """One that was due before the stop may have been under way."""
    place = next(place for place, each in enumerate(good.log) if ".elim." in each.subject)
    for before, found in ((place, set()), (place - 1, {"unjustified"})):
        log = [*good.log[:before], record(0, f"outvote.down.{T}.stop", b"{}"), *good.log[before : place + 1]]
        log = in_order(log)
        assert {each.kind for each in judge(Evidence(log, damaged=frozenset(("e1", "e2"))))} == found


def test_what_a_stopped_task_has_not_sent_is_not_lost_and_of_another_it_is(open_task: Evidence) -> None:
    first, second = open_task.stores
    stores = [first._replace(messages={**first.messages, (T, 999): b"\x80"}), second]
    assert kinds(done(open_task, stores=stores)) == {"lost"}
    assert kinds(done(open_task, "stop", stores=stores)) == set()
    assert kinds(done(open_task, stores=stores, actions=[action("discount", target="e1", acknowledged=False)])) == set()


def test_of_kill_and_revive_the_last_word_counts(open_task: Evidence) -> None:
    killed = done(open_task, "kill.0", payload=b"true")
    assert kinds(replace(killed, actions=[action(KILL), action(REVIVE)])) == {"lost"}
    assert kinds(replace(killed, actions=[action(KILL), action(REVIVE, acknowledged=False)])) == set()
    revived = done(killed, "kill.1", payload=b"false")
    assert kinds(replace(revived, actions=[action(KILL), action(REVIVE)])) == set()
    assert kinds(replace(revived, actions=[action(KILL), action(REVIVE, acknowledged=False)])) == set()
    assert kinds(replace(revived, actions=[action(KILL)])) == {"lost"}


def test_an_edge_that_serves_another_arm_than_it_ought_to_is_found(open_task: Evidence, good: Evidence) -> None:
    for subject, evidence, arm in (
        ("stop", open_task, "red"),
        ("kill.0", open_task, "red"),
        ("stop", good, "red"),
        ("delete", open_task, None),
    ):
        well = done(evidence, subject, payload=b"true")
        assert kinds(replace(well, served={"e1": {"shop": arm}})) == set()
        assert kinds(replace(well, served={"e1": {"shop": "blue"}})) == {"disagreement"}


def test_the_fallback_is_served_by_a_killed_task_whoever_has_won_and_by_a_stopped_one_without_a_winner() -> None:
    log = [record(1, f"outvote.down.{T}.task", json.dumps(TASK.to_json() | {"fallback": "blue"}).encode())]
    out = record(2, f"outvote.down.{T}.elim.0", Coder(TASK).down((0, 1, 2), Elimination((1, 2))))
    stop, kill = (record(3, f"outvote.down.{T}.{each}", b"true") for each in ("stop", "kill.0"))
    for records, arm in (([stop], "blue"), ([kill], "blue"), ([out, stop], "red"), ([out, kill], "blue")):
        folded = fold([*log, *records])
        assert list(served_otherwise("e1", {"shop": arm}, folded)) == []
        assert [each.kind for each in served_otherwise("e1", {"shop": "green"}, folded)] == ["disagreement"]


def test_whoever_still_knows_a_deleted_task_is_found(open_task: Evidence) -> None:
    well = done(open_task, "delete", actions=[action(DELETE)], remembered={"e1": set(), "e2": {"other-1"}})
    assert judge(well) == []
    assert kinds(replace(well, edges={**well.edges, "e1": open_task.edges["e1"]})) == {"disagreement"}
    assert kinds(replace(well, servers={**well.servers, "s1": open_task.servers["s1"]})) == {"disagreement"}
    assert kinds(replace(well, remembered={"e1": {T}})) == {"disagreement"}


def test_a_created_task_is_there_once_and_is_the_one_that_was_acknowledged(open_task: Evidence) -> None:
    created = replace(open_task, actions=[action(CREATE)])
    assert judge(created) == []
    assert kinds(replace(created, actions=[action(CREATE, task_id="shop-2")])) == {"lost"}
    assert kinds(replace(created, actions=[action(CREATE, target="late", task_id="late-1")])) == {"lost"}
    unknown = action(CREATE, target="late", task_id="", acknowledged=False)
    assert kinds(replace(created, actions=[unknown])) == set()


def discounted(evidence: Evidence, **changed: Any) -> Evidence:
    """e1 is shut out."""
    actions = [action("discount", target="e1", task_id="")._replace(end=len(evidence.log) + 1)]
    edges = {"e2": evidence.edges["e2"]}
    return done(evidence, "discount.0", payload=b'{"edge": "e1"}', actions=actions, **{"edges": edges} | changed)


def test_a_discounted_message_that_counts_is_found(open_task: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    well = discounted(open_task)
    assert judge(well) == []
    assert {each["site"] for each in well.servers["s1"][T]["discounted"]} == {"e1"}
    assert kinds(replace(open_task, actions=well.actions)) == {"lost"}  # no record says so
    counting = {T: {**well.servers["s2"][T], "variants": open_task.servers["s2"][T]["variants"]}}
    assert kinds(replace(well, servers={**well.servers, "s2": counting})) == {"disagreement"}

    def lie(self: TaskState, edge: str, record: int, stored: float) -> Discount:
        self.discounted.append(Discount(edge, self.messages_of(edge), record, stored))
        return self.discounted[-1]

    monkeypatch.setattr(TaskState, "discount", lie)  # all servers agree with the fold: none takes anything out
    found = judge(discounted(open_task))
    assert {(each.kind, "by hand" in each.what) for each in found} == {("disagreement", True)}


def test_a_message_of_an_edge_that_came_in_after_it_was_revoked_is_found(open_task: Evidence) -> None:
    after = done(discounted(open_task))
    late = a_message(open_task)
    subject = late.subject.replace("life-e1", "other")
    log = [*after.log, record(len(after.log) + 1, subject, late.payload)]
    found = replace(after, log=log, servers={name: {T: seen(log)} for name in after.servers}, told={})
    assert kinds(replace(found, damaged=frozenset(["e1"]))) == {"wrong", "lost"}  # and it counts


def test_a_task_that_was_decided_before_a_discount_was_acknowledged_is_left_as_it_is(good: Evidence) -> None:
    edges = {"e2": good.edges["e2"]}
    for end in (len(good.log), None):
        shut_out = action("discount", target="e1", task_id="")._replace(end=end)
        assert judge(replace(good, actions=[shut_out], edges=edges)) == []
    place = next(each.sequence for each in good.log if ".elim." in each.subject)
    shut_out = action("discount", target="e1", task_id="")._replace(end=place - 1)  # it ran then, and was not told
    assert kinds(replace(good, actions=[shut_out], edges=edges)) == {"lost"}


def test_a_decision_that_was_due_only_with_a_discounted_edge_is_found_unless_it_was_under_way(good: Evidence) -> None:
    place = next(place for place, each in enumerate(good.log) if ".elim." in each.subject)
    discount = record(0, f"outvote.down.{T}.discount.0", b'{"edge": "e1"}')
    others = [each for each in good.log[place - 1 : place] if each.subject.startswith("outvote.up.")]
    assert others
    for before, found in ((place, set()), (place - 1, {"unjustified"})):
        log = in_order([*good.log[:before], discount, *good.log[before : place + 1]])
        assert {each.kind for each in judge(Evidence(log, damaged=frozenset(("e1", "e2"))))} == found
