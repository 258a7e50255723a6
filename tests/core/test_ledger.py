"""The bit ledger: every count worked out by hand, next to the bounds of Lemma 2 and Theorem 4."""

from __future__ import annotations

from typing import Any

import pytest

from outvote.core.ledger import Ledger, bits_bound, most_announced_bits, tally_bits_bound
from outvote.core.messages import Elimination, Tally, Vote
from outvote.core.task import Task


def task(arms: int, players: int, **options: Any) -> Task:
    return Task(arms=arms, players=players, epsilon=0.5, delta=0.05, **{"protocol": "dme", **options})


def test_bits_of_dme_under_a_huffman_code() -> None:
    # Weights 4, 2, 1, 1: codewords of 1, 2, 3 and 3 bits; N = 2
    ledger = Ledger(task(4, 2, code="huffman", code_weights=(4, 2, 1, 1)))
    for sequence, arm in enumerate((0, 1, 3)):
        ledger.send_up(0, Vote(arm, 0, sequence))
    ledger.send_down(Elimination((0,)))
    ledger.send_down(Elimination((2,)))
    assert ledger.up_bits == 1 + 2 + 3
    assert ledger.down_bits == 2 * (1 + 3)
    assert ledger.total_bits == 14


def test_edme_counts_the_bits_of_the_instance_with_a_vote_and_also_apart() -> None:
    # K = 5: 3 bits an arm; M = 5: 3 bits an instance; N = 2
    ledger = Ledger(task(5, 2, protocol="edme", instances=5))
    ledger.send_up(0, Vote(4, 0, 0))
    ledger.send_up(0, Vote(3, 4, 1))
    ledger.send_up(1, Vote(4, 2, 0))
    ledger.send_down(Elimination((4,)))
    assert ledger.up_bits == 3 * (3 + 3)
    assert ledger.instance_bits == 3 * 3
    assert ledger.up_bits - ledger.instance_bits == 3 * 3  # what Theorem 4 counts
    assert ledger.up_bits_by_player == {0: 12, 1: 6}
    assert ledger.down_bits == 2 * 3  # one message per arm, not one per instance
    assert ledger.down_messages == 2
    assert ledger.total_bits == 18 + 6


@pytest.mark.parametrize(
    ("of", "bound"),
    [
        (task(10, 64), 4_608),  # 2 · 64 · 9 · 4
        (task(10, 256), 18_432),  # 2 · 256 · 9 · 4
        (task(10, 256, protocol="edme", instances=8), 147_456),  # 2 · 256 · 8 · 9 · 4
        (task(10, 256, protocol="edme", instances=1), 18_432),
        (task(2, 1), 2),  # 2 · 1 · 1 · 1
        (task(3, 5), 40),  # 2 · 5 · 2 · 2
        (task(8, 2), 84),  # 2 · 2 · 7 · 3
        (task(10, 64, active_players=2), 4_608),  # N, not N_γ
        (task(10, 64, code="truncated"), 4_608),  # the bound is the paper's, whatever the code
    ],
)
def test_the_bound_of_lemma_2_and_theorem_4(of: Task, bound: int) -> None:
    assert bits_bound(of) == bound
    assert Ledger(of).bound == bound


def test_a_whole_task_under_the_binary_code_costs_exactly_the_bound() -> None:
    whole = task(10, 64)
    ledger = Ledger(whole)
    for player in range(64):
        for arm in range(1, 10):
            ledger.send_up(player, Vote(arm, 0, arm - 1))
    for arm in range(1, 10):
        ledger.send_down(Elimination((arm,)))
    assert ledger.total_bits == ledger.bound == 4_608
    assert ledger.down_messages == 64 * 9


# ---- Tally


def test_bits_of_tally_where_the_arm_is_implied() -> None:
    # Counts of 2 bits for 3 events, 3 for 7; K = 5: naming the arm would have cost 3; N = 3
    ledger = Ledger(task(5, 3, protocol="tally"))
    ledger.send_up("a", Tally(4, 3, 3, 0))
    ledger.send_up("b", Tally(0, 0, 3, 0))
    ledger.send_up("a", Tally(2, 5, 7, 1))
    assert (ledger.up_messages, ledger.up_bits, ledger.implied_bits, ledger.instance_bits) == (3, 2 + 2 + 3, 3 * 3, 0)
    assert ledger.up_bits_by_player == {"a": 2 + 3, "b": 2}
    assert ledger.bound is None


