"""Plays the adversary, and writes `measures.json`, from which docs/adversary.md is made.

    .venv/bin/python benchmarks/privacy/measure.py [--quick] [--only games,dme,edme,…]

Every share has its exact 95 % interval (Clopper and Pearson's), every mean a 95 % interval over runs. One process.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from benchmarks.kept import Effort, Record, mean_of, measure_parts, share_of
from benchmarks.privacy import adversary, games, skipping
from outvote.core.task import Task
from outvote.simulation.environments import PROBLEMS, good_arms
from outvote.simulation.settings import read_settings

RESULTS = Path(__file__).with_name("measures.json")
MEANS = PROBLEMS[1]
PLAYERS = 16
BUDGETS = (None, 5.0, 1.0, 0.1)
MEAN = 0.3
"""Of the arm in the games about tallies."""
ARM = len(MEANS) - 1
"""Of the games about votes: one of the seven alike, where one reward decides most."""
LONGEST = 20_000_000
SEED = 53


def make_task(protocol: str, budget: float | None = None) -> Task:
    epsilon = 0.0 if protocol == "tally" else 0.5
    return Task(arms=len(MEANS), players=PLAYERS, epsilon=epsilon, delta=0.05, protocol=protocol, privacy_budget=budget)


def one_event(effort: Effort) -> Record:
    """Games about one event's reward, at even odds."""
    count = effort(40_000)
    rows = []
    for budget in BUDGETS:
        task = make_task("tally", budget)
        row: Record = {"protocol": "tally", "budget": budget, "size": task.floor, "mean": MEAN}
        for known in (False, True):
            right = games.play_tallies(task, mean=MEAN, games=count, known=known, seed=SEED + known)
            row["known" if known else "unknown"] = share_of(right, count)
        rows.append(row)
    for protocol in ("dme", "edme"):
        task = make_task(protocol)
        found = games.play_votes(task, MEANS, arm=ARM, games=count, seed=SEED)
        rows.append(
            {
                "protocol": protocol,
                "budget": None,
                "size": min(schedule.pulls(1) for schedule in task.schedules()),
                "mean": MEANS[ARM],
                "unknown": share_of(found.right, count),
                "changed": share_of(found.changed, count),
            }
        )
    return {"rows": rows}


def hear(protocol: str, budget: float | None, means: list[float], seed: np.random.SeedSequence) -> adversary.Transcript:
    """One task to its end: draw by draw, or for votes from one end of an epoch to the next."""
    if protocol != "tally":
        return skipping.listen_to_votes(make_task(protocol), tuple(means), seed)
    options: Record = {} if budget is None else {"privacy_budget": budget}
    settings = read_settings(
        protocol=protocol, means=means, players=PLAYERS, horizon=LONGEST, trials=1, grid=1, engine="core", delta=0.05,
        **options,
    )  # fmt: skip
    return adversary.listen(settings, seed)


def best_arm(protocol: str, budget: float | None, trials: int) -> Record:
    """Tasks run to their end, with the means of Problem 1 given to the arms at random."""
    rng = random.Random(SEED)
    kinds = ("one", "all", "raw_one", "raw_all")
    right = dict.fromkeys((*kinds, "good_one", "good_all"), 0)
    messages, events, advantages = [], [], []
    infer = adversary.best_arm_from_tallies if protocol == "tally" else adversary.best_arm_from_votes
    for trial in range(trials):
        means = rng.sample(MEANS, len(MEANS))
        heard = hear(protocol, budget, means, np.random.SeedSequence([SEED, trial]))
        fleet = range(PLAYERS)
        said = {
            "one": infer(heard, [0]),
            "all": infer(heard, fleet),
            "raw_one": adversary.best_arm_from_events(heard, [0]),
            "raw_all": adversary.best_arm_from_events(heard, fleet),
        }
        guesses = {kind: adversary.guess(posterior, rng) for kind, posterior in said.items()}
        for kind in kinds:
            right[kind] += guesses[kind] == heard.best
        good = good_arms(means, 0.5)
        right["good_one"] += guesses["one"] in good
        right["good_all"] += guesses["all"] in good
        messages.append(len(heard.sent[0]))
        events.append(sum(heard.pulls[0]))
        if protocol == "tally":
            advantages.append(adversary.mean_advantage(heard))
    row: Record = {"protocol": protocol, "budget": budget, "messages": mean_of(messages), "events": mean_of(events)}
    row |= {kind: share_of(count, trials) for kind, count in right.items()}
    if advantages:
        row["advantage"] = mean_of(advantages)
    return row


TRIALS: dict[float | None, int] = {None: 200, 5.0: 200, 1.0: 200, 0.1: 100}
"""Tasks by budget: the smaller it is, the longer they take."""


def listening(protocol: str, budget: float | None = None, *, trials: int) -> Callable[[Effort], Record]:
    return lambda effort: best_arm(protocol, budget, effort(trials))


PARTS: dict[str, Callable[[Effort], Record]] = {
    "games": one_event,
    **{f"tally-{budget or 'exact'}": listening("tally", budget, trials=TRIALS[budget]) for budget in BUDGETS},
    **{protocol: listening(protocol, trials=1000) for protocol in ("dme", "edme")},
}


if __name__ == "__main__":
    sys.exit(measure_parts(__doc__, PARTS, RESULTS))
