"""What many runs come to, from results by hand."""

from __future__ import annotations

from typing import Any

import pytest

from faults.reading import Finding
from faults.report import at_least, is_well, quantiles, summary, text


def a_result(**changed: Any) -> dict[str, Any]:
    one = {
        "seed": 1,
        "seconds": 5.0,
        "findings": [],
        "faults": {"kill-edge": 2},
        "operations": {"stop-task": 1},
        "operations_acknowledged": 1,
        "operations_repeated": 0,
        "decided": [["tally", "0.1", False]],
        "records": 10,
        "acknowledged": 11,
        "events": 100,
        "touched": 0,
        "refused_stores": 0,
        "settled": 1.0,
        "recoveries": [["an edge", 0.5]],
    }
    return {**one, **changed}


def test_a_report_counts_faults_and_names_the_seed_of_an_anomaly() -> None:
    runs = [a_result(), a_result(seed=2, findings=[list(Finding("lost", "one is gone"))])]
    report = summary(runs, first_seed=1, engine="2.12.0")
    assert report["faults"] == {"kill-edge": 4}
    assert report["anomalies"]["lost"] == 1
    assert "- seed 2: lost: one is gone" in text(report)
    assert not is_well(report)
    assert is_well(summary(runs[:1], first_seed=1, engine="2.12.0"))


def test_more_wrong_winners_than_delta_allows_are_no_good_report() -> None:
    """Of 20 runs with δ = 0.1, 8 or more are wrong with probability 4.2e-4 only."""
    assert at_least(8, 20, 0.1) == pytest.approx(4.16e-4, rel=0.01)
    runs = [a_result(decided=[["tally", "0.1", wrong < 8]]) for wrong in range(20)]
    assert not is_well(summary(runs, first_seed=1, engine=""))
    runs = [a_result(decided=[["tally", "0.1", wrong < 4]]) for wrong in range(20)]
    assert is_well(summary(runs, first_seed=1, engine=""))


def test_quantiles_are_values_that_were_measured() -> None:
    assert quantiles([3.0, 1.0, 2.0]) == {"count": 3, "median": 2.0, "p95": 3.0, "max": 3.0}
    assert quantiles([]) == {"count": 0}
