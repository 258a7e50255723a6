"""The server of blocks: what it counts, what it refuses, whom it refutes, and when it announces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from benchmarks.validity.exact import bet
from core.blocks.block_players import new_server, send, through_json
from outvote.core import snapshots
from outvote.core.blocks.bets import STAKES, WEIGHTS
from outvote.core.blocks.server import BlockServer
from outvote.core.errors import MalformedMessage, MalformedSnapshot, OutvoteError, UnknownPlayer
from outvote.core.messages import Block, Elimination, Tally, Vote

Counts = Sequence[tuple[int, int]]
LN_20 = math.log(20)
"""δ = .05."""


def literal_bet(decided: int, own: int, other_decided: int, others: int, stake: float) -> float:
    if decided != other_decided:
        return float(bet(decided, own, other_decided, others, Fraction(stake).limit_denominator(10**9)))
    return math.fsum(
        math.comb(decided - others, x)
        * math.comb(others, own - x)
        / math.comb(decided, own)
        * (1 - stake) ** x
        * (1 + stake) ** (others - own + x)
        for x in range(max(0, own - others), min(own, decided - others) + 1)
    )


def literal_wealth(arms: int, suspect: int, *blocks: dict[int, tuple[int, int]]) -> float:
    """ln of the mean over rivals of Σ w·Π G; of each block the arms that count."""
    total = 0.0
    for rival in range(arms):
        if rival != suspect:
            both = [block for block in blocks if suspect in block and rival in block]
            for stake, weight in zip(STAKES, WEIGHTS, strict=True):
                bets = (literal_bet(*block[suspect], *block[rival], stake) for block in both)
                total += math.prod(bets, start=weight)
    return math.log(total / (arms - 1))


def same(wealth: float, expected: float) -> bool:
    return wealth == pytest.approx(expected, rel=1e-7, abs=1e-9)


# ---- evidence


def test_one_block_of_two_decisions_by_hand() -> None:
    """Arm 0 succeeded and arm 1 did not: each stake pays 1 − β against arm 0 and 1 + β against arm 1."""
    server = new_server(2)
    send(server, [(1, 1), (1, 0)])
    mean_stake = math.fsum(weight * stake for weight, stake in zip(WEIGHTS, STAKES, strict=True))
    assert server.log_wealth(0) == pytest.approx(math.log(1 - mean_stake))
    assert server.log_wealth(1) == pytest.approx(math.log(1 + mean_stake))


def test_nothing_is_known_before_the_first_block() -> None:
    server = new_server(3)
    assert [server.log_wealth(arm) for arm in range(3)] == pytest.approx([0, 0, 0], abs=1e-12)
    assert (server.leader, server.remaining, server.winner, server.finished) == (None, (0, 1, 2), None, False)


def test_wealth_is_the_mean_over_rivals_of_what_all_blocks_paid() -> None:
    blocks: list[Counts] = [
        [(3, 1), (3, 2), (3, 0)],
        [(7, 3), (7, 3), (7, 1)],
        [(2, 1), (0, 0), (5, 3)],  # closed by age
        [(4, 4), (6, 2), (1, 0)],
    ]
    server = new_server(3)
    send(server, *blocks)
    counted = [{arm: count for arm, count in enumerate(block) if count[0]} for block in blocks]
    for arm in range(3):
        assert same(server.log_wealth(arm), literal_wealth(3, arm, *counted))


def test_an_arm_is_refuted_at_one_over_delta_and_not_before() -> None:
    """Sites with blocks of one decision each; arm 0 always succeeds, arm 1 never."""
    server = new_server(2)
    for number in range(100):
        announced = send(server, [(1, 1), (1, 0)], first=number)
        reached = literal_wealth(2, 1, *[{0: (1, 1), 1: (1, 0)}] * (number + 1)) >= LN_20
        assert announced == ([Elimination((1,))] if reached else [])
        if reached:
            break
    assert (server.winner, server.finished, server.status) == (0, True, "finished")
    assert number > 3


def test_several_are_refuted_at_once() -> None:
    server = new_server(4)
    assert send(server, [(127, 100), (127, 10), (127, 90), (127, 20)]) == [Elimination((1, 3))]
    assert (server.remaining, server.contenders, server.eliminated) == ((0, 2), (0, 2), (1, 3))


def altered(server: BlockServer, **changes: Any) -> BlockServer:
    """A server with another state, sealed as its own."""
    state = {
        key: value for key, value in through_json(server).items() if key not in snapshots.seal("", server.task, {})
    }
    return BlockServer.restore(server.task, snapshots.seal("server", server.task, {**state, **changes}))


def test_where_all_cross_at_once_the_least_refuted_stays() -> None:
    server = new_server(3)
    logs = [[[wealth] * len(STAKES) for _ in range(3)] for wealth in (5.0, 4.0, 6.0)]  # all above ln 20 = 3.0
    assert send(altered(server, logs=logs), [(1, 0), (1, 0), (1, 0)]) == [Elimination((0, 2))]


def test_an_arm_that_a_block_says_nothing_of_is_not_refuted_by_it() -> None:
    server = new_server(3)
    logs = [[[5.0] * len(STAKES) for _ in range(3)] for _ in range(3)]
    server = altered(server, logs=logs)
    send(server, [(0, 0), (1, 0), (1, 0)])
    assert 0 in server.remaining


# ---- announcements


def first_of(arms: int) -> BlockServer:
    """Three sites, of which each sent a block; the last arm is out."""
    server = new_server(arms, players=3)
    neutral = [(1, 0)] * arms
    send(server, neutral, player=0)
    send(server, neutral, player=1)
    assert send(server, [(127, 60)] * (arms - 1) + [(127, 5)], player=2) == [Elimination((arms - 1,))]
    return server


BAD_SEVENTH: Counts = [(127, 60)] * 6 + [(127, 5)]


def test_with_many_arms_a_refuted_one_waits_until_as_many_blocks_came_as_there_are_sites() -> None:
    server = first_of(8)
    assert send(server, BAD_SEVENTH, player=0, first=1, heard=1) == []
    assert (server.remaining, server.contenders) == (tuple(range(7)), tuple(range(6)))
    assert send(server, [(1, 0)] * 7, player=0, first=2, heard=1) == []
    assert send(server, [(1, 0)] * 7, player=0, first=3, heard=1) == [Elimination((6,))]


def test_duplicates_are_no_blocks_to_wait_for() -> None:
    server = first_of(8)
    send(server, BAD_SEVENTH, player=0, first=1, heard=1)
    for _ in range(5):
        assert send(server, BAD_SEVENTH, player=0, first=1, heard=1) == []
    assert server.duplicates == 5


@pytest.mark.parametrize(("remaining", "good"), [(7, 3), (8, 4), (8, 3)])
def test_half_of_them_are_announced_at_once(remaining: int, good: int) -> None:
    server = first_of(remaining + 1)
    counts = [(127, 60)] * good + [(127, 5)] * (remaining - good)
    assert send(server, counts, player=0, first=1, heard=1) == [Elimination(tuple(range(good, remaining)))]


@pytest.mark.parametrize(("remaining", "good"), [(7, 4), (8, 5)])
def test_fewer_than_half_wait(remaining: int, good: int) -> None:
    server = first_of(remaining + 1)
    counts = [(127, 60)] * good + [(127, 5)] * (remaining - good)
    assert send(server, counts, player=0, first=1, heard=1) == []
    assert server.contenders == tuple(range(good))


def test_with_four_arms_or_fewer_nothing_waits() -> None:
    for arms in (2, 3, 4):
        server = new_server(arms, players=3)
        for player in range(3):
            send(server, [(1, 0)] * arms, player=player)
        good, bad = [(127, 60)], [(127, 5)]
        assert send(server, good * (arms - 1) + bad, first=1) == [Elimination((arms - 1,))]


def test_a_refuted_arm_that_is_not_announced_yet_stays_a_rival() -> None:
    server = first_of(8)
    blocks: list[Counts] = [[(127, 60)] * 7 + [(127, 5)], BAD_SEVENTH, [(3, 0)] * 6 + [(3, 3)]]
    send(server, *blocks[1:], player=0, first=1, heard=1)
    assert 6 in server.remaining
    assert 6 not in server.contenders
    counted = [dict.fromkeys(range(8), (1, 0))] * 2 + [dict(enumerate(block)) for block in blocks]
    assert same(server.log_wealth(0), literal_wealth(8, 0, *counted))
    assert server.log_wealth(0) > literal_wealth(8, 0, *counted[:-1])


def test_a_rival_that_is_announced_out_keeps_its_value() -> None:
    server = new_server(3)
    first: Counts = [(127, 60), (127, 50), (127, 5)]
    assert send(server, first) == [Elimination((2,))]
    later: Counts = [(7, 1), (7, 6)]
    send(server, later, first=1, heard=1)
    assert same(server.log_wealth(0), literal_wealth(3, 0, dict(enumerate(first)), dict(enumerate(later))))


def test_a_late_block_counts_without_the_arms_that_are_out() -> None:
    server = new_server(3)
    first: Counts = [(127, 60), (127, 50), (127, 5)]
    send(server, first)
    assert send(server, [(7, 1), (7, 6), (7, 7)], player=1) == []
    late = {0: (7, 1), 1: (7, 6)}
    for arm in (0, 1, 2):
        assert same(server.log_wealth(arm), literal_wealth(3, arm, dict(enumerate(first)), late))


def test_blocks_after_the_end_change_nothing_that_was_decided() -> None:
    server = new_server(2)
    send(server, [(127, 100), (127, 1)])
    assert server.winner == 0
    assert send(server, [(127, 1), (127, 100)], player=1) == []
    assert (server.winner, server.eliminated, server.blocks) == (0, (1,), 2)


# ---- the leader


def test_the_leader_has_the_largest_mean_weighted_by_the_smallest_count() -> None:
    """Arm 0: 3·3/3 + 2·1/2 = 4; arm 1: 3·1/3 + 2·9/12 = 2.5, though it succeeded in 10 of 15 and arm 0 in 4 of 5."""
    server = new_server(2)
    send(server, [(3, 3), (3, 1)])
    assert server.leader == 0
    send(server, [(2, 1), (12, 9)], first=1)
    assert server.leader == 0
    send(server, [(3, 0), (3, 2)], first=2)  # 4 against 4.5
    assert server.leader == 1


def test_of_equal_ones_the_first_leads() -> None:
    server = new_server(3)
    send(server, [(3, 1), (3, 2), (3, 2)])
    assert server.leader == 1


def test_blocks_that_lack_a_remaining_arm_say_nothing_of_the_leader() -> None:
    server = new_server(3)
    send(server, [(3, 1), (3, 3), (0, 0)])
    assert server.leader is None
    assert send(server, [(127, 60), (127, 50), (127, 5)], first=1) == [Elimination((2,))]
    assert server.leader == 0
    send(server, [(127, 1), (127, 20), (0, 0)], player=1)  # late, and arm 2 is out
    assert server.leader == 1


# ---- duplicates, lives and what is refused


def unchanged(server: BlockServer, but: str) -> dict[str, Any]:
    state = through_json(server)
    return {key: value for key, value in state.items() if key not in (but, "checksum")}


def test_a_block_that_is_received_again_is_counted_once() -> None:
    server = new_server(3)
    send(server, [(3, 1), (3, 2), (3, 0)], player=2)
    before = unchanged(server, "duplicates")
    send(server, [(3, 1), (3, 2), (3, 0)], player=2)
    send(server, [(3, 3), (3, 3), (3, 3)], player=2)
    assert unchanged(server, "duplicates") == before
    assert (server.duplicates, server.blocks) == (2, 1)


def test_another_life_of_a_player_numbers_its_blocks_anew() -> None:
    server = new_server(2)
    for life in ("", "a", "b", "a"):
        send(server, [(1, 1), (1, 0)], life=life)
    assert (server.blocks, server.duplicates) == (3, 1)
    assert same(server.log_wealth(1), literal_wealth(2, 1, *[{0: (1, 1), 1: (1, 0)}] * 3))


GOOD = ((3, 1), (3, 2), (3, 0))
REFUSED: dict[str, tuple[Any, Any, type[OutvoteError]]] = {
    "no such player": (4, Block(0, 0, GOOD), UnknownPlayer),
    "a player by name": ("0", Block(0, 0, GOOD), UnknownPlayer),
    "a truth for a player": (True, Block(0, 0, GOOD), UnknownPlayer),
    "a vote": (0, Vote(1), MalformedMessage),
    "a tally": (0, Tally(1, 1, 3, 0), MalformedMessage),
    "nothing": (0, None, MalformedMessage),
    "a number below 0": (0, Block(-1, 0, GOOD), MalformedMessage),
    "a number too large": (0, Block(2**53, 0, GOOD), MalformedMessage),
    "half a number": (0, Block(0.5, 0, GOOD), MalformedMessage),  # type: ignore[arg-type]
    "eliminations that were not": (0, Block(0, 1, GOOD), MalformedMessage),
    "fewer than no eliminations": (0, Block(0, -1, GOOD), MalformedMessage),
    "a truth for eliminations": (0, Block(0, False, GOOD), MalformedMessage),
    "an arm too few": (0, Block(0, 0, GOOD[:2]), MalformedMessage),
    "an arm too many": (0, Block(0, 0, (*GOOD, (3, 0))), MalformedMessage),
    "one arm only": (0, Block(0, 0, ((3, 1), (0, 0), (0, 0))), MalformedMessage),
    "no arm": (0, Block(0, 0, ((0, 0),) * 3), MalformedMessage),
    "below the floor": (0, Block(0, 0, ((3, 1), (3, 2), (2, 0))), MalformedMessage),
    "more successes than decisions": (0, Block(0, 0, ((3, 4), (3, 2), (3, 0))), MalformedMessage),
    "successes without decisions": (0, Block(0, 0, ((3, 1), (3, 2), (0, 1))), MalformedMessage),
    "successes below 0": (0, Block(0, 0, ((3, -1), (3, 2), (3, 0))), MalformedMessage),
    "half a success": (0, Block(0, 0, ((3, 1.5), (3, 2), (3, 0))), MalformedMessage),  # type: ignore[arg-type]
    "too many decisions": (0, Block(0, 0, ((256, 1), (3, 2), (3, 0))), MalformedMessage),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_malformed_or_unknown_is_refused_and_changes_nothing(what: str) -> None:
    player, message, error = REFUSED[what]
    server = new_server(3, floor=3)
    send(server, GOOD, player=1)
    before = unchanged(server, "refused")
    with pytest.raises(error) as caught:
        server.receive(player, message, 10**9)
    assert "\n" not in str(caught.value)
    assert unchanged(server, "refused") == before
    assert server.refused == 1


def test_players_with_names_are_known_by_them() -> None:
    server = new_server(2, players=["kiosk", "shop"])
    send(server, [(1, 1), (1, 0)], player="shop")
    with pytest.raises(UnknownPlayer):
        send(server, [(1, 1), (1, 0)], player=0)
    assert (server.blocks, server.refused) == (1, 1)


def test_time_is_that_of_the_last_block_that_was_not_refused() -> None:
    server = new_server(2)
    server.receive(0, Block(0, 0, ((1, 1), (1, 0))), 77)
    assert server.time == 77


# ---- snapshots


def test_a_server_restored_at_any_step_goes_on_as_the_original() -> None:
    server = new_server(6, players=3)
    counts = [(31, 12), (31, 13), (31, 11), (31, 9), (31, 3), (31, 2)]
    for step in range(60):
        restored = BlockServer.restore(server.task, through_json(server))
        assert restored.snapshot() == server.snapshot()
        remaining = server.remaining
        block = Block(step // 3, len(server.snapshot()["history"]) - 1, tuple(counts[arm] for arm in remaining))
        assert restored.receive(step % 3, block, step) == server.receive(step % 3, block, step)
        assert restored.snapshot() == server.snapshot()
        assert (restored.leader, restored.contenders) == (server.leader, server.contenders)
    assert len(server.eliminated) >= 2


def test_a_snapshot_that_is_not_whole_is_refused() -> None:
    server = new_server(2)
    send(server, [(1, 1), (1, 0)])
    saved = through_json(server)
    with pytest.raises(MalformedSnapshot):
        BlockServer.restore(server.task, {**saved, "blocks": 2})
    with pytest.raises(MalformedSnapshot):
        BlockServer.restore(new_server(2, delta=0.1).task, saved)


# ---- what the log decided


def test_an_elimination_that_another_server_announced_is_taken_over() -> None:
    server = new_server(4)
    assert server.adopt([2]) == []
    assert (server.remaining, server.contenders, server.eliminated) == ((0, 1, 3), (0, 1, 3), (2,))
    send(server, [(1, 1), (1, 0), (1, 1)], heard=1)
    late = {0: (1, 1), 1: (1, 0), 3: (1, 0)}
    send(server, [(1, 1), (1, 0), (1, 1), (1, 0)], player=1)  # late
    assert same(server.log_wealth(3), literal_wealth(4, 3, {0: (1, 1), 1: (1, 0), 3: (1, 1)}, late))
    with pytest.raises(MalformedMessage):
        send(server, [(1, 1), (1, 0), (1, 1), (1, 0)], first=1, heard=1)


def test_the_log_decides_also_against_what_the_server_announced() -> None:
    server = new_server(2)
    assert send(server, [(127, 100), (127, 1)]) == [Elimination((1,))]
    assert server.adopt([0]) == []
    assert (server.remaining, server.winner, server.contenders) == ((1,), 1, (1,))
    assert send(server, [(127, 100), (127, 1)], player=1) == []  # from before, and the arms still have their places
    assert server.winner == 1


def test_an_announcement_that_came_second_makes_room_for_the_first() -> None:
    server = new_server(4)
    assert send(server, [(127, 100), (127, 90), (127, 3), (127, 1)]) == [Elimination((2, 3))]
    server.adopt([0, 1])
    assert (server.remaining, server.eliminated) == ((2, 3), (0, 1))
    assert server.contenders == (2,)  # both had been refuted: the least refuted stays
    with pytest.raises(MalformedMessage):
        send(server, [(1, 1), (1, 0)], player=1, heard=2)  # there was one elimination
    assert send(server, [(1, 1), (1, 0)], player=1, heard=1) == [Elimination((3,))]
    assert server.winner == 2
