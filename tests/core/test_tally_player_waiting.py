"""The Tally player and answers that come late or never, restarts, and too many decisions that wait.

Windows are of a minute: a tally closes 1 ms to 6 s after its window. See `test_decisions` for what all players share.
"""

from __future__ import annotations

import json
import random

from core.tally_players import decide, groups, named, new_player, overloaded, play
from outvote.core.decisions import Capacity
from outvote.core.messages import Tally
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.player import TallyPlayer

WINDOW = 60_000
CLOSED = 66_000


def restarted(player: TallyPlayer, now: int, *, crashed: bool) -> TallyPlayer:
    found = TallyPlayer.restore(player.task, json.loads(json.dumps(player.snapshot())), random.Random(2))
    found.resume(now, crashed=crashed)
    return found


def test_without_a_window_what_is_not_answered_before_the_next_tick_counts_0() -> None:
    player = new_player(2)
    first, second = Cycle(player.task).order
    tickets = decide(player, 6)
    player.reward(tickets[1], 1.0, 0)
    assert list(player.tick(0)) == [Tally(first, 1, 3, 0), Tally(second, 0, 3, 1)]


def test_with_a_window_no_reward_sends_a_tally_and_the_end_of_its_window_does() -> None:
    player = new_player(2, window=60.0)
    first, second = Cycle(player.task).order
    assert play(player, 6, (1.0, 0.0)) == []
    assert list(player.tick(WINDOW)) == []
    told = sorted(player.tick(CLOSED), key=lambda tally: tally.sequence)
    worth = {0: 3, 1: 0}
    assert told == [Tally(first, worth[first], 3, 0), Tally(second, worth[second], 3, 1)]
    assert list(player.tick(CLOSED)) == []


def test_what_is_not_answered_counts_0_and_is_not_asked_again() -> None:
    player = new_player(2, window=60.0)
    first, second = Cycle(player.task).order
    tickets = decide(player, 6)
    player.reward(tickets[0], 1.0, WINDOW)
    player.reward(tickets[1], 1.0, WINDOW + 1)
    told = sorted(player.tick(CLOSED), key=lambda tally: tally.sequence)
    assert told == [Tally(first, 1, 3, 0), Tally(second, 0, 3, 1)]
    assert [ticket.group for ticket in decide(player, 14)] == [2] * 7 + [3] * 7


# ---- restarts


def test_after_a_clean_stop_the_open_tally_goes_on() -> None:
    player = restarted(new_player(2, window=60.0), 0, crashed=False)
    tickets = decide(player, 2)
    player = restarted(player, 1, crashed=False)
    tickets += decide(player, 2, now=1)
    assert [(ticket.group, ticket.place) for ticket in tickets] == [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_after_a_crash_the_next_tally_is_begun_and_nothing_is_said_of_one_that_was_cut_short() -> None:
    player = new_player(2, window=60.0)
    first, second = Cycle(player.task).order
    tickets = decide(player, 5)  # three and two
    player = restarted(player, 1_000, crashed=True)
    assert groups(player) == {0: (first, 0, 3, 0.0), 1: (second, 0, 2, 0.0), 2: (first, 7, 0, 0.0)}
    assert named([player.decide(1_000)]) == [(first, 2)]
    for ticket in tickets:
        player.reward(ticket, 1.0, WINDOW)
    assert sum(player.decisions.seen.rewards) == 5
    assert list(player.tick(1_000 + CLOSED)) == [Tally(first, 3, 3, 0)]


def test_what_a_crash_cut_to_the_size_of_another_tally_is_told() -> None:
    player = new_player(2, window=60.0)
    first, _ = Cycle(player.task).order
    decide(player, 6 + 3)  # the third tally is of seven
    told = restarted(player, CLOSED, crashed=True).tick(3 * CLOSED)
    assert Tally(first, 0, 3, 2) in told
    assert len(told) == 3


# ---- more decisions wait than there is memory for


def test_without_memory_decisions_are_served_in_turn_and_not_counted() -> None:
    player = overloaded()
    tickets = decide(player, 6)
    assert [str(ticket) for ticket in tickets] == ["uncounted"] * 6
    assert [ticket.arm for ticket in tickets] == [Cycle(player.task).arm(0, place) for place in range(5, 11)]
    before = player.snapshot()
    for ticket in tickets:
        player.reward(ticket, 1.0, 0)
    assert player.snapshot() == before
    assert player.decisions.uncounted == 6


def test_when_there_is_memory_again_the_next_tally_counts_and_no_small_size_was_used_up() -> None:
    player = overloaded()
    decide(player, 100)
    assert len(player.tick(CLOSED)) == 4
    assert player.decisions.capacity.used == 0
    (ticket,) = decide(player, 1, now=CLOSED)
    assert named([ticket]) == [(Cycle(player.task).arm(0, 105), 105)]
    assert groups(player) == {105: (ticket.arm, 6, 1, 0.0)}  # four were opened: the next four have seven
    assert player.decisions.uncounted == 100


def test_a_player_without_memory_is_restored() -> None:
    player = overloaded()
    decide(player, 20)
    restored = TallyPlayer.restore(player.task, json.loads(json.dumps(player.snapshot())), random.Random(2))
    assert restored.snapshot() == player.snapshot()
    restored.decisions.share(Capacity(276))
    for each in (player, restored):
        assert {str(ticket) for ticket in decide(each, 44)} == {"uncounted"}
    assert restored.snapshot() == player.snapshot()
