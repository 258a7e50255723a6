"""What the planner knows of each protocol: the ways to run it, what they need, promise and give away.

`FAMILIES` is the only place that names protocols: one that has no line there can be run, but not planned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

from outvote.core.errors import InvalidSettings, one_of
from outvote.core.task import DEFAULT_INSTANCES, Task
from outvote.planner.estimate import Estimate
from outvote.planner.question import Question
from outvote.planner.tally import Tally
from outvote.planner.votes import Votes


class Family(Protocol):
    """Protocols that are planned alike."""

    def ways(self, question: Question) -> Iterator[dict[str, Any]]:
        """The ways to run it: fields of a task, beside those that all protocols have."""

    def name(self, task: Task) -> str: ...

    def estimate(self, question: Question, task: Task) -> Estimate:
        """What it needs in the world of a question."""

    def error_bound(self, task: Task) -> float:
        """What is proved about the probability of a wrong answer (docs/guarantees.md, docs/tally.md)."""

    def promise(self, task: Task) -> str:
        """What it guarantees, after the verb."""

    def needs(self, task: Task) -> str:
        """What must be true of the sites, as a sentence."""

    def adversary_sees(self, task: Task) -> str:
        """What crosses the network, to who can read it."""

    def easier(self, question: Question, task: Task, value: float) -> tuple[str, float] | None:
        """What to ask for instead, and how many times as long that takes; None if `value` makes nothing easier."""


FAMILIES: Final[dict[str, Family]] = {
    "dme": Votes(lambda question: {"active_players": question.active_sites}),
    "edme": Votes(lambda question: {"instances": min(DEFAULT_INSTANCES, question.sites)}),
    "tally": Tally(),
}


def of(task: Task) -> Family:
    if task.protocol not in FAMILIES:
        problem = f"{task.protocol!r} cannot be planned, only {one_of(FAMILIES)} can"
        raise InvalidSettings(problem, field="protocol", code="unknown")
    return FAMILIES[task.protocol]
