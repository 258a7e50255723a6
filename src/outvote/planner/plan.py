"""The plan: what every protocol needs, which one we would take, and what to do where it takes too long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from outvote.core.errors import InvalidTask
from outvote.core.ledger import bits_bound
from outvote.core.task import Task
from outvote.planner import estimate, words
from outvote.planner.duration import duration
from outvote.planner.estimate import Estimate
from outvote.planner.question import Question
from outvote.theory import identification_bound, pulls_per_player

BUDGET_SHOWN = 1.0
"""The privacy budget of the private plan where none is asked for."""
TOO_LONG = 365.0
"""Days after which an experiment is called impossible, and something easier is proposed."""
BEARABLE = 30.0
"""Days that the proposal takes at most."""


@dataclass(frozen=True)
class Option:
    """One way to run the task."""

    task: Task
    estimate: Estimate | None
    """None if it never ends."""
    days: float | None
    recommended: bool = False

    @property
    def name(self) -> str:
        task = self.task
        if task.protocol != "tally":
            return f"{task.protocol}, {task.quorum} quorum"
        private = "" if task.privacy_budget is None else f", privacy budget {task.privacy_budget:g}"
        return f"tally, floor {task.floor}{private}"

    @property
    def eta(self) -> float | None:
        """Of the slowest instance; Tally has none."""
        schedules = self.task.schedules()
        return math.exp(schedules[-1].log_eta) if schedules else None

    @property
    def bits(self) -> float | None:
        """What to reserve: of votes the bound, of tallies the mean."""
        if self.task.protocol != "tally":
            return bits_bound(self.task)
        return None if self.estimate is None else self.estimate.bits_up + self.estimate.bits_down

    def to_json(self) -> dict[str, Any]:
        task, found = self.task, self.estimate
        schedules = task.schedules()
        pulls = None if found is None else found.draws / task.players
        return {
            "protocol": task.protocol,
            "quorum": None if task.protocol == "tally" else task.quorum,
            "floor": task.floor,
            "privacy_budget": task.privacy_budget,
            "tolerate": task.tolerate,
            "votes": list(task.quorums) or None,
            "epsilon": task.epsilon,
            "eta": self.eta,
            "pulls_epoch_1": schedules[-1].pulls(1) * len(task.arms) if schedules else None,
            "pulls_per_player": pulls_per_player(schedules[-1]) if schedules else pulls,
            "draws": None if found is None else found.draws,
            "draws_low": None if found is None else found.low,
            "draws_high": None if found is None else found.high,
            "days": self.days,
            "bits": self.bits,
            "bits_up": None if found is None else found.bits_up,
            "bits_down": None if found is None else found.bits_down,
            "error_bound": words.error_bound(task),
            "guarantee": words.guarantee(task, found),
            "adversary_sees": words.adversary_sees(task),
            "how": "it never ends: fewer players are ever active than must vote" if found is None else found.how,
            "recommended": self.recommended,
        }


@dataclass(frozen=True)
class Plan:
    """All options, the recommended one first named in `reason`."""

    question: Question
    options: list[Option]
    reason: str
    advice: list[str] = field(default_factory=list)

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
        found = estimate.of_tally(question, task) if task.protocol == "tally" else estimate.of_votes(question, task)
        days = None if found is None or question.traffic is None else found.draws / question.traffic
        options.append(Option(task, found, days))
        progress(1)
    chosen, reason = _recommend(question, options)
    options = [replace(option, recommended=option is chosen) for option in options]
    return Plan(question, options, reason, list(_advice(question, options, chosen)))


def count(question: Question) -> int:
    """How many options will be estimated."""
    return len(list(tasks(question)))


def tasks(question: Question) -> Iterator[Task]:
    """Every way to run it; without votes where they tolerate fewer liars."""
    for quorum in ("paper", "certified"):
        for protocol in ("dme", "edme"):
            with suppress(InvalidTask):
                yield _of_votes(question, protocol, quorum)
    tally = {**_base(question), "epsilon": question.epsilon or 0, "protocol": "tally"}
    yield Task(**tally, floor=question.floor)
    budget = BUDGET_SHOWN if question.privacy_budget is None else question.privacy_budget
    yield Task(**tally, floor=question.floor, privacy_budget=budget)


def left_out(question: Question) -> Iterator[str]:
    """Which protocols are no option, and why."""
    for protocol in ("dme", "edme"):
        try:
            _of_votes(question, protocol, "paper")
        except InvalidTask as error:
            yield f"{protocol} is left out: {error}"


def _base(question: Question) -> dict[str, Any]:
    return {
        "arms": question.arms, "players": question.players, "delta": question.delta, "tolerate": question.tolerate,
    }  # fmt: skip


def _of_votes(question: Question, protocol: str, quorum: str) -> Task:
    """Refused is only that too many lie: `question.ask` has refused the rest."""
    voters: dict[str, Any] = {"active_players": question.active_players}
    if protocol == "edme":
        voters = {"instances": min(8, question.players)}
    return Task(**_base(question), epsilon=question.vote_epsilon, quorum=quorum, protocol=protocol, **voters)


def _recommend(question: Question, options: list[Option]) -> tuple[Option | None, str]:
    """What we would take, and why."""
    proved = [
        option
        for option in options
        if option.estimate is not None
        and words.error_bound(option.task) <= question.delta * (1 + 1e-9)
        and (question.privacy_budget is None or option.task.privacy_budget == question.privacy_budget)
        and (question.privacy_budget is not None or option.task.privacy_budget is None)
    ]
    if not proved:
        return None, "nothing that is proved ever ends: make more sites active, or ask for fewer --active-players"
    chosen = min(proved, key=lambda option: option.estimate.draws if option.estimate else math.inf)
    late = "" if (chosen.days or 0) <= TOO_LONG else ". Yet it takes too long: see below"
    return chosen, f"{chosen.name}: {_compared(chosen, options)}{late}"


def _compared(chosen: Option, options: list[Option]) -> str:
    assert chosen.estimate is not None
    others = [
        option
        for option in options
        if option.estimate is not None
        and option.task.protocol != chosen.task.protocol
        and option.task.protocol == "dme"
    ]
    if not others:
        return "the fewest events of those whose guarantee is proved"
    dme = min(others, key=lambda option: option.estimate.draws if option.estimate else math.inf)
    assert dme.estimate is not None
    times = dme.estimate.draws / chosen.estimate.draws
    return (
        f"{_times(times)} times fewer events than {dme.name}, at {chosen.bits or 0:,.0f} bits against a bound of "
        f"{dme.bits or 0:,.0f}; its guarantee is proved. {_needs(chosen.task)}"
    )


def _needs(task: Task) -> str:
    if task.tolerate:
        return "Of the sites that do not lie it needs that one variant is best at each of them"
    return (
        "It needs sites whose variants are worth the same everywhere, and holds the decision back if it sees that they "
        "are not"
    )


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"


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
        easier = _easier(question, option)
        needs = f"{option.name}: at {question.traffic:,.0f} events a day this needs {duration(option.days)}"
        yield f"{needs}; {easier}" if easier else f"{needs}; more traffic or fewer arms would help"
    if chosen is not None and chosen.days is not None and chosen.days <= TOO_LONG and seen:
        yield f"{chosen.name} needs {duration(chosen.days)}"


def _easier(question: Question, option: Option) -> str | None:
    """The next round ε, or difference, that is bearable."""
    assert option.days is not None
    task = option.task
    for value in (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
        if task.protocol == "tally":
            if value <= question.difference:
                continue
            best = max(question.means)
            means = tuple(mean if mean == best else max(best - value, 0.0) for mean in question.means)
            if best - value < 0:
                return None
            factor = identification_bound(means, question.delta) / identification_bound(question.means, question.delta)
            what = f"look for a difference of {value:g}"
        else:
            if value <= task.epsilon:
                continue
            wider = Task(**_base(question), epsilon=value, protocol=task.protocol, **estimate.voters(task))
            factor = pulls_per_player(wider.schedules()[-1]) / pulls_per_player(task.schedules()[-1])
            what = f"relax ε to {value:g}"
        if option.days * factor <= BEARABLE:
            return f"{what} for {duration(option.days * factor)}"
    return None
