"""The guides that start something, run as they are written: every block, in order, in processes of their own."""

from __future__ import annotations

import json

import pytest

from docs.terminals import Terminals
from network.processes import until


@pytest.mark.parametrize("guide", ["web-app.md", "run-a-fleet.md"])
def test_guides_that_start_something_run_as_written(guide: str, terminals: Terminals) -> None:
    def edges_are_heard() -> None:
        until(lambda: states() == ["alive", "alive"], "both edges are heard")

    def states() -> list[str]:
        return [edge["state"] for edge in json.loads(terminals.page("8600", "/v1/edges"))["edges"]]

    def edge_has_heard() -> None:
        until(lambda: "search" in terminals.page("8700", "/v1/tasks"), "the edge has heard of the task")

    terminals.walk(f"howto/{guide}", before={"edges": edges_are_heard, "curl": edge_has_heard})
    for name in [*terminals.running][::-1]:
        terminals.end(name)
