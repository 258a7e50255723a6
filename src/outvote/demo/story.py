"""The demo's fleet: a dozen sites choose a button together. Simulated: every event and message passes in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from outvote.simulation import Result, simulate

ARMS = ("classic", "bold", "green", "minimal", "seasonal")
MEANS = (0.35, 0.2, 0.62, 0.48, 0.1)
EPSILON = {"dme": 0.4, "edme": 0.4, "tally": 0.0}
DELTA = 0.05
EVENTS = {"dme": 600_000, "edme": 600_000, "tally": 60_000}
"""Enough for any fleet of the demo's sizes to finish."""


@dataclass(frozen=True)
class Elimination:
    """An arm fell."""

    arm: str
    after_events: int


@dataclass(frozen=True)
class Story:
    """What happened, in order."""

    result: Result
    eliminations: list[Elimination]
    winner: str | None
    events: int

    def to_json(self) -> dict[str, Any]:
        bits = self.result.bits
        return {
            "protocol": self.result.protocol,
            "edges": self.result.players,
            "arms": self.result.arms,
            "means": self.result.means,
            "winner": self.winner,
            "correct": self.result.correct == 1,
            "events": self.events,
            "eliminations": [{"arm": each.arm, "after_events": each.after_events} for each in self.eliminations],
            "messages": {"up": self.result.messages.up, "down": self.result.messages.down},
            "bits": {"up": bits.up, "down": bits.down, "total": bits.total, "bound": bits.bound},
            "wire_bytes": None,
            "simulated": True,
            "seed": self.result.seed,
            "seconds": self.result.seconds,
        }


def tell(*, protocol: str, edges: int, seed: int, progress: Callable[[float], None]) -> Story:
    """Run one simulated fleet to its end."""
    result = simulate(
        protocol=protocol,
        arms=ARMS,
        means=MEANS,
        players=edges,
        epsilon=EPSILON[protocol],
        delta=DELTA,
        horizon=EVENTS[protocol],
        engine="step",  # the very objects that a real site runs
        trials=1,
        seed=seed,
        progress=progress,
    )
    fallen = sorted((int(each.mean), result.arms[each.arm]) for each in result.eliminations if each.mean is not None)
    standing = set(result.arms) - {arm for _, arm in fallen}
    return Story(
        result=result,
        eliminations=[Elimination(arm, draw) for draw, arm in fallen],
        winner=standing.pop() if len(standing) == 1 else None,
        events=result.horizon if result.finished.mean is None else int(result.finished.mean),
    )
