"""How many draws and bits a protocol needs: by the simulator's kernels, where that is quick enough.

A plan whose simulation would take long is scaled from one of a larger difference or ε, by the exact sums or by the
information-theoretic bound; it says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from outvote.core.task import Task
from outvote.planner.question import Question
from outvote.simulation import simulate
from outvote.simulation.compiled import run_with_votes
from outvote.simulation.results import Result
from outvote.simulation.settings import read_settings
from outvote.theory import draws_within, identification_bound, pulls_per_player

TRIALS = 200
"""Of votes, whose draws hardly vary; fewer for large fleets, each of whose trials takes longer."""
TALLY_TRIALS = 2_000
FEWEST_TRIALS = 20
WORK = 1e7
"""Draws of Tally that are simulated for one estimate: some seconds."""
GUARDED_WORK = 1e5
"""The same where liars are tolerated: step by step, and each round costs more."""
LEAST_MEAN = 0.1
"""Of the best arm's: there, means are spread no further for a shorter simulation."""
LEFT_OVER = 0.02
"""Share of trials, but at least one, that need not have ended: a fleet of equal sites may be held back, by chance."""
LONGEST = 16
"""Times the expected draws after which a simulation is taken as it is."""
NEVER = 1e15
"""Draws beyond which nobody waits."""
TALLY_OVER_BOUND = 6.0
"""About how many times the information-theoretic bound Tally needs; only to size a simulation."""


@dataclass(frozen=True)
class Estimate:
    """What a protocol needs: means over trials, and the 5 % and 95 % quantiles of the draws."""

    draws: float
    low: float
    high: float
    bits_up: float
    bits_down: float
    wrong: int
    """Trials in which no arm remained that is an ε-approximation of the best."""
    trials: int
    how: str


