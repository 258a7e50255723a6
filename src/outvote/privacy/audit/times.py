"""Whether the times of messages tell more of the times of single events than they must.

A message leaves after the window of its last event, a random delay and two irregular ticks. The judge plays just that
with the very same events, many times over. A busy machine makes messages later and less regular, never the reverse: so
only what is too soon or too regular counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outvote.core.decisions import LEAST_DELAY
from outvote.core.task import Task
from outvote.edge.site import TICK
from outvote.privacy.audit.findings import Finding
from outvote.privacy.audit.frames import Sent
from outvote.privacy.audit.people import Event

PLAYS: Final = 20_000
FALSE_ALARM: Final = 1e-4
"""Of each of the two tests, at most."""
WHERE: Final = "the times of messages"
MOST_MESSAGES: Final = 300
"""More are drawn from: they would tell no more, and take longer."""
LEAST_FOR_SPREAD: Final = 10
_BLOCK: Final = 2_000
_SEED: Final = 11


@dataclass(frozen=True, slots=True)
class Timed:
    """A message, and the times of the last events of the groups that completed it."""

    edge: str
    ends: tuple[float, ...]
    sent: float

    @property
    def delay(self) -> float:
        """From the last event to the message."""
        return self.sent - max(self.ends)


@dataclass
class Times:
    """What was measured, and what an honest edge would give."""

    delays: list[float]
    expected_mean: float | None = None
    p_values: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        mean = sum(self.delays) / max(len(self.delays), 1)
        delays = {"least": min(self.delays), "mean": mean, "most": max(self.delays)} if self.delays else {}
        expected = None if self.expected_mean is None else round(self.expected_mean, 3)
        return {
            "messages_timed": len(self.delays),
            "seconds_after_the_last_event": {name: round(value, 3) for name, value in delays.items()},
            "expected_mean": expected,
            "p_values": {name: round(value, 5) for name, value in self.p_values.items()},
            "false_alarm_rate": FALSE_ALARM * max(len(self.p_values), 1),
        }


def longest_delay(task: Task) -> float:
    """Seconds that a group may be held back after its window."""
    return max(task.reward_window / 10, LEAST_DELAY / 1000)


def matched(completed: Sequence[tuple[Sent, Sequence[Event]]]) -> list[Timed]:
    """The messages whose last events are known."""
    return [Timed(sent.subject.edge, tuple(event.decided[0] for event in ends), sent.time) for sent, ends in completed]


def judged(task: Task, timed: Sequence[Timed]) -> Times:
    """The tests; one that there is too little for is left out."""
    times = Times([each.delay for each in timed])
    if not timed:
        return times
    soonest = min(times.delays)
    if soonest < task.reward_window:
        told = (
            f"within the window: one left {soonest:.3f} s after its last event, the window is {task.reward_window:g} s"
        )
        times.findings.append(Finding("time", WHERE, told))
    rng = np.random.default_rng(_SEED)
    if len(timed) > MOST_MESSAGES:
        timed = [timed[place] for place in sorted(rng.choice(len(timed), MOST_MESSAGES, replace=False))]
    real = np.array([each.delay for each in timed])
    means, spreads = [], []
    for _ in range(PLAYS // _BLOCK):
        played = _play(task, timed, rng)
        means.append(played.mean(axis=1))
        spreads.append(played.std(axis=1))
    by_mean, by_spread = np.concatenate(means), np.concatenate(spreads)
    times.expected_mean = float(by_mean.mean())
    times.p_values["too soon"] = _rank(by_mean <= real.mean())
    if len(timed) >= LEAST_FOR_SPREAD:
        times.p_values["too regular"] = _rank(by_spread <= real.std())
    says = {
        "too soon": f"on average {real.mean():.3f} s after their last event; it should be {times.expected_mean:.3f} s",
        "too regular": f"they follow their last event within ± {real.std():.3f} s; it should be "
        f"± {float(by_spread.mean()):.3f} s, so their times tell its time",
    }
    times.findings += [
        Finding("time", WHERE, f"{name}: {says[name]} (p = {value:.5f})")
        for name, value in times.p_values.items()
        if value <= FALSE_ALARM
    ]
    return times


def _play(task: Task, timed: Sequence[Timed], rng: np.random.Generator) -> NDArray[np.float64]:
    """Delays of an honest edge, a row for each play: groups close after their windows and random delays, messages are
    kept at the next tick of one clock, and sent at the next of another."""
    delays = np.empty((_BLOCK, len(timed)))
    longest = longest_delay(task)
    for edge in {each.edge for each in timed}:
        places = [place for place, each in enumerate(timed) if each.edge == edge]
        begin = min(min(timed[place].ends) for place in places) + task.reward_window - 5 * TICK
        end = max(max(timed[place].ends) for place in places) + task.reward_window + longest
        ticks = int((end - begin) / (0.5 * TICK)) + 12
        long = 2 * TICK * (ticks + 1)  # longer than a row: so all rows, one after the other, are in order
        rows = long * np.arange(_BLOCK)
        keep, send = (np.cumsum(TICK * (0.5 + rng.random((_BLOCK, ticks))), axis=1) for _ in range(2))
        keep, send = ((each + rows[:, None]).ravel() for each in (keep, send))
        for place in places:
            ends = np.array(timed[place].ends)
            closed = (ends + longest * rng.random((_BLOCK, len(ends)))).max(axis=1) + task.reward_window
            kept = keep[np.searchsorted(keep, rows + (closed - begin))]
            delays[:, place] = send[np.searchsorted(send, kept)] - rows + begin - ends.max()
    return delays


def _rank(as_extreme: NDArray[np.bool_]) -> float:
    return (1 + int(as_extreme.sum())) / (1 + len(as_extreme))
