"""`outvote demo`: real processes find the best variant, tell what crossed the network, and leave nothing behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.processes import gone, until
from outvote.cli.main import main
from outvote.demo.setting import choose

DEADLINE = 60.0
DEMO = [sys.executable, "-m", "outvote.cli.main", "demo"]


def told(folder: Path, *arguments: str) -> dict[str, Any]:
    """What the demo says to programs: one small object and nothing else; it leaves no file behind."""
    run = subprocess.run(
        [*DEMO, *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env={**os.environ, "TMPDIR": str(folder)},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.count("\n") == 1
    assert len(run.stdout) < 4000
    assert not list(folder.iterdir())
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


@pytest.mark.parametrize(
    ("protocol", "arguments"), [("tally", ["--rate", "500"]), ("dme", ["--sites", "3"]), ("edme", ["--sites", "2"])]
)
def test_every_protocol_ends_with_the_best_variant_and_accounts_for_its_bits(
    protocol: str, arguments: list[str], tmp_path: Path
) -> None:
    story = told(tmp_path, "--protocol", protocol, "--reward-window", "1s", *arguments)
    assert (story["protocol"], story["correct"]) == (protocol, True)
    assert story["winner"] == story["variants"][story["means"].index(max(story["means"]))]
    assert {each["variant"] for each in story["eliminations"]} == set(story["variants"]) - {story["winner"]}
    falls = [each["after_events"] for each in story["eliminations"]]
    assert falls == sorted(falls)
    assert 0 < falls[0] <= falls[-1] <= story["events"]
    bits, messages = story["bits"], story["messages"]
    assert bits["up"] + bits["down"] == bits["total"]
    if protocol == "tally":
        assert bits["up"] >= 2 * messages["up"] > 0
        assert bits["total"] <= bits["bound"]
    elif protocol == "dme":
        assert (bits["up"], bits["total"] <= bits["bound"]) == (2 * messages["up"], True)
        assert messages["down"] == 3 * story["sites"]
    assert story["wire_bytes"] > 8 * bits["total"] / 8 + 100 * story["sites"]  # payloads, and a connection for each


def test_the_story_is_told_in_words(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["demo", "--sites", "2", "--variants", "3", "--rate", "400", "--reward-window", "2s"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("starting an engine, a server and 2 edges; 3 variants, tally…\n")
    assert out.count("is out") == 2
    assert "wins" in out
    assert "All that ever left a site: how many of its next 3, 7, 15, … events with a variant succeeded" in out
    assert "bytes." in out


def processes_of(folder: Path) -> list[int]:
    """Everything that runs with this folder for temporary files: the demo's children inherit it."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}".encode() in each.read_bytes().split(b"\0"):
                found.append(int(each.parent.name))
        except OSError:
            continue
    return [pid for pid in found if not gone(pid)]


def begun(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DEMO, "--sites", "3", "--rate", "5", *arguments],  # so few users that it does not end by itself
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
        start_new_session=True,
    )


@pytest.mark.parametrize("seed", range(4))
def test_ctrl_c_at_any_moment_leaves_no_process_and_no_file_behind(seed: int, tmp_path: Path) -> None:
    """From before the first process has started until users are busy."""
    demo = begun(tmp_path)
    until(lambda: any(tmp_path.iterdir()) or demo.poll() is not None, "it has a folder")  # the first that it does
    moment = (seed + random.Random(seed).random()) * 0.8 - 0.6
    with pytest.raises(subprocess.TimeoutExpired):
        demo.wait(max(moment, 0.0))
    demo.send_signal(signal.SIGINT)
    _, err = demo.communicate(timeout=DEADLINE)
    assert demo.returncode == 130
    assert err == "outvote demo: interrupted, everything was stopped, and nothing is left behind\n"
    assert not processes_of(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_demo_that_is_killed_takes_everything_with_it(tmp_path: Path) -> None:
    demo = begun(tmp_path)
    until(lambda: len(processes_of(tmp_path)) == 6, "itself, the server, its engine and three edges", within=DEADLINE)
    demo.kill()
    demo.communicate()
    until(lambda: not processes_of(tmp_path), "all have ended", within=DEADLINE)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--sites", "0"], "sites must be a whole number from 1 to 200, got 0"),
        (["--sites", "2.5"], "sites must be a whole number from 1 to 200, got 2.5"),
        (["--variants", "1"], "variants must be a whole number from 2 to 50, got 1"),
        (["--variants", "51"], "variants must be a whole number from 2 to 50, got 51"),
        (["--rate", "0"], "rate must be a number from 1 to 100,000 events in a second, got 0"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *arguments]) == 2
    assert capsys.readouterr().err == f"outvote demo: error: {error}\n"


def test_the_setting_is_sized_to_end_within_a_minute() -> None:
    for protocol, most in (("tally", 5_000), ("dme", 20_000), ("edme", 20_000)):
        setting = choose(protocol=protocol, sites=8, variants=None, rate=None, seed=0, reward_window=10.0)
        assert setting.events <= most
        assert setting.events / setting.rate < 40
        assert len(set(setting.means)) == len(setting.task.arms)
    large = choose(protocol="tally", sites=2, variants=50, rate=None, seed=0, reward_window=10.0)
    assert len(large.task.arms) == 50
