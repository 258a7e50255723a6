"""What people are told of a protocol. `Presenter` is the plain default; those of our own protocols say more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from outvote.core.task import Task
from outvote.log.log_state import TaskState

ABOUT_ITSELF: Final = (
    "its own name and its store's number, how much news it has heard, roughly how many decisions it has made, and "
    "warnings about its rewards"
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A world in which a small fleet decides within a minute. Rates are those of the best, the second and the worst
    variant; `pace` is in events a second, over the fleet."""

    rates: tuple[float, float, float]
    variants: int
    pace: float
    epsilon: float | None = None
    delta: float = 0.05


class Presenter:
    """Says nothing but what is true of every protocol."""

    offer = "a protocol of your own"
    """Beside its name, where one is chosen."""
    says = "“a message of its own”"
    """What a site sends, in words."""
    messages = "messages"
    variants_part = "variants_plain.html"
    """The template of the table of variants."""
    figures: tuple[str, ...] = ()
    """Figures of the task's page beside those that every task has."""
    silence = ""
    """Why nobody is said to be ahead, if the messages never tell."""
    bound_is = "the most it can cost is"
    demo = Scenario((0.8, 0.5, 0.1), variants=3, pace=120, epsilon=0.5)
    audit = demo

    # ---- where a task stands

    def variant(self, state: TaskState, arm: int) -> dict[str, Any]:
        """What is known of one variant."""
        return {}

    def leader(self, state: TaskState) -> int | None:
        """The remaining variant that is ahead, if messages tell."""
        return None

    def share(self, state: TaskState, arm: int) -> float | None:
        """The share of successes reported of one variant, if messages tell; quick."""
        return None

    def lifts(self, state: TaskState, leader: int) -> list[tuple[int, Any]]:
        """The lead of one variant over each other one."""
        return []

    def votes_needed(self, task: Task) -> tuple[int, ...]:
        return ()

    def disagreement(self, state: TaskState) -> float | None:
        """By how many standard deviations the sites differ more than chance allows."""
        return None

    # ---- in words

    def promise(self, task: Task) -> str:
        """What is guaranteed of a winner."""
        good = "it is the best" if task.epsilon == 0 else f"it is within {task.epsilon:g} of the best"
        return f"{good}, with probability {1 - task.delta:g} at least"

    def bits_bound(self, state: TaskState) -> tuple[int, str]:
        """What the bits are compared with, and why; 0 where nothing bounds them."""
        return state.ledger.bound or 0, "no bound: this protocol has none"

    def eavesdropped(self, state: TaskState) -> list[str]:
        """What the messages so far have told somebody who reads the whole network."""
        return ["Each is a message of a protocol that Outvote does not know: ask its author what it tells."]

    def left_a_site(self, task: Task) -> str:
        """All that a site sends."""
        return f"messages of a protocol of your own, {ABOUT_ITSELF}."

    def task_options(self, sites: int) -> dict[str, Any]:
        """What a small task needs beside its scenario."""
        return {}
