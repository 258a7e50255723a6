"""`outvote plan` as an experimenter meets it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from outvote.cli import plan as command
from outvote.cli.main import main
from outvote.planner import plan
from outvote.planner.estimate import Estimate
from outvote.planner.question import ask

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


def test_no_number_and_no_word_is_cut_on_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan.make(ask(variants=3, sites=6, difference=0.3, traffic=1))
    large = Estimate(814_678_412_345, 814_620_612_345, 814_730_412_345, 12_833_123, 993, 0, 20, "simulated, 20 trials")
    options = [replace(each, estimate=large, days=1e9) for each in made.options]
    monkeypatch.setenv("COLUMNS", "80")
    command.show(replace(made, options=options))
    out = capsys.readouterr().out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("814,678,412,345") == out.count("12,833,123 + ") == len(options)
    assert len(re.findall(r"need\s+814,620,612,345\s+to\s+814,730,412,345\s+events", out)) == len(options)


def test_numbers_are_read_as_people_write_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "tasks", lambda question: [])
    monkeypatch.setattr(plan, "left_out", lambda question: [])
    line = "plan --sites 2 --delta 5% --traffic 50,000 --activity 900,400 --means 10%,.1e0,.2 --json"
    assert main(line.split()) == 0
    inputs = json.loads(capsys.readouterr().out)["inputs"]
    assert (inputs["traffic"], inputs["delta"], inputs["means"]) == (50_000, 0.05, [0.1, 0.1, 0.2])
    assert inputs["active_sites"] == 2


def test_bad_input_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """`tests/planner` has all that is refused."""
    assert main([*QUICK, "--traffic", "0"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("outvote plan: error: traffic must be a number of events a day above 0, got 0")
    assert err.count("\n") == 1
