"""`outvote simulate` as a user meets it: what it prints, what it refuses, what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from outvote.cli.main import main

SMALL = ["simulate", "--means", ".9,.5,.1", "--players", "3", "--epsilon", ".9", "--delta", ".5"]
SHORT = [*SMALL, "--horizon", "5e3", "--trials", "4", "--grid", "10"]
SECTION_12 = (
    "protocol means players activity active_players epsilon delta horizon trials seed engine draws regret bits "
    "messages first_elimination finished all_finished solved correct safe best lost undecided seconds "
    "spread site_spread visits visitor_spread drift_to cycle jumps swap drop per_day"
)


def json_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    record: dict[str, Any] = json.loads(out)
    return record


def test_json_has_every_documented_field(capsys: pytest.CaptureFixture[str]) -> None:
    record = json_of(capsys, *SHORT)
    assert set(SECTION_12.split()) <= set(record)
    assert record["draws"] == [500 * i for i in range(1, 11)]
    for side in ("mean", "low", "high"):
        assert len(record["regret"][side]) == 10
    assert record["regret"]["low"][-1] <= record["regret"]["mean"][-1] <= record["regret"]["high"][-1]
    assert record["bits"]["up"] + record["bits"]["down"] == record["bits"]["total"] <= record["bits"]["bound"]
    assert record["horizon"] == 5000
    assert "per_trial" not in record


def test_per_trial_numbers_average_to_the_means(capsys: pytest.CaptureFixture[str]) -> None:
    record = json_of(capsys, *SHORT, "--per-trial")
    trials = record["per_trial"]
    assert [len(values) for values in trials.values()] == [4] * 4
    assert sum(trials["regret"]) / 4 == pytest.approx(record["regret"]["mean"][-1])
    assert sum(trials["bits"]) / 4 == record["bits"]["total"]


def test_the_same_seed_gives_the_same_bytes_in_another_process() -> None:
    """One process runs every protocol, for most of its time goes by before the first of them."""
    protocols = ("dme", "edme", "me-local", "me-unlimited", "ucb-unlimited", "tally")
    commands = [[*SHORT, "--protocol", protocol, "--json", "--per-trial"] for protocol in protocols]
    code = f"from outvote.cli.main import main\nfor each in {commands!r}: assert main(each) == 0"
    runs = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        runs.append([text.rpartition('"seconds"')[0] for text in done.stdout.splitlines()])
    assert runs[0] == runs[1]
    assert len(runs[0]) == len(protocols)
    assert all('"regret"' in text for text in runs[0])


def test_another_seed_gives_another_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert json_of(capsys, *SHORT)["regret"] != json_of(capsys, *SHORT, "--seed", "1")["regret"]


def test_unlimited_communication_costs_what_the_paper_says(capsys: pytest.CaptureFixture[str]) -> None:
    record = json_of(capsys, "simulate", "--protocol", "me-unlimited", "--horizon", "1e3", "--trials", "1")
    assert record["bits"]["total"] == 64 * 1000 * 4
    assert record["regret"]["low"] == [None] * 200


def test_ucb_eliminates_nothing_and_never_finishes(capsys: pytest.CaptureFixture[str]) -> None:
    record = json_of(capsys, *SHORT, "--protocol", "ucb-unlimited")
    for moment in ("first_elimination", "finished", "all_finished"):
        assert record[moment] == {"mean": None, "share": 0.0}
    assert (record["correct"], record["safe"], record["best"]) == (1, 1, 0)


def test_a_table_for_people_and_files_for_machines(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    plot, record = tmp_path / "regret.png", tmp_path / "result.json"
    assert main([*SHORT, "--plot", str(plot), "--json", str(record)]) == 0
    out = capsys.readouterr().out
    assert "regret at the horizon" in out
    assert "seed 0" in out
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert json.loads(record.read_text())["trials"] == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["regret.png", "result.json"]


def test_a_trace_says_who_is_active(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "who.txt"
    trace.write_text("0\n1\n2\n" * 2000)
    record = json_of(capsys, *SHORT, "--activity", str(trace), "--horizon", "6e3")
    assert record["activity"] == f"trace {trace}"
    assert record["finished"]["share"] == 1


WORLD = (
    "--site-spread .6 --spread .1 --visits 5 --visitor-spread .5 --cycle .05,2e3 --jumps .05,700 --swap 1e3 --drop .01 "
    "--per-day 200"
)


def test_a_world_in_which_nothing_is_alike_is_shown_and_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    record = tmp_path / "result.json"
    line = f"simulate --protocol tally --means .9,.5,.1 --players 3 --horizon 5e3 --trials 4 {WORLD} --json {record}"
    assert main(line.split()) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for part in (
        "spread 0.6 by site, spread 0.1 by arm at a site, spread 0.5 by arm for a visitor, 5 visits",
        "cycle of 0.05 in 2,000 draws, jumps of 0.05 in 700 draws, swap at draw 1,000",
        "die at 0.01 of decisions, 200 decisions a day",
        "engine core",
    ):
        assert part in shown
    found = json.loads(record.read_text())
    first = found["first_elimination"]["mean"]
    assert f"first elimination draw {first:,.0f}, day {first / 600:,.1f}" in shown
    assert found["cycle"] == [0.05, 2000]
    assert found["jumps"] == [0.05, 700]
    assert (found["swap"], found["visits"], found["per_day"], found["drop"]) == (1000, 5, 200, 0.01)


def test_the_table_says_that_the_best_arm_was_lost(capsys: pytest.CaptureFixture[str]) -> None:
    line = "simulate --protocol me-unlimited --means 1,0 --players 2 --epsilon .8 --delta .5 --horizon 2e3 --trials 2"
    assert main([*line.split(), "--swap", "2e3"]) == 0
    assert "every best arm eliminated 100.0% of trials" in " ".join(capsys.readouterr().out.split())
    assert main(line.split()) == 0
    assert "every best arm" not in capsys.readouterr().out


def test_help_names_every_part_of_a_world(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["simulate", "--help"]) == 0
    shown = capsys.readouterr().out
    for option in (
        "--site-spread SD", "--spread SD", "--visits V", "--visitor-spread SD", "--cycle AMPLITUDE,PERIOD",
        "--jumps SIZE,PERIOD", "--swap DRAW", "--drop SHARE", "--per-day N",
    ):  # fmt: skip
        assert option in shown


BAD_INPUT = {
    "--means .5,x": ("'x'", "number"),
    "--arms 4": ("4 arms", "3"),
    "--problem 1": ("problem or means", "both"),
    "--epsilon 0": ("epsilon", "0", "above 0 and below 1"),
    "--players many": ("--players", "'many'", "number"),
    "--protocol tali": ("protocol 'tali' is unknown", "'dme', 'edme'"),
    "--protocol dme --instances 4": ("instances", "edme"),
    "--quorum half": ("'half'", "'paper', 'certified'"),
    "--activity sometimes": ("'sometimes'", "uniform"),
    "--rewards cauchy": ("'cauchy'", "'bernoulli'"),
    "--rewards beta:0": ("0", "above 0"),
    "--site-spread -1": ("site_spread", "at least 0", "-1"),
    "--site-spread nan": ("--site-spread", "'nan'"),
    "--spread x": ("--spread", "'x'"),
    "--visits 0": ("visits", "at least 1", "0"),
    "--visitor-spread 1": ("visitor_spread", "needs visits"),
    "--cycle .1": ("cycle", "like .1,2000", "0.1"),
    "--cycle .5,100": ("cycle", "from 0 to 1", "-0.4 to 1.4"),
    "--cycle .05,100,3": ("cycle", "like .1,2000"),
    "--jumps .2,100": ("jumps", "from 0 to 1", "1.1"),
    "--jumps .05,0": ("jumps", "whole number of draws", "0"),
    "--swap 0": ("swap", "from 1 on", "0"),
    "--drop 1": ("drop", "below 1"),
    "--drop -.1": ("drop", "at least 0", "-0.1"),
    "--drop .1 --protocol me-local": ("drop", "'me-local'"),
    "--per-day 0": ("per_day", "at least 0.001", "0"),
    "--engine fast --swap 10": ("'fast'", "means that drift"),
    "--horizon 0": ("horizon", "0", "at least 1"),
    "--horizon -5": ("horizon", "-5"),
    "--trials 0": ("trials", "0", "at least 1"),
    "--trials 1.5": ("trials", "1.5", "whole number"),
    "--seed -1": ("seed", "-1", "at least 0"),
    "--grid 0": ("grid", "0", "at least 1"),
    "--engine warp": ("'warp'", "'core'"),
    "--workers 0": ("workers", "0", "at least 1"),
    "--dask nowhere:1": ("dask", "none answers at", "nowhere:1"),
    "--plot nowhere/x.png": ("the plot", "existing folder"),
    "--plot regret.gif": ("'.png'", "regret.gif"),
    "--json nowhere/x.json": ("the JSON file", "existing folder"),
    "--colour red": ("--colour",),
}


def exit_code(arguments: list[str]) -> object:
    """What the shell sees; argparse leaves by SystemExit."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize("arguments", BAD_INPUT)
def test_bad_input_is_refused_in_one_line(
    arguments: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = exit_code([*SMALL, *arguments.split()])
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("outvote simulate: error: ")
    for part in BAD_INPUT[arguments]:
        assert part in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_leaves_nothing_behind(workers: str, tmp_path: Path) -> None:
    record = tmp_path / "result.json"
    arguments = [*SMALL, "--engine", "core", "--horizon", "1e8", "--workers", workers, "--json", str(record)]
    code = (
        "import os, sys; from outvote.cli.main import main; import outvote.simulation.stepwise as stepwise\n"
        "run = stepwise.run_trial\n"
        "def announced(settings, *rest):\n"
        "    if settings.horizon > 1: os.write(1, b'running %d\\n' % os.getpid())\n"
        "    return run(settings, *rest)\n"
        "stepwise.run_trial = announced\n"
        f"sys.exit(main({arguments!r}))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        running, worker = process.stdout.readline().split()
        assert running == "running"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "outvote simulate: interrupted, nothing was written\n"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(worker), 0)
