"""Whether the times of messages tell more of the times of single events than the edge's irregular ticks give away.

One rule: the judge is what ticks alone would have done with the very same events, played many times over. Delays
of the machine make messages later and less regular, never the reverse: so only what is too soon or too regular counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outvote.core.task import Task
from outvote.edge.site import TICK
from outvote.privacy.audit.findings import Finding
from outvote.privacy.audit.frames import Sent
from outvote.privacy.audit.people import Event

PLAYS: Final = 20_000
FALSE_ALARM: Final = 1e-4
"""Of each of the three tests, at most."""
MOST_MESSAGES: Final = 300
"""More are drawn from: they would tell no more, and take longer."""
LEAST_FOR_SPREAD: Final = 10
_BLOCK: Final = 2_000
_SEED: Final = 11


@dataclass(frozen=True, slots=True)
class Timed:
    """A message, and when it was complete: with the answer to a request, or a window after the last decision."""

    edge: str
    complete: float
    answered: float
    sent: float

    @property
    def delay(self) -> float:
        return self.sent - self.complete


@dataclass
class Times:
    """What was measured, and what ticks alone would give."""

    delays: list[float]
    mean_by_ticks: float | None = None
    p_values: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        mean = sum(self.delays) / max(len(self.delays), 1)
        delays = {"least": min(self.delays), "mean": mean, "most": max(self.delays)} if self.delays else {}
        ticks = None if self.mean_by_ticks is None else round(self.mean_by_ticks, 3)
        return {
            "messages_timed": len(self.delays),
            "seconds_after_the_last_event": {name: round(value, 3) for name, value in delays.items()},
            "mean_by_ticks_alone": ticks,
            "p_values": {name: round(value, 5) for name, value in self.p_values.items()},
            "false_alarm_rate": FALSE_ALARM * max(len(self.p_values), 1),
        }


def matched(task: Task, completed: Sequence[tuple[Sent, Event]]) -> list[Timed]:
    """When each message could have left, from the event that completed it."""
    found = []
    for sent, last in completed:
        complete, answered = last.rewarded
        if task.reward_window is not None:
            complete = answered = last.decided[0] + task.reward_window
        found.append(Timed(sent.subject.edge, complete, answered, sent.time))
    return found


def judged(timed: Sequence[Timed]) -> Times:
    """The three tests; a test that there is too little for is left out."""
    times = Times([each.delay for each in timed])
    if not timed:
        return times
    rng = np.random.default_rng(_SEED)
    if len(timed) > MOST_MESSAGES:
        timed = [timed[place] for place in sorted(rng.choice(len(timed), MOST_MESSAGES, replace=False))]
    real = np.array([[each.delay for each in timed]])
    spans = np.array([each.answered - each.complete for each in timed])
    means, spreads, within = [], [], []
    for _ in range(PLAYS // _BLOCK):
        played = _play(timed, rng)
        means.append(played.mean(axis=1))
        spreads.append(played.std(axis=1))
        within.append((played < spans).sum(axis=1))
    by_mean, by_spread, by_within = (np.concatenate(each) for each in (means, spreads, within))
    times.mean_by_ticks = float(by_mean.mean())
    soon = int((real < spans).sum())
    times.p_values["too soon"] = _rank(by_mean <= real.mean())
    if soon or spans.any():
        times.p_values["within the request"] = _rank(by_within >= soon)
    if len(timed) >= LEAST_FOR_SPREAD:
        times.p_values["too regular"] = _rank(by_spread <= real.std())
    told = {
        "too soon": f"on average {real.mean():.3f} s after the event that completed them; by ticks alone it were "
        f"{times.mean_by_ticks:.3f} s",
        "within the request": f"{soon} of {len(timed)} left before the request that completed them was answered",
        "too regular": f"they follow the event that completed them within ± {real.std():.3f} s; by ticks alone it were "
        f"± {float(by_spread.mean()):.3f} s, so their times tell its time",
    }
    times.findings = [
        Finding("time", "the times of messages", f"{name}: {told[name]} (p = {value:.5f})")
        for name, value in times.p_values.items()
        if value <= FALSE_ALARM
    ]
    return times


def _play(timed: Sequence[Timed], rng: np.random.Generator) -> NDArray[np.float64]:
    """Delays by ticks alone, a row for each play: kept at the next tick of one clock, sent at the next of another."""
    delays = np.empty((_BLOCK, len(timed)))
    for edge in {each.edge for each in timed}:
        places = [place for place, each in enumerate(timed) if each.edge == edge]
        complete = [timed[place].complete for place in places]
        begin = min(complete) - 5 * TICK
        ticks = int((max(complete) - begin) / (0.5 * TICK)) + 12
        long = 2 * TICK * (ticks + 1)  # longer than a row: so all rows, one after the other, are in order
        rows = long * np.arange(_BLOCK)
        keep, send = (np.cumsum(TICK * (0.5 + rng.random((_BLOCK, ticks))), axis=1) for _ in range(2))
        keep, send = ((each + rows[:, None]).ravel() for each in (keep, send))
        for place, moment in zip(places, complete, strict=True):
            kept = keep[np.searchsorted(keep, rows + (moment - begin))]
            delays[:, place] = send[np.searchsorted(send, kept)] - rows - (moment - begin)
    return delays


def _rank(as_extreme: NDArray[np.bool_]) -> float:
    return (1 + int(as_extreme.sum())) / (1 + len(as_extreme))
