"""An edge that is discounted: what it had sent counts no more, what was eliminated stays, and people are told."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from amounts import examples
from dashboard.stories import Story
from helpers.edge_http import host
from helpers.edge_http import task as hosted_task
from outvote.cli import task_show
from outvote.core import protocols
from outvote.core.errors import InvalidConfiguration, MalformedMessage, OutvoteError
from outvote.core.messages import Elimination, Tally, UpMessage, Vote
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.core.votes.server import VoteServer
from outvote.dashboard import words
from outvote.edge.site import Edge
from outvote.log.catch_up import Question
from outvote.log.events import EliminationDue, Event
from outvote.log.history import MOST_LIVES
from outvote.log.log import Record
from outvote.log.log_state import LogState, TaskState
from outvote.log.records import Coder, DownSubject, UpSubject, discount_record, parse, read_discount, task_record
from outvote.log.replay_buffer import BufferedMessage, ReplayBuffer
from outvote.observability.logs import in_words
from outvote.presenters.lookup import presenter
from outvote.server.admin.views import to_json
from outvote.server.event_log import EventLog

EDGES = ("ams", "fra", "lis", "oslo")


def described(protocol: str, **options: Any) -> Task:
    chosen: dict[str, Any] = {"arms": 4, "players": 4, "delta": 0.5, "protocol": protocol, "name": "shop"}
    return Task(**{**chosen, "epsilon": 0 if protocol == "tally" else 0.95, "reward_window": 60, **options})


def stored_at(number: int) -> float:
    """When the log stored the record with this number, in seconds."""
    return number + 0.125


class Told:
    """A log, folded as it is written, and what of it counts."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.state = LogState()
        self.records: list[tuple[str, bytes]] = []
        self.events: list[Event] = []
        self.counts: list[tuple[str, str, UpMessage, int] | Elimination] = []
        """What a server must know: messages that were not discounted, with their times, and eliminations, in order."""
        self._coder = Coder(task)
        self._cycle = Cycle(task)
        self._store(DownSubject("shop-1", "task"), task_record(task))

    @property
    def found(self) -> TaskState:
        return self.state.tasks["shop-1"]

    def say(self, edge: str, message: UpMessage, life: str = "life") -> None:
        self.counts.append((edge, life, message, int(stored_at(len(self.records) + 1) * 1000)))
        self._store(UpSubject(edge, "shop-1", life, message.sequence), self._coder.up(message))

    def vote(self, edge: str, *arms: int, first: int = 0, life: str = "life") -> None:
        for sequence, arm in enumerate(arms, first):
            self.say(edge, Vote(arm, 0, sequence), life)

    def tally(self, edge: str, sequence: int, rates: Iterable[float], life: str = "life") -> None:
        """The share of successes is that of its arm."""
        arm = self._cycle.arm(edge, sequence)
        trials = self.task.tally_sizes[0]
        self.say(edge, Tally(arm, round(list(rates)[arm] * trials), trials, sequence), life)

    def eliminate(self, *arms: int) -> None:
        """Whatever a server thinks."""
        elimination = Elimination(arms)
        payload = self._coder.down(self.found.announced, elimination)
        self.counts.append(elimination)
        self._store(DownSubject("shop-1", "elim", len(self.found.eliminations)), payload)

    def adopt(self) -> None:
        """What the server proposes, if it does."""
        proposal = self.found.proposal()
        if proposal is not None:
            self.eliminate(*self._coder.read_down(self.found.announced, proposal.payload).arms)

    def discount(self, edge: str) -> None:
        if self.found.running:
            self.counts = [each for each in self.counts if isinstance(each, Elimination) or each[0] != edge]
        self._store(DownSubject("shop-1", "discount", self.found.next_number["discount"]), discount_record(edge))

    def stop(self) -> None:
        self._store(DownSubject("shop-1", "stop"), b"{}")

    def fresh(self) -> protocols.Server:
        """A server that was told only what counts."""
        server = protocols.server(self.task)
        gone: list[int] = []
        for each in self.counts:
            if isinstance(each, Elimination):
                gone += each.arms
                told = [*server.eliminated, *(arm for arm in each.arms if arm not in server.eliminated)]
                if len(told) > len(server.eliminated):
                    server.adopt(told if len(told) < len(self.task.arms) else gone)
                continue
            edge, life, message, at = each
            with suppress(OutvoteError):
                server.receive(edge, message, at, incarnation=life)
        return server

    def check(self) -> None:
        """The folded state is that of a server that was told only what counts; and so it is when read later."""
        expected, late = self.fresh(), LogState()
        for number, (subject, payload) in enumerate(self.records, 1):
            late.apply(Record(subject, payload, number, stored_at(number)))
        for fold in (self.state, late):
            found = fold.tasks["shop-1"]
            assert found.server.snapshot() == expected.snapshot()
            assert found.server.remaining == expected.remaining
            if isinstance(expected, VoteServer):
                assert isinstance(found.server, VoteServer)
                instances = range(len(self.task.instances))
                assert [found.server.finished_players(each) for each in instances] == [
                    expected.finished_players(each) for each in instances
                ]
            proposed = not found.stopped and bool(set(expected.eliminated) & set(found.announced))
            assert (found.proposal() is not None) == proposed
            assert fold.unknown == 0
        assert self.state.edges == late.edges
        assert self.found.history == late.tasks["shop-1"].history
        assert self.found.ledger.total_bits == late.tasks["shop-1"].ledger.total_bits
        assert self.found.refused == late.tasks["shop-1"].refused
        ups = [parse(subject) for subject, _ in self.records if ".up." in subject]
        assert sum(self.found.counts.values()) == len(ups)

    def _store(self, where: UpSubject | DownSubject, payload: bytes) -> None:
        self.records.append((str(where), payload))
        number = len(self.records)
        self.events += self.state.apply(Record(str(where), payload, number, stored_at(number)))


