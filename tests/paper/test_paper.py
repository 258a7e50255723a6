"""`outvote paper`: what it writes, what it refuses, and how it goes on after a kill."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.processes import gone, until
from outvote.cli.main import main
from outvote.paper.verdicts import DOES_NOT, HOLDS, IN_PART

FIGURES = [f"figure-{figure}{panel}" for figure in (2, 3, 4, 5, 6) for panel in "ab"]
AGAIN = [f"tally-{name}" for name in FIGURES]
"""The same with Tally."""
FRONTIERS = [f"frontier-{figure}" for figure in (2, 3, 4, 5)]
FIELDS = ["id", "place", "statement", "measured", "low", "high", "verdict", "why"]


CUT = ["--trials", "30", "--figures", "2", "--horizon", "3e5"]
"""What is asked of runs that are cut short."""


def written_once(folder: Path, *options: str) -> Path:
    """The folder of a run that all processes of these tests share: the first that needs it runs it."""
    done = folder / "done"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            assert main(["paper", "--out", str(folder), *options]) == 0
            done.touch()
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of the tests, whichever of its processes asks."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    """The whole paper, as it is documented: 100 trials."""
    return written_once(shared / "paper", "--json", str(shared / "paper" / "claims-too.json"))


@pytest.fixture(scope="module")
def whole(shared: Path) -> Path:
    """What a run that is not cut short writes."""
    return written_once(shared / "paper-whole", *CUT)


def test_every_panel_is_there_as_png_and_svg(folder: Path) -> None:
    for name in FIGURES + AGAIN + FRONTIERS:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text()
    assert not list(folder.rglob("*.part"))


def test_every_curve_has_its_numbers(folder: Path) -> None:
    for name in FIGURES + AGAIN + FRONTIERS:
        curves = sorted(folder.glob(f"{name}-*.csv"))
        own = 3 if "6" in name else 4
        assert len(curves) == (8 if name in FRONTIERS else own + 1 if name in AGAIN else own)
        for path in curves:
            rows = list(csv.DictReader(path.read_text().splitlines()))
            assert list(rows[0]) == ["x", "mean", "low", "high"]
            for row in rows:
                assert float(row["low"]) <= float(row["mean"]) + 1e-6
                assert float(row["mean"]) <= float(row["high"]) + 1e-6
    over_players = list(csv.DictReader((folder / "figure-2a-dme.csv").read_text().splitlines()))
    assert [int(float(row["x"])) for row in over_players] == [2**i for i in range(1, 11)]


def numbers(path: Path) -> list[dict[str, float]]:
    return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(path.read_text().splitlines())]


def test_tally_is_below_everything_that_counts_its_bits(folder: Path) -> None:
    """Seed 0, 100 trials: the intervals are far apart, so another seed would say the same."""
    for figure in (2, 3, 4, 5):
        tally = numbers(folder / f"frontier-{figure}-tally.csv")
        assert len(tally) == 4  # floors
        assert [row["x"] for row in tally] == sorted(
            (row["x"] for row in tally), reverse=True
        )  # higher floors, fewer bits
        for rival in ("me-local", "dme", "edme", "me-unlimited"):
            (other,) = numbers(folder / f"frontier-{figure}-{rival}.csv")
            assert tally[0]["high"] < other["low"] / 10
        (ucb,) = numbers(folder / f"frontier-{figure}-ucb-unlimited.csv")
        assert tally[0]["high"] < ucb["low"]
        assert tally[0]["x"] < ucb["x"] / 10_000


def test_claims_are_many_and_have_their_fields(folder: Path) -> None:
    claims = json.loads((folder / "claims.json").read_text())
    assert len(claims) >= 18
    assert len({claim["id"] for claim in claims}) == len(claims)
    for claim in claims:
        assert list(claim) == FIELDS
        assert claim["verdict"] in (HOLDS, IN_PART, DOES_NOT)
        assert claim["low"] <= claim["measured"] <= claim["high"]
        assert claim["why"]
    assert json.loads((folder / "claims-too.json").read_text())["claims"] == claims


def test_the_documents_tell_what_a_run_gives(folder: Path) -> None:
    """The same seed and trials: the same verdicts, and numbers equal but for the last digits of another machine."""
    documented = json.loads((Path(__file__).parents[2] / "docs" / "claims.json").read_text())
    fresh = json.loads((folder / "claims.json").read_text())
    assert [(c["id"], c["verdict"]) for c in fresh] == [(c["id"], c["verdict"]) for c in documented]
    assert [c["measured"] for c in fresh] == pytest.approx([c["measured"] for c in documented], rel=0.02)


def test_the_report_needs_nothing_from_outside(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert page.count("<figure>") == len(FIGURES + AGAIN + FRONTIERS)
    assert page.count('<td class="verdict') >= 18
    assert not re.search(r'(?:src|href)="(?!#)', page.replace('xlink:href="#', ""))
    assert "@import" not in page
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


def test_one_figure_can_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "--out", str(tmp_path / "new"), "--trials", "3", "--figures", "6", "--horizon", "2e5"]) == 0
    written = {path.name for path in (tmp_path / "new").iterdir()}
    assert {"figure-6a.png", "figure-6b.svg", "report.html", "cells"} <= written
    assert "claims.json" not in written
    assert not any("figure-2" in name for name in written)
    assert {"tally-figure-6a.png", "tally-figure-6b-tally.csv"} <= written
    assert "report.html" in capsys.readouterr().out.replace("\n", "")  # a long path is broken where the line ends


BAD_INPUT = {
    "--trials 0": ("trials", "0", "at least 1"),
    "--horizon -5": ("horizon", "-5", "at least 1"),
    "--figures 7": ("figures", "2, 3, 4, 5, 6", "7"),
    "--figures 2.5": ("figures", "2.5"),
    "--figures two": ("'two'", "number"),
    "--workers 0": ("workers", "0", "at least 1"),
    "--seed -1": ("seed", "-1"),
    "--out taken/paper": ("taken/paper", "cannot be written"),
    "--json nowhere/claims.json": ("the JSON file", "existing folder"),
    "--dask 127.0.0.1:9": ("dask", "none answers at", "127.0.0.1:9"),
}


@pytest.mark.parametrize("arguments", BAD_INPUT)
def test_bad_input_is_refused_at_once(
    arguments: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("outvote.simulation.executors.DASK_PATIENCE", 0.3)
    (tmp_path / "taken").write_text("a file where a folder should be")
    try:
        code: object = main(["paper", *arguments.split()])
    except SystemExit as stop:
        code = stop.code
    err = capsys.readouterr().err
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith("outvote paper: error: ")
    for part in BAD_INPUT[arguments]:
        assert part in err


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_was_cut_short_goes_on_where_it_left_off(how: signal.Signals, whole: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    command = [sys.executable, "-m", "outvote.cli.main", "paper", "--out", str(cut), *CUT]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:

        def some_are_there() -> bool:
            assert process.poll() is None
            return len(list(cut.glob("cells/*.json"))) >= 3

        until(some_are_there, "some cells are done", within=60)
        workers = children_of(process.pid)
        assert len(workers) >= 2
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert err == "outvote paper: interrupted, what is finished is kept: go on with --resume\n"
    until(lambda: all(map(gone, workers)), "nobody is left behind", within=60)
    done = set(cut.glob("cells/*.json"))
    times = {path: path.stat().st_mtime_ns for path in done}
    assert main(["paper", "--out", str(cut), *CUT, "--resume"]) == 0
    assert {path: path.stat().st_mtime_ns for path in done} == times  # not run again
    for name in ("figure-2a-dme.csv", "figure-2b-me-local.csv", "figure-2b-ucb-unlimited.csv"):
        assert (cut / name).read_text() == (whole / name).read_text()
