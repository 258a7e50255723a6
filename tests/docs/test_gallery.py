"""The programs in examples/, run as a new user would: small sizes, in a folder of their own, in processes of their own.

What is checked is what their texts promise, not their numbers.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
DEADLINE = 100.0


def run(folder: Path, name: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *options],
        cwd=folder,
        env={**os.environ, "COLUMNS": "120", "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


def printed(folder: Path, name: str, *options: str) -> str:
    """What a run prints that goes well; its picture is then where it says."""
    done = run(folder, name, *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert f"picture: {name}.png" in done.stdout
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return done.stdout


def test_protocols_are_compared(tmp_path: Path) -> None:
    told = printed(tmp_path, "compare_protocols", "--players", "4", "--horizon", "3e4", "--trials", "5")
    rows = re.findall(r"^(\S+) +([\d,]+) ± [\d,]+ +\S.* ([\d,]+)$", told, re.MULTILINE)
    regret = {name: int(regret.replace(",", "")) for name, regret, _ in rows}
    bits = {name: int(bits.replace(",", "")) for name, _, bits in rows}
    assert list(regret) == ["tally", "dme", "edme", "me-local", "me-unlimited", "ucb-unlimited"]
    assert regret["tally"] < regret["dme"]
    assert bits["me-local"] == 0
    assert 0 < bits["tally"] < bits["ucb-unlimited"]


def test_a_trace_is_replayed(tmp_path: Path) -> None:
    told = printed(tmp_path, "replay_trace", "--means", ".8,.2,.1", "--events", "600", "--trials", "5")
    assert "the winner is arm A" in told
    assert len((tmp_path / "trace.csv").read_text().splitlines()) == 600
    events = [int(number) for number in re.findall(r"^ +\w+: +(\d+) events", told, re.MULTILINE)]
    assert sum(events) == 600
    assert re.search(r"^ +trace: decided in \d+% of 5 trials", told, re.MULTILINE)
    assert re.search(r"^ +uniform: decided in \d+% of 5 trials", told, re.MULTILINE)


def test_an_idea_is_measured_and_the_forbidden_one_is_biased(tmp_path: Path) -> None:
    """The seeds are fixed. Fair is within four standard errors (one in 16,000 by chance); the bias is above two."""
    told = printed(tmp_path, "arm_selection", "--means", ".6,.3", "--players", "6", "--trials", "40")
    rows = re.findall(r"^(\w+) .*%.* (\d\.\d+) ± (\d\.\d+)$", told, re.MULTILINE)
    believed = {name: (float(mean), float(half)) for name, mean, half in rows}
    assert list(believed) == ["stock", "spread", "impatient"]
    for name in ("stock", "spread"):
        mean, half = believed[name]
        assert abs(mean - 0.3) < 2 * half
    mean, half = believed["impatient"]
    assert mean - 0.3 > half
    assert re.search(r"spread against stock.*: (no difference that one can tell|it helps|it is worse)\.", told)


def test_players_are_embedded_die_and_go_on(tmp_path: Path) -> None:
    told = printed(tmp_path, "embed_a_player", "--sites", "paris,lima")
    assert "green wins" in told
    for name in ("paris", "server"):
        assert f"{name} dies and goes on from its snapshot" in told
    for bits, events in re.findall(r", (\d+) bits in all, about (\d+) events", told):
        assert int(bits) < int(events)


def test_the_window_decides_which_checkout_is_best(tmp_path: Path) -> None:
    told = printed(tmp_path, "delayed_conversions", "--rate", "100")
    assert re.search(r"^within-4-s: .*: invoice$", told, re.MULTILINE)
    assert re.search(r"^within-1-s: .*: card$", told, re.MULTILINE)
    counts = re.findall(r"all together (\d+) of (\d+)", told)
    assert len(counts) == 6
    assert all(
        int(successes) < int(trials) for successes, trials in counts
    )  # who does not buy counts, and never says so


WRONG: dict[str, tuple[list[str], str]] = {
    "compare_protocols": (["--means", ".7,two"], "--means must be numbers like .7,.5,.3, got '.7,two'"),
    "replay_trace": (["--trace", "none.csv"], "none.csv or an option cannot be used"),
    "arm_selection": (["--trials", "19"], "--trials must be at least 20"),
    "embed_a_player": (["--sites", "paris,paris"], "players must be different from each other, got 'paris' twice"),
    "delayed_conversions": (["--windows", "0"], "reward_window must be from 1 second to 7 days"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_cannot_be_is_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    options, reason = WRONG[name]
    done = run(tmp_path, name, *options)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.png"))