# ---- any order of messages, eliminations and discounts

RATES = ((0, 0, 0, 0), (1, 1, 1, 1), (1, 0, 0, 0), (0, 1, 1, 1), (0.7, 0.3, 0.3, 0.3))
turns = st.one_of(
    st.tuples(st.just("say"), st.integers(0, 4), st.integers(0, 1), st.integers(1, 9), st.integers(0, 4)),
    st.tuples(st.just("discount"), st.integers(0, 4)),
    st.tuples(st.just("adopt")),
    st.tuples(st.just("eliminate"), st.integers(0, 3)),
    st.tuples(st.just("stop"), st.integers(0, 9)),
)
TASKS = {
    "dme": described("dme", active_players=3),
    "dme, named": described("dme", players=EDGES, active_players=1),
    "edme": described("edme", instances=[1, 4]),
    "tally": described("tally", delta=0.9),
    "tally, ε": described("tally", delta=0.5, epsilon=0.3),
    "tally, private": described("tally", delta=0.9, privacy_budget=1.0, floor=3),
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@examples(40)
@given(story=st.lists(turns, max_size=40))
def test_the_state_is_that_of_a_server_which_was_told_only_what_counts(task: Task, story: list[Any]) -> None:
    told = Told(task)
    sent: dict[tuple[str, str], int] = {}
    for turn in story:
        match turn:
            case "say", who, which, count, how:
                edge, life = (*EDGES, "rome")[who], f"life-{which}"  # five of four players
                first = sent.get((edge, life), 0)
                sent[edge, life] = first + count
                order = reversed(range(first, first + count)) if how == 4 else range(first, first + count)
                for sequence in order:
                    if task.protocol == "tally":
                        told.tally(edge, sequence, RATES[how], life)
                    elif sequence < 3 * len(task.instances):
                        told.say(edge, Vote((sequence + how) % 4, sequence % len(task.instances), sequence), life)
            case "discount", who:
                told.discount((*EDGES, "rome")[who])
            case "eliminate", arm if arm in told.found.announced and len(told.found.announced) > 1:
                told.eliminate(arm)
            case "stop", 0:
                told.stop()
            case ("adopt",):
                told.adopt()
    told.check()


# ---- what it means, case by case


def test_votes_of_a_discounted_edge_count_no_more_and_nothing_is_proposed_from_them() -> None:
    told = Told(described("dme"))
    told.vote("ams", 3)
    told.vote("fra", 3)
    assert told.found.proposal() is not None
    bits = told.found.ledger.total_bits
    told.discount("fra")
    assert not told.found.due
    assert told.found.proposal() is None
    assert isinstance(told.found.server, VoteServer)
    assert told.found.server.votes(3) == 1
    assert [(each.edge, each.messages) for each in told.found.discounted] == [("fra", 1)]
    assert told.found.ledger.total_bits == bits, "bits that were sent were sent"
    update = told.state.catch_up("fra", Question("life", {})).tasks["shop-1"]
    assert (update.count, update.highest) == (1, 0), "they are still in the log"
    told.check()


def test_a_new_life_counts_again_and_an_old_one_of_votes_waits_for_those_that_do_not() -> None:
    """Votes are applied in order: one that follows on a discounted one must not count without it."""
    told = Told(described("dme"))
    told.vote("fra", 3, 2)
    told.discount("fra")
    told.vote("fra", 1, first=2)
    assert isinstance(told.found.server, VoteServer)
    assert [told.found.server.votes(arm) for arm in range(4)] == [0, 0, 0, 0]
    told.vote("fra", 3, 1, life="new")
    assert [told.found.server.votes(arm) for arm in range(4)] == [0, 1, 0, 1]
    told.check()


def test_tallies_after_it_count_at_once_also_of_the_same_life() -> None:
    told = Told(described("tally"))
    for sequence in range(4):
        told.tally("fra", sequence, RATES[1])
    told.discount("fra")
    assert isinstance(told.found.server, TallyServer)
    assert [told.found.server.trials(arm) for arm in range(4)] == [0, 0, 0, 0]
    told.tally("fra", 4, RATES[1])
    assert sum(told.found.server.trials(arm) for arm in range(4)) == told.task.tally_sizes[0]
    told.discount("fra")
    assert [(each.edge, each.messages) for each in told.found.discounted] == [("fra", 4), ("fra", 1)]
    told.check()


def test_the_server_is_told_when_each_message_was_stored_and_a_discount_tells_it_the_same_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    received: list[tuple[str | int, int]] = []
    receive = TallyServer.receive

    def noted(self: TallyServer, player: str | int, message: Tally, at: int, **named: Any) -> list[Elimination]:
        received.append((player, at))
        return receive(self, player, message, at, **named)

    monkeypatch.setattr(TallyServer, "receive", noted)
    told = Told(described("tally"))  # the first record
    for sequence, edge in enumerate(("ams", "fra", "ams", "fra")):
        told.tally(edge, sequence, RATES[4])
    assert received == [("ams", 2_125), ("fra", 3_125), ("ams", 4_125), ("fra", 5_125)]
    received.clear()
    told.discount("fra")
    assert received == [("ams", 2_125), ("ams", 4_125)]
    assert isinstance(told.found.server, TallyServer)
    assert told.found.server.time == 4_125
    received.clear()
    told.discount("ams")
    assert (received, told.found.server.time) == ([], 0), "nothing is left"
    told.tally("lis", 0, RATES[4])
    told.discount("fra")
    assert received == [("lis", 8_125)] * 2, "what was counted again keeps its time"


def test_a_decision_that_was_held_back_because_of_one_edge_is_due_without_it() -> None:
    told = Told(described("tally", arms=2, delta=0.05))
    rng = random.Random(1)
    for sequence in range(400):
        for edge in ("ams", "fra", "lis"):
            likely = (0.9, 0.3) if edge != "fra" else (0.1, 0.15)
            told.tally(edge, sequence, [sum(rng.random() < each for _ in range(3)) / 3 for each in likely])
        if told.found.server.held:
            break
    assert told.found.server.held
    assert told.found.proposal() is None
    told.discount("fra")
    assert not told.found.server.held
    assert EliminationDue("shop-1", Elimination((1,))) in told.events
    told.adopt()
    assert told.found.winner == 0
    told.check()


def test_who_had_no_place_among_the_players_gets_that_of_the_discounted_one() -> None:
    told = Told(described("dme", players=3))
    told.vote("fra", 0)
    told.vote("ams", 3)
    told.vote("oslo", 2)
    told.vote("lis", 3, 2)
    assert (told.found.refused, told.found.ledger.up_messages) == (2, 3)
    told.discount("fra")
    assert (told.found.refused, told.found.ledger.up_messages) == (0, 5)
    told.adopt()
    told.adopt()
    assert told.found.announced == (0, 1)
    told.vote("fra", 0, life="new")
    assert told.found.refused == 1, "there is no place left for it"
    told.check()


@pytest.mark.parametrize("protocol", ["dme", "edme", "tally"])
def test_a_log_that_eliminates_what_the_server_holds_for_the_winner_does_not_stop_it(protocol: str) -> None:
    """A discounted edge may have had an arm eliminated that the others hold for the best."""
    told = Told(described(protocol, active_players=1) if protocol == "dme" else described(protocol, delta=0.9))
    if protocol == "tally":
        for sequence in range(40):
            told.tally("ams", sequence, (0.7, 0.3, 0.3, 1))
        assert told.found.server.remaining == (3,)
    else:
        for edge in EDGES:
            told.vote(edge, 0, 1, 2)
        assert told.found.server.remaining == (3,)
    told.eliminate(3)
    for sequence in range(40, 48):
        if protocol == "tally":
            told.tally("ams", sequence, (0.7, 0.3, 0.3, 1))
        told.adopt()
        told.adopt()
    assert told.found.winner == (0 if protocol == "tally" else 2), "the least refuted, or the last with a quorum"
    told.check()


# ---- lives


def test_an_edge_has_so_many_lives_in_a_task_and_a_discount_renews_them() -> None:
    told = Told(described("tally"))
    for life in range(MOST_LIVES):
        told.tally("fra", 0, RATES[1], f"life-{life}")
    assert told.found.refused == 0
    size = told.task.tally_sizes[0]
    payload = Coder(told.task).up(told.counts[-1][2])  # type: ignore[index]
    for life in range(MOST_LIVES, MOST_LIVES + 100):
        told.state.apply(Record(f"outvote.up.fra.shop-1.life-{life}.0", payload, 1_000, 0.0))
    assert told.found.refused == 100
    assert len(told.found.highest) == len(told.found.counts) == MOST_LIVES
    assert len(told.state.edges["fra"].incarnations) == MOST_LIVES
    assert isinstance(told.found.server, TallyServer)
    assert sum(told.found.server.trials(arm) for arm in range(4)) == MOST_LIVES * size
    told.tally("fra", 1, RATES[1], "life-0")
    told.tally("ams", 0, RATES[1])
    assert told.found.refused == 100, "lives that there are go on, and others have theirs"
    told.discount("fra")
    told.tally("fra", 0, RATES[1], "another")
    assert told.found.refused == 100
    assert sum(told.found.server.trials(arm) for arm in range(4)) == 2 * size


# ---- records, and what is kept


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b"\xff", b"[]", b"{}", b'"ams"', b'{"edge": 7}', b'{"edge": "a.b"}', b'{"edge": "ams", "x": 1}'],
)
def test_what_is_no_discount_changes_nothing_but_takes_its_number(payload: bytes, edge: Edge) -> None:
    with pytest.raises((MalformedMessage, InvalidConfiguration)):
        read_discount(payload)
    told = Told(described("tally"))
    told.tally("ams", 0, RATES[1])
    before = told.found.server.snapshot()
    told.state.apply(Record("outvote.down.shop-1.discount.0", payload, 3, 0.0))
    assert (told.found.server.snapshot(), told.found.discounted, told.state.unknown) == (before, [], 1)
    assert told.found.next_number["discount"] == 1
    host(edge, hosted_task())
    edge._hear("outvote.live.shop-1.discount.0", payload)
    assert not edge.missed.is_set(), "it is not for edges"


