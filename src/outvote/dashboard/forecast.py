"""How many events and days a task still needs: what the planner expects in all, less what has happened. Pure.

The planner is asked for the world that operators declared, or for the one that the tallies show so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from msgspec import UNSET

from outvote.core.errors import OutvoteError
from outvote.core.task import Task
from outvote.presenters.durations import duration
from outvote.presenters.formats import about, count
from outvote.server.admin.views import TaskDescription

DAY: Final = 86_400.0
ENOUGH: Final = 30
"""Events of an arm from which on its mean says something about how long a task will take."""

Ask = Callable[[dict[str, Any], Task], dict[str, Any] | OutvoteError | None]
"""The planner: how many draws a task needs in a world; None while it is at it."""


@dataclass(frozen=True)
class Forecast:
    """`events` and `days` are what is left, if that can be said; `why` is how it was found out."""

    state: Literal["known", "working", "unknown"]
    events: str = ""
    days: str = ""
    why: str = ""


def forecast(shown: TaskDescription, ask: Ask, now: float) -> Forecast:
    """What a task that runs still needs."""
    passed = max(now - shown.created, 1.0) / DAY
    counts = [arm.trials for arm in shown.variants if arm.trials is not UNSET]
    if not counts:
        return _without_counts(shown, ask, passed)
    reported = sum(counts)
    traffic, whence = _traffic(shown, reported, passed)
    late, difference = "", None if shown.expectation is None else shown.expectation.difference
    if difference is not None:
        answer = ask(_world(shown), shown.task)
        if not isinstance(answer, dict) or answer.get("never"):
            return _no_answer(answer)
        if reported < answer["high"]:
            why = f"{_expects(answer)} if the best variant is better by {difference:g}"
            return _left(answer, reported, traffic, f"{why}; {count(reported)} are reported{whence}")
        late = f"more events are reported ({count(reported)}) than the declared difference needs"
    seen = _seen(shown)
    if seen is None:
        missing = "the tallies do not tell yet which variant is better, or have too few events"
        return Forecast("unknown", why=f"{late or 'no difference is declared'}; {missing}")
    answer = ask(seen, shown.task)
    if not isinstance(answer, dict) or answer.get("never"):
        return _no_answer(answer)
    why = f"{_expects(answer)} if the variants' means are what they seem now; {count(reported)} are reported{whence}"
    return _left(answer, reported, traffic, f"{late}; {why}" if late else why)


def _without_counts(shown: TaskDescription, ask: Ask, passed: float) -> Forecast:
    """Votes do not say how many events there were: only the declared traffic does."""
    answer = ask(_world(shown), shown.task)
    if not isinstance(answer, dict) or answer.get("never"):
        return _no_answer(answer)
    traffic = None if shown.expectation is None else shown.expectation.traffic
    if traffic is None:
        why = f"{_expects(answer)}; votes do not tell how many there were: declare the traffic"
        return Forecast("known", events=f"{about(answer['draws'])} in all", why=why)
    happened = traffic * passed
    why = f"{_expects(answer)}; at {count(traffic)} a day about {about(happened)} have happened"
    return _left(answer, happened, traffic, why)


def _left(answer: dict[str, Any], happened: float, traffic: float | None, why: str) -> Forecast:
    low, left, high = (max(answer[each] - happened, 0.0) for each in ("low", "draws", "high"))
    if high == 0:
        return Forecast("known", events="it should have ended", why=why)
    reach = f" ({about(low)} to {about(high)})" if about(low) != about(high) else ""
    days = (
        "" if traffic is None else f"{duration(left / traffic)} (at most {duration(high / traffic)} in 19 of 20 cases)"
    )
    return Forecast("known", events=f"about {about(left)}{reach}", days=days, why=why)


def _expects(answer: dict[str, Any]) -> str:
    draws, low, high = (about(answer[each]) for each in ("draws", "low", "high"))
    return f"the planner expects {draws} events in all, from {low} to {high}"


def _no_answer(answer: dict[str, Any] | OutvoteError | None) -> Forecast:
    if answer is None:
        return Forecast("working", why="the planner is at work")
    return Forecast("unknown", why=answer["never"] if isinstance(answer, dict) else str(answer))


def _traffic(shown: TaskDescription, reported: int, passed: float) -> tuple[float | None, str]:
    """As declared, or as it was so far; and how to say so."""
    if shown.expectation is not None and shown.expectation.traffic is not None:
        return shown.expectation.traffic, f", and {count(shown.expectation.traffic)} a day are declared"
    if not reported:
        return None, ""
    return reported / passed, f", {about(reported / passed)} a day so far"


def _world(shown: TaskDescription) -> dict[str, Any]:
    """The declared one; of votes, without a declaration, variants that differ by ε."""
    expectation = shown.expectation
    return {
        "variants": len(shown.task.arms),
        **_same(shown.task),
        "baseline": None if expectation is None else expectation.baseline,
        "difference": None if expectation is None else expectation.difference,
    }


def _seen(shown: TaskDescription) -> dict[str, Any] | None:
    """Arms with the means that the tallies show; None if they show too little."""
    means = [arm.mean for arm in shown.variants]
    if any(not isinstance(mean, float) for mean in means):
        return None
    left = [arm for arm in shown.variants if arm.state == "remaining"]
    if any(arm.trials is UNSET or arm.trials < ENOUGH for arm in left):
        return None
    rounded = [round(mean, 3) for mean in means if isinstance(mean, float)]
    best, second = sorted(rounded, reverse=True)[:2]
    return None if best == second else {"means": rounded, **_same(shown.task)}


def _same(task: Task) -> dict[str, Any]:
    return {
        "sites": task.players,
        "delta": task.delta,
        "epsilon": task.epsilon or None,
        "floor": task.floor,
        "privacy_budget": task.privacy_budget,
    }
