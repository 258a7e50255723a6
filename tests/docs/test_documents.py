"""Documents cannot drift: generated parts are fresh, code blocks run and print what they say, links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from outvote.cli.main import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("tests/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_parts_are_up_to_date() -> None:
    generate = generator()
    found = 0
    for path in generate.documents():
        text = path.read_text(encoding="utf-8")
        found += len(generate.PART.findall(text))
        assert generate.regenerate(text) == text, f"{path.name} is out of date: run make docs"
    assert found >= len(generate.PARTS)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def blocks(path: Path) -> list[tuple[str, str, str]]:
    """Each code block with its language, and the text of a plain block that follows it: what it prints."""
    found = BLOCK.findall(path.read_text(encoding="utf-8"))
    following = itertools.pairwise([*found, ("", "")])
    return [(language, code, text if not after else "") for (language, code), (after, text) in following]


PYTHON = [(path, code, after) for path in DOCUMENTS for language, code, after in blocks(path) if language == "python"]


@pytest.mark.parametrize(("path", "code", "after"), PYTHON)
def test_python_blocks_run_and_print_what_they_say(path: Path, code: str, after: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(path), "exec"), {})
    assert out.getvalue() == after


SHELL = [
    line.partition("outvote ")[2]
    for path in DOCUMENTS
    for language, code, _ in blocks(path)
    if language == "sh"
    for line in code.splitlines()
    if "outvote " in line
]


@pytest.mark.parametrize("line", SHELL)
def test_commands_in_documents_run(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(line, comments=True)) == 0


def test_there_is_something_to_run() -> None:
    assert PYTHON
    assert SHELL


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_two_commands_of_the_readme_exist(command: str) -> None:
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"\n{command.split()[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert shutil.which("make")
