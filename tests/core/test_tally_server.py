"""The Tally server: what it counts, what it refuses, when it announces, and when it holds back."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from outvote.core.errors import MalformedMessage, MalformedSnapshot, OutvoteError, UnknownArm, UnknownPlayer
from outvote.core.messages import Elimination, PlayerId, Tally, Vote
from outvote.core.tally.confidence import JeffreysOutbid, interval, outbid
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.homogeneity import FALSE_ALARM
from outvote.core.tally.server import TallyServer
from outvote.core.task import MAX_COUNT, Task


def new_server(arms: int = 3, players: int | Sequence[str] = 4, **options: Any) -> TallyServer:
    fields: dict[str, Any] = {"epsilon": 0, "delta": 0.05, "protocol": "tally"}
    return TallyServer(Task(arms=arms, players=players, **{**fields, **options}))


def tally(
    server: TallyServer, player: PlayerId, arm: int, successes: int, *, trials: int | None = None, lap: int = 0
) -> Tally:
    """What a player would send of an arm in one of its laps through the cycle."""
    arms, cycle = len(server.task.arms), Cycle(server.task)
    place = next(place for place in range(arms) if cycle.arm(player, place) == arm)
    return Tally(arm, successes, trials or server.task.tally_sizes[0], place + lap * arms)


def send(server: TallyServer, player: PlayerId, *laps: Sequence[int], first: int = 0) -> list[Elimination]:
    """Whole laps of a player, one result for each arm that it has not heard to be eliminated."""
    announced: list[Elimination] = []
    for lap, results in enumerate(laps, start=first):
        for arm, successes in enumerate(results):
            announced += server.receive(player, tally(server, player, arm, successes, lap=lap), 0)
    return announced


def through_json(server: TallyServer) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(server.snapshot(), allow_nan=False))
    return loaded


def unchanged_but_refused(server: TallyServer, player: PlayerId, message: Any, error: type[OutvoteError]) -> str:
    before = through_json(server)
    with pytest.raises(error) as caught:
        server.receive(player, message, 0)
    assert {**server.snapshot(), "checksum": 0} == {**before, "refused": before["refused"] + 1, "checksum": 0}
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- counting


def test_a_new_task_is_open() -> None:
    server = new_server()
    assert (server.remaining, server.contenders, server.eliminated) == ((0, 1, 2), (0, 1, 2), ())
    assert (server.winner, server.finished, server.held, server.hold_reason) == (None, False, False, None)
    assert server.status == "exploring"
    assert [server.interval(arm) for arm in range(3)] == [(0.0, 1.0)] * 3
    assert [(server.trials(arm), server.successes(arm), server.log_evidence(arm)) for arm in range(3)] == [
        (0, 0, 0)
    ] * 3


def test_events_and_successes_add_up_over_players_laps_and_sizes() -> None:
    server = new_server()
    server.receive(0, tally(server, 0, 1, 2), 0)
    server.receive(1, tally(server, 1, 1, 3), 0)
    server.receive(1, tally(server, 1, 1, 6, trials=7, lap=1), 0)
    server.receive(2, tally(server, 2, 0, 0), 0)
    assert [server.trials(arm) for arm in range(3)] == [3, 3 + 3 + 7, 0]
    assert [server.successes(arm) for arm in range(3)] == [0, 2 + 3 + 6, 0]


def test_a_tally_counts_once_for_each_player_life_and_place() -> None:
    server = new_server()
    first = tally(server, "a", 1, 2)
    server.receive("a", first, 0)
    before = through_json(server)
    assert server.receive("a", first, 0) == []
    assert server.receive("a", Tally(first.arm, 0, 3, first.sequence), 0) == []  # whatever it says now
    assert server.duplicates == 2
    assert {**server.snapshot(), "checksum": 0} == {**before, "duplicates": 2, "checksum": 0}
    server.receive("a", first, 0, incarnation="second life")
    server.receive("a", tally(server, "a", 1, 2, lap=1), 0)
    server.receive("b", tally(server, "b", 1, 2), 0)
    assert (server.trials(1), server.duplicates) == (4 * 3, 2)
    assert server.receive("a", first, 0, incarnation="second life") == []
    assert server.duplicates == 3


def test_the_players_number_and_its_name_are_two_players() -> None:
    server = new_server()
    server.receive(1, tally(server, 1, 0, 1), 0)
    server.receive("1", tally(server, "1", 0, 1), 0)
    assert (server.trials(0), server.duplicates) == (6, 0)


def test_every_order_of_arrival_ends_in_the_same_evidence_while_nothing_is_refuted() -> None:
    found = set()
    for order in permutations([(0, 0, 3), (0, 1, 1), (0, 2, 0), (1, 0, 3), (1, 1, 1), (1, 2, 0)]):
        server = new_server(delta=1e-6)
        for player, arm, successes in order:
            server.receive(player, tally(server, player, arm, successes), 0)
        found.add((server.contenders, *(round(server.log_evidence(arm), 9) for arm in range(3))))
    assert len(found) == 1


# ---- refusing


@pytest.mark.parametrize("arm", [-1, 3, 99, 0.5, 1.0, "1", None, True, math.nan], ids=repr)
def test_an_unknown_arm_is_refused(arm: Any) -> None:
    server = new_server()
    message = unchanged_but_refused(server, 0, Tally(arm, 1, 3, 0), UnknownArm)
    assert message == f"unknown arm: got {arm!r}, allowed is a whole number from 0 to 2"


@pytest.mark.parametrize(
    ("successes", "trials"),
    [
        *((successes, 3) for successes in (-1, 4, 99, 1.0, 0.5, "1", None, True, math.nan)),
        *((1, trials) for trials in (0, 1, 2, 4, 6, 8, 3.0, "3", None, True, 10**9)),
    ],
    ids=repr,
)
def test_a_tally_of_another_size_or_with_too_many_successes_is_refused(successes: Any, trials: Any) -> None:
    server = new_server()
    sequence = tally(server, 0, 1, 0).sequence
    message = unchanged_but_refused(server, 0, Tally(1, successes, trials, sequence), MalformedMessage)
    assert message.startswith("a tally has 3, 7, 15, ")
    assert message.endswith(f"trials and at most as many successes, got {successes!r} of {trials!r}")


@pytest.mark.parametrize("sequence", [-1, MAX_COUNT, 0.0, 0.5, "0", None, True, math.nan], ids=repr)
def test_a_sequence_that_is_no_place_is_refused(sequence: Any) -> None:
    server = new_server()
    message = unchanged_but_refused(server, 0, Tally(0, 1, 3, sequence), MalformedMessage)
    assert message == f"a sequence number is a whole number of at least 0, got {sequence!r}"


def test_a_tally_of_another_arm_than_its_place_implies_is_refused() -> None:
    server = new_server()
    right = tally(server, "a", 2, 1, lap=4)
    for arm in (0, 1):
        message = unchanged_but_refused(server, "a", Tally(arm, 1, 3, right.sequence), MalformedMessage)
        assert message == f"place {right.sequence} in the cycle of player 'a' is arm 2, got arm {arm}"
    server.receive("a", right, 0)
    assert (server.refused, server.trials(2)) == (2, 3)


def test_only_named_players_may_report() -> None:
    server = new_server(players=["paris", "rome"])
    message = unchanged_but_refused(server, "oslo", tally(server, "oslo", 0, 1), UnknownPlayer)
    assert message == "unknown player: got 'oslo', declared are ['paris', 'rome']"
    unchanged_but_refused(server, 0, tally(server, 0, 0, 1), UnknownPlayer)
    server.receive("rome", tally(server, "rome", 0, 1), 0)
    assert (server.refused, server.trials(0)) == (2, 3)


@pytest.mark.parametrize("message", [Vote(1), Elimination((1,)), None, (1, 1, 3, 0)], ids=repr)
def test_what_is_no_tally_is_refused(message: Any) -> None:
    assert unchanged_but_refused(new_server(), 0, message, MalformedMessage).startswith("this server counts tallies")


def test_a_refused_tally_takes_no_place() -> None:
    server = new_server()
    right = tally(server, 0, 1, 2)
    unchanged_but_refused(server, 0, Tally(1, 4, 3, right.sequence), MalformedMessage)
    server.receive(0, right, 0)
    assert (server.trials(1), server.duplicates) == (3, 0)


# ---- announcing


def test_refuted_arms_are_announced_together_once_at_most_half_are_left() -> None:
    # Four arms; 3 is the worst and falls first, 2 some laps later, 0 and 1 never.
    server = new_server(4)
    seen: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    announced: list[Elimination] = []
    for lap in range(40):
        announced += send(server, 0, (3, 3, 1 + lap % 2, 0), first=lap)
        if not seen or seen[-1] != (server.contenders, server.remaining):
            seen.append((server.contenders, server.remaining))
    everyone = (0, 1, 2, 3)
    assert seen == [(everyone, everyone), ((0, 1, 2), everyone), ((0, 1), (0, 1))]
    assert announced == [Elimination((2, 3))]
    assert server.eliminated == (2, 3)
    assert not server.finished


@pytest.mark.parametrize(
    ("announced", "left", "said"),
    [
        (5, 4, False),
        (5, 3, False),  # 6 > 5
        (5, 2, True),
        (4, 3, False),
        (4, 2, True),
        (3, 2, False),
        (3, 1, True),
        (2, 1, True),
        (2, 2, False),
    ],
)
def test_an_announcement_halves_the_arms_or_leaves_one(announced: int, left: int, said: bool) -> None:
    server = new_server(5)
    server._eliminated = list(range(announced, 5))
    server._evidence.contenders = list(range(left))
    expected = [Elimination(tuple(range(left, announced)))] if said else []
    assert server._announce() == expected
    assert server.remaining == tuple(range(left if said else announced))
    assert server._announce() == []  # once


def test_the_winner_is_announced_and_stays() -> None:
    server = new_server(2)
    announced: list[Elimination] = []
    lap = 0
    while not announced:
        announced = send(server, 0, (0, 3), first=lap)
        lap += 1
    # 3 against 0 of 3 with δ = .05: a few laps
    assert lap < 10
    assert announced == [Elimination((0,))]
    assert (server.winner, server.finished, server.status, server.remaining) == (1, True, "finished", (1,))
    assert send(server, 0, *[(3, 0)] * 50, first=lap) == []
    assert (server.winner, server.contenders) == (1, (1,))


def test_a_late_tally_counts_for_people_and_not_as_evidence() -> None:
    server = new_server(4)
    lap = 0
    while 3 in server.contenders:
        send(server, 0, (3, 3, 2, 0), first=lap)
        lap += 1
    assert 3 in server.remaining  # refuted, and not announced yet
    evidence, trials, late = server.log_evidence(3), server.trials(3), server.late
    assert server.receive(1, tally(server, 1, 3, 3), 0) == []
    assert (server.late, server.trials(3), server.log_evidence(3)) == (late + 1, trials + 3, evidence)
    server.receive(1, tally(server, 1, 3, 3), 0)
    assert (server.late, server.duplicates) == (late + 1, 1)


def test_once_all_others_are_refuted_every_tally_is_late() -> None:
    server = new_server(2)
    send(server, 0, *[(0, 3)] * 20)
    assert server.finished
    late, waiting = server.late, server._evidence.waiting(1)
    server.receive(1, tally(server, 1, 1, 3), 0)
    assert (server.late, server._evidence.waiting(1)) == (late + 1, waiting)


def test_equal_arms_are_never_told_apart_by_even_results() -> None:
    server = new_server(3)
    assert send(server, 0, *[(1, 1, 1), (2, 2, 2)] * 100) == []
    assert server.contenders == (0, 1, 2)


def test_with_an_epsilon_an_arm_that_is_good_enough_wins() -> None:
    server = new_server(2, epsilon=0.3)
    announced: list[Elimination] = []
    lap = 0
    while not announced and lap < 200:
        announced = send(server, 0, ((1, 2), (2, 1))[lap % 2], first=lap)
        lap += 1
    assert len(announced) == 1
    assert (server.finished, server.status) == (True, "finished")
    # Neither arm was refuted: each has less than ln(2/δ) against it.
    assert max(server.log_evidence(arm) for arm in (0, 1)) < math.log(2 / 0.05)
    exact = new_server(2)
    assert send(exact, 0, *[(1, 2), (2, 1)] * lap) == []


# ---- holding back


def two_sites_that_differ(**options: Any) -> TallyServer:
    """Arm 0 succeeds everywhere; arm 1 at one site always, at the other never: it is worse, but not everywhere."""
    server = new_server(2, players=["paris", "rome"], **options)
    for lap in range(30):
        assert send(server, "paris", (3, 3), first=lap) == []
        assert send(server, "rome", (3, 0), first=lap) == []
    return server


def test_sites_that_differ_hold_the_decision_back() -> None:
    server = two_sites_that_differ()
    assert server.held
    assert server.status == "held"
    assert server.contenders == (0,)
    assert (server.remaining, server.winner, server.finished, server.eliminated) == ((0, 1), None, False, ())
    reason = server.hold_reason
    assert reason is not None
    assert reason.startswith("the sites' results differ by ")
    assert "standard deviations more than chance allows" in reason
    assert f"{FALSE_ALARM / 2:.2g} a look" in reason  # two arms: two looks
    assert "decide by hand" in reason
    assert "\n" not in reason


def test_what_is_held_stays_held_while_the_sites_differ() -> None:
    server = two_sites_that_differ()
    for lap in range(30, 200):
        assert send(server, "paris", (3, 3), first=lap) == []
        assert send(server, "rome", (3, 0), first=lap) == []
    assert (server.held, server.status) == (True, "held")


def test_what_is_held_is_announced_once_the_sites_agree() -> None:
    server = two_sites_that_differ()
    announced: list[Elimination] = []
    # From now on it is the other way round, until both have seen the same of arm 1.
    for lap in range(30, 120):
        announced += send(server, "paris", (3, 0), first=lap)
        announced += send(server, "rome", (3, 3), first=lap)
        if announced:
            break
    assert announced == [Elimination((1,))]
    assert (server.held, server.hold_reason, server.status) == (False, None, "finished")


def test_late_tallies_can_show_that_sites_differ_or_agree() -> None:
    """While a decision is held back its arms are refuted already, so what comes is late."""
    server = two_sites_that_differ()
    late, cells = server.late, through_json(server)["cells"]
    server.receive("rome", tally(server, "rome", 1, 3, lap=30), 0)
    assert server.late == late + 1
    (paris, rome), (paris_now, rome_now) = cells[1], through_json(server)["cells"][1]
    assert paris_now == paris
    assert rome_now == ["rome", rome[1] + 3, [rome[2][0] + 1, *rome[2][1:]]]


def test_sites_that_agree_are_not_held() -> None:
    server = new_server(2, players=["paris", "rome"])
    announced: list[Elimination] = []
    for lap in range(30):
        for site in ("paris", "rome"):
            announced += send(server, site, (3, (1, 2)[lap % 2]), first=lap)
    assert announced == [Elimination((1,))]
    assert (server.held, server.hold_reason, server.status) == (False, None, "finished")


def test_an_arm_that_no_round_has_compared_holds_nothing_back() -> None:
    """The test looks at the tallies that the evidence has used, and at these alone."""
    server = new_server(3, players=["paris", "rome"])
    for lap in range(20):
        server.receive("paris", tally(server, "paris", 0, 3, lap=lap), 0)
        server.receive("rome", tally(server, "rome", 0, 0, lap=lap), 0)
    assert server.snapshot()["cells"] == [[], [], []]
    server.receive("paris", tally(server, "paris", 1, 2), 0)
    server.receive("rome", tally(server, "rome", 2, 2), 0)
    assert server.snapshot()["cells"][0] == [["paris", 3, [1, 0, 0, 0, 0, 0]]]


def test_with_noise_too_sites_that_differ_hold_the_decision_back() -> None:
    server = new_server(2, players=["paris", "rome"], privacy_budget=2.0, floor=7)
    for lap in range(40):
        for site, results in (("paris", (6, 6)), ("rome", (6, 0))):
            assert send(server, site, results, first=lap) == []
    assert server.held


# ---- what people ask


def test_an_interval_is_for_all_arms_and_all_times_together() -> None:
    server = new_server(3, delta=0.1)
    send(server, 0, (3, 1, 0), (2, 2, 0))
    server.receive(1, tally(server, 1, 0, 7, trials=7), 0)
    # ln(2K/δ) = ln 60; arm 0: 3 + 2 + 7 of 13
    expected = [interval(JeffreysOutbid(12, 13), math.log(60)), interval(JeffreysOutbid(3, 6), math.log(60))]
    assert [server.interval(arm) for arm in (0, 1)] == expected


def test_with_noise_an_interval_says_so() -> None:
    server = new_server(2, delta=0.1, privacy_budget=1.0, floor=3)
    send(server, 0, (3, 1), (3, 1), (2, 0))
    server.receive(1, tally(server, 1, 0, 6, trials=7), 0)
    counts = [(3, [0, 0, 1, 2]), (7, [0, 0, 0, 0, 0, 0, 1, 0])]
    assert server.interval(0) == interval(outbid(counts, 1.0), math.log(40))
    plain = interval(JeffreysOutbid(14, 16), math.log(40))
    assert server.interval(0)[0] < plain[0]


# ---- snapshots


@pytest.mark.parametrize(
    "options", [{}, {"epsilon": 0.2}, {"players": ["a", "b"]}, {"privacy_budget": 1.0, "floor": 3}], ids=str
)
def test_a_server_restored_at_any_step_goes_on_as_the_original(options: dict[str, Any]) -> None:
    server, rng = new_server(4, delta=0.3, **options), random.Random(3)
    players: Sequence[PlayerId] = server.task.player_names or ("a", 0, 1)
    laps: Counter[PlayerId] = Counter()
    twins: list[TallyServer] = []
    announced: list[Elimination] = []
    for step in range(160):
        player = rng.choice(players)
        if step % 8 == 0:
            twins.append(TallyServer.restore(server.task, through_json(server)))
            assert twins[-1].snapshot() == server.snapshot()
        arm = Cycle(server.task).arm(player, laps[player])
        size = 3 if laps[player] < 12 else 7
        successes = sum(rng.random() < (0.9, 0.8, 0.3, 0.1)[arm] for _ in range(size))
        message = Tally(arm, successes, size, laps[player])
        laps[player] += 1
        answer = server.receive(player, message, 0)
        announced += answer
        for twin in twins:
            assert twin.receive(player, message, 0) == answer
        if step % 10 == 0:
            for one in (server, *twins):
                assert one.receive(player, message, 0) == []
    for twin in twins:
        assert twin.snapshot() == server.snapshot()
    assert [twins[0].interval(arm) for arm in range(4)] == [server.interval(arm) for arm in range(4)]
    assert announced


def test_a_server_that_holds_back_does_so_after_a_restart() -> None:
    server = two_sites_that_differ()
    restored = TallyServer.restore(server.task, through_json(server))
    assert restored.held
    assert (restored.hold_reason, restored.status) == (server.hold_reason, "held")


def test_a_snapshot_that_was_altered_or_is_of_another_task_is_refused() -> None:
    server = new_server()
    send(server, 0, (1, 2, 3))
    with pytest.raises(MalformedSnapshot, match="cut or altered"):
        TallyServer.restore(server.task, {**through_json(server), "late": 5})
    with pytest.raises(MalformedSnapshot, match="task"):
        TallyServer.restore(new_server(delta=0.1).task, through_json(server))


def test_a_snapshot_does_not_change_as_the_server_goes_on() -> None:
    task = Task(arms=2, players=2, epsilon=0, delta=0.05, protocol="tally")
    server, cycle = TallyServer(task), Cycle(task)
    server.receive(0, Tally(cycle.arm(0, 0), 1, 3, 0), 0)
    server.receive(0, Tally(cycle.arm(0, 1), 1, 3, 1), 0)
    snapshot = server.snapshot()
    written = json.dumps(snapshot)
    server.receive(1, Tally(cycle.arm(1, 0), 1, 3, 0), 0)
    server.receive(1, Tally(cycle.arm(1, 1), 1, 3, 1), 0)
    assert json.dumps(snapshot) == written
    assert json.dumps(TallyServer.restore(task, snapshot).snapshot()) == written


@pytest.mark.parametrize("budget", [0.1, 6.0, 20.0])
def test_intervals_exist_for_every_budget(budget: float) -> None:
    task = Task(arms=2, players=2, epsilon=0, delta=0.05, protocol="tally", privacy_budget=budget, floor=127)
    server = TallyServer(task)
    arm = Cycle(task).arm(0, 0)
    server.receive(0, Tally(arm, 127, 127, 0), 0)
    low, high = server.interval(arm)
    assert 0 < low < high == 1


# ---- what a log says


def test_the_time_is_that_of_the_last_tally_that_was_not_refused() -> None:
    server = new_server()
    assert server.time == 0
    server.receive("a", tally(server, "a", 1, 2), 1_700_000_000_000)
    with pytest.raises(MalformedMessage):
        server.receive("a", tally(server, "a", 1, 4), 1_700_000_000_001)  # 4 of 3
    assert server.time == 1_700_000_000_000
    server.receive("a", tally(server, "a", 1, 2), 1_700_000_000_002)  # again
    assert server.time == 1_700_000_000_002
    assert TallyServer.restore(server.task, through_json(server)).time == 1_700_000_000_002


def test_a_server_that_is_told_to_drop_its_winner_goes_on_with_what_is_left() -> None:
    server = new_server(arms=3)
    for lap in range(40):
        send(server, "a", (3, 2, 0), first=lap)
    assert server.winner == 0
    server.adopt([0])
    assert (server.remaining, server.contenders) == ((1, 2), (1,)), "arm 2 is the more refuted one"
    assert send(server, "a", (3, 2, 0), first=40) == [Elimination((2,))]
    assert server.winner == 1


def test_a_server_that_was_told_of_an_elimination_weighs_only_what_is_left() -> None:
    server = new_server(arms=3)
    server.adopt([2])
    assert (server.remaining, server.contenders) == ((0, 1), (0, 1))
    announced = [each for lap in range(40) for each in send(server, "a", (3, 0, 3), first=lap)]
    assert announced == [Elimination((1,))]
    assert server.winner == 0
    assert server.late >= 40, "those of the arm that is out"
