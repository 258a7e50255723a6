"""What people are told of Tally."""

from __future__ import annotations

import math
from typing import Any, cast

from outvote.core.codes import fixed_width
from outvote.core.ledger import tally_bits_bound
from outvote.core.tally.lift import Lift
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.log.log_state import TaskState
from outvote.presenters.formats import count, plural
from outvote.presenters.presenter import ABOUT_ITSELF, Presenter, Scenario


def _server(state: TaskState) -> TallyServer:
    return cast(TallyServer, state.server)


class TallyPresenter(Presenter):
    """Counts of groups of events: means with intervals, lifts, and evidence."""

    offer = "soonest, sends counts"
    says = "“this variant: 2 of 3”"
    messages = "tallies"
    variants_part = "variants_counts.html"
    figures = ("means", "lifts")
    bound_is = "the most so many events can cost is"
    demo = Scenario((0.62, 0.48, 0.1), variants=5, pace=120)
    audit = Scenario((0.6, 0.4, 0.2), variants=3, pace=200)

    def variant(self, state: TaskState, arm: int) -> dict[str, Any]:
        server = _server(state)
        return {
            "trials": server.trials(arm),
            "successes": server.successes(arm),
            "mean": server.mean(arm),
            "interval": server.interval(arm),
            "evidence": server.evidence_share(arm),
        }

    def leader(self, state: TaskState) -> int | None:
        """The remaining arm with the highest mean, the lowest index of equals."""
        means = {arm: _server(state).mean(arm) for arm in state.announced}
        known = {arm: mean for arm, mean in means.items() if mean is not None}
        return max(known, key=lambda arm: (known[arm], -arm), default=None)

    def share(self, state: TaskState, arm: int) -> float | None:
        server = _server(state)
        trials = server.trials(arm)
        return server.successes(arm) / trials if trials else None

    def lifts(self, state: TaskState, leader: int) -> list[tuple[int, Lift]]:
        server = _server(state)
        rivals = [arm for arm in range(len(state.task.arms)) if arm != leader and server.trials(arm)]
        return [(rival, server.lift(leader, rival)) for rival in rivals]

    def disagreement(self, state: TaskState) -> float | None:
        return _server(state).disagreement

    def bits_bound(self, state: TaskState) -> tuple[int, str]:
        events = _server(state).reported[0] + state.discounted_events
        most = tally_bits_bound(state.task, events)
        return most, f"the most that the {count(events)} events reported so far can cost"

    def eavesdropped(self, state: TaskState) -> list[str]:
        floor, budget = state.task.tally_sizes[0], state.task.privacy_budget
        said = f"Each says how many of {floor} or more events with one variant succeeded"
        if budget is not None:
            factor = f"{math.exp(budget):.3g}"
            return [
                f"{said}, with noise.",
                f"What any one event earned has changed the probability of all this by a factor of {factor} at most.",
            ]
        unanimous = _server(state).unanimous + state.discounted_unanimous  # what counts no more was seen all the same
        if not unanimous:
            return [f"{said}.", "In none of them did all or none succeed: of no event is it known what it earned."]
        return [
            f"{said}.",
            f"In {plural(unanimous, 'message')} of them none or all succeeded: of those events it is known what each "
            "earned, though not whose they were or when they happened.",
        ]

    def left_a_site(self, task: Task) -> str:
        sizes = ", ".join(str(size) for size in task.tally_sizes[:3])
        return (
            f"how many of its next {sizes}, … events with a variant succeeded ({fixed_width(task.tally_sizes[0] + 1)} "
            f"bits and more each), {ABOUT_ITSELF}. No event, no user, no time of an event."
        )
