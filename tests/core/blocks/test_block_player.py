"""The player of blocks: the order of arms, when blocks close, and what they say."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from scipy import stats

from benchmarks.validity.exact import orders
from core.blocks.block_players import new_player, new_task, play, through_json
from outvote.core.blocks.player import BlockPlayer
from outvote.core.decisions import Capacity
from outvote.core.errors import MalformedSnapshot, UnknownArm
from outvote.core.messages import Block, Elimination

ALARM = 1e-6
"""The false-alarm rate of each test of a distribution here; seeds are fixed."""


# ---- the order of arms


@pytest.mark.parametrize(
    ("arms", "floor", "falls"), [(2, 3, None), (3, 2, None), (3, 2, (0, 1)), (3, 2, (2, 1)), (4, 1, (1, 0))]
)
def test_arms_are_drawn_in_proportion_to_what_is_left_of_them(
    arms: int, floor: int, falls: tuple[int, int] | None
) -> None:
    """Against the law of the definition: the next arm is k with probability left_k/left, also once an arm fell."""
    law = dict(orders(floor, arms, falls=falls))
    task, rng = new_task(arms, floor=floor), random.Random(5)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(60 * len(law)):
        player = BlockPlayer(task, 0, rng)
        order: list[int] = []
        while True:
            if falls is not None and len(order) == falls[0]:
                player.receive(Elimination((falls[1],)))
            ticket = player.decide(0)
            if ticket.group:
                break
            order.append(ticket.arm)
        seen[tuple(order)] += 1
    assert set(seen) <= set(law)
    expected = [float(chance) * seen.total() for chance in law.values()]
    assert stats.chisquare([seen[order] for order in law], expected).pvalue > ALARM


def test_the_systems_generator_draws_where_none_is_given() -> None:
    task = new_task(4, floor=31)
    first, second = BlockPlayer(task, 0), BlockPlayer(task, 0)
    assert [first.decide(0).arm for _ in range(124)] != [second.decide(0).arm for _ in range(124)]


def test_a_block_of_the_largest_size_has_as_many_decisions_of_each_arm() -> None:
    player = new_player(3, floor=127)
    [block] = play(player, 3 * 127, (1, 0, 1))
    assert block == Block(0, 0, ((127, 127), (127, 0), (127, 127)))


# ---- sizes


def test_blocks_that_fill_at_once_have_the_sizes_of_the_schedule() -> None:
    blocks = play(new_player(2, floor=1), 2 * (2 * 1 + 2 * 3 + 4 * 7 + 15), (1, 0))
    assert [block.number for block in blocks] == list(range(9))
    assert [block.counts for block in blocks] == [((size, size), (size, 0)) for size in (1, 1, 3, 3, 7, 7, 7, 7, 15)]


def old(floor: int = 1, arms: int = 2, seed: int | None = 1, age: float = 100.0) -> BlockPlayer:
    """A player whose next block, of number 8, has the size 15."""
    player = new_player(arms, floor=floor, seed=seed, age=age)
    sizes = [max(floor, size) for size in (1, 1, 3, 3, 7, 7, 7, 7)]
    assert len(play(player, arms * sum(sizes), (1,) * arms)) == 8
    return player


def test_an_old_block_closes_as_soon_as_it_holds_enough_and_the_next_is_a_rung_smaller() -> None:
    player = old()  # K = 2, floor 1: enough is 4
    assert play(player, 4, (1, 1), now=1_000) == []
    assert not player.tick(100_999)  # not 100 s old
    [block] = player.tick(101_000)
    assert block.number == 8
    assert sum(decided for decided, _ in block.counts) == 4
    [next_block] = play(player, 14, (1, 1), now=200_000)
    assert next_block == Block(9, 0, ((7, 7), (7, 7)))


def test_an_old_block_that_holds_too_little_stays_open() -> None:
    player = old()
    play(player, 3, (1, 1), now=0)
    assert not player.tick(10**9)
    [block] = play(player, 1, (1, 1), now=10**9)
    assert sum(decided for decided, _ in block.counts) == 4


def test_after_a_block_that_filled_in_less_than_half_the_age_the_next_may_be_a_rung_larger() -> None:
    player = old()
    play(player, 4, (1, 1), now=0)
    player.tick(100_000)  # closed by age: from 15 down to 7
    assert len(play(player, 7, (1, 1), now=200_000) + play(player, 7, (1, 1), now=250_000)) == 1  # not under half
    assert len(play(player, 7, (1, 1), now=300_000) + play(player, 7, (1, 1), now=349_999)) == 1  # 7 again, quickly
    [block] = play(player, 30, (1, 1), now=400_000)
    assert block.counts == ((15, 15), (15, 15))


def test_closing_by_age_looks_at_time_and_total_only() -> None:
    """Whatever arms were drawn, and whatever came of them, the block closes at the same decision."""
    closed = set()
    for seed in range(60):
        player, rng = old(arms=3, seed=seed), random.Random(seed)
        worth = tuple(rng.random() < 0.5 for _ in range(3))
        for made in range(1, 20):
            if play(player, 1, worth, now=20_000 * made):
                closed.add(made)
                break
    # begun at 20 s, so it is 100 s old at the sixth decision, and holds 2·1·3
    assert closed == {6}


# ---- arms below the floor


def test_an_arm_below_the_floor_is_left_out() -> None:
    player = old(floor=3, arms=3, seed=None)  # unshuffled: 15 of the last arm, then 15 of the second
    play(player, 17, (1, 0, 1), now=0)
    [block] = [*player.tick(100_000), *play(player, 1, (1, 0, 1), now=100_000)]  # 2·3·3 are enough
    assert block.counts == ((0, 0), (3, 0), (15, 15))


def test_with_fewer_than_two_arms_nothing_is_sent() -> None:
    player = old(floor=3, arms=2, seed=None)
    play(player, 12, (1, 1), now=0)  # all of the last arm
    assert not player.tick(100_000)
    [block] = play(player, 14, (1, 1), now=100_000)
    assert block.number == 9  # the number was used


# ---- eliminations


def test_fallen_arms_leave_the_open_block_and_those_that_wait() -> None:
    player = new_player(3, window=60.0)
    play(player, 9 + 4, (1, 0, 1))  # block 0 waits, block 1 is open
    player.receive(Elimination((1,)))
    made: Counter[int] = Counter()
    while (ticket := player.decide(0)).group == 1:
        made[ticket.arm] += 1
    assert set(made) <= {0, 2}
    assert made.total() <= 6
    first, second = sorted(player.tick(60_000 + 6_001), key=lambda block: block.number)
    assert (first.number, first.heard, first.counts) == (0, 1, ((3, 3), (3, 3)))
    assert (second.number, second.heard, [decided for decided, _ in second.counts]) == (1, 1, [3, 3])


def test_a_block_that_lacks_fallen_arms_only_closes_one_window_later() -> None:
    player = new_player(3, seed=None, window=60.0)  # unshuffled: arm 0 comes last
    play(player, 7, (1, 1, 1))
    player.receive(Elimination((0,)))
    assert not player.tick(1_000)  # from here it waits
    assert player.decide(1_000).group == 1
    assert not player.tick(61_000)
    [block] = player.tick(61_000 + 6_001)
    assert block == Block(0, 1, ((3, 3), (3, 3)))


def test_heard_counts_eliminations_that_changed_something() -> None:
    player = new_player(5)
    for arms in ((3,), (3,), (), (0, 3), (0,)):
        player.receive(Elimination(arms))
    assert player.heard == 2
    assert player.remaining == player.candidates() == (1, 2, 4)
    player.receive(Elimination((1, 2, 4)))  # never the last ones
    assert player.remaining == (1, 2, 4)
    [block] = play(player, 9, (1,) * 5)
    assert (block.heard, len(block.counts)) == (2, 3)


def test_an_unknown_arm_is_refused_and_changes_nothing() -> None:
    player = new_player(3)
    play(player, 4, (1, 1, 1))
    before = player.snapshot()
    for arms in ((3,), (0, -1), (True,), (1.0,)):
        with pytest.raises(UnknownArm):
            player.receive(Elimination(arms))  # type: ignore[arg-type]
    assert player.snapshot() == before


def test_at_the_end_the_last_arm_is_served_and_nothing_is_counted() -> None:
    player = new_player(3, window=60.0)
    play(player, 12, (1, 1, 1))
    player.receive(Elimination((0, 2)))
    assert (player.finished, player.status) == (True, "finished")
    assert {player.decide(now).arm for now in range(9)} == {1}
    assert str(player.decide(0)) == "uncounted"
    assert not player.tick(10**9)
    assert player.decisions.uncounted == 0
    assert player.decisions.capacity.used == 0


# ---- rewards and windows


def test_a_block_closes_one_window_after_its_last_decision_never_earlier() -> None:
    player = new_player(2, window=60.0)
    tickets = [player.decide(now) for now in range(0, 60_000, 10_000)]
    for ticket in tickets:
        player.reward(ticket, float(ticket.arm), 55_000)
    assert not player.tick(50_000 + 60_000)  # all have answered, and yet
    player.reward(tickets[0], 1.0, 110_000)  # late
    [block] = player.tick(50_000 + 60_000 + 6_001)
    assert block.counts == ((3, 0), (3, 3))
    assert player.decisions.seen.late[tickets[0].arm] == 1


def test_a_reward_between_0_and_1_is_a_success_or_not_however_often_it_is_sent() -> None:
    player = new_player(2, floor=127)
    for _ in range(254):
        ticket = player.decide(0)
        for _ in range(9):
            player.reward(ticket, 0.3, 0)
    [block] = player.tick(0)
    for decided, successes in block.counts:
        assert stats.binomtest(successes, decided, 0.3).pvalue > ALARM


def test_without_memory_decisions_are_served_and_not_counted() -> None:
    player = new_player(2, window=60.0)
    player.decisions.share(Capacity(64))
    play(player, 6, (1, 1))
    assert [str(player.decide(0)) for _ in range(5)] == ["uncounted"] * 5
    assert player.decisions.uncounted == 5
    [_] = player.tick(10**6)
    assert player.decide(10**6).group == 1


# ---- restarts


def test_a_player_restored_at_any_step_has_the_same_state() -> None:
    player, rng, now = new_player(4, floor=1, window=5.0, age=30.0), random.Random(3), 0
    for step in range(400):
        now += rng.choice([0, 1, 2_000])
        ticket = player.decide(now)
        if rng.random() < 0.5:
            player.reward(ticket, rng.random(), now)
        player.tick(now)
        if step in (100, 250):
            player.receive(Elimination((step // 100,)))
        restored = BlockPlayer.restore(player.task, through_json(player), random.Random(step))
        assert restored.snapshot() == player.snapshot()
        if step % 7 == 0:
            restored.resume(now, crashed=rng.random() < 0.5)
            player = restored


def test_after_a_clean_restart_the_open_block_goes_on() -> None:
    player = new_player(3, floor=7)
    play(player, 10, (1, 0, 1))
    restored = BlockPlayer.restore(player.task, through_json(player), random.Random(9))
    restored.resume(0, crashed=False)
    [block] = play(restored, 11, (1, 0, 1))
    assert block == Block(0, 0, ((7, 7), (7, 0), (7, 7)))


def test_after_a_crash_a_saved_block_takes_no_more_decisions_and_closes_one_window_later() -> None:
    player = new_player(2, floor=7, window=60.0, seed=None)  # unshuffled: 7 of arm 1 first
    play(player, 11, (1, 1), now=1_000)
    saved = through_json(player)
    play(player, 2, (1, 1), now=2_000)  # lost
    restored = BlockPlayer.restore(player.task, saved, random.Random(9))
    restored.resume(10_000, crashed=True)
    assert restored.decide(10_000).group == 1
    assert not restored.tick(69_999)
    assert not restored.tick(70_000 + 6_001)  # arm 0 had 4 of at least 7, so one arm is left: nothing to say
    restored = BlockPlayer.restore(new_task(2, floor=7, window=60.0), saved, random.Random(9))
    assert [group.number for group in restored.decisions.groups] == [0]


def test_after_a_crash_what_was_saved_is_sent() -> None:
    player = new_player(2, floor=1, window=60.0)
    play(player, 2 + 2 + 6 + 6 + 9, (1, 1), now=1_000)
    restored = BlockPlayer.restore(player.task, through_json(player), random.Random(9))
    restored.resume(10_000, crashed=True)
    blocks = sorted(restored.tick(10**6), key=lambda block: block.number)  # each left after a delay of its own
    assert [sum(decided for decided, _ in block.counts) for block in blocks] == [2, 2, 6, 6, 9]
    assert [sum(successes for _, successes in block.counts) for block in blocks] == [2, 2, 6, 6, 9]


def test_a_snapshot_has_no_order_of_decisions() -> None:
    """Players with other orders before them, and other orders behind them, have the same snapshot."""
    saved = set()
    for seed in range(200):
        player = new_player(2, floor=3, seed=seed)
        play(player, 4, (1, 1))
        counts = sorted(
            (count.decided, arm) for group in player.decisions.groups for arm, count in group.counts.items()
        )
        if counts == [(2, 0), (2, 1)]:
            saved.add(json.dumps(player.snapshot(), sort_keys=True))
    assert len(saved) == 1


def test_a_snapshot_has_no_exact_time_of_a_decision() -> None:
    began = set()
    for now in range(1_000_000, 1_010_000, 97):
        player = new_player(2, age=160.0)
        play(player, 2, (1, 1), now)
        text = json.dumps(player.snapshot())
        assert str(now) not in text or now % 10_000 == 0
        began.add(player.snapshot()["began"])
    assert began == {1_000_000}  # a sixteenth of the age, here 10 s


def test_the_age_outlives_a_restart() -> None:
    player = old(age=160.0)
    play(player, 4, (1, 1), now=15_000)
    restored = BlockPlayer.restore(player.task, through_json(player), random.Random(9))
    restored.resume(20_000, crashed=False)
    assert not restored.tick(169_999)
    [block] = restored.tick(175_000)
    assert sum(decided for decided, _ in block.counts) == 4
    [next_block] = play(restored, 14, (1, 1), now=200_000)
    assert next_block.counts[0][0] == 7  # the cap is known


def test_a_snapshot_that_is_not_whole_is_refused() -> None:
    saved = through_json(new_player(2))
    with pytest.raises(MalformedSnapshot):
        BlockPlayer.restore(new_task(2), {**saved, "heard": 1})
    with pytest.raises(MalformedSnapshot):
        BlockPlayer.restore(new_task(3), saved)
