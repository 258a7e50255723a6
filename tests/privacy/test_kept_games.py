"""What was measured and kept, and is shown in docs/adversary.md, is nowhere above what is promised."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.privacy import tables
from benchmarks.privacy.measure import RESULTS

KEPT: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_no_inference_is_above_its_bound() -> None:
    found = tables.rewards(KEPT)
    assert {(each.protocol, each.budget) for each in found} == {
        ("dme", None), ("edme", None), ("tally", None), ("tally", 5), ("tally", 1), ("tally", 0.1),
    }  # fmt: skip
    assert not [each for each in found if each.above]
    assert "nothing is above its bound" in " ".join(tables.tables(KEPT)["seen"].split())


def test_messages_tell_less_than_events_of_all_players() -> None:
    """From all events the best arm is told at least as often as from all messages, on the same runs."""
    for name, row in KEPT.items():
        if name != "games":
            assert row["raw_all"]["count"] >= row["all"]["count"]
            assert row["one"]["count"] <= row["all"]["count"]
