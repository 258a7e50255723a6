"""The tutorial, run as it is written: every block, in order, in processes of their own."""

from __future__ import annotations

import re

from docs.blocks import DOCS, blocks
from docs.terminals import DEADLINE, Terminals, is_a_file
from helpers.processes import until


def test_the_tutorial_runs_as_written_and_finds_the_winner(terminals: Terminals) -> None:
    def at_the_end() -> None:
        assert "background: orange" in terminals.page("8000")
        check_metrics(terminals)
        dashboard = terminals.page("8600", "/tasks/button")
        assert re.search(r'class="headline"[^>]*>[^<]*orange', dashboard), "the dashboard names the winner"

    shown = [block for block in blocks(DOCS / "tutorial.md") if block.language == "py" and is_a_file(block)]
    assert len(shown) == 2
    terminals.walk("tutorial.md", before={"delete": at_the_end})
    until(
        lambda: "background: green" in terminals.page("8000"),
        "the edge has forgotten the task: the fallback",
        within=DEADLINE,
    )
    log = (terminals.folder / "uvicorn.log").read_text()
    assert log.count("decide at the edge for task 'button' failed (status 404): the fallback is shown") == 1
    for name in ("uvicorn", "edge paris", "server"):
        terminals.end(name)
    assert not terminals.running
    assert (terminals.folder / "outvote-server").is_dir()
    assert (terminals.folder / "outvote-edge-paris.db").is_file()


def check_metrics(terminals: Terminals) -> None:
    """docs/network.md lists every figure of both processes, with its kind, and no others."""
    text = (DOCS / "network.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(outvote_\w+)` \| (\w+) \|", text, re.MULTILINE))
    found = {
        (name, kind)
        for port in ("8600", "8700")
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", terminals.page(port, "/metrics"), re.MULTILINE)
    }
    found = {each for each in found if each[0].startswith("outvote_")}  # the rest is the library's, as everywhere
    assert found == listed