def test_what_was_kept_comes_back_in_order_and_takes_few_bytes() -> None:
    kept = ReplayBuffer()
    kept.receive(("ams", "a"), 0, 0, b"\x80", True)
    kept.receive(("fra", "b"), 10**16 - 1, 2**53, b"", True)
    kept.adopt()
    kept.receive(("ams", "c"), 7, 1_795_000_000_123, b"x" * 3_000, False)
    kept.receive(("ams", "a"), 1, 9, b"\x01\x02", True)
    first, last = BufferedMessage("ams", "a", 0, 0, b"\x80", True), BufferedMessage("ams", "a", 1, 9, b"\x01\x02", True)
    refused = BufferedMessage("ams", "c", 7, 1_795_000_000_123, b"x" * 3_000, False)
    assert list(kept.excluding("fra")) == [first, None, refused, last]
    assert list(kept.excluding("ams")) == [BufferedMessage("fra", "b", 10**16 - 1, 2**53, b"", True), None]
    many = ReplayBuffer()
    for number in range(1_000):
        many.receive(("ams", "a"), number, 1_795_000_000_000 + number, b"\x80", True)
    assert many.size <= 24 * 1_000


# ---- what people see


def discounted_story() -> Story:
    """Three sites, one of which was discounted."""
    story = Story().play((0.6, 0.5, 0.55), lambda story: story.messages >= 30)
    story._down("discount", discount_record("bog"), 0)
    return story


