"""`docs/performance.md` is what the benchmarks' results say, also when a target is missed or was not measured."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"://|(^|[\s\"(])/\w")
"""Of a host or a folder."""


@pytest.fixture(name="page", scope="module")
def load_page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_page", ROOT / "benchmarks" / "page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(name="results")
def load_results(page: ModuleType) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    return copy.deepcopy(found)


def test_the_page_is_made_from_the_results(page: ModuleType, results: dict[str, Any]) -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert page.page(results) == written, "docs/performance.md is out of date: run python benchmarks/page.py"


def test_the_results_are_those_of_a_full_run(results: dict[str, Any]) -> None:
    assert not results["quick"]
    assert results["peers"] is not None
    assert not results["network"]["quick"]
    assert not results["dashboard"]["quick"]


def test_results_name_no_machine_and_no_folder(page: ModuleType) -> None:
    assert not ADDRESS.search(page.RESULTS.read_text(encoding="utf-8"))


def test_every_target_has_a_row(page: ModuleType, results: dict[str, Any]) -> None:
    for target in page.targets(results):
        assert page.targets_part(results).count(target.what) == 1


def test_a_target_that_is_missed_is_called_so(page: ModuleType, results: dict[str, Any]) -> None:
    results["core"]["event_ns"]["dme"] = 999.0
    missed = page.targets_part(results).count("**not met**")
    results["core"]["event_ns"]["dme"] = 1001.0
    assert page.targets_part(results).count("**not met**") == missed + 1


def test_what_was_not_measured_is_called_so(page: ModuleType, results: dict[str, Any]) -> None:
    results["peers"] = None
    assert "They were not measured in this run." in page.page(results)
    assert page.targets_part(results).count("not measured") == len(page.PEERS_WITH_A_TARGET)


def test_a_network_that_was_not_measured_is_called_so(page: ModuleType, results: dict[str, Any]) -> None:
    promised = len(page.network_page.targets(None))
    for without in ({**results, "network": None}, {key: each for key, each in results.items() if key != "network"}):
        assert "## Network\n\nIt was not measured in this run." in page.page(without)
        assert page.targets_part(without).count("not measured") == promised


def test_a_promise_of_the_network_that_is_missed_is_called_so(page: ModuleType, results: dict[str, Any]) -> None:
    ours = results["network"]["http"]["against"]["bare"]["decide"]
    ours["by_cpu"] = 0.81
    missed = page.targets_part(results).count("**not met**")
    ours["by_cpu"] = 0.79
    assert page.targets_part(results).count("**not met**") == missed + 1


def test_a_dashboard_that_was_not_measured_is_called_so(page: ModuleType, results: dict[str, Any]) -> None:
    without = {**results, "dashboard": None}
    assert "## Dashboard\n\nIt was not measured in this run." in page.page(without)
    assert page.targets_part(without).count("not measured") == len(page.dashboard_page.targets(None))


def test_a_page_that_stands_still_for_too_long_is_called_so(page: ModuleType, results: dict[str, Any]) -> None:
    task = results["dashboard"]["updates"]["task"]
    task["longest_task_ms"] = 99.0
    missed = page.targets_part(results).count("**not met**")
    task["longest_task_ms"] = 101.0
    assert page.targets_part(results).count("**not met**") == missed + 1


def test_a_shorter_log_and_a_smaller_fleet_say_nothing_of_what_was_promised(
    page: ModuleType, results: dict[str, Any]
) -> None:
    results["network"]["log"]["messages"] = 100_000
    fleets = results["network"]["fan_out"]["fleets"]
    results["network"]["fan_out"]["fleets"] = [fleet for fleet in fleets if fleet["edges"] == 1_000]
    assert page.targets_part(results).count("not measured") == 2
    assert "5,000 edges, as an edge hears it" not in page.network_part(results)


def test_a_framework_that_is_not_installed_is_left_out(page: ModuleType, results: dict[str, Any]) -> None:
    for key in ("full", "against"):
        del results["network"]["http"][key]["fastapi"]
    assert "FastAPI" not in page.network_part(results)
    assert page.targets_part(results).count("not measured") == 2


def test_who_was_left_out_is_named_with_the_reason(page: ModuleType, results: dict[str, Any]) -> None:
    rows = results["peers"]["rows"]
    results["peers"]["rows"] = [row for row in rows if row["name"] != "river"]
    results["peers"]["left_out"] = [{"name": "river", "why": "it did not run: ImportError"}]
    assert "Left out: river, it did not run: ImportError." in page.page(results)
    assert page.targets_part(results).count("not measured") == 1


def test_a_regret_that_differs_is_marked(page: ModuleType, results: dict[str, Any]) -> None:
    for row in results["peers"]["rows"]:
        row["agrees"] = True
    assert "**differs**" not in page.peers_part(results)
    results["peers"]["rows"][0]["agrees"] = False
    assert page.peers_part(results).count("**differs**") == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.07634, "0.0763"), (4.1, "4.1"), (40.0, "40"), (999.6, "1,000"), (103_460.0, "103,000")],
)  # fmt: skip
def test_numbers_have_three_digits(page: ModuleType, value: float | None, text: str) -> None:
    assert page.number(value) == text
