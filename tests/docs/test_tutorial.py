"""The tutorial, run as it is written: every block, in order, in processes of their own. And what the other documents of
the network say: their commands are commands, and they name the figures that there are.

Fixed ports are replaced by free ones, so that it can run beside anything; the rest is literal.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from network.processes import until
from outvote.cli.main import make_parser
from outvote.network.engine import find_binary

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples" / "web_app"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DEADLINE = 60.0
GOES_ON = {"server": "Ctrl-C stops", "edge": "Ctrl-C stops", "uvicorn": "Uvicorn running on", "watch": ""}
"""Commands that go on running, and what they say when they are ready."""
LOG_LINES = re.compile(r"^\d{4}-\d\d-\d\dT\S+Z .*\n", re.MULTILINE)
"""What is logged beside: it is not in the tutorial."""
PORTS = ("4322", "8600", "8700", "8000")


def blocks(document: str) -> list[tuple[str, str]]:
    """Language and text of each code block."""
    return BLOCK.findall((DOCS / document).read_text(encoding="utf-8"))


def shape(text: str) -> str:
    """What of an output is the same in every run: no numbers, ids, paths and widths of columns."""
    text = re.sub(r"button-[0-9a-f]{8}", "ID", text)
    text = re.sub(r"(?<![\w:/])/[^\s,]+", "PATH", text)
    text = re.sub(r"\d[\d,.]*", "N", text)
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


class Terminals:
    """What a reader has in front of them: a folder, free ports, and commands that run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with ExitStack() as taken:
            sockets = [taken.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in PORTS]
            self.ports = dict(zip(PORTS, (str(each.getsockname()[1]) for each in sockets), strict=True))
        self.running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        (folder / ".venv").symlink_to(sys.prefix)
        shutil.copytree(EXAMPLES, folder / "examples" / "web_app", ignore=shutil.ignore_patterns("__pycache__"))
        for path in (folder / "examples" / "web_app").glob("*.py"):
            path.write_text(self.with_ports(path.read_text(encoding="utf-8")), encoding="utf-8")

    def with_ports(self, text: str) -> str:
        return re.sub(rf"(127\.0\.0\.1:)({'|'.join(PORTS)})\b", lambda found: found[1] + self.ports[found[2]], text)

    def command(self, line: str) -> list[str]:
        """With ports where the tutorial relies on those that are fixed."""
        words = shlex.split(self.with_ports(line))
        if words[1] == "server":
            words += ["--engine-port", self.ports["4322"], "--port", self.ports["8600"]]
        elif words[1] == "edge":
            words += ["--port", self.ports["8700"]]
        elif words[1] == "task":
            words += ["--server", f"http://127.0.0.1:{self.ports['8600']}"]
        elif "uvicorn" in words:
            words += ["--port", self.ports["8000"]]
        return words

    def run(self, words: list[str]) -> str:
        """A command that ends by itself; what it printed."""
        done = subprocess.run(words, cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def start(self, name: str, words: list[str]) -> str:
        """A command that goes on; what it printed until it was ready. The one of that name before is ended."""
        if name in self.running:
            self.end(name)
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                words, cwd=self.folder, env=ENVIRONMENT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.running[name] = process, log
        until(
            lambda: GOES_ON[name] in log.read_text() or process.poll() is not None, f"{name} is ready", within=DEADLINE
        )
        told = log.read_text()
        assert GOES_ON[name] in told
        return LOG_LINES.sub("", told)

    def ended(self, name: str) -> str:
        """What a command has printed that ends by itself in the end."""
        process, log = self.running.pop(name)
        assert process.wait(DEADLINE) == 0
        return log.read_text()

    def end(self, name: str) -> None:
        """As Ctrl-C does, which a shell may have told us to ignore."""
        process, log = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) in (0, -signal.SIGTERM), log.read_text()  # the second is how uvicorn ends

    def page(self, port: str, path: str = "/") -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[port]}{path}", timeout=DEADLINE) as response:
            return str(response.read().decode())


ENVIRONMENT = {"PATH": "/usr/bin:/bin", "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    opened = Terminals(tmp_path)
    yield opened
    for process, _ in opened.running.values():
        process.kill()
        process.wait()


def test_the_tutorial_runs_as_written_and_finds_the_winner(terminals: Terminals) -> None:
    files = {path.read_text(encoding="utf-8"): path.name for path in EXAMPLES.glob("*.py")}
    printed: str | None = None
    shown: set[str] = set()
    for language, text in blocks("tutorial.md"):
        if language == "":
            told = terminals.ended("watch") if printed is None else printed
            assert shape(told) == shape(text)
            printed = None
        elif language == "py" and text in files:
            shown.add(files[text])
        elif language == "py":
            printed = terminals.run([".venv/bin/python", "-c", terminals.with_ports(text)])
        else:
            assert language == "bash"
            [line] = text.splitlines()
            words = terminals.command(line)
            name = next((each for each in GOES_ON if each in words), None)
            if "delete" in words:
                assert "background: orange" in terminals.page("8000")
                check_metrics(terminals)
            printed = terminals.run(words) if name is None else terminals.start(name, words)
    assert shown == {"before.py", "after.py"}
    until(
        lambda: "background: green" in terminals.page("8000"),
        "the edge has forgotten the task: the fallback",
        within=DEADLINE,
    )
    log = (terminals.folder / "uvicorn.log").read_text()
    assert log.count("decide at the edge for task 'button' failed (status 404): the fallback is shown") == 1
    for name in ("uvicorn", "edge", "server"):
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
    assert found <= listed
    assert listed - found == {("outvote_budget_bytes", "gauge")}  # only where there is a budget


COMMANDS = [
    line
    for document in ("network.md", "operations.md", "../README.md")
    for language, text in blocks(document)
    if language == "bash"
    for line in text.replace("\\\n", " ").splitlines()
    if "bin/outvote " in line
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_networks_documents_are_commands(line: str) -> None:
    words = shlex.split(line, comments=True)
    arguments = words[next(place for place, word in enumerate(words) if word.endswith("bin/outvote")) + 1 :]
    make_parser().parse_args(arguments)


def test_the_engines_configuration_is_one(tmp_path: Path) -> None:
    [configuration] = [text for language, text in blocks("operations.md") if language == "conf"]
    assert "sync_interval: always" in configuration
    (tmp_path / "nats.conf").write_text(configuration.replace("/var/lib/outvote", str(tmp_path)))
    subprocess.run([find_binary().path, "-t", "--config", tmp_path / "nats.conf"], check=True, capture_output=True)


@pytest.mark.parametrize("document", ["tutorial.md", "network.md", "operations.md"])
def test_links_to_headings_lead_to_headings(document: str) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", (DOCS / document).read_text(encoding="utf-8")):
        text = ((DOCS / target) if target else (DOCS / document)).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert anchor in {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}, anchor
