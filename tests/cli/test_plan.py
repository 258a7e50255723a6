"""`outvote plan` as an experimenter meets it."""

from __future__ import annotations

import json

import pytest

from outvote.cli.main import main

QUICK = ["plan", "--variants", "3", "--sites", "6", "--difference", ".3"]


def test_the_plan_is_a_table_a_promise_and_a_recommendation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main([*QUICK, "--traffic", "1e4"]) == 0
    out = capsys.readouterr().out
    assert "3 variants, 6 sites (uniform, 6 active), δ 0.05" in out
    assert "→  tally, floor 3" in out
    assert "Recommended: tally, floor 3: " in out
    assert out.count("An eavesdropper sees") == 6


def test_the_json_has_inputs_and_one_object_for_each_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    told = json.loads(out)
    assert told["inputs"]["sites"] == 6
    wanted = {
        "protocol", "quorum", "eta", "events_per_site", "events", "days", "bits", "guarantee", "adversary_sees",
        "recommended",
    }  # fmt: skip
    assert all(wanted <= set(each) for each in told["protocols"])
    assert sum(each["recommended"] for each in told["protocols"]) == 1


def test_bad_input_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """`tests/planner` has all that is refused."""
    assert main([*QUICK, "--traffic", "0"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("outvote plan: error: traffic must be a number of events a day above 0, got 0")
    assert err.count("\n") == 1
