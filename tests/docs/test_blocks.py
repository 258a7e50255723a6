"""Every code block of every document is run, or checked by what would read it; a block that nobody knows fails.

`sh` and `python` are run here, and print what the block after them says. `bash` is for commands that need something
around them: those are checked, and the guides in `WALKED` are followed as a whole elsewhere. `py` is a piece of a
program: it must compile, and what it imports must be there.
"""

from __future__ import annotations

import ast
import configparser
import contextlib
import importlib
import importlib.util
import io
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from docs.blocks import ANY_FENCE, BLOCKS, DOCS, DOCUMENTS, FENCE, ROOT, Block
from outvote.cli.main import main, make_parser
from outvote.edge import openapi as edge_openapi
from outvote.engine.process import find_binary
from outvote.presenters.task_fields import task_of
from outvote.server.admin import openapi as admin_openapi

WALKED = {
    "docs/tutorial.md": "tests/docs/test_tutorial.py",
    "docs/howto/web-app.md": "tests/docs/test_guides.py",
    "docs/howto/run-a-fleet.md": "tests/docs/test_guides.py",
    "docs/howto/openfeature.md": "tests/openfeature/test_howto.py",
}
"""Documents that are followed as a whole, and by which test. Their blocks are checked here all the same."""
NOT_RUN = {
    ".venv/bin/pip": "installs from the internet",
    "pip": "installs from the internet",
    "python3": "makes the environment that the tests run in",
    "cp": "copies a folder of the machine",
    "tar": "copies a folder of the machine",
    "mv": "moves a folder of the machine",
    "nats-server": "its configuration is checked, the engine is started by every test of the network",
    "promtool": "tests/observability runs it where it is installed; here its files must be there",
    "/opt/outvote/bin/pip": "installs from the internet",
    "chown": "changes files of the machine",
    "install": "changes files of the machine; here what it copies must be there",
    "mkdir": "makes a folder for the commands after it",
    "docker": "no Docker engine runs; tests/deploy check its files",
    "kubectl": "no cluster runs; tests/deploy check its files",
    "systemctl": "no systemd runs; tests/deploy check its units",
    "systemd-sysusers": "makes users of the machine; tests/deploy check its file",
}
"""Commands that no test of the documents runs, and why."""
RUN_ELSEWHERE = {".venv/bin/outvote paper --out paper": "tests/paper/test_paper.py"}
"""Commands that take long and that another test runs as they are."""
MADE = "deploy/compose/kits"
"""A folder that the reader makes."""
NOT_A_PROGRAM = {"docs/reference/python.md": "signatures, made from the code by docs/generate.py"}
"""Documents whose `py` blocks are none, and why."""


