"""The options about liars of `outvote simulate`, as a user meets them; `tests/planner` has those of a plan."""

from __future__ import annotations

import json

import pytest

from outvote.cli.main import main


def test_a_simulation_says_who_lies_and_how_many_are_tolerated(capsys: pytest.CaptureFixture[str]) -> None:
    line = "simulate --protocol tally --means .8,.2 --players 4 --horizon 1000 --trials 2 --liars 1 --lie flood"
    assert main([*line.split(), "--tolerate", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 lie: flood" in shown
    assert "1 tolerated" in shown
    assert "engine core" in shown
    assert main([*line.split(), "--tolerate", "1", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tolerate"], found["liars"], found["lie"]) == (1, 1, "flood")
