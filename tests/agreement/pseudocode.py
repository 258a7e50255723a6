"""The paper's Algorithms 1 to 4 and three baselines, written line by line.

Slow on purpose: plain sets and lists, every condition tested again after every draw.
It shares nothing with the package, so that the package can be compared with it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median


@dataclass(frozen=True)
class Outcome:
    """What happened in one run; draws are numbered from 1."""

    plays: list[int]
    votes: list[tuple[int, int, int, int]]  # draw, player, instance, arm
    eliminations: list[tuple[int, int]]  # draw, arm
    first_elimination: int | None
    finished: int | None
    all_finished: int | None
    solved: int | None
    remaining: list[list[int]]  # each player's own view
    server_remaining: list[int] | None


@dataclass(frozen=True)
class Problem:
    """What every protocol is given: the arms, the draws and their luck."""

    means: Sequence[float]
    epsilon: float
    delta: float
    draws: Sequence[int]
    uniforms: Sequence[float]

    def reward(self, draw: int, arm: int) -> float:
        """The reward of an arm at a draw."""
        return 1.0 if self.uniforms[draw - 1] < self.means[arm] else 0.0

    def good(self, remaining: set[int]) -> bool:
        """Definition 1 for every arm of a set, with room for rounding."""
        best = max(self.means)
        return all(best <= self.means[k] + self.epsilon + 1e-12 for k in remaining)


@dataclass
class Instance:
    """One Median Elimination at one player (Algorithm 3 or 4, line 4)."""

    arms: int  # K, the initial number of arms
    epsilon: float  # epsilon_l
    eta: float  # eta_l
    candidates: set[int]  # K^n_l
    t: list[int]
    total: list[float]  # t * mu_hat

    def finished(self) -> bool:
        """At most one candidate; none is possible (decision 7)."""
        return len(self.candidates) <= 1


@dataclass
class Player:
    """The state of one player."""

    remaining: set[int]  # K^n
    instances: list[Instance]
    last_played: int = -1
    inbox: list[int] = field(default_factory=list)  # announced, not yet delivered


def new_player(problem: Problem, etas: Sequence[float]) -> Player:
    """Algorithm 3 or 4, line 4: epsilon_1 = epsilon / 4, eta_1 = eta / 2."""
    arms, first = len(problem.means), problem.epsilon / 4.0
    instances = [Instance(arms, first, eta / 2.0, set(range(arms)), [0] * arms, [0.0] * arms) for eta in etas]
    return Player(set(range(arms)), instances)


def epoch_pulls(instance: Instance) -> int:
    """Algorithm 2, line 4: pulls that every remaining arm needs (decision 4)."""
    per_log = 4.0 / instance.epsilon**2
    return math.ceil(per_log * math.log(3.0 * instance.arms / instance.eta))


def next_arm(player: Player, arms: int) -> int:
    """Algorithm 2, line 1: the first remaining arm after the last one played."""
    cycle = [(player.last_played + step) % arms for step in range(1, arms + 1)]
    return next(k for k in cycle if k in player.remaining)


def median_elimination(instance: Instance, remaining: set[int], arm: int, reward: float) -> list[int]:
    """Algorithm 2, lines 3 to 13; returns the arms voted out, in order of sending."""
    if instance.finished():
        return []
    instance.t[arm] += 1  # Algorithm 2, line 3
    instance.total[arm] += reward
    needed = epoch_pulls(instance)  # Algorithm 2, line 4
    if not all(instance.t[k] >= needed for k in remaining):
        return []
    mean = {k: instance.total[k] / instance.t[k] for k in instance.candidates}
    middle = median(mean.values())  # Algorithm 2, line 5
    # Algorithm 2, lines 6 to 11, in increasing order of mean (decision 5)
    voted = []
    for k in sorted(mean, key=lambda k: (mean[k], k)):
        if mean[k] < middle:  # lines 7 and 8
            instance.candidates.remove(k)
            voted.append(k)
        instance.t[k] = 0  # line 10
        instance.total[k] = 0.0
    instance.epsilon = 3.0 / 4.0 * instance.epsilon  # Algorithm 2, line 12
    instance.eta = instance.eta / 2.0
    return voted


@dataclass
class Server:
    """The synchronization server of Algorithms 3 and 4."""

    arms: int
    players: int
    n_gammas: list[float]  # N_gamma_i of each instance
    votes: set[tuple[int, int, int]] = field(default_factory=set)  # lambda = 1
    announced: list[int] = field(default_factory=list)

    def remaining(self) -> set[int]:
        """The arms not announced."""
        return set(range(self.arms)) - set(self.announced)

    def receive(self, player: int, i: int, arm: int) -> bool:
        """One upward message; true when the arm is announced in answer."""
        self.votes.add((player, i, arm))  # Algorithm 3, line 14; Algorithm 4, line 16
        count = len([v for v in self.votes if v[1] == i and v[2] == arm])
        if 2 * count < self.n_gammas[i]:  # Algorithm 3, line 15; Algorithm 4, line 18
            return False
        # Once, and never the last arm (decision 8)
        if arm in self.announced or len(self.remaining()) == 1:
            return False
        self.announced.append(arm)
        return True

    def candidates(self, player: int, i: int) -> set[int]:
        """A player's candidates as its votes and the announcements show them."""
        voted = {k for k in range(self.arms) if (player, i, k) in self.votes}
        return self.remaining() - voted

    def finished(self) -> bool:
        """Remark 1: N_gamma_i players finished in some instance, or one arm left."""
        if len(self.remaining()) == 1:
            return True
        for i, n_gamma in enumerate(self.n_gammas):
            done = [n for n in range(self.players) if len(self.candidates(n, i)) <= 1]
            if len(done) >= n_gamma:
                return True
        return False


