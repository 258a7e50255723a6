"""What the planner knows of each protocol: the ways to run it, what they need, promise and give away.

`FAMILIES` is the only place that names protocols: one that has no line there can be run, but not planned.
"""

from __future__ import annotations

from typing import Final

from outvote.core.errors import InvalidSettings, one_of
from outvote.core.task import DEFAULT_INSTANCES, Task
from outvote.planner.tally import Tally
from outvote.planner.votes import Votes

Family = Votes | Tally
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
