"""`outvote audit`: it passes on every protocol, and fails when a leak is planted; it leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.processes import gone, until
from outvote.cli.main import main
from outvote.demo.fleet import Fleet
from outvote.privacy.audit import judge, report

LEAKY = str(Path(__file__).with_name("leaky_edge.py"))


def audited(protocol: str, **options: Any) -> judge.Verdict:
    rate = options.pop("rate", 1000)
    chosen = judge.choose(protocol=protocol, **{"sites": 2, "variants": 2, "reward_window": 2.0, **options})
    return asyncio.run(judge.audit(replace(chosen, rate=rate)))


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("tally", {"privacy_budget": 1.0}),
        ("tally", {"reward_window": 1.0, "rate": 300}),
        ("dme", {}),
        ("edme", {}),
    ],
    ids=["tally with a budget", "tally", "dme", "edme"],
)
def test_passes_on_every_protocol(protocol: str, options: dict[str, Any]) -> None:
    verdict = audited(protocol, **options)  # false alarms: at most 3 in 10,000 (by the tests of times)
    assert verdict.findings == []
    accounts = verdict.accounts
    assert accounts.messages > 0
    assert accounts.bits + accounts.marks == 8 * accounts.payload_bytes
    assert verdict.times.delays, "no message was timed"
    assert verdict.seen.people.refused > 0
    assert set(verdict.seen.searched.amounts) == {
        "files of sites",
        "files of the centre",
        "logs",
        "pages and metrics",
        "traffic",
    }
    if protocol == "tally":
        assert accounts.compared == accounts.messages
        assert accounts.least_events is not None
        assert accounts.least_events >= (verdict.seen.setting.task.floor or 0) >= 3


@pytest.mark.parametrize(
    ("leak", "kind", "where"),
    [
        ("log", "marker", "logs: site-"),
        ("store", "marker", "files of sites: site-"),
        ("payload", "marker", "traffic: connection"),
        ("early", "time", "the times of messages"),
        ("exact", "time", "the times of messages"),
    ],
)
def test_fails_when_a_leak_is_planted(leak: str, kind: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleet, "edge_program", (LEAKY, leak))
    verdict = audited("tally", rate=200)
    found = [each for each in verdict.findings if each.kind == kind]
    assert any(each.where.startswith(where) for each in found), verdict.findings
    assert not verdict.passed
    assert "FAILED" in report.in_text(verdict)
    if leak == "payload":  # seen twice: the marker, and a message that is none of the task
        assert any(each.kind == "payload" for each in verdict.findings)


def test_passes_on_tally_and_says_so_to_programs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "outvote.cli.main", "audit", "--sites", "3"]
    run = subprocess.run(
        [*command, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    told = json.loads(run.stdout)
    assert told["findings"] == []
    assert {"protocol", "events", "searched", "payloads", "findings"} <= set(told)
    payloads = told["payloads"]
    assert payloads["messages"] == payloads["compared_with_events"] == told["times"]["messages_timed"] > 0
    assert payloads["least_events"] >= told["floor"] == 3
    bits = payloads["bits"]
    assert bits["messages"] + bits["end_marks"] == bits["total"] == 8 * payloads["bytes"]
    assert not list(tmp_path.iterdir())


def test_leaves_nothing_behind_when_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "outvote.cli.main", "audit", "--sites", "2", "--events", "100000"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    ) as process:
        until(lambda: any(tmp_path.glob("*/site-2.ready.json")), "the edges run")
        pids = [json.loads(each.read_text())["pids"] for each in tmp_path.glob("*/*.ready.json") if each.stat().st_size]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted, everything was stopped, and nothing is left behind" in err
    assert not list(tmp_path.iterdir())
    for pid in {pid for each in pids for pid in each.values() if pid}:
        until(lambda pid=pid: gone(pid), f"process {pid} ends")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--sites", "1"], "sites must be a whole number from 2 to 20, got 1"),
        (["--events", "-1"], "events must be a whole number up to 100,000, got -1"),
        (["--protocol", "dme", "--privacy-budget", "1"], "privacy_budget is for 'tally', got 1 for 'dme'"),
    ],
)
def test_refuses_what_cannot_be(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *arguments]) == 2
    assert says in capsys.readouterr().err
