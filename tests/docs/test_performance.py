"""`docs/performance.md` is what the benchmarks' results say, also when a target is missed or was not measured."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from benchmarks import page

ADDRESS = re.compile(r"://|(^|[\s\"(])/\w")
"""Of a host or a folder."""
KEPT: dict[str, Any] = json.loads(page.RESULTS.read_text(encoding="utf-8"))


@pytest.fixture(name="results")
def copy_results() -> dict[str, Any]:
    return copy.deepcopy(KEPT)


def test_the_page_is_made_from_the_results() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert page.page(KEPT) == written, "docs/performance.md is out of date: run python benchmarks/page.py"


def test_the_results_are_those_of_a_full_run() -> None:
    assert not KEPT["quick"]
    assert KEPT["peers"] is not None
    assert not KEPT["network"]["quick"]
    assert not KEPT["dashboard"]["quick"]


def test_results_name_no_machine_and_no_folder() -> None:
    assert not ADDRESS.search(page.RESULTS.read_text(encoding="utf-8"))


def test_a_target_that_is_missed_is_called_so(results: dict[str, Any]) -> None:
    results["core"]["event_ns"]["dme"] = 999.0
    missed = page.targets_part(results).count("**not met**")
    results["core"]["event_ns"]["dme"] = 1001.0
    assert page.targets_part(results).count("**not met**") == missed + 1


@pytest.mark.parametrize("part", ["network", "dashboard", "peers"])
def test_what_was_not_measured_is_called_so(part: str, results: dict[str, Any]) -> None:
    results[part] = None
    assert "not measured in this run." in page.page(results)
    assert "not measured" in page.targets_part(results)


def test_a_peer_that_was_left_out_is_named_with_the_reason(results: dict[str, Any]) -> None:
    rows = results["peers"]["rows"]
    results["peers"]["rows"] = [row for row in rows if row["name"] != "river"]
    results["peers"]["left_out"] = [{"name": "river", "why": "it did not run: ImportError"}]
    assert "Left out: river, it did not run: ImportError." in page.page(results)
    assert page.targets_part(results).count("not measured") == 1


def test_a_regret_that_differs_is_marked(results: dict[str, Any]) -> None:
    for row in results["peers"]["rows"]:
        row["agrees"] = True
    assert "**differs**" not in page.peers_part(results)
    results["peers"]["rows"][0]["agrees"] = False
    assert page.peers_part(results).count("**differs**") == 1