def all_players_finished(fleet: Sequence[Player], instances: int) -> bool:
    """Algorithm 3, line 19; Algorithm 4, line 21: all players, in some instance."""
    every = range(instances)
    return any(all(player.instances[i].finished() for player in fleet) for i in every)


def run_distributed(problem: Problem, players: int, n_gammas: list[float]) -> Outcome:
    """Algorithm 4; with one instance it is Algorithm 3."""
    arms = len(problem.means)
    share = problem.delta / len(n_gammas)  # delta / M
    etas = [share ** (2.0 / n_gamma) for n_gamma in n_gammas]  # line 4
    fleet = [new_player(problem, etas) for _ in range(players)]
    server = Server(arms, players, n_gammas)
    plays: list[int] = []
    votes: list[tuple[int, int, int, int]] = []
    eliminations: list[tuple[int, int]] = []
    finished = all_finished = solved = None
    # Lines 5 and 6; Algorithm 1, lines 1 and 2
    for draw, n in enumerate(problem.draws, start=1):
        player = fleet[n]
        # Algorithm 3, lines 8 to 10; Algorithm 4, lines 9 to 11
        for k in player.inbox:
            if len(player.remaining) > 1:
                player.remaining.discard(k)
                for instance in player.instances:
                    instance.candidates.discard(k)
        player.inbox = []
        # Algorithm 2, lines 1 and 2: one play for all instances (decision 10)
        arm = player.last_played = next_arm(player, arms)
        plays.append(arm)
        reward = problem.reward(draw, arm)
        sent = [  # Algorithm 3, line 11; Algorithm 4, line 12
            (i, k)
            for i, instance in enumerate(player.instances)
            for k in median_elimination(instance, player.remaining, arm, reward)
        ]
        # Algorithm 3, lines 13 to 18; Algorithm 4, lines 15 to 20
        for i, k in sent:
            votes.append((draw, n, i, k))
            if server.receive(n, i, k):
                eliminations.append((draw, k))
                for other in fleet:
                    other.inbox.append(k)
        # The three ends (decision 9)
        if finished is None and server.finished():
            finished = draw
        if all_finished is None and all_players_finished(fleet, len(n_gammas)):
            all_finished = draw
        if solved is None and all(problem.good(p.remaining) for p in fleet):
            solved = draw  # Algorithm 1, line 8
    first = eliminations[0][0] if eliminations else None
    ends = (finished, all_finished, solved)
    left = [sorted(player.remaining) for player in fleet]
    kept = sorted(server.remaining())
    return Outcome(plays, votes, eliminations, first, *ends, left, kept)


def run_local(problem: Problem, players: int, active_players: float) -> Outcome:
    """Median Elimination at each player, eta = delta, eliminating locally."""
    arms = len(problem.means)
    fleet = [new_player(problem, [problem.delta]) for _ in range(players)]
    plays: list[int] = []
    eliminations: list[tuple[int, int]] = []
    finished = all_finished = solved = None
    for draw, n in enumerate(problem.draws, start=1):
        player = fleet[n]
        arm = player.last_played = next_arm(player, arms)
        plays.append(arm)
        instance, reward = player.instances[0], problem.reward(draw, arm)
        for k in median_elimination(instance, player.remaining, arm, reward):
            player.remaining.remove(k)
            eliminations.append((draw, k))
        done = [p for p in fleet if len(p.remaining) == 1]
        if finished is None and len(done) >= active_players:
            finished = draw
        if all_finished is None and len(done) == players:
            all_finished = draw
        if solved is None and all(problem.good(p.remaining) for p in fleet):
            solved = draw
    first = eliminations[0][0] if eliminations else None
    ends = (finished, all_finished, solved)
    left = [sorted(player.remaining) for player in fleet]
    return Outcome(plays, [], eliminations, first, *ends, left, None)


def run_ucb(problem: Problem) -> Outcome:
    """UCB1 fed by all draws: each arm once, then the largest index."""
    every = range(len(problem.means))
    t = [0 for _ in every]
    total = [0.0 for _ in every]
    plays: list[int] = []
    for draw in range(1, len(problem.draws) + 1):
        if draw <= len(every):
            arm = draw - 1
        else:
            log = math.log(len(plays))
            index = [total[k] / t[k] + math.sqrt(2.0 * log / t[k]) for k in every]
            arm = index.index(max(index))  # ties: the lowest arm
        plays.append(arm)
        t[arm] += 1
        total[arm] += problem.reward(draw, arm)
    solved = 1 if plays and problem.good(set(every)) else None
    return Outcome(plays, [], [], None, None, None, solved, [list(every)], None)


def run(
    protocol: str,
    *,
    means: Sequence[float],
    players: int,
    active_players: float,
    epsilon: float,
    delta: float,
    draws: Sequence[int],
    uniforms: Sequence[float],
    instances: Sequence[float] = (),
) -> Outcome:
    """Play every draw: draws[i] is the player, uniforms[i] decides its reward."""
    if len(draws) != len(uniforms):
        raise ValueError(f"{len(draws)} draws but {len(uniforms)} uniforms")
    problem = Problem(means, epsilon, delta, draws, uniforms)
    match protocol:
        case "dme":
            return run_distributed(problem, players, [active_players])
        case "edme":
            if not instances:
                raise ValueError("edme needs at least one instance, got none")
            return run_distributed(problem, players, list(instances))
        case "me-local":
            return run_local(problem, players, active_players)
        case "me-unlimited":  # one player, to whom every draw belongs
            alone = replace(problem, draws=[0] * len(draws))
            return run_local(alone, players=1, active_players=1)
        case "ucb-unlimited":
            return run_ucb(problem)
    raise ValueError(f"unknown protocol {protocol!r}")
