"""Three engines: the sample is what a fleet gets. That NATS reads and runs it is in `fleet/test_cluster.py`."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

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