def of_votes(question: Question, task: Task) -> Estimate | None:
    """None if it never ends: too few players are ever active."""
    if task.tolerate:
        return _of_guarded_votes(question, task)
    shares = sorted(question.activity.shares().tolist(), reverse=True)
    needed = [
        (pulls_per_player(schedule), shares[: math.ceil(active)])
        for schedule, active in zip(task.schedules(), task.instances, strict=True)
    ]
    horizon = min(draws_within(pulls, enough, 1e-9) for pulls, enough in needed)
    if not horizon < NEVER:
        return None
    for _ in range(4):  # an instance with fewer voters may be slower than the bound on the fastest
        trials = min(max(50_000 // question.players, FEWEST_TRIALS), TRIALS)
        result = _run(question, task, horizon=horizon, trials=trials, **voters(task))
        if result.finished.share == 1:
            break
        horizon *= 4
    return _estimate(result, f"simulated, {result.trials} trials")


def _of_guarded_votes(question: Question, task: Task) -> Estimate | None:
    """As if every arm fell with the most votes that it can wait for: f more than the raised quorum. A bound."""
    shares = sorted(question.activity.shares().tolist(), reverse=True)
    most = [quorum + task.tolerate for quorum in task.quorums]
    needed = [
        draws_within(pulls_per_player(schedule), shares[: max(votes, math.ceil(active))], 1e-9)
        for schedule, votes, active in zip(task.schedules(), most, task.instances, strict=True)
        if votes <= len(shares)
    ]
    horizon = min(needed, default=math.inf)
    if not horizon < NEVER:
        return None
    trials = min(max(50_000 // question.players, FEWEST_TRIALS), TRIALS)
    chosen = _chosen(question, task, horizon=4 * horizon, trials=trials)
    settings = read_settings(**chosen, **voters(task), engine="fast")
    result = run_with_votes(settings, most)
    votes = f"{most[0]} votes" if task.protocol == "dme" else f"{task.tolerate} votes more than must be"
    how = f"simulated with {votes} against an arm, the most that it waits for: a bound"
    return _estimate(result, f"{how}, {trials} trials")


def voters(task: Task) -> dict[str, Any]:
    """Who must vote: what a task of votes is made with again."""
    if task.protocol == "dme":
        return {"quorum": task.quorum, "active_players": task.instances[0]}
    return {"quorum": task.quorum, "instances": len(task.instances)}


def of_tally(question: Question, task: Task) -> Estimate:
    bound = identification_bound(question.means, question.delta)
    noise = _price_of_noise(task) * _price_of_tolerance(task)
    work = GUARDED_WORK if task.tolerate else WORK
    expected = TALLY_OVER_BOUND * bound * noise + len(task.arms) * task.players * task.tally_sizes[0]
    if expected * FEWEST_TRIALS <= work:
        return _tally(question, task, question.means, expected)
    # Too long to simulate: the same world with a larger difference, scaled by what nobody can do without.
    best = max(question.means)
    least = LEAST_MEAN * best if task.tolerate else 0.0
    wider = question.difference
    while True:
        wider *= 1.25
        means = tuple(
            mean if mean == best else max(best - (best - mean) * wider / question.difference, least)
            for mean in question.means
        )
        easier = identification_bound(means, question.delta)
        smaller = TALLY_OVER_BOUND * easier * noise + len(task.arms) * task.players * task.tally_sizes[0]
        if smaller * FEWEST_TRIALS <= work or wider >= best - least:
            break
    found = _tally(question, task, means, smaller)
    factor = bound / easier
    # A round is of one site: the first wave, in which each fills all arms once, is long, and is scaled with the rest.
    rather = ", the first wave too: rather too many" if task.tolerate else ""
    return replace(
        found,
        draws=found.draws * factor,
        low=found.low * factor,
        high=found.high * factor,
        bits_up=found.bits_up * factor,
        how=f"{found.how} at a difference of {wider:.3g}, scaled by the information-theoretic bound{rather}",
    )


def _tally(question: Question, task: Task, means: tuple[float, ...], expected: float) -> Estimate:
    work = GUARDED_WORK if task.tolerate else WORK
    trials = int(min(max(work / expected, FEWEST_TRIALS), TALLY_TRIALS))
    horizon = 4 * expected
    while True:
        result = _run(
            question, task, means=means, horizon=horizon, trials=trials, floor=task.floor,
            privacy_budget=task.privacy_budget, tolerate=task.tolerate,
        )  # fmt: skip
        unfinished = (1 - result.finished.share) * trials
        if unfinished < max(LEFT_OVER * trials, 1) + 0.5 or horizon >= LONGEST * expected:
            return _estimate(result, f"simulated, {trials} trials")
        horizon *= 4


def _price_of_noise(task: Task) -> float:
    """About how many times the draws a privacy budget costs, at this floor; only to size a simulation."""
    if task.privacy_budget is None or task.floor is None:
        return 1.0
    alpha = math.exp(-task.privacy_budget)
    return 1 + 2 * alpha / (1 - alpha) ** 2 / (task.floor / 4)


def _price_of_tolerance(task: Task) -> float:
    """About how many times the draws: f purses of the N are taken off, and each may have been at its lowest."""
    return 1.0 if not task.tolerate else (1 + task.tolerate / 2) / (1 - 2 * task.tolerate / (task.players + 1))


def _run(question: Question, task: Task, *, horizon: float, trials: int, **options: Any) -> Result:
    return simulate(**{**_chosen(question, task, horizon=horizon, trials=trials), "workers": 1, **options})


def _chosen(question: Question, task: Task, *, horizon: float, trials: int) -> dict[str, Any]:
    return {
        "protocol": task.protocol,
        "means": question.means,
        "players": question.players,
        "activity": list(question.activity.weights),
        "epsilon": task.epsilon,
        "delta": question.delta,
        "horizon": math.ceil(horizon),
        "trials": trials,
        "seed": question.seed,
        "grid": 1,
    }


def _estimate(result: Result, how: str) -> Estimate:
    ended = sorted(draw if draw is not None else result.horizon for draw in result.per_trial.finished)
    quantile: Callable[[float], float] = lambda level: float(ended[round(level * (len(ended) - 1))])  # noqa: E731
    if result.finished.share < 1:
        how += f"; {1 - result.finished.share:.1%} of them had not ended at {result.horizon:,} draws"
    return Estimate(
        draws=sum(ended) / len(ended),
        low=quantile(0.05),
        high=quantile(0.95),
        bits_up=result.bits.up,
        bits_down=result.bits.down,
        wrong=round((1 - result.safe) * result.trials),
        trials=result.trials,
        how=how + f", engine {result.engine}",
    )
