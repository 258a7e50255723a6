"""Plans of the protocols that vote: dme and edme, with the quorum of the paper and the certified one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from outvote import theory
from outvote.core.task import QUORUMS, Task
from outvote.core.votes.schedule import Schedule
from outvote.planner.estimate import FEWEST_TRIALS, Estimate, altered, estimate, settings
from outvote.planner.question import Question
from outvote.simulation.compiled import run_with_votes
from outvote.simulation.run import run

TRIALS: Final = 200
"""Draws hardly vary; fewer for large fleets, each of whose trials takes longer."""
NEVER: Final = 1e15
"""Draws beyond which nobody waits."""


@dataclass(frozen=True)
class Votes:
    """One protocol that votes; `voters` says with which fields of a task it is told how many sites are active."""

    voters: Callable[[Question], dict[str, Any]]

    def ways(self, question: Question) -> Iterator[dict[str, Any]]:
        """Fields of a task, beside those that all protocols have. Without an ε, it is the difference that matters."""
        for quorum in QUORUMS:
            epsilon = question.epsilon or min(question.difference, 0.99)
            yield {"epsilon": epsilon, "quorum": quorum, **self.voters(question)}

    def name(self, task: Task) -> str:
        return f"{task.protocol}, {task.quorum} quorum"

    def estimate(self, question: Question, task: Task) -> Estimate:
        """By the simulator's kernel.

        With liars that are tolerated it is a bound: each variant falls with f votes more than the raised quorum, the
        most that it can wait for.
        """
        if 2 * question.means.count(0) > question.variants:
            why = "most variants never succeed, and sites vote against those below the median"
            return Estimate.never(f"it never ends: {why}")
        shares = sorted(question.activity.shares().tolist(), reverse=True)
        most = [quorum + task.tolerate for quorum in task.quorums] if task.tolerate else [0] * len(task.instances)
        horizon = min(
            (
                theory.draws_within(theory.pulls_per_player(schedule), shares[: max(votes, math.ceil(active))], 1e-9)
                for schedule, votes, active in zip(task.schedules(), most, task.instances, strict=True)
                if votes <= len(shares)
            ),
            default=math.inf,
        )
        if not horizon < NEVER:
            return Estimate.never("it never ends: fewer sites are ever active than must vote")
        trials = min(max(50_000 // question.sites, FEWEST_TRIALS), TRIALS)
        if task.tolerate:
            believing = altered(task, tolerate=0)
            result = run_with_votes(settings(question, believing, horizon=4 * horizon, trials=trials), most)
            votes = f"{most[0]} votes" if len(most) == 1 else f"{task.tolerate} votes more than must be"
            how = f"simulated with {votes} against a variant, the most that it waits for: a bound"
            return estimate(result, f"{how}, {trials} trials")
        for _ in range(4):  # an instance with fewer voters may be slower than the bound on the fastest
            result = run(settings(question, task, horizon=horizon, trials=trials), workers=1)
            if result.finished.share == 1:
                break
            horizon *= 4
        return estimate(result, f"simulated, {trials} trials")

    def error_bound(self, task: Task) -> float:
        """What is proved about the probability of a wrong answer (docs/guarantees.md)."""
        each = (theory.accurate_fleet_error(_inaccuracy(task, schedule), task.players) for schedule in task.schedules())
        return min(math.fsum(each), 1.0)

    def promise(self, task: Task) -> str:
        what = f"a variant within {task.epsilon:g} of the best"
        if task.quorum == "certified":
            nearer = f"(by the proof even within {theory.answer_within(task.schedules()[0]):.3g})"
            return f"{what} {nearer} with probability at least {1 - task.delta:g}; proved"
        separated = sum(
            theory.error_when_separated(_inaccuracy(task, schedule), task.players, active)
            for schedule, active in zip(task.schedules(), task.instances, strict=True)
        )
        return (
            f"{what}: the paper says with probability {1 - task.delta:g}, its proof has a gap; proved is "
            f"{_surely(self.error_bound(task))}, and {_surely(min(separated, 1.0))} if no other variant is within "
            f"{task.epsilon / 4:.3g} of the best"
        )

    def needs(self, task: Task) -> str:
        return f"It needs {'honest ' if task.tolerate else ''}sites whose variants are worth the same everywhere"

    def adversary_sees(self, task: Task) -> str:
        times = "" if len(task.instances) == 1 else f", in each of {len(task.instances)} instances"
        return (
            f"which variants each site would drop, at most {len(task.arms) - 1} of them{times}, and when; no count, no "
            "reward; and which variants are out"
        )

    def easier(self, question: Question, task: Task, value: float) -> tuple[str, float] | None:
        """What to ask for instead, and how many times as long that takes; None if `value` makes nothing easier."""
        if value <= task.epsilon:
            return None
        wider = altered(task, epsilon=value)
        factor = theory.pulls_per_player(wider.schedules()[-1]) / theory.pulls_per_player(task.schedules()[-1])
        return f"relax ε to {value:g}", factor


def _inaccuracy(task: Task, schedule: Schedule) -> float:
    return theory.inaccuracy_limit(len(task.arms), schedule.log_eta)


def _surely(error: float) -> str:
    """The probability of the contrary; close to 1 what matters is how close."""
    return f"1 − {error:.1g}" if 0 < error < 0.001 else f"{1 - error:.3g}"
