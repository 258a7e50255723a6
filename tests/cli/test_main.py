"""The command line as a whole: help, light start, the demo."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from outvote.cli.main import main, make_parser

HEAVY = {"numpy", "scipy", "matplotlib", "numba", "rich", "nats", "starlette", "uvicorn", "msgspec"}


def commands() -> list[str]:
    actions = [action for action in make_parser()._actions if action.dest == "command"]
    return list(actions[0].choices or ())


@pytest.mark.parametrize("command", commands())
def test_every_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"outvote {command} --" in out.partition("example")[2]
    assert "--json" in out


def loaded_by(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}


@pytest.mark.parametrize("code", ["import outvote", "from outvote.cli.main import make_parser; make_parser()"])
def test_import_is_light(code: str) -> None:
    loaded = loaded_by(code)
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


@pytest.mark.parametrize("protocol", ["tally", "dme", "edme"])
def test_the_demo_tells_its_story(
    protocol: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["demo", "--edges", "4", "--protocol", protocol]) == 0
    out = capsys.readouterr().out
    assert out.count("is out") == 4
    assert "green wins" in out
    if protocol == "tally":
        assert "“this variant: 2 of 3”" in out
        assert "had every tally named its variant" in out
    else:
        assert "“I would drop this one”" in out
        bound = {"dme": 96, "edme": 768}[protocol]  # 2·4·M·(5−1)·3
        assert f"the paper's bound is {bound}" in out


def test_the_demo_follows_tally_if_nothing_else_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--edges", "3"]) == 0
    assert "simulated with tally" in capsys.readouterr().out


def test_the_demos_json_is_one_small_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--edges", "4", "--protocol", "dme", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert len(out) < 4000
    told = json.loads(out)
    assert told["winner"] == "green"
    assert told["correct"] is True
    assert [each["arm"] for each in told["eliminations"]][-1] == "minimal"
    assert told["eliminations"][-1]["after_events"] == told["events"]
    assert told["bits"]["up"] + told["bits"]["down"] == told["bits"]["total"] <= told["bits"]["bound"] == 96
    assert told["messages"]["down"] == 4 * 4


def test_the_demo_refuses_no_sites(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--edges", "0"]) == 2
    assert capsys.readouterr().err == "outvote demo: error: players must be a whole number of at least 1, got 0\n"
