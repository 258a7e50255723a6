"""The command line as a whole: help and light start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from outvote.cli.main import main, make_parser

HEAVY = {"numpy", "scipy", "matplotlib", "numba", "rich", "nats", "starlette", "uvicorn", "msgspec"}


def commands() -> list[str]:
    actions = [action for action in make_parser()._actions if action.dest == "command"]
    return list(actions[0].choices or ())


ACTIONS = ["create", "list", "show", "stop", "kill", "revive", "delete", "watch", "expect", "sites"]


@pytest.mark.parametrize("command", [*commands(), *(f"task {action}" for action in ACTIONS)])
def test_every_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"outvote {command}" in out.partition("example")[2]
    assert "--json" in out
    assert "--server" in out or not command.startswith("task")


def loaded_by(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}


def test_the_parser_is_light() -> None:
    loaded = loaded_by("from outvote.cli.main import make_parser; make_parser()")
    assert "outvote" in loaded
    assert not loaded & HEAVY


def test_import_outvote_needs_nothing_but_the_standard_library() -> None:
    code = "import sys; before = set(sys.modules); import outvote; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) == {"outvote"}


def test_simulate_is_found_lazily() -> None:
    import outvote

    assert callable(outvote.simulate)
    with pytest.raises(AttributeError, match="no attribute 'simulated'"):
        outvote.simulated  # noqa: B018  # the access is the test


def test_no_command_is_an_error_with_a_pointer_to_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert "outvote --help" in capsys.readouterr().err


def test_the_extra_that_is_named_is_the_one_that_the_command_needs() -> None:
    code = """
import sys
from outvote.cli.main import main
for module, command in (line.split() for line in sys.stdin):
    sys.modules[module] = None  # as if it were not installed
    main([command])
    del sys.modules[module]
"""
    wanted = {
        "rich demo": "network", "rich audit": "network", "rich plan": "sim", "rich simulate": "sim",
        "rich paper": "sim", "numpy plan": "sim", "numpy simulate": "sim", "uvloop edge": "network",
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], input="\n".join(wanted), capture_output=True, text=True)
    told = [line.partition("pip install ")[2] for line in done.stderr.splitlines()]
    assert told == [f"'outvote[{extra}]'" for extra in wanted.values()], done.stderr
