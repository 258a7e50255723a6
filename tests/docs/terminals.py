"""What a reader has in front of them: a folder, free ports, and commands that run. Guides are walked through with it.

Fixed ports are replaced by free ones, so that it can run beside anything; the rest is literal.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from docs.blocks import DOCS, ROOT, Block, blocks
from helpers.processes import until

EXAMPLES = ROOT / "examples" / "web_app"
DEADLINE = 60.0
GOES_ON = {"server": "Ctrl-C stops", "edge": "Ctrl-C stops", "uvicorn": "Uvicorn running on", "watch": ""}
"""Commands that go on running, and what they say when they are ready."""
LOG_LINES = re.compile(r"^\d{4}-\d\d-\d\dT\S+Z .*\n", re.MULTILINE)
"""What is logged beside: it is not in the guides."""
REPORTS = re.compile(
    r"^decisions at sites: .*\n?|^[\w, ]+: every reward so far is a success[\s\S]*?check what it reports\.\n?",
    re.MULTILINE,
)
"""What sites tell of their rewards every half minute: it may have come yet, or not."""
TICKET = "mPq2_x7B.17.1.5.1795000000000"
"""The ticket in the guides: it stands for the last that was given."""
TICKETS = re.compile(r"[\w-]{8}(?:\.\d+){3}\.\d{13}")
PORTS = ("4322", "8600", "8700", "8701", "8000")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}


def shape(text: str) -> str:
    """What of an output is the same in every run: no numbers, ids, paths and widths of columns."""
    text = REPORTS.sub("", text)
    text = re.sub(r" --(?:server http://|engine-port |port )\S+", "", text)  # `command` adds them
    text = re.sub(r"\b(\w+)-[0-9a-f]{8}\b", r"\1-ID", text)
    text = re.sub(r"(?<![\w:/])/[^\s,]+", "PATH", text)
    text = re.sub(r"\d[\d,.]*", "N", text)
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


class Terminals:
    """A folder, free ports, and commands that run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with ExitStack() as taken:
            sockets = [taken.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in PORTS]
            self.ports = dict(zip(PORTS, (str(each.getsockname()[1]) for each in sockets), strict=True))
        self.running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        self.ticket = TICKET
        self.followed: list[str] = []
        """Commands of a guide, as they stand there."""
        (folder / ".venv").symlink_to(sys.prefix)
        shutil.copytree(EXAMPLES, folder / "examples" / "web_app", ignore=shutil.ignore_patterns("__pycache__"))
        for path in (folder / "examples" / "web_app").glob("*.py"):
            path.write_text(self.with_ports(path.read_text(encoding="utf-8")), encoding="utf-8")

    def with_ports(self, text: str) -> str:
        fixed = rf"((?:127\.0\.0\.1:|--port ))({'|'.join(PORTS)})\b"
        return re.sub(fixed, lambda found: found[1] + self.ports[found[2]], text)

    def command(self, line: str) -> list[str]:
        """With ports where a guide relies on those that are fixed."""
        words = shlex.split(self.with_ports(line))
        if words[1] == "server":
            words += ["--engine-port", self.ports["4322"], "--port", self.ports["8600"]]
        elif words[1] == "edge" and "--port" not in words:
            words += ["--port", self.ports["8700"]]
        elif words[1] == "task" and "--kit" not in words:
            words += ["--server", f"http://127.0.0.1:{self.ports['8600']}"]
        elif words[1:] == ["fleet", "init"]:
            words += [f"--engine=localhost:{self.ports['4322']}", f"--server=localhost:{self.ports['8600']}"]
        elif "uvicorn" in words:
            words += ["--port", self.ports["8000"]]
        return words

    def run(self, words: list[str]) -> str:
        """A command that ends by itself; what it printed."""
        done = subprocess.run(words, cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def python(self, code: str, *, quiet: bool = True) -> str:
        """A program of a guide; what it printed. `quiet`: it must not warn of anything."""
        program = [".venv/bin/python", "-c", self.with_ports(code)]
        done = subprocess.run(
            program, cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=DEADLINE
        )
        assert done.returncode == 0, done.stderr
        assert not quiet or done.stderr == ""
        return done.stdout

    def curl(self, words: list[str]) -> Any:
        """What a request is answered with, as JSON; refusals, too."""
        assert words[:4] == ["curl", "--silent", "--request", "POST"]
        *options, url = words[4:]
        data = options[options.index("--data") + 1].replace(TICKET, self.ticket) if options else ""
        told = httpx.post(url, content=data.encode(), timeout=DEADLINE, trust_env=False).text
        self.ticket = next(iter(TICKETS.findall(told)), self.ticket)
        return json.loads(TICKETS.sub(TICKET, told)) if told else None

    def start(self, name: str, words: list[str]) -> str:
        """A command that goes on; what it printed until it was ready. The one of that name before is ended."""
        kind = name.partition(" ")[0]
        if name in self.running:
            self.end(name)
        log = self.folder / f"{name}.log"
        if kind == "watch":  # it draws in place at a terminal, which `script` is, and prints other lines elsewhere
            words = ["script", "--quiet", "--return", "--command", shlex.join(words), "/dev/null"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                words, cwd=self.folder, env=ENVIRONMENT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.running[name] = process, log
        until(
            lambda: GOES_ON[kind] in log.read_text() or process.poll() is not None, f"{name} is ready", within=DEADLINE
        )
        told = log.read_text()
        assert GOES_ON[kind] in told, told
        return LOG_LINES.sub("", told)

    def ended(self, name: str) -> str:
        """What is left on the terminal by a command that ends by itself in the end."""
        process, log = self.running.pop(name)
        assert process.wait(DEADLINE) == 0
        return re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", log.read_text().rpartition("\x1b[2K")[2])

    def end(self, name: str) -> None:
        """As Ctrl-C does, which a shell may have told us to ignore."""
        process, log = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) in (0, -signal.SIGTERM), log.read_text()  # the second is how uvicorn ends

    def kill(self) -> None:
        """Whatever still runs."""
        for process, _ in self.running.values():
            process.kill()
            process.wait()

    def page(self, port: str, path: str = "/") -> str:
        url = f"http://127.0.0.1:{self.ports[port]}{path}"
        return httpx.get(url, timeout=DEADLINE, trust_env=False).raise_for_status().text

    # ---- a guide, block by block

    def walk(self, document: str, *, before: dict[str, Any] | None = None, to: str | None = None) -> None:
        """Do what a guide says, in its order, and see that it says what is printed.

        `before`: what to do before a command that has this word in it. `to`: the last command that is followed.
        """
        printed: str | None = None
        answer: Any = None
        for block in blocks(DOCS / document):
            if block.language == "bash" and printed is not None and to is not None and to in self.followed:
                return
            if block.language == "":
                told = self.ended("watch") if printed is None else printed
                assert shape(told) == shape(block.text), f"{block.name}: {told}"
                printed = None
            elif block.language == "json":
                shown = json.loads(block.text)
                assert answer == shown, block.name
            elif block.language == "toml":
                (self.folder / "banner.toml").write_text(block.text, encoding="utf-8")
            elif block.language == "py":
                printed = "" if is_a_file(block) else self.python(block.text, quiet="nobody listens" not in block.text)
            elif block.language == "bash":
                for line in block.lines:
                    for word, check in (before or {}).items():
                        if word in shlex.split(line):
                            check()
                    if line.startswith("curl "):
                        answer = self.curl(shlex.split(self.with_ports(line)))
                        continue
                    words = self.command(line)
                    name = next((each for each in GOES_ON if each in words and words[1] != "fleet"), None)
                    if name is None:
                        printed = self.run(words)
                    else:
                        printed = self.start(f"edge {words[2]}" if name == "edge" else name, words)
                    self.followed.append(line)
            else:
                assert block.language == "ini", f"{block.name}: nobody knows how to follow it"


def is_a_file(block: Block) -> bool:
    """Whether a block shows a program of the example, as it is."""
    return any(block.text == path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py"))
