"""The plan: what every protocol needs, which one we would take, and what to do where it takes too long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.planner.estimate import Estimate
from outvote.planner.families import FAMILIES, Family, of
from outvote.planner.question import Question
from outvote.presenters.durations import duration
from outvote.theory import pulls_per_player

TOO_LONG: Final = 365.0
"""Days after which an experiment is called impossible, and something easier is proposed."""
BEARABLE: Final = 30.0
"""Days that the proposal takes at most."""
EASIER: Final = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""The values of ε, or differences, that are proposed."""


@dataclass(frozen=True)
class Option:
    """One way to run the task."""

    task: Task
    estimate: Estimate
    days: float | None
    recommended: bool = False

    @property
    def family(self) -> Family:
        return of(self.task)

    @property
    def name(self) -> str:
        return self.family.name(self.task)

    @property
    def bits(self) -> float:
        """What to reserve: the bound where there is one, else the mean."""
        bound = self.task.entry.bits_bound(self.task, None)
        return self.estimate.bits_up + self.estimate.bits_down if bound is None else bound

    @property
    def guarantee(self) -> str:
        """What is promised, what was seen, and of how many liars it holds."""
        told = [self.family.promise(self.task)]
        if self.estimate.ends:
            told.append(_seen(self.estimate))
        if self.task.tolerate:
            told.append(f"it holds even if {self.task.tolerate} of {self.task.players} sites lie")
        return "; ".join(told)

    def to_json(self) -> dict[str, Any]:
        task, found = self.task, self.estimate
        slowest = task.schedules()[-1:]  # of the instances; empty without votes
        values = {
            "protocol": task.protocol,
            "name": self.name,
            "quorum": task.quorum,
            "active_sites": task.to_json()["active_players"],
            "floor": task.floor,
            "privacy_budget": task.privacy_budget,
            "tolerate": task.tolerate,
            "epsilon": task.epsilon,
            "eta": math.exp(slowest[0].log_eta) if slowest else None,
            "events_per_site": pulls_per_player(slowest[0]) if slowest else found.draws / task.players,
            "events": found.draws,
            "events_low": found.low,
            "events_high": found.high,
            "days": self.days,
            "bits": self.bits,
            "bits_up": found.bits_up,
            "bits_down": found.bits_down,
            "error_bound": self.family.error_bound(task),
            "guarantee": self.guarantee,
            "adversary_sees": self.family.adversary_sees(task),
            "how": found.how,
            "recommended": self.recommended,
        }
        return {key: None if value == math.inf else value for key, value in values.items()}


@dataclass(frozen=True)
class Plan:
    """All options, the recommended one first named in `reason`."""

    question: Question
    options: list[Option]
    reason: str
    advice: list[str]

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": self.question.to_json(),
            "protocols": [option.to_json() for option in self.options],
            "reason": self.reason,
            "advice": self.advice,
        }


def make(question: Question, *, progress: Callable[[float], None] = lambda done: None) -> Plan:
    """Estimate every option; `progress` is told of each."""
    options = []
    for task in tasks(question):
        found = of(task).estimate(question, task)
        days = found.draws / question.traffic if found.ends and question.traffic is not None else None
        options.append(Option(task, found, days))
        progress(1)
    chosen, reason = _recommend(question, options)
    options = [replace(option, recommended=option is chosen) for option in options]
    return Plan(question, options, reason, list(_advice(question, options, chosen)))


def tasks(question: Question) -> Iterator[Task]:
    """Every way to run it that tolerates the liars asked for."""
    for protocol, family in FAMILIES.items():
        for way in family.ways(question):
            with suppress(InvalidTask):
                yield Task(
                    arms=question.variants,
                    players=question.sites,
                    delta=question.delta,
                    tolerate=question.tolerate,
                    protocol=protocol,
                    **way,
                )


def left_out(question: Question) -> Iterator[str]:
    """Which protocols are no option, and why: `ask` has refused all but too many liars."""
    possible = {task.protocol for task in tasks(question)}
    for protocol in FAMILIES:
        if protocol not in possible:
            yield (
                f"{protocol} is left out: if the {question.tolerate} sites that may lie said nothing, the other "
                f"{question.sites - question.tolerate} could not cast enough votes; tolerate fewer"
            )


def _recommend(question: Question, options: list[Option]) -> tuple[Option | None, str]:
    """What we would take, and why."""
    proved = [
        option
        for option in options
        if option.estimate.ends
        and option.family.error_bound(option.task) <= question.delta * (1 + 1e-9)
        and option.task.privacy_budget == question.privacy_budget
    ]
    if not proved:
        return None, "nothing that is proved ever ends: make more sites active, or ask for fewer active sites"
    chosen = min(proved, key=lambda option: option.estimate.draws)
    late = "" if (chosen.days or 0) <= TOO_LONG else ". Yet it takes too long: see below"
    return chosen, f"{chosen.name}: {_compared(chosen, options)}{late}"


def _compared(chosen: Option, options: list[Option]) -> str:
    """With the quickest of another protocol."""
    others = [option for option in options if option.task.protocol != chosen.task.protocol]
    other = min(others, key=lambda option: option.estimate.draws, default=chosen)
    times = other.estimate.draws / chosen.estimate.draws
    if not 1 < times < math.inf:
        return "the fewest events of those whose guarantee is proved"
    ratio = f"{times:,.0f}" if times >= 10 else f"{times:.2g}"
    return (
        f"{ratio} times fewer events than {other.name}, at {chosen.bits:,.0f} bits against "
        f"{other.bits:,.0f}; its guarantee is proved. {chosen.family.needs(chosen.task)}"
    )


def _seen(estimate: Estimate) -> str:
    """What the simulation of this plan says: a share, or if it never happened its upper limit (95 %)."""
    if estimate.wrong:
        return f"simulated: wrong in {estimate.wrong} of {estimate.trials:,} trials"
    return f"simulated: never wrong in {estimate.trials:,} trials (so below {1 - 0.05 ** (1 / estimate.trials):.2g})"


def _advice(question: Question, options: list[Option], chosen: Option | None) -> Iterator[str]:
    """What is left out; and for what takes too long, what would be bearable."""
    yield from left_out(question)
    if question.traffic is None:
        return
    seen = set()
    for option in options:
        key = option.task.protocol
        if option.days is None or option.days <= TOO_LONG or key in seen:
            continue
        seen.add(key)
        easier = _easier(question, option, option.days)
        needs = f"{option.name}: at {question.traffic:,.0f} events a day this needs {duration(option.days)}"
        yield f"{needs}; {easier}" if easier else f"{needs}; more traffic or fewer variants would help"
    if chosen is not None and chosen.days is not None and chosen.days <= TOO_LONG and seen:
        yield f"{chosen.name} needs {duration(chosen.days)}"


def _easier(question: Question, option: Option, days: float) -> str | None:
    """The next round ε, or difference, that is bearable."""
    for value in EASIER:
        easier = option.family.easier(question, option.task, value)
        if easier is not None and days * easier[1] <= BEARABLE:
            return f"{easier[0]} for {duration(days * easier[1])}"
    return None
