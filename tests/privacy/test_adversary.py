"""The adversary on a whole fleet: it hears what was sent, and is as sure as it is right."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from outvote.core.cycle import Cycle
from outvote.core.errors import OutvoteError
from outvote.core.messages import Tally, Vote
from outvote.core.task import Task
from outvote.privacy import adversary
from outvote.privacy.adversary import Transcript
from outvote.simulation.settings import read_settings

MEANS = (0.8, 0.5, 0.3)
SEED = 11


def heard(protocol: str, trial: int, values: Sequence[float] = MEANS, **options: float) -> Transcript:
    means = random.Random(trial).sample(values, len(values))
    settings = read_settings(protocol=protocol, means=means, players=4, horizon=200_000, grid=1, trials=1, **options)  # type: ignore[arg-type]
    return adversary.listen(settings, np.random.SeedSequence([SEED, trial]))


@pytest.mark.parametrize("budget", [None, 1.0])
def test_the_posterior_from_all_tallies_is_right_as_often_as_it_says(budget: float | None) -> None:
    """Σ (right − its probability) has mean 0: five standard deviations, a false alarm in about two million runs."""
    options = {} if budget is None else {"privacy_budget": budget, "floor": 3}
    surprise = variance = 0.0
    rng = random.Random(SEED)
    for trial in range(40 if budget is None else 25):
        transcript = heard("tally", trial, (0.65, 0.5, 0.4), delta=0.9, **options)
        said = adversary.best_arm_from_tallies(transcript, range(4))
        guess = adversary.guess(said, rng)
        surprise += (guess == transcript.best) - said[guess]
        variance += said[guess] * (1 - said[guess])
    assert abs(surprise) <= 5 * math.sqrt(variance) + 1e-9
    assert variance > 1  # else nothing was in doubt, and this test could not fail


def test_what_is_heard_is_what_was_counted() -> None:
    transcript = heard("tally", 0)
    for player, messages in enumerate(transcript.sent):
        for arm, pulls in enumerate(transcript.pulls[player]):
            tallies = [each for each in messages if isinstance(each, Tally) and each.arm == arm]
            assert sum(each.trials for each in tallies) <= pulls
            assert sum(each.successes for each in tallies) <= transcript.successes[player][arm] <= pulls


def test_the_events_themselves_tell_more_than_tallies_of_one_player() -> None:
    transcript = heard("tally", 1)
    raw = adversary.best_arm_from_events(transcript, range(4))
    assert raw[transcript.best] > 0.9
    assert 0 < adversary.mean_advantage(transcript) < 1


def test_a_place_that_was_passed_over_tells_that_its_arm_is_out() -> None:
    task = Task(arms=3, players=2, epsilon=0, delta=0.05, protocol="tally")
    arms = [Cycle(task).arm(0, place) for place in range(4)]
    sent = (Tally(arms[0], 0, 3, 0), Tally(arms[2], 0, 3, 2))  # place 1 is missing
    counts = ((6, 0, 0), (0, 0, 0))
    transcript = Transcript(task, MEANS, (sent, ()), counts, counts)
    said = adversary.best_arm_from_tallies(transcript, [0])
    assert said[arms[1]] == 0
    assert said[arms[0]] == pytest.approx(said[arms[2]])
    # Who hears all needs no such thing: what is out follows from what was said.
    assert adversary.best_arm_from_tallies(transcript, range(2))[arms[1]] > 0.5


def test_arms_without_votes_are_equally_likely() -> None:
    task = Task(arms=4, players=2, epsilon=0.5, delta=0.05)
    sent = ((Vote(2), Vote(0, sequence=1)), (Vote(2), Vote(1, sequence=1)))
    transcript = Transcript(task, (0.4, 0.3, 0.2, 0.5), sent, ((0,) * 4,) * 2, ((0,) * 4,) * 2)
    assert adversary.best_arm_from_votes(transcript, [0]) == [0, 0.5, 0, 0.5]
    assert adversary.best_arm_from_votes(transcript, range(2)) == [0, 0, 0, 1]
    assert transcript.best == 3
    rng = random.Random(SEED)
    assert {adversary.guess([0.5, 0, 0.5], rng) for _ in range(40)} == {0, 2}  # one alone: 2·2⁻⁴⁰


def test_the_wrong_kind_of_message_is_refused() -> None:
    task = Task(arms=3, players=1, epsilon=0.5, delta=0.05)
    votes = Transcript(task, MEANS, ((Vote(0),),), ((1, 0, 0),), ((0, 0, 0),))
    with pytest.raises(ValueError, match="best_arm_from_votes"):
        adversary.best_arm_from_tallies(votes, [0])
    with pytest.raises(ValueError, match="from tallies"):
        adversary.mean_advantage(votes)
    tallies = Transcript(task, MEANS, ((Tally(0, 1, 3, 0),),), ((3, 0, 0),), ((1, 0, 0),))
    with pytest.raises(ValueError, match="best_arm_from_tallies"):
        adversary.best_arm_from_votes(tallies, [0])


def test_a_fleet_of_votes_is_heard_to_its_end() -> None:
    transcript = heard("dme", 2, epsilon=0.9, delta=0.5)
    said = adversary.best_arm_from_votes(transcript, range(4))
    assert said[transcript.best] == 1
    assert all(isinstance(each, Vote) for messages in transcript.sent for each in messages)


def test_who_sends_nothing_cannot_be_heard_and_who_does_not_end_is_refused() -> None:
    alone = read_settings(protocol="me-local", means=MEANS, players=2, horizon=10, trials=1)
    with pytest.raises(ValueError, match="nothing is sent"):
        adversary.listen(alone, np.random.SeedSequence(SEED))
    short = read_settings(protocol="tally", means=MEANS, players=2, horizon=10, trials=1)
    with pytest.raises(OutvoteError, match="raise the horizon"):
        adversary.listen(short, np.random.SeedSequence(SEED))
