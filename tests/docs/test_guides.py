"""The guides that start something, run as they are written: every block, in order, in processes of their own."""

from __future__ import annotations

import json
import time

import pytest

from docs.terminals import Terminals
from helpers.processes import request, until


@pytest.mark.parametrize("guide", ["web-app.md", "run-a-fleet.md"])
def test_guides_that_start_something_run_as_written(guide: str, terminals: Terminals) -> None:
    def edges_are_heard() -> None:
        until(lambda: states() == ["alive", "alive"], "both edges are heard")

    def states() -> list[str]:
        return [site["state"] for site in json.loads(terminals.page("8600", "/v1/sites"))["sites"]]

    def edge_has_heard() -> None:
        until(lambda: "search" in terminals.page("8700", "/v1/tasks"), "the edge has heard of the task")

    terminals.walk(f"howto/{guide}", before={"sites": edges_are_heard, "curl": edge_has_heard})
    for name in [*terminals.running][::-1]:
        terminals.end(name)


def test_a_fleet_is_secured_as_written(terminals: Terminals) -> None:
    """From `fleet add` to a first message over TLS, and until the site is shut out, with what the guide says."""
    began: list[float] = []

    def added() -> None:
        began.append(time.monotonic())

    def first_message() -> None:
        edge = f"http://127.0.0.1:{terminals.ports['8700']}/v1/tasks/banner"
        until(lambda: "banner" in terminals.page("8700", "/v1/tasks"), "the edge has heard of the task")
        for _ in range(3):  # a tally of the floor's size
            told = request(f"{edge}/decide", {})
            request(f"{edge}/reward", {"variant": told["variant"], "ticket": told["ticket"], "reward": 1})
        until(lambda: messages() == 1, "the server has counted it")
        print(f"from fleet add to the first message: {time.monotonic() - began[0]:.1f} s")

    def messages() -> int:
        shown = terminals.run(
            [".venv/bin/outvote", "task", "--kit", "outvote-fleet/operator", "show", "banner", "--json"]
        )
        return int(json.loads(shown)["messages"]["up"])

    once = {"add": added, "shop-fleet": lambda: None, "revoke": first_message}
    terminals.walk("howto/secure-a-fleet.md", before=once, to=".venv/bin/outvote fleet list")
    assert ".venv/bin/outvote fleet revoke paris" in terminals.followed
    log = (terminals.folder / "edge --kit.log").read_text()
    until(lambda: "credential_refused" in (terminals.folder / "edge --kit.log").read_text(), f"it is shut out: {log}")
    assert messages() == 1
    for name in [*terminals.running][::-1]:
        terminals.end(name)
