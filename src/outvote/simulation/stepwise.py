"""The engine `core`: the reference. One draw is one turn of Algorithm 1, by the very objects of `outvote.core`.

Draw a player, deliver what waits for it, let it decide, give it its reward, carry what it sends to the server. The
number of the draw is the time, unless sites make so many decisions a day: then times are milliseconds from 0 on, and a
site closes what is due before it decides, too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random

import numpy as np

from outvote.core.messages import UpMessage
from outvote.simulation.activity import Visitors, Weighted
from outvote.simulation.environments import best_arms, good_arms, open_world, puller
from outvote.simulation.fleets import ServedFleet, make_fleet
from outvote.simulation.moments import Moments
from outvote.simulation.settings import Settings
from outvote.simulation.streams import generator
from outvote.simulation.trials import Trial


def run_trial(settings: Settings, seed: np.random.SeedSequence, advance: Callable[[int], None]) -> Trial:
    """One trial from one seed; `advance` is told at each grid point how many draws were made since the last."""
    task, horizon = settings.task, settings.horizon
    rng = np.random.default_rng(_child(seed, 0))
    world = open_world(settings.environment, players=task.players, horizon=horizon, rng=rng)
    fleet = make_fleet(settings, _random(seed, 1))
    shared = len(fleet.members) != task.players
    # Where means move, what is good is judged by the means at the horizon.
    means = [world(player, horizon, None, None) for player in range(task.players)]
    good = _for_members([good_arms(values, task.epsilon) for values in means], shared)
    best = _for_members([best_arms(values) for values in means], shared)
    moments = Moments(fleet, good)

    draws = trial_draws(settings, seed)
    visitors = None if settings.visits is None else Visitors(settings.visits, task.players, _random(seed, 2))
    pull = puller(settings.environment, world, None if visitors is None else visitors.next)
    milliseconds = settings.milliseconds
    drop, dies = settings.drop, _random(seed, 3).random
    participants = list(fleet.members) * (task.players if shared else 1)  # who acts when player n is drawn
    heard = [0] * task.players
    news = 0  # how many announcements there are to hear
    regret, curve, draw = 0.0, [], 0

    def carry(player: int, messages: Sequence[UpMessage], draw: int, now: int) -> int:
        """To the server; returns how many announcements there are to hear now."""
        fleet.handle(player, messages, draw, now)
        moments.member_changed(0 if shared else player, draw)
        moments.messages_counted(draw)
        return len(fleet.announced)

    for point in settings.grid_points():
        advance_by = point - draw
        for player, uniform in islice(draws, advance_by):
            draw += 1
            participant = participants[player]
            if heard[player] != news:
                for elimination in fleet.announced[heard[player] :]:
                    participant.receive(elimination)
                heard[player] = news
                moments.member_changed(player, draw)
            now = draw
            if milliseconds is not None:
                now = int(draw * milliseconds)
                messages = participant.tick(now)
                if messages:
                    news = carry(player, messages, draw, now)
            ticket = participant.decide(now)
            reward, gap = pull(player, ticket.arm, draw, uniform)
            regret += gap
            if drop and dies() < drop:
                assert isinstance(fleet, ServedFleet)  # settings refuse others
                fleet.restart(player, ticket, now)
                participants[player] = fleet.members[player]
                continue
            participant.reward(ticket, reward, now)
            messages = participant.tick(now)
            if messages:
                news = carry(player, messages, draw, now)
        curve.append(regret)
        advance(advance_by)

    shares = settings.activity.shares().tolist() if isinstance(settings.activity, Weighted) else [1.0] * task.players
    average = [sum(map(operator.mul, shares, column)) for column in zip(*means, strict=True)]
    remaining = [set(arms) for arms in fleet.remaining_sets()]
    return Trial(
        regret=curve,
        costs=fleet.costs(),
        eliminations=fleet.eliminations,
        finished=moments.finished,
        all_finished=moments.all_finished,
        solved=moments.solved,
        correct=all(arms <= goods for arms, goods in zip(remaining, good, strict=True)),
        safe=all(arms & goods for arms, goods in zip(remaining, good, strict=True)),
        best=all(len(arms) == 1 and arms <= bests for arms, bests in zip(remaining, best, strict=True)),
        held=fleet.held,
        lost=best_arms(average) <= {arm for arm, _ in fleet.eliminations},
    )


def _for_members(by_player: list[frozenset[int]], shared: bool) -> list[frozenset[int]]:
    """One player that acts for all must please all."""
    return [frozenset.intersection(*by_player)] if shared else by_player


def trial_draws(settings: Settings, seed: np.random.SeedSequence) -> Iterator[tuple[int, float]]:
    """The active player and the uniform number of its reward, draw after draw: the same for every protocol."""
    for players, uniforms in settings.activity.draws(generator(seed), settings.horizon):
        yield from zip(players, uniforms, strict=True)


def _random(seed: np.random.SeedSequence, number: int) -> Random:
    return Random(int(_child(seed, number).generate_state(1)[0]))


def _child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """A seed of its own for another purpose. (`seed.spawn` would give another when asked again.)"""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