def of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def cases(*languages: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", of(*languages), ids=lambda block: block.name)


# ---- run


@cases("python")
def test_programs_run_and_print_what_is_written(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pieces of a file are run by its own test."""
    if is_a_piece(block):
        return
    monkeypatch.syspath_prepend(str(DOCS / "howto"))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block.text, block.name, "exec"), {"__name__": "block"})
    assert out.getvalue() == (block.after or "")


def is_a_piece(block: Block) -> bool:
    """Whether it shows a part of a program beside the guides."""
    return any(block.text.strip() in path.read_text(encoding="utf-8") for path in (DOCS / "howto").glob("*.py"))


@pytest.mark.parametrize(
    "line", [pytest.param(line, id=f"{block.document}: {line}") for block in of("sh") for line in block.lines]
)
def test_commands_that_need_nothing_run(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        assert is_a_target(words[1])
        return
    if line in RUN_ELSEWHERE:
        make_parser().parse_args(words[1:])
        return
    assert words[0] == ".venv/bin/outvote"
    monkeypatch.chdir(tmp_path)
    assert main(words[1:]) == 0


# ---- checked by what would read it


@cases("bash")
def test_commands_are_commands(block: Block) -> None:
    subprocess.run(["bash", "-n"], input=block.text, text=True, check=True, capture_output=True)
    for line in " | ".join(block.lines).split(" | "):
        words = shlex.split(line, comments=True)
        if Path(words[0]).name == "outvote":
            make_parser().parse_args(words[1:])
        elif words[0] == "curl":
            assert is_offered(words), line
        elif words[0] == "make":
            assert is_a_target(words[1])
        elif words[:3] == [".venv/bin/python", "-m", "uvicorn"]:
            assert (ROOT / words[4] / f"{words[5].partition(':')[0]}.py").is_file()
        elif words[0] == ".venv/bin/python":
            assert (ROOT / words[1]).is_file()
        else:
            assert words[0] in NOT_RUN, f"{line}: nobody checks this; run it, or say in NOT_RUN why not"
            files = [word for word in words[1:] if word.startswith("deploy/")]
            assert all((ROOT / file).exists() or file.startswith(MADE) for file in files)


def is_a_target(name: str) -> bool:
    return f"\n{name}:" in (ROOT / "Makefile").read_text(encoding="utf-8")


def is_offered(words: list[str]) -> bool:
    """Whether the API at that port has the path and the method."""
    method = words[words.index("--request") + 1] if "--request" in words else "GET"
    port, path = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\S*)", words[-1]).groups()  # type: ignore[union-attr]
    paths = {"8600": admin_openapi, "8700": edge_openapi}[port].openapi()["paths"]
    patterns = {re.sub(r"\{\w+\}", "[^/]+", pattern): methods for pattern, methods in paths.items()}
    return any(re.fullmatch(pattern, path) and method.lower() in methods for pattern, methods in patterns.items())


@cases("py")
def test_pieces_of_programs_compile_and_import_what_there_is(block: Block) -> None:
    if (block.document in NOT_A_PROGRAM and not block.text.startswith("from ")) or is_a_file_that_tests_run(block):
        return
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module = importlib.import_module(node.module)
            for each in node.names:
                assert hasattr(module, each.name) or importlib.util.find_spec(f"{node.module}.{each.name}"), each.name
        elif isinstance(node, ast.Import):
            for each in node.names:
                importlib.import_module(each.name)


@cases("js")
def test_scripts_are_files_that_tests_run(block: Block) -> None:
    assert is_a_file_that_tests_run(block)


def is_a_file_that_tests_run(block: Block) -> bool:
    """Whether a guide that is followed shows a whole file of the tests beside it."""
    if block.document not in WALKED:
        return False
    folder = (ROOT / WALKED[block.document]).parent
    files = (path for end in ("*.py", "*.mjs") for path in [*folder.glob(end), *folder.glob(f"js/{end}")])
    return any(block.text == path.read_text(encoding="utf-8") for path in files)


@cases("json")
def test_json_is_json(block: Block) -> None:
    """One value, or one on each line."""
    try:
        json.loads(block.text)
    except json.JSONDecodeError:
        assert [json.loads(line) for line in block.text.splitlines()]


def read_toml(block: Block) -> None:
    """A task, as `outvote task create` reads it."""
    task_of(tomllib.loads(block.text))


def read_ini(block: Block) -> None:
    """A unit of systemd that starts outvote."""
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names are told apart by case
    unit.read_string(block.text)
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/outvote")
    make_parser().parse_args(arguments)


def read_conf(block: Block) -> None:
    """A configuration of the engine."""
    assert "sync_interval: always" in block.text
    text = re.sub(r'"/var/lib/[^"]*"', '"."', block.text)
    subprocess.run(
        [find_binary().path, "-t", "--config", "/dev/stdin"], input=text.encode(), check=True, capture_output=True
    )


READERS: dict[str, Callable[[Block], None]] = {
    "conf": read_conf,
    "ini": read_ini,
    "toml": read_toml,
    "yaml": lambda block: yaml.safe_load(block.text),
}


@cases(*READERS)
def test_files_can_be_read(block: Block) -> None:
    READERS[block.language](block)


# ---- nothing slips through

LOOKS_LIKE_CODE = re.compile(
    r"^(\$ |import |from \w+ import|def |class |curl |make \w+$|pip |outvote \w+ --|\.venv/)", re.M
)


@cases("")
def test_plain_blocks_are_drawings_and_what_is_printed(block: Block) -> None:
    assert not LOOKS_LIKE_CODE.search(block.text), "it looks like code: say its language"


def test_no_block_is_of_an_unknown_language() -> None:
    known = {"", "sh", "bash", "python", "py", "js", "json", *READERS}
    assert {block.language for block in BLOCKS} <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_block_is_written_so_that_it_is_not_seen(path: Path) -> None:
    """Indented, with other signs, or with words after the language."""
    text = path.read_text(encoding="utf-8")
    assert len(ANY_FENCE.findall(text)) == 2 * len(FENCE.findall(text))
