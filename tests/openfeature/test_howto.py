"""docs/howto/openfeature.md, followed as it is written; its programs are the files that the tests beside it run."""

from __future__ import annotations

import json
import shlex

from docs.blocks import DOCS, blocks
from docs.conftest import terminals
from docs.terminals import GOES_ON, Terminals, shape
from helpers.processes import until

from .shop import HERE

__all__ = ["terminals"]

GUIDE = DOCS / "howto" / "openfeature.md"
PROGRAMS = {
    "py": {"stock_shop.py": "test_stock_python.py", "our_shop.py": "test_our_python.py"},
    "js": {"js/server.mjs": "test_javascript.py", "js/web.mjs": "test_javascript.py"},
}
"""By language: the files that the guide shows, and the test that runs each."""


def test_the_programs_of_the_guide_are_the_files_that_tests_run() -> None:
    for language, files in PROGRAMS.items():
        shown = [block.text for block in blocks(GUIDE) if block.language == language]
        assert shown == [(HERE / file).read_text(encoding="utf-8") for file in files]
        for file, test in files.items():
            run = (HERE / test).read_text(encoding="utf-8") + "".join(
                path.read_text(encoding="utf-8") for path in HERE.glob("js/drive_*.mjs")
            )
            assert file.removeprefix("js/") in run


def test_the_commands_of_the_guide_run_and_print_what_it_says(terminals: Terminals) -> None:
    def at_the_edge() -> dict[str, object]:
        found = json.loads(terminals.page("8700", "/v1/tasks"))["tasks"]
        return dict(found[0]) if found else {}

    killed, said, answer = False, "", None
    for block in blocks(GUIDE):
        if block.language == "":
            assert shape(said) == shape(block.text)
        elif block.language == "json":
            assert answer == json.loads(block.text)
        elif block.language == "bash":
            [line] = block.lines
            words = terminals.command(line)
            if words[0] == "curl":
                until(lambda killed=killed: at_the_edge().get("killed") is killed, "the edge has heard of it")  # type: ignore[misc]
                answer = terminals.curl(words)
            elif words[1] in GOES_ON:
                terminals.start(words[1], words)
            else:
                said = terminals.run(words)
                killed = "kill" in shlex.split(line)
        else:
            assert block.language in PROGRAMS
    until(lambda: at_the_edge()["killed"] is False, "it goes on")
    for name in ("edge", "server"):
        terminals.end(name)
