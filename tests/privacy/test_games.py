"""The adversary played on real players: what it gets right is what was computed. False alarms: at most 10⁻⁶ a test."""

from __future__ import annotations

import itertools

import pytest
from scipy.stats import binomtest

from outvote.core.noise import binomial_law
from outvote.core.task import Task
from outvote.privacy import games, posterior

SEED = 7
FALSE_ALARM = 1e-6


def agrees(count: int, trials: int, probability: float) -> bool:
    return bool(binomtest(count, trials, probability).pvalue > FALSE_ALARM)


@pytest.mark.parametrize("budget", [None, 5.0, 1.0, 0.1])
@pytest.mark.parametrize("known", [False, True])
def test_the_adversary_of_a_tally_is_as_good_as_computed(budget: float | None, known: bool) -> None:
    task = Task(arms=10, players=1, epsilon=0, delta=0.05, protocol="tally", privacy_budget=budget, floor=7)
    laws = posterior.worst_case(7, budget) if known else posterior.others_unknown(7, 0.3, budget)
    right = games.play_tallies(task, mean=0.3, games=2000, known=known, seed=SEED)
    assert agrees(right, 2000, (1 + laws.advantage) / 2)
    if budget is not None:  # by chance above the bound, never by more than chance
        most = (1 + posterior.budget_advantage(budget)) / 2
        assert binomtest(right, 2000, most, alternative="greater").pvalue > FALSE_ALARM


def test_a_game_about_tallies_needs_tallies() -> None:
    task = Task(arms=2, players=1, epsilon=0.5, delta=0.05)
    with pytest.raises(ValueError, match="about tallies"):
        games.play_tallies(task, mean=0.3, games=1, known=True, seed=SEED)


TWO_ARMS = Task(arms=2, players=1, epsilon=0.9, delta=0.5)
MEANS = (0.52, 0.5)


def test_votes_on_two_arms_are_what_going_through_all_sums_says() -> None:
    """Exactly: the law of the votes, their advantage, how often one reward decides, and that the bound holds."""
    (schedule,) = TWO_ARMS.schedules()
    pulls = schedule.pulls(1)
    own, other = binomial_law(pulls - 1, MEANS[0]), binomial_law(pulls, MEANS[1])
    laws: list[dict[tuple[int, ...], float]] = [{}, {}]
    changed = 0.0
    for mine, theirs in itertools.product(range(pulls), range(pulls + 1)):
        weight = own[mine] * other[theirs]
        if weight < 1e-10:  # of 100,000 pairs of sums
            continue
        votes = [tuple(games.first_votes([schedule], [[mine, theirs]], arm=0, reward=reward)[0]) for reward in range(2)]
        for law, vote in zip(laws, votes, strict=True):
            law[vote] = law.get(vote, 0.0) + weight
        changed += weight * (votes[0] != votes[1])
    advantage = sum(abs(laws[0].get(vote, 0) - laws[1].get(vote, 0)) for vote in {*laws[0], *laws[1]}) / 2
    assert 0 < advantage <= posterior.sum_advantage(pulls, MEANS[0])
    assert advantage <= changed
    # Votes change where both means were equal, or become so.
    equal = sum(own[s] * (other[s] + other[s + 1]) for s in range(pulls))
    assert changed == pytest.approx(equal, abs=2e-5)
    found = games.play_votes(TWO_ARMS, MEANS, arm=0, games=2000, seed=SEED)
    assert agrees(found.changed, found.games, changed)
    # Of two arms a tie is seen as such, so tossing for it tells less than votes do: within the chance of a tie.
    assert games.rank_laws(pulls, MEANS, 0).advantage == pytest.approx(advantage, abs=changed)


def test_ranks_are_what_going_through_all_sums_says() -> None:
    means, pulls = (0.2, 0.3, 0.6), 4
    expected = [[0.0] * 2 for _ in range(2)]  # three arms: one place, or not voted out
    laws = [binomial_law(pulls - 1, means[0]), *(binomial_law(pulls, mean) for mean in means[1:])]
    for reward in range(2):
        for mine, second, third in itertools.product(range(pulls), range(pulls + 1), range(pulls + 1)):
            weight = laws[0][mine] * laws[1][second] * laws[2][third]
            for tosses in itertools.product((0, 1), repeat=2):
                below = sum(
                    each < mine + reward or (each == mine + reward and toss)
                    for each, toss in zip((second, third), tosses, strict=True)
                )
                expected[reward][min(below, 1)] += weight / 4
    found = games.rank_laws(pulls, means, 0)
    assert found.failed == pytest.approx(expected[0])
    assert found.succeeded == pytest.approx(expected[1])


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_votes_tell_no_more_than_the_sum_of_an_epoch(protocol: str) -> None:
    means = (0.7, 0.5, 0.3, *(0.1,) * 7)
    task = Task(arms=10, players=16, epsilon=0.5, delta=0.05, protocol=protocol)
    shortest = min(schedule.pulls(1) for schedule in task.schedules())
    bound = posterior.sum_advantage(shortest, 0.1)
    assert games.rank_laws(shortest, means, 9).advantage <= bound
    found = games.play_votes(task, means, arm=9, games=300, seed=SEED)
    assert binomtest(found.right, found.games, (1 + bound) / 2, alternative="greater").pvalue > FALSE_ALARM
    assert 0 < found.changed < found.games


def test_one_reward_can_decide_a_vote() -> None:
    """The worst case of votes: the other rewards such that this one decides."""
    (schedule,) = TWO_ARMS.schedules()
    for sums, lists in (([5, 6], ([0], [])), ([6, 6], ([], [1]))):
        votes = tuple(games.first_votes([schedule], [sums], arm=0, reward=reward)[0] for reward in range(2))
        assert votes == lists
