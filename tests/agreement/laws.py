"""Two-sample tests between engines: do their trials have the same law?

A comparison raises an alarm at p < `ALARM`; a file that makes fewer than 3000 of them gives a false alarm with
probability below 1e-4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import stats

from outvote.simulation.trials import Trial

ALARM = 1e-4 / 3000
LATER = 2**62
"""Stands for a moment that was not reached."""


def samples(trials: Sequence[Trial]) -> dict[str, list[float]]:
    """The numbers whose laws are compared, one list for each."""
    points = range(len(trials[0].regret))
    found: dict[str, list[float]] = {
        f"regret at point {point}": [round(trial.regret[point], 6) for trial in trials] for point in points
    }
    for name in ("first_elimination", "finished", "all_finished", "solved"):
        found[name] = [value if (value := getattr(trial, name)) is not None else LATER for trial in trials]
    found["up bits"] = [trial.costs.up_bits for trial in trials]
    found["down bits"] = [trial.costs.down_bits for trial in trials]
    found["correct"] = [trial.correct for trial in trials]
    found["safe"] = [trial.safe for trial in trials]
    found["best"] = [trial.best for trial in trials]
    found["held"] = [trial.held for trial in trials]
    found["up messages"] = [trial.costs.up_messages for trial in trials]
    found["last elimination"] = [trial.eliminations[-1][1] if trial.eliminations else LATER for trial in trials]
    found["eliminations"] = [len(trial.eliminations) for trial in trials]
    return found


def p_values(left: Sequence[Trial], right: Sequence[Trial]) -> dict[str, float]:
    """Kolmogorov and Smirnov's test for numbers, a chi-square test for the order in which arms fell."""
    theirs = samples(right)
    found = {}
    for name, ours in samples(left).items():
        other = theirs[name]
        same = ours == other or len(set(ours) | set(other)) == 1
        found[name] = 1.0 if same else float(stats.ks_2samp(ours, other, method="asymp").pvalue)
    found["which arms fell, in order"] = order_p_value(left, right)
    return found


def order_p_value(left: Sequence[Trial], right: Sequence[Trial]) -> float:
    orders = [Counter(tuple(arm for arm, _ in trial.eliminations[:4]) for trial in trials) for trials in (left, right)]
    frequent = [order for order, count in (orders[0] + orders[1]).items() if count >= 20]
    table = [[each[order] for order in frequent] + [sum(each.values())] for each in orders]
    for row in table:
        row[-1] -= sum(row[:-1])
    kept = [column for column in zip(*table, strict=True) if sum(column) >= 20]
    if len(kept) < 2:
        return 1.0
    return float(stats.chi2_contingency(np.array(kept).T).pvalue)


def assert_same_law(left: Sequence[Trial], right: Sequence[Trial]) -> None:
    suspicious = {name: p for name, p in p_values(left, right).items() if p < ALARM}
    assert not suspicious


def seeds(count: int, key: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(key).spawn(count)
