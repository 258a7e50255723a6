"""`docs/performance.md` is what the benchmarks' results say."""

from __future__ import annotations

import json
import re
from typing import Any

from benchmarks import page

ADDRESS = re.compile(r"://|(^|[\s\"(])/\w")
"""Of a host or a folder."""
KEPT: dict[str, Any] = json.loads(page.RESULTS.read_text(encoding="utf-8"))


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
