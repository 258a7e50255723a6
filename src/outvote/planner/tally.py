"""Plans of Tally: without noise, and with a privacy budget.

A plan whose simulation would take long is scaled from one of a larger difference, by the information-theoretic bound;
it says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from outvote.core.task import Task
from outvote.planner.estimate import FEWEST_TRIALS, Estimate, estimate, settings
from outvote.planner.question import Question
from outvote.simulation.run import run
from outvote.theory import identification_bound

BUDGET_SHOWN: Final = 1.0
"""The privacy budget of the private plan where none is asked for."""
TRIALS: Final = 2_000
WORK = 1e7
"""Draws that are simulated for one estimate: some seconds."""
GUARDED_WORK = 1e5
"""The same where liars are tolerated: step by step, and each round costs more."""
LEAST_MEAN: Final = 0.1
"""Of the best arm's, where liars are tolerated: means are spread no further for a shorter simulation."""
LEFT_OVER: Final = 0.02
"""Share of trials, but at least one, that need not have ended: a fleet of equal sites may be held back, by chance."""
LONGEST: Final = 16
"""Times the expected draws after which a simulation is taken as it is."""
OVER_BOUND: Final = 6.0
"""About how many times the information-theoretic bound Tally needs; only to size a simulation."""


class Tally:
    """Sites report how many of their events succeeded."""

    def ways(self, question: Question) -> Iterator[dict[str, Any]]:
        common = {"epsilon": question.epsilon or 0, "floor": question.floor}
        yield common
        yield {**common, "privacy_budget": question.privacy_budget or BUDGET_SHOWN}

    def name(self, task: Task) -> str:
        private = "" if task.privacy_budget is None else f", privacy budget {task.privacy_budget:g}"
        return f"{task.protocol}, floor {task.floor}{private}"

    def estimate(self, question: Question, task: Task) -> Estimate:
        work = GUARDED_WORK if task.tolerate else WORK
        bound = identification_bound(question.means, question.delta)
        expected = _expected(task, bound)
        if expected * FEWEST_TRIALS <= work:
            return _simulated(question, task, question.means, expected)
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
            expected = _expected(task, easier)
            if expected * FEWEST_TRIALS <= work or wider >= best - least:
                break
        found = _simulated(question, task, means, expected)
        if not found.ends:
            return found
        factor = bound / easier
        # A round is of one site: the first wave, in which each fills all arms once, is long, and is scaled as well.
        scaled = "scaled by the information-theoretic bound"
        if task.tolerate:
            scaled += ", the first wave too: rather too many"
        return replace(
            found,
            draws=found.draws * factor,
            low=found.low * factor,
            high=found.high * factor,
            bits_up=found.bits_up * factor,
            how=f"{found.how} at a difference of {min(wider, best):.3g}, {scaled}",
        )

    def error_bound(self, task: Task) -> float:
        return task.delta

    def promise(self, task: Task) -> str:
        what = "the best variant" if task.epsilon == 0 else f"a variant within {task.epsilon:g} of the best"
        return f"{what} with probability at least {1 - task.delta:g}, whenever you look; proved"

    def needs(self, task: Task) -> str:
        if task.tolerate:
            return "Of the sites that do not lie it needs that one variant is best at each of them"
        needs = "It needs sites whose variants are worth the same everywhere"
        return f"{needs}, and holds the decision back if it sees that they are not"

    def adversary_sees(self, task: Task) -> str:
        counts = f"from each site, how many of {task.floor} or more events with a variant succeeded"
        if task.privacy_budget is None:
            return f"{counts}; where none or all did, what each of them earned; and which variants are out"
        return (
            f"{counts}, with noise: what one event earned changes the probability of all that is seen by a factor of "
            f"{math.exp(task.privacy_budget):.3g} at most; and which variants are out"
        )

    def easier(self, question: Question, task: Task, value: float) -> tuple[str, float] | None:
        best = max(question.means)
        if not question.difference < value <= best:
            return None
        means = tuple(mean if mean == best else best - value for mean in question.means)
        factor = identification_bound(means, question.delta) / identification_bound(question.means, question.delta)
        return f"look for a difference of {value:g}", factor


def _simulated(question: Question, task: Task, means: tuple[float, ...], expected: float) -> Estimate:
    work = GUARDED_WORK if task.tolerate else WORK
    trials = int(min(max(work / expected, FEWEST_TRIALS), TRIALS))
    horizon = 4 * expected
    while True:
        result = run(settings(question, task, means=means, horizon=horizon, trials=trials), workers=1)
        unfinished = (1 - result.finished.share) * trials
        if unfinished < max(LEFT_OVER * trials, 1) + 0.5 or horizon >= LONGEST * expected:
            return estimate(result, f"simulated, {trials} trials")
        horizon *= 4


def _expected(task: Task, bound: float) -> float:
    """About how many draws it needs; only to size a simulation."""
    floor = task.tally_sizes[0]
    draws = OVER_BOUND * bound
    if task.privacy_budget is not None:  # noise weighs less in a larger tally
        alpha = math.exp(-task.privacy_budget)
        draws *= 1 + 2 * alpha / (1 - alpha) ** 2 / (floor / 4)
    if task.tolerate:  # f purses of the N are taken off, and each may have been at its lowest
        draws *= (1 + task.tolerate / 2) / (1 - 2 * task.tolerate / (task.players + 1))
    return draws + len(task.arms) * task.players * floor  # and the first wave, in which each site fills all arms
