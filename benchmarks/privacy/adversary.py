"""The adversary on a whole fleet: a task is run to its end, and from what was sent it says which arm is best.

Players, servers, messages and draws are those of the core and of the simulation; only the listening is done here.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.privacy.inference import best_arm_posterior, log_tally
from benchmarks.privacy.posterior import others_unknown
from outvote.core.errors import OutvoteError
from outvote.core.messages import Tally, UpMessage, Vote
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.noise import times_log
from outvote.core.task import Task
from outvote.simulation.fleets import ServedFleet, make_fleet
from outvote.simulation.settings import Settings
from outvote.simulation.stepwise import trial_draws

TIE = 1e-12
"""Arms whose probabilities differ by less are guessed at random among."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """What happened until one arm was left: what was sent, and what only the sites know."""

    task: Task
    means: tuple[float, ...]
    sent: tuple[tuple[UpMessage, ...], ...]
    """By player."""
    pulls: tuple[tuple[int, ...], ...]
    """By player and arm: its events."""
    successes: tuple[tuple[int, ...], ...]

    @property
    def best(self) -> int:
        return self.means.index(max(self.means))


def listen(settings: Settings, seed: np.random.SeedSequence) -> Transcript:
    """Run a protocol until one arm is left, and keep what each player sends. One draw is one turn of Algorithm 1."""
    task, means = settings.task, settings.means
    apart = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1))  # of what is drawn for players
    rng = random.Random(int(apart.generate_state(1)[0]))
    fleet = make_fleet(settings, rng)
    if not isinstance(fleet, ServedFleet):
        raise ValueError(f"nothing is sent by {settings.protocol!r}: listen to 'dme', 'edme' or 'tally'")
    arms = len(means)
    sent: list[list[UpMessage]] = [[] for _ in fleet.members]
    pulls = [[0] * arms for _ in fleet.members]
    successes = [[0] * arms for _ in fleet.members]
    heard = [0] * len(fleet.members)
    for draw, (player, uniform) in enumerate(trial_draws(settings, seed), start=1):
        member = fleet.members[player]
        while heard[player] < len(fleet.announced):
            member.receive(fleet.announced[heard[player]])
            heard[player] += 1
        ticket = member.decide(draw)
        arm = ticket.arm
        pulls[player][arm] += 1
        reward = 0.0
        if uniform < means[arm]:
            reward = 1.0
            successes[player][arm] += 1
        member.reward(ticket, reward, draw)
        messages = member.tick(draw)
        if messages:
            sent[player] += messages
            fleet.handle(player, messages, draw)
            if len(fleet.server.remaining) == 1:
                break
    else:
        raise OutvoteError(f"more than one arm is left after {settings.horizon} draws: raise the horizon")
    return Transcript(task, means, tuple(map(tuple, sent)), tuple(map(tuple, pulls)), tuple(map(tuple, successes)))


# ---- the best arm


def best_arm_from_tallies(transcript: Transcript, players: Iterable[int]) -> list[float]:
    """The posterior on the best arm from the tallies of these players, all means equally likely to be any arm's.

    Of all players it is exact: given the means, what a tally says depends on nothing that was sent before (Lemma 1 of
    docs/tally.md), and announcements follow from tallies. Of some of them places in the cycle that were passed over
    are used as well: their arms were eliminated by then, and are taken not to be best. How long the others needed is
    not used.
    """
    task, means = transcript.task, transcript.means
    cycle = Cycle(task)
    logs = [dict.fromkeys(means, 0.0) for _ in means]
    out: set[int] = set()
    chosen = list(players)
    for player in chosen:
        place = 0
        for tally in transcript.sent[player]:
            if not isinstance(tally, Tally):
                raise ValueError(f"tallies tell by their counts, got {tally!r}: ask `best_arm_from_votes`")
            for mean, log in logs[tally.arm].items():
                logs[tally.arm][mean] = log + log_tally(tally.trials, mean, task.privacy_budget)[tally.successes]
            if len(chosen) < len(transcript.sent):
                out.update(cycle.arm(player, passed) for passed in range(place, tally.sequence))
            place = tally.sequence + 1
    return best_arm_posterior(means, logs, excluded=out)


def best_arm_from_events(transcript: Transcript, players: Iterable[int]) -> list[float]:
    """The same from the events themselves, those of tallies that were never sent among them."""
    means = transcript.means
    logs = [dict.fromkeys(means, 0.0) for _ in means]
    for player in players:
        for arm, (pulls, successes) in enumerate(
            zip(transcript.pulls[player], transcript.successes[player], strict=True)
        ):
            for mean in logs[arm]:
                logs[arm][mean] += times_log(successes, mean) + times_log(pulls - successes, 1 - mean)
    return best_arm_posterior(means, logs)


def best_arm_from_votes(transcript: Transcript, players: Iterable[int]) -> list[float]:
    """The posterior from votes, but for inaccurate players: as likely to be any arm with the fewest votes.

    Where no arm is likelier than another beforehand, arms that were voted on alike stay equally likely, whatever the
    votes on others were: to exchange their names changes nothing. And a player votes against its worst arms first.
    """
    arms = len(transcript.means)
    votes = [0] * arms
    for player in players:
        for vote in transcript.sent[player]:
            if not isinstance(vote, Vote):
                raise ValueError(f"votes tell by whom they are against, got {vote!r}: ask `best_arm_from_tallies`")
            votes[vote.arm] += 1
    fewest = min(votes)
    return [(count == fewest) / votes.count(fewest) for count in votes]


def guess(posterior: Sequence[float], rng: random.Random) -> int:
    """The likeliest; of several that are, one at random."""
    top = max(posterior)
    return rng.choice([arm for arm, each in enumerate(posterior) if each > top - TIE])


# ---- one event's reward, over all events of a run


def mean_advantage(transcript: Transcript) -> float:
    """The advantage on one event's reward, others unknown, for an event of the run taken at random.

    An event that is in no tally that was sent tells nothing.
    """
    task, means = transcript.task, transcript.means
    told = 0.0
    for messages in transcript.sent:
        for tally in messages:
            if not isinstance(tally, Tally):
                raise ValueError(f"this is computed from tallies, got {tally!r}")
            told += tally.trials * others_unknown(tally.trials, means[tally.arm], task.privacy_budget).advantage
    return told / sum(map(sum, transcript.pulls))