def test_people_are_shown_who_was_discounted_and_when() -> None:
    story = discounted_story()
    shown = story.shown
    (said,) = shown.discounted
    of_bog = sum(".bog." in subject for subject, _ in story.records)
    assert (said.site, said.messages, said.record, said.at) == ("bog", of_bog, len(story.records), story.now)
    assert shown.messages.up == story.messages >= 30
    assert story.state.edges["bog"].discounted == of_bog
    console = Console(width=400)
    with console.capture() as printed:
        found = msgspec.json.decode(msgspec.json.encode(to_json(shown)))
        console.print(task_show.picture(found), task_show.story(found))
    assert f"discounted, what these sent before counts no more: bog ({of_bog} messages)" in printed.get()
    assert "bog discounted" in printed.get()


def test_what_an_eavesdropper_has_seen_does_not_become_less() -> None:
    story = Story().play((0.6, 0.1, 0.55), lambda story: story.messages >= 30)
    sentences, bound = words.eavesdropped(story.found, 3), presenter(story.task.protocol).bits_bound(story.found)
    assert isinstance(story.found.server, TallyServer)
    unanimous = story.found.server.unanimous
    for number, edge in enumerate(story.task.player_names):
        story._down("discount", discount_record(edge), number)
    assert story.found.server.unanimous == 0 < unanimous
    assert words.eavesdropped(story.found, 3) == sentences
    assert presenter(story.task.protocol).bits_bound(story.found) == bound


def test_the_journal_tells_of_each_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    told = Told(described("tally"))
    told.tally("ams", 0, RATES[1])
    told.discount("ams")
    journal = EventLog()
    for event in told.events:
        journal.note(event, told.state, 0.0)
    journal.begin(told.state)
    told.events.clear()
    told.tally("ams", 1, RATES[1])
    told.tally("ams", 2, RATES[1])
    told.discount("ams")
    for event in told.events:
        journal.note(event, told.state, 0.0)
    (said,) = [each for each in caplog.records if "site_discounted" in each.getMessage()]
    assert said.levelno == logging.WARNING
    assert said.getMessage() == in_words(
        "site_discounted", {"task": "shop", "id": "shop-1", "site": "ams", "messages": 2}
    )
