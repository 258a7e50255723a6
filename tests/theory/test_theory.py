"""The paper's lemmas and theorems, what holds in their place, and what an accurate fleet can do, step by step."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from scipy import stats

from outvote import theory
from outvote.core.messages import Elimination, Vote
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.schedule import Schedule, certified_log_eta, paper_log_eta
from outvote.core.votes.server import VoteServer

K, EPSILON, DELTA = 10, 0.5, 0.05
PLAYERS = (4, 16, 64, 256, 1024)
ALONE = Schedule(K, EPSILON, math.log(DELTA))


def paper(players: float) -> Schedule:
    return Schedule(K, EPSILON, paper_log_eta(DELTA, players))


def certified(players: int) -> Schedule:
    return Schedule(K, EPSILON, certified_log_eta(DELTA, players, K))


# ---- Lemma 1


@pytest.mark.parametrize(
    ("players", "eta", "error"),
    [(4, 0.224, 0.001), (16, 0.688, 0.055), (64, 0.911, 0.33), (256, 0.977, 0.84), (1024, 0.994, 0.999)],
)
def test_what_is_proved_of_the_papers_eta(players: int, eta: float, error: float) -> None:
    log_eta = paper(players).log_eta
    assert math.exp(log_eta) == pytest.approx(eta, abs=5e-4)
    # N = 4: p = 2·.0500/270 = 3.704e-4; 1 − (1 − p)⁴ = 1.481e-3
    found = theory.accurate_fleet_error(theory.inaccuracy_limit(K, log_eta), players)
    assert found == pytest.approx(error, abs=5e-3 if error > 0.1 else 5e-4)


@pytest.mark.parametrize(
    ("players", "eta", "longer"), [(4, 1.31, -32), (16, 0.657, 1), (64, 0.329, 24), (256, 0.164, 43), (1024, 0.082, 61)]
)
def test_what_the_certified_eta_costs(players: int, eta: float, longer: int) -> None:
    schedule = certified(players)
    assert math.exp(schedule.log_eta) == pytest.approx(eta, abs=5e-3 if eta > 1 else 5e-4)
    assert round(100 * (schedule.pulls(1) / paper(players).pulls(1) - 1)) == longer
    assert theory.accurate_fleet_error(theory.inaccuracy(schedule), players) <= DELTA
    assert theory.accurate_fleet_error(
        theory.inaccuracy_limit(K, schedule.log_eta), players
    ) == pytest.approx(DELTA)  # fmt: skip


def test_inaccuracy_by_hand() -> None:
    # ε = .8, ε_1 = .2, ε_2 = .15; K = 2, η = .81: t_1 = 270, t_2 = 603 (test_schedule.py)
    # exp(−270·.04/2) = e^−5.4 = 4.5166e-3; exp(−603·.0225/2) = e^−6.78375 = 1.1320e-3; the sum of all others is near a
    # third of the second, 3.8e-4: 4·(4.5166e-3 + 1.1320e-3 + .38e-3) = 2.41e-2
    schedule = Schedule(2, 0.8, math.log(0.81))
    assert theory.inaccuracy(schedule) == pytest.approx(2.41e-2, rel=0.01)
    # 2·.81²/54 = .0243
    assert theory.inaccuracy_limit(2, math.log(0.81)) == pytest.approx(0.0243)


@pytest.mark.parametrize("arms", [2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.99, 0.5, 0.01])
@pytest.mark.parametrize("log_eta", [-50.0, -1.0, 0.0, 0.5])
def test_inaccuracy_is_below_its_limit_and_near_it(arms: int, epsilon: float, log_eta: float) -> None:
    exact, limit = theory.inaccuracy(Schedule(arms, epsilon, log_eta)), theory.inaccuracy_limit(arms, log_eta)
    # Rounding up a pull takes at most the factor exp(−ε_1²/2) ≥ exp(−1/32) off.
    assert math.exp(-1 / 32) * limit <= exact <= limit * (1 + 1e-9)


def test_inaccuracy_grows_with_eta_and_is_a_probability() -> None:
    found = [theory.inaccuracy(Schedule(5, 0.5, log_eta)) for log_eta in (-20, -5, -1, 0, 1, 2, 3)]
    assert found == sorted(found)
    assert found[-1] == theory.inaccuracy_limit(5, 50.0) == 1.0
    assert theory.inaccuracy(Schedule(5, 0.5, -1e4)) == 0.0
    assert theory.inaccuracy(Schedule(5, 3e-153, -1.0)) == theory.inaccuracy_limit(5, -1.0)


def test_the_error_of_a_fleet_by_hand() -> None:
    # 1 − .9³ = .271
    assert theory.accurate_fleet_error(0.1, 3) == pytest.approx(0.271)
    assert [theory.accurate_fleet_error(p, 7) for p in (0.0, 1.0)] == [0.0, 1.0]
    assert theory.accurate_fleet_error(1e-18, 10) == pytest.approx(1e-17)


def test_the_error_of_a_fleet_whose_best_arm_is_separated() -> None:
    # Binomial(3, .1) ≥ 2: 3·.01·.9 + .001 = .028; N_γ = 3 and 4 both need two votes
    assert theory.error_when_separated(0.1, 3, 3) == pytest.approx(0.028)
    assert theory.error_when_separated(0.1, 5, 4) == pytest.approx(stats.binom.sf(1, 5, 0.1))
    assert theory.error_when_separated(0.1, 3, 0.5) == pytest.approx(theory.accurate_fleet_error(0.1, 3))
    assert [theory.error_when_separated(p, 5, 4) for p in (0.0, 1.0)] == [0.0, 1.0]
    assert theory.error_when_separated(0.5, 2, 6) == 0.0  # three votes of two players
    assert theory.error_when_separated(theory.inaccuracy(paper(64)), 64, 64) < 1e-50


@pytest.mark.parametrize("good", [1, 2, 3])
@pytest.mark.parametrize(("players", "quorum"), [(4, 2), (5, 3), (6, 3)])
def test_a_fleet_that_splits_counted_out(good: int, players: int, quorum: int) -> None:
    """All that players can do, one by one: fail, or keep one of the good arms."""
    failure = 0.3
    wrong = 0.0
    for kept in itertools.product(range(good + 1), repeat=players):  # 0: the bad arm
        votes = [0] * (good + 1)
        remaining = set(range(good + 1))
        for mine in kept:
            for arm in range(good + 1):  # the bad arm first
                if arm != mine:
                    votes[arm] += 1
                    if votes[arm] >= quorum and len(remaining) > 1:
                        remaining.discard(arm)
        failed = kept.count(0)
        wrong += (remaining == {0}) * failure**failed * ((1 - failure) / good) ** (players - failed)
    assert theory.split_fleet_error(failure, players, quorum, good) == pytest.approx(wrong)


def test_the_example_that_the_local_guarantee_allows() -> None:
    # As much as a majority of 64 can bear by the paper's way of counting
    assert 0.049 < stats.binom.sf(31, 64, 0.391) < 0.05
    found = [theory.split_fleet_error(0.391, 64, 32, good) for good in (1, 2, 9)]
    assert found == pytest.approx([0.039, 0.63, 0.996], abs=2e-3)
    # One good arm: it loses if 32 of the first 63 failed.
    assert found[0] == pytest.approx(stats.binom.sf(31, 63, 0.391))


# ---- Lemma 3: pulls


@pytest.mark.parametrize(
    ("arms", "sizes"), [(10, [10, 5, 3, 2]), (2, [2]), (3, [3, 2]), (7, [7, 4, 2]), (8, [8, 4, 2])]
)
def test_half_of_the_candidates_leave_an_epoch(arms: int, sizes: list[int]) -> None:
    assert theory.candidates_by_epoch(arms) == sizes


@pytest.mark.parametrize(
    ("schedule", "first", "total", "times"),
    [
        (ALONE, 18_160, 82_832, 1.0),
        (paper(4), 14_320, 67_636, 1.22),
        (paper(16), 11_450, 56_252, 1.47),
        (paper(64), 10_730, 53_403, 1.55),
        (paper(256), 10_550, 52_690, 1.57),
        (paper(1024), 10_500, 52_508, 1.58),
    ],
    ids=["alone", *map(str, PLAYERS)],
)
def test_pulls_with_the_papers_constants(schedule: Schedule, first: int, total: int, times: float) -> None:
    assert K * schedule.pulls(1) == first
    assert theory.pulls_per_player(schedule) == total
    assert theory.proposition_1(schedule, DELTA) == pytest.approx(times, abs=5e-3)
    assert theory.pulls_alone(K, EPSILON, DELTA) == 82_832


def test_lemma_3_as_printed_by_hand() -> None:
    # 10/.25/4·ln(200) = 10·5.2983
    assert theory.lemma_3_printed(10, 0.5, 0.05, 4) == pytest.approx(52.983, abs=1e-3)
    # It falls as 1/N_γ; the sum behind it does not.
    assert theory.lemma_3_printed(10, 0.5, 0.05, 4) / theory.lemma_3_printed(10, 0.5, 0.05, 256) == pytest.approx(64)
    assert theory.pulls_per_player(paper(4)) / theory.pulls_per_player(paper(256)) < 1.3


def test_lemma_3_loses_ln_k() -> None:
    for players in PLAYERS:
        assert math.log(K) - paper(players).log_eta == pytest.approx(math.log(K) + 2 / players * math.log(1 / DELTA))
    # At η = 1 nothing is left to shrink: 256·ln 60 = 1048.2
    assert Schedule(K, EPSILON, 0.0).pulls(1) == 1049
    assert all(paper(players).pulls(1) >= 1049 for players in (*PLAYERS, 10**9))


# ---- Theorem 2, Proposition 1: the speed-up


def test_theorem_2_as_printed() -> None:
    # 64·ln 20/ln 200 = 64·2.99573/5.29832 = 36.186; N/(1 + ln K) = 64/3.30259 = 19.38
    assert theory.theorem_2_printed(10, 0.05, 64) == pytest.approx(36.186, abs=1e-3)
    for delta in (1 / math.e, 0.1, 1e-9):
        assert theory.theorem_2_printed(10, delta, 64) >= 64 / (1 + math.log(10)) * (1 - 1e-12)
    assert theory.theorem_2_printed(10, 0.9, 64) < 64 / (1 + math.log(10))


def test_the_certified_speed_up_falls_with_players() -> None:
    found = [theory.proposition_1(certified(players), DELTA) for players in (*PLAYERS, 10**5)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 1


# ---- Theorem 3: draws


def test_draws_bound_by_hand() -> None:
    # 1000/.25 + √(1000/2 · ln(2·4/.5)) = 4000 + √(500 · 2.7726) = 4000 + 37.23
    assert theory.draws_bound(1000, 0.25, 4, 0.5) == pytest.approx(4037.23, abs=0.01)


@pytest.mark.parametrize("pulls", [1, 10, 1000, 53_403])
@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5), (0.9, 0.1), (1 / 64,) * 64, (0.02, 0.001)])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
def test_draws_within_are_enough_and_not_many_too_many(pulls: int, shares: tuple[float, ...], delta: float) -> None:
    """Against exact binomial tails."""
    draws = theory.draws_within(pulls, shares, delta)
    failing = sum(float(stats.binom.cdf(pulls - 1, draws, share)) for share in shares)
    assert failing <= delta * (1 + 1e-9)
    # The exact smallest number of draws: T − pulls is negative binomial.
    rarest = min(shares)
    exact = pulls + float(stats.nbinom.ppf(1 - delta, pulls, rarest)) if rarest < 1 else pulls
    assert exact <= draws
    spread = math.sqrt(pulls * (1 - rarest)) / rarest
    assert draws <= exact + 2.5 * spread * math.sqrt(math.log(len(shares) + 1)) + 5 / rarest * (rarest < 1)


def test_draws_within_at_the_ends() -> None:
    assert theory.draws_within(0, (0.5,), 0.1) == 0
    assert theory.draws_within(7, (1.0,), 0.1) == 7
    assert theory.draws_within(7, (0.5, 0.0), 0.1) == math.inf
    # One pull: (1 − P)^T ≤ δ; .5^4 = .0625, .5^5 = .03125
    assert theory.draws_within(1, (0.5,), 0.05) == 5


def test_the_last_step_of_theorem_3_is_too_short_where_players_are_rare() -> None:
    pulls, share, delta = 1000, 0.001, 0.05
    draws = theory.draws_bound(pulls, share, 1, 2 * delta)  # α = δ for a single player
    assert stats.binom.cdf(pulls - 1, math.floor(draws), share) > 5 * delta


# ---- what nobody can do without


def test_what_identification_costs_at_least() -> None:
    # Two arms: T* = 1/max_w of what is told; for .5 and .45 the two are played almost equally, and each pair of events
    # tells about kl(.5, .475) + kl(.45, .475) = .00125 + .00126; 2·kl(.05, .95)/.00251 = 2·2.650/.00251 = 2112
    assert theory.identification_bound((0.5, 0.45), 0.05) == pytest.approx(2112, rel=0.01)
    # The paper's problems; equal best arms can never be told apart.
    assert theory.identification_bound((0.7, 0.5, 0.3, *(0.1,) * 7), 0.05) == pytest.approx(160, abs=0.5)
    assert theory.identification_bound((0.3, 0.2, *(0.1,) * 8), 0.05) == pytest.approx(597, abs=0.5)
    assert theory.identification_bound((0.5, 0.5, 0.1), 0.05) == math.inf
    for others in ((0.0,), (0.0, 0.0), (0.0, 0.05)):  # arms that never succeed are the limit of those that hardly do
        nearly = tuple(max(mean, 1e-9) for mean in others)
        exact = theory.identification_bound((0.1, *others), 0.05)
        assert exact == pytest.approx(theory.identification_bound((0.1, *nearly), 0.05), rel=1e-3)


# ---- what an accurate fleet can do (docs/guarantees.md, Lemmas 3 and 4)


@dataclass(frozen=True, slots=True)
class Short(Schedule):
    """The real ε_l, and hardly any pulls: how long epochs are does not matter once players are accurate."""

    def pulls(self, epoch: int) -> int:
        return epoch


class Fleet:
    """Players whose means are as wrong as they may be, and a server that gets votes late, twice and mixed up."""

    def __init__(self, seed: int, *, off: float, reverse: bool = False) -> None:
        self.rng = rng = random.Random(seed)
        arms, players = rng.randint(2, 6), rng.randint(1, 5)
        self.epsilon = rng.choice([0.9, 0.5, 0.1])
        best = 0.7
        near, far = self.epsilon / 4 * (1 - 1e-6), self.epsilon / 4 * (1 + 1e-6)
        self.means = [best - rng.choice([0.0, near / 2, near, far, far, 1.5 * far, 2 * far]) for _ in range(arms)]
        self.means[rng.randrange(arms)] = best
        self.off, self.reverse = off, reverse
        self.task = Task(
            arms=arms,
            players=players,
            epsilon=self.epsilon,
            delta=0.5,
            active_players=rng.uniform(0.1, players),
            protocol="dme",
        )
        self.server = VoteServer(self.task)
        self.players = [self.born(player) for player in range(players)]
        self.lives = [0] * players
        self.seen = [0] * players
        self.errors: dict[tuple[int, int, int, int], float] = {}
        self.mail: list[tuple[int, str, Vote]] = []
        self.announced: list[int] = []

    def born(self, player: int) -> MedianPlayer:
        return MedianPlayer(self.task, player, schedules=[Short(len(self.means), self.epsilon, 0.0)])

    def step(self) -> None:
        """One event somewhere, and perhaps a vote or an elimination that arrives."""
        rng = self.rng
        player = rng.randrange(len(self.players))
        if rng.random() < 0.002:
            self.players[player] = self.born(player)  # it lost its memory
            self.lives[player] += 1
            self.seen[player] = 0
        if self.seen[player] < len(self.announced) and rng.random() < 0.5:
            self.players[player].receive(Elimination((self.announced[self.seen[player]],)))
            self.seen[player] += 1
        ticket = self.players[player].decide(0)
        arm = ticket.arm
        epoch = self.players[player].epoch()
        key = (player, self.lives[player], epoch, arm)
        within = self.epsilon / 4 * 0.75 ** (epoch - 1) / 2 * (1 - 1e-9) * self.off
        error = self.errors.setdefault(key, within * rng.choice([-1, 1, rng.uniform(-1, 1)]))
        reward = min(max(self.means[arm] + error, 0.0), 1.0)
        self.players[player].reward(ticket, reward, 0)
        votes = list(self.players[player].tick(0))
        if self.reverse:
            arms = [vote.arm for vote in votes][::-1]
            votes = [Vote(arm, 0, vote.sequence) for arm, vote in zip(arms, votes, strict=True)]
        self.mail += [(player, str(self.lives[player]), vote) for vote in votes for _ in range(rng.choice([1, 1, 2]))]
        while self.mail and rng.random() < 0.4:
            sender, life, vote = self.mail.pop(rng.randrange(len(self.mail)))
            for elimination in self.server.receive(sender, vote, 0, incarnation=life):
                self.announced += elimination.arms

    def holds(self) -> bool:
        """What the theorem says of this moment."""
        remaining = [self.means[arm] for arm in self.server.remaining]
        gone = [self.means[arm] for arm in self.announced]
        return max(self.means) not in gone or min(remaining) > max(self.means) - self.epsilon / 4


def outcomes(seeds: range, *, off: float, reverse: bool = False) -> Iterator[bool]:
    for seed in seeds:
        fleet = Fleet(seed, off=off, reverse=reverse)
        held = True
        for _ in range(150):
            fleet.step()
            held = held and fleet.holds()
        yield held


def test_an_accurate_fleet_never_loses_the_best_arm_before_a_bad_one() -> None:
    assert all(outcomes(range(1500), off=1.0))


def test_accurate_fleets_do_lose_a_best_arm() -> None:
    # or the test above would check nothing
    lost = 0
    for seed in range(300):
        fleet = Fleet(seed, off=1.0)
        for _ in range(150):
            fleet.step()
        lost += max(fleet.means) in [fleet.means[arm] for arm in fleet.announced]
    assert lost >= 30


def test_that_check_finds_fleets_that_are_not_accurate_or_votes_out_of_order() -> None:
    assert not all(outcomes(range(300), off=3.0))
    assert not all(outcomes(range(300), off=1.0, reverse=True))


def test_the_instances_of_a_certified_edme_cast_the_same_votes() -> None:
    # So the smallest quorum decides, and the others only cost bits.
    task = Task(arms=4, players=3, epsilon=0.95, delta=0.9, protocol="edme", instances=3, quorum="certified")
    player, rng = MedianPlayer(task, 0), random.Random(5)
    votes: list[Vote] = []
    while not player.finished:
        ticket = player.decide(0)
        player.reward(ticket, float(rng.random() < (0.2, 0.4, 0.6, 0.8)[ticket.arm]), 0)
        votes += player.tick(0)
        assert player.candidates(0) == player.candidates(1) == player.candidates(2)
    by_instance = [[vote.arm for vote in votes if vote.instance == instance] for instance in range(3)]
    assert by_instance[0] == by_instance[1] == by_instance[2]
    assert len(by_instance[0]) == 3
