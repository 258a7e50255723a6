"""Events that the application withholds: what the guarantee becomes, and which withholding would spoil it.

Players of Tally with two arms. Seeds are fixed; each test states its false-alarm rate.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest

from outvote.core import protocols
from outvote.core.messages import Tally
from outvote.core.task import Task

RUNS = 150
TASK = Task(arms=2, players=4, epsilon=0.0, delta=0.1, protocol="tally")
MEANS = (0.6, 0.4)

Answers: TypeAlias = Callable[[int, int], bool]
"""Whether the reward of an event with this arm, which was liked or not, is reported. What is not reported counts 0."""


def winner(rng: random.Random, means: Sequence[float], answers: Answers) -> int:
    """What a fleet finds."""
    server = protocols.server(TASK)
    players = [protocols.player(TASK, player, rng=rng) for player in range(4)]
    while server.winner is None:
        number = rng.randrange(4)
        player = players[number]
        ticket = player.decide(0)
        liked = int(rng.random() < means[ticket.arm])
        if answers(ticket.arm, liked):
            player.reward(ticket, liked, 0)
        for message in player.tick(0):
            for elimination in server.receive(number, message, 0):
                for each in players:
                    each.receive(elimination)
    return server.winner


def pooled(rng: random.Random, answers: Answers) -> list[float]:
    """The share of successes that one player reports of each arm, in 20,000 decisions."""
    player = protocols.player(TASK, 0, rng=rng)
    successes, trials = [0, 0], [0, 0]
    for _ in range(20_000):
        ticket = player.decide(0)
        liked = int(rng.random() < MEANS[ticket.arm])
        if answers(ticket.arm, liked):
            player.reward(ticket, liked, 0)
        for message in player.tick(0):
            assert isinstance(message, Tally)
            successes[message.arm] += message.successes
            trials[message.arm] += message.trials
    assert min(trials) > 2000
    return [each / count for each, count in zip(successes, trials, strict=True)]


def test_users_who_are_never_asked_do_no_harm() -> None:
    """Users opt out, of those who like arm 1 more than others: what is found is best for those who take part. Of 150
    runs at δ = .1 more than 30 errors would come by chance in fewer than 1 of 10,000."""
    rng = random.Random(1)
    all_users, who_takes_part = (0.35, 0.65), MEANS
    assert sum(winner(rng, who_takes_part, lambda arm, liked: True) != 0 for _ in range(RUNS)) <= 30
    assert all_users[1] > all_users[0], "asked of all users the other arm were best: that is what opting out changes"


def test_rewards_withheld_whatever_they_are_do_no_harm() -> None:
    """A third of the rewards are never reported, and count 0: both means are two thirds of what they were. The same
    bound on errors; .025 off is over 5 standard errors of 10,000 events."""
    rng = random.Random(2)
    at_random: Answers = lambda arm, liked: rng.random() > 1 / 3  # noqa: E731
    assert sum(winner(rng, MEANS, at_random) != 0 for _ in range(RUNS)) <= 30
    assert pooled(rng, at_random) == pytest.approx([mean * 2 / 3 for mean in MEANS], abs=0.025)


def test_failures_withheld_do_no_harm() -> None:
    """Who did not like arm 1 is reported one time of four: what is not reported counts 0, so the means are right."""
    rng = random.Random(3)
    assert pooled(rng, lambda arm, liked: arm == 0 or liked == 1 or rng.random() < 0.25) == pytest.approx(
        MEANS, abs=0.025
    )


def test_successes_withheld_of_one_arm_spoil_the_answer() -> None:
    """Who likes arm 0 is reported one time of two: it seems to be worth .3, and arm 1 seems the better one. The control
    of the tests above: by chance, at δ = .1, 20 wrong answers of 40 come in fewer than 1 of a million runs."""
    rng = random.Random(3)
    by_arm: Answers = lambda arm, liked: arm == 1 or rng.random() < 0.5  # noqa: E731
    assert pooled(rng, by_arm) == pytest.approx((0.3, 0.4), abs=0.025)
    assert sum(winner(rng, MEANS, by_arm) != 0 for _ in range(40)) >= 20
