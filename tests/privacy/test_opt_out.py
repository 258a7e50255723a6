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
"""Whether the reward of an event with this arm, which was liked or not, is reported."""


def winner(rng: random.Random, means: Sequence[float], answers: Answers) -> int:
    """What a fleet finds."""
    server = protocols.server(TASK)
    players = [protocols.player(TASK, player, rng=rng) for player in range(4)]
    while server.winner is None:
        number = rng.randrange(4)
        arm, ticket = players[number].decide()
        liked = int(rng.random() < means[arm])
        if not answers(arm, liked):
            continue
        for message in players[number].reward(arm, liked, ticket=ticket):
            for elimination in server.receive(number, message):
                for player in players:
                    player.receive(elimination)
    return server.winner


def pooled(rng: random.Random, answers: Answers, *, window: float | None = None) -> list[float]:
    """The share of successes that one player reports of each arm, in 20,000 decisions."""
    task = Task(arms=2, players=4, epsilon=0.0, delta=0.1, protocol="tally", reward_window=window)
    player = protocols.player(task, 0, rng=rng)
    successes, trials = [0, 0], [0, 0]
    for _ in range(20_000):
        arm, ticket = player.decide()
        liked = int(rng.random() < MEANS[arm])
        messages = list(player.reward(arm, liked, ticket=ticket)) if answers(arm, liked) else []
        for full in player.take_full():
            messages += player.close(full)
        for message in messages:
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
    """A third of the users are shown an arm, and their rewards are never reported. The same bound on errors; and what
    is pooled is the mean of all: .02 off is over 5 standard errors of 10,000 events."""
    rng = random.Random(2)
    at_random: Answers = lambda arm, liked: rng.random() > 1 / 3  # noqa: E731
    assert sum(winner(rng, MEANS, at_random) != 0 for _ in range(RUNS)) <= 30
    assert pooled(rng, at_random) == pytest.approx(MEANS, abs=0.025)


def test_rewards_withheld_by_what_they_are_spoil_the_answer_without_a_window() -> None:
    """Who did not like arm 1 is not reported, three times of four: the worse arm seems the better one. With a window
    what is not reported counts 0, and both keep the mean of what is reported."""
    rng = random.Random(3)
    by_outcome: Answers = lambda arm, liked: arm == 0 or liked == 1 or rng.random() < 0.25  # noqa: E731
    seeming = 0.4 / (0.4 + 0.6 / 4)
    assert pooled(rng, by_outcome) == pytest.approx((0.6, seeming), abs=0.05)  # over 5 standard errors
    wrong = sum(winner(rng, MEANS, by_outcome) != 0 for _ in range(40))
    assert wrong >= 20, "by chance, at δ = .1, in fewer than 1 of a million"
    assert pooled(rng, by_outcome, window=1.0) == pytest.approx(MEANS, abs=0.025)