def test_bits_of_tally_where_the_arm_is_sent() -> None:
    ledger = Ledger(task(5, 3, protocol="tally", code="binary"))
    ledger.send_up("a", Tally(4, 3, 3, 0))
    ledger.send_up("a", Tally(2, 5, 7, 1))
    assert (ledger.up_bits, ledger.implied_bits, ledger.instance_bits) == ((3 + 2) + (3 + 3), 0, 0)
    truncated = Ledger(task(5, 3, protocol="tally", code="truncated"))
    truncated.send_up("a", Tally(4, 3, 3, 0))  # "111"
    truncated.send_up("a", Tally(2, 5, 7, 1))  # "10"
    assert truncated.up_bits == (3 + 2) + (2 + 3)


@pytest.mark.parametrize("code", ["implied", "binary"])
def test_tally_announces_masks_of_those_last_announced(code: str) -> None:
    # K = 6: a mask of 6 bits leaves three; of these one is left: 2 bits. N = 3
    ledger = Ledger(task(6, 3, protocol="tally", code=code))
    ledger.send_down(Elimination((0, 2, 5)))
    assert (ledger.down_messages, ledger.down_bits) == (3, 3 * 6)
    ledger.send_down(Elimination((1, 4)))
    assert (ledger.down_messages, ledger.down_bits) == (6, 3 * 8)
    assert ledger.total_bits == 24


def test_no_way_of_announcing_costs_more_than_the_most() -> None:
    # From m arms to at most half of them costs m bits, to one ⌈log₂ m⌉: the dearest of all ways, one by one.
    dearest = {1: 0}
    for arms in range(2, 65):
        halves = [arms + dearest[left] for left in range(2, arms // 2 + 1)]
        dearest[arms] = max([(arms - 1).bit_length(), *halves])
        assert most_announced_bits(arms) == dearest[arms]


@pytest.mark.parametrize(
    ("of", "draws", "bound"),
    [
        # 2 bits for 3 events are the dearest; each of N = 4 players is told 10 + 5 + 1 bits at most
        (task(10, 4, protocol="tally"), 300, 200 + 4 * 16),
        (task(10, 4, protocol="tally"), 2, 1 + 4 * 16),  # 4/3 of a bit
        (task(10, 4, protocol="tally"), 0, 4 * 16),
        (task(10, 4, protocol="tally", code="binary"), 300, 300 * (4 + 2) // 3 + 4 * 16),
        (task(2, 1, protocol="tally", floor=2), 10, 10 + 1),  # 2 bits for 2 events
        (task(8, 1, protocol="tally", floor=15), 150, 40 + 13),  # 4 bits for 15
        # a Huffman code's longest word counts: 3 + 2 bits for 3 events
        (task(4, 1, protocol="tally", code="huffman", code_weights=(4, 2, 1, 1)), 3, 5 + 5),
    ],
)
def test_the_most_bits_that_tally_sends_in_so_many_draws(of: Task, draws: int, bound: int) -> None:
    assert tally_bits_bound(of, draws) == bound


@pytest.mark.parametrize("code", ["implied", "binary"])
def test_tallies_of_the_smallest_size_and_the_dearest_announcements_cost_exactly_the_bound(code: str) -> None:
    whole = task(8, 2, protocol="tally", code=code)
    ledger = Ledger(whole)
    for sequence in range(30):
        ledger.send_up(0, Tally(0, 1, 3, sequence))
    for gone in ((0, 1, 2, 3), (4, 5), (6,)):
        ledger.send_down(Elimination(gone))
    assert ledger.total_bits == tally_bits_bound(whole, 90)


def test_the_bound_of_tally_is_never_rounded_below_what_can_be_sent() -> None:
    # 45 draws are 9 tallies of 5 events, 3 bits for the count and 4 for the arm: 63 bits
    tally = Task(arms=10, players=1, epsilon=0, delta=0.05, protocol="tally", code="binary", floor=5)
    assert tally_bits_bound(tally, 45) - most_announced_bits(10) == 63
