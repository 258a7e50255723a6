"""The engine `core`: the reference. One draw is one turn of Algorithm 1, by the very objects of `outvote.core`.

Draw a player, deliver what waits for it, let it decide, give it its reward, carry what it sends to the server. The
number of the draw is the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

import numpy as np

from outvote.simulation.environments import best_arms, good_arms, open_world, puller
from outvote.simulation.fleets import make_fleet
from outvote.simulation.moments import Moments
from outvote.simulation.settings import Settings
from outvote.simulation.streams import generator
from outvote.simulation.trials import Trial


def run_trial(settings: Settings, seed: np.random.SeedSequence, advance: Callable[[int], None]) -> Trial:
    """One trial from one seed; `advance` is told at each grid point how many draws were made since the last."""
    task, horizon = settings.task, settings.horizon
    before_the_first_draw = np.random.default_rng(_child(seed, 0))
    world = open_world(settings.environment, players=task.players, horizon=horizon, rng=before_the_first_draw)
    of_the_players = Random(int(_child(seed, 1).generate_state(1)[0]))
    fleet = make_fleet(settings, of_the_players)
    shared = len(fleet.members) != task.players
    # Where means drift, what is good is judged by the means at the horizon.
    means = [world(player, horizon, None, None) for player in range(task.players)]
    good = _for_members([good_arms(values, task.epsilon) for values in means], shared)
    best = _for_members([best_arms(values) for values in means], shared)
    moments = Moments(fleet, good)

    draws = trial_draws(settings, seed)
    pull = puller(settings.environment, world)
    participants = list(fleet.members) * (task.players if shared else 1)  # who acts when player n is drawn
    heard = [0] * task.players
    news = 0  # how many announcements there are to hear
    regret, curve, draw = 0.0, [], 0
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
            ticket = participant.decide(draw)
            reward, gap = pull(player, ticket.arm, draw, uniform)
            regret += gap
            participant.reward(ticket, reward, draw)
            messages = participant.tick(draw)
            if messages:
                fleet.handle(player, messages, draw)
                news = len(fleet.announced)
                moments.member_changed(0 if shared else player, draw)
                moments.messages_counted(draw)
        curve.append(regret)
        advance(advance_by)

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
    )


def _for_members(by_player: list[frozenset[int]], shared: bool) -> list[frozenset[int]]:
    """One player that acts for all must please all."""
    return [frozenset.intersection(*by_player)] if shared else by_player


def trial_draws(settings: Settings, seed: np.random.SeedSequence) -> Iterator[tuple[int, float]]:
    """The active player and the uniform number of its reward, draw after draw: the same for every protocol."""
    for players, uniforms in settings.activity.draws(generator(seed), settings.horizon):
        yield from zip(players, uniforms, strict=True)


def _child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """A seed of its own for another purpose. (`seed.spawn` would give another when asked again.)"""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
