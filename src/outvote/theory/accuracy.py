"""What the epochs of Median Elimination guarantee to a fleet, whatever its quorum (docs/guarantees.md has the proof).

A player is accurate if in each of its epochs the mean of every candidate is less than ε_l/2 from the truth. If all
players are, what remains in the end is less than ε/4 worse than the best arm.
"""

from __future__ import annotations

import math

from outvote.core.votes.schedule import Schedule

EPOCHS = 20
"""Epochs whose rounded lengths are used; the rest is added as a geometric series."""


def inaccuracy(schedule: Schedule) -> float:
    """p, as Hoeffding's inequality and the union over arms and epochs give it: 2K·Σ_l exp(−t_l·ε_l²/2).

    Over K arms in each of any number of epochs, though there are fewer of both: eliminations and equal means may change
    how a player halves. From epoch 21 on exp(−t_l·ε_l²/2) is replaced by its bound (η_l/3K)².
    """
    try:
        terms = [
            math.exp(-schedule.pulls(epoch) * schedule.epoch_epsilon(epoch) ** 2 / 2) for epoch in range(1, EPOCHS + 1)
        ]
    except OverflowError:  # an ε so small that later epochs are longer than a float can say
        return inaccuracy_limit(schedule.arms, schedule.log_eta)
    terms.append((schedule.epoch_eta(EPOCHS) / (3 * schedule.arms)) ** 2 / 3)  # Σ_{l>L} η_l² = η_L²·(1/4 + 1/16 + …)
    return min(2 * schedule.arms * math.fsum(terms), 1.0)


def inaccuracy_limit(arms: int, log_eta: float) -> float:
    """The simple bound on p, for any number of epochs: 2η²/(27K), since exp(−t_l·ε_l²/2) ≤ (η_l/3K)²."""
    return min(2 * math.exp(2 * log_eta) / (27 * arms), 1.0)


def accurate_fleet_error(probability: float, players: int) -> float:
    """1 − (1−p)^N: the probability that some player is inaccurate, and so a bound on that of a wrong answer."""
    return -math.expm1(players * math.log1p(-probability)) if probability < 1 else 1.0


def answer_within(schedule: Schedule) -> float:
    """ε_1 = ε/4: what remains to an accurate fleet is worse than the best arm by less than this."""
    return schedule.epoch_epsilon(1)


def error_when_separated(probability: float, players: int, active_players: float) -> float:
    """P(Binomial(N, p) ≥ N_γ/2): a bound on losing the best arm where no other is within ε/4 of it.

    Then no accurate player ever votes against the best arm, and it takes a quorum of inaccurate ones.
    """
    return _binomial_tail(players, probability, math.ceil(active_players / 2))


def split_fleet_error(failure: float, players: int, quorum: int, good_arms: int) -> float:
    """What the local guarantee alone allows: the probability that a fleet votes out every good arm, and keeps the bad.

    There are so many good arms and one bad arm. A player fails with this probability: it votes out all good arms.
    Otherwise it keeps a good arm that it draws at random, and votes out the bad arm and then the other good ones. The
    players vote one after the other, and the last arm is never eliminated.
    """
    # The bad arm has fewer votes than the quorum: then more players failed than may, and every good arm has it.
    never = _binomial_tail(players, failure, players - quorum + 1)
    # Or it would get its last vote from player τ. By then each good arm has τ − 1 votes less those who kept it, of the
    # quorum − 1 players that did not fail.
    late = (
        math.exp(
            math.log(math.comb(voter - 1, quorum - 1))
            + quorum * math.log1p(-failure)
            + (voter - quorum) * math.log(failure)
        )
        * _all_at_most(quorum - 1, good_arms, voter - 1 - quorum)
        for voter in range(quorum, players + 1)
    )
    return min(never + math.fsum(late), 1.0)


def _all_at_most(balls: int, boxes: int, most: int) -> float:
    """Balls thrown at random into boxes: the probability that no box gets more than `most`."""
    if most < 0:
        return 0.0
    ways = [1.0] + [0.0] * balls  # by balls placed: Σ Π 1/(balls in a box)!
    for _ in range(boxes):
        ways = [
            math.fsum(ways[placed - here] / math.factorial(here) for here in range(min(most, placed) + 1))
            for placed in range(balls + 1)
        ]
    return ways[balls] * math.exp(math.lgamma(balls + 1) - balls * math.log(boxes))


def _binomial_tail(trials: int, probability: float, least: int) -> float:
    """P(Binomial ≥ least)."""
    from scipy.special import bdtrc

    return float(bdtrc(least - 1, trials, probability)) if least <= trials else 0.0
