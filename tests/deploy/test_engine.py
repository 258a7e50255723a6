"""Three engines: the sample is what a fleet gets, and NATS itself reads it, with the certificates and claims of one."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from outvote.engine.process import find_binary
from outvote.fleet.folder import Fleet

FOLDER = Path(__file__).parents[2] / "deploy" / "engine"
NUMBERS = (1, 2, 3)


def filled_in(number: int, fleet: Fleet) -> str:
    """The sample with what is the fleet's own in place of the words in capitals; without comments."""
    text = (FOLDER / f"engine-{number}.conf").read_text(encoding="utf-8")
    kit = fleet.folder / f"engine-{number}"
    known = json.loads((kit / "accounts.json").read_bytes())
    claims = "".join(f'  {account}: "{claim}"\n' for account, claim in known["accounts"].items())
    for words, own in {
        '  ACCOUNT_KEY: "ACCOUNT_CLAIMS"\n  SYSTEM_KEY: "SYSTEM_CLAIMS"\n': claims,
        "OPERATOR_CLAIMS": (kit / "operator.jwt").read_text().strip(),
        "SYSTEM_KEY": known["system"],
        "CLUSTER_SECRET": (fleet.folder / "keys" / "cluster.secret").read_text().strip(),
        ".example.org": ".engine.outvote.svc.cluster.local",
    }.items():
        assert words in text
        text = text.replace(words, own)
    return without_comments(text)


def without_comments(text: str) -> str:
    return re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)


def check(text: str, kit: Path) -> subprocess.CompletedProcess[str]:
    """Read by NATS in the folder of the kit, where names of files lead somewhere."""
    (kit / "nats.conf").write_text(text.replace("/var/lib/nats", str(kit)))
    command = [str(find_binary().path), "-t", "--config", "nats.conf"]
    return subprocess.run(command, cwd=kit, capture_output=True, text=True, timeout=60, check=False)


def test_the_sample_is_what_its_program_writes() -> None:
    text = runpy.run_path(str(FOLDER / "make_sample.py"))["text"]
    for number in NUMBERS:
        assert (FOLDER / f"engine-{number}.conf").read_text(encoding="utf-8") == text(number), (
            "run python deploy/engine/make_sample.py"
        )


@pytest.mark.parametrize("number", NUMBERS)
def test_the_sample_is_what_a_fleet_of_three_engines_gets(number: int, large_fleet: Fleet) -> None:
    made = (large_fleet.folder / f"engine-{number}" / "nats.conf").read_text()
    assert filled_in(number, large_fleet) == without_comments(made)


@pytest.mark.parametrize("number", NUMBERS)
def test_nats_takes_the_sample(number: int, large_fleet: Fleet, tmp_path: Path) -> None:
    kit, text = tmp_path / "kit", filled_in(number, large_fleet)
    shutil.copytree(large_fleet.folder / f"engine-{number}", kit)
    read = check(text, kit)
    assert read.returncode == 0, read.stderr
    assert "is valid" in read.stderr
    assert check(text.replace("engine.pem", "engines.pem"), kit).returncode == 1
    assert check(text.replace("sync_interval", "sync_intervals"), kit).returncode == 1


def test_what_is_acknowledged_is_on_the_disk_and_engines_know_each_other() -> None:
    for number in NUMBERS:
        text = (FOLDER / f"engine-{number}.conf").read_text(encoding="utf-8")
        assert 'sync_interval: "always"' in text
        assert text.count("verify: true") == 1
        assert len(re.findall(r"nats-route://", text)) == 3
