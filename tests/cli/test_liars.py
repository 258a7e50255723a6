"""The options about liars of `outvote plan`, `outvote simulate` and `outvote task create`, as a user meets them."""

from __future__ import annotations

import json

import pytest

from outvote.cli.main import main
from outvote.planner import tally


def test_a_simulation_says_who_lies_and_how_many_are_tolerated(capsys: pytest.CaptureFixture[str]) -> None:
    line = "simulate --protocol tally --means .8,.2 --players 4 --horizon 1000 --trials 2 --liars 1 --lie flood"
    assert main([*line.split(), "--tolerate", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 lie (flood), 1 tolerated" in shown
    assert "engine core" in shown
    assert main([*line.split(), "--tolerate", "1", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tolerate"], found["liars"], found["lie"]) == (1, 1, "flood")


def test_a_plan_says_that_its_guarantee_holds_with_liars(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "GUARDED_WORK", 1e4)
    line = "plan --means .9,.1 --sites 6 --epsilon .7 --tolerate 1 --json -"
    assert main(line.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"]["tolerate"] == 1
    for each in found["protocols"]:
        assert each["tolerate"] == 1
        assert each["guarantee"].endswith("it holds even if 1 of 6 sites lie")
    assert found["protocols"][0]["votes"] == [4], "three of six, and one"
