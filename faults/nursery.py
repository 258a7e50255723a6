"""Real processes that start fast: a process that has everything loaded forks a child for each command.

`python -m faults.nursery` is that process; it obeys lines of JSON on its standard input, and ends with it. A child that
has ended stays a zombie until the nursery ends, so that its number is nobody else's.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from faults.spaces import enter
from helpers.processes import gone, until
from outvote.processes import die_with

ROOT: Final = Path(__file__).parents[1]
PATH: Final = os.pathsep.join((str(ROOT / "tests"), str(ROOT)))
"""Where processes of the suite find its modules."""
LOADED: Final = (
    "uvloop",
    "outvote.cli.main",
    "outvote.dashboard.app",
    "outvote.server.admin.api",
    "outvote.edge.site",
    "outvote.edge.api",
    "outvote.edge.store",
    "outvote.server.own_engine",
    "outvote.server.sync_server",
)


class Nursery:
    """Gives birth to commands."""

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, (PATH, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
            start_new_session=True,
            preexec_fn=die_with(os.getpid()),
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def bear(
        self,
        arguments: Sequence[str],
        folder: Path,
        name: str,
        *,
        planted: str | None = None,
        space: Path | None = None,
    ) -> Child:
        """A command in a folder, which writes to NAME.out and NAME.err there; `planted` is a module that is loaded
        before, to change how the command behaves; `space` a network namespace that it is in."""
        out, err = folder / f"{name}.out", folder / f"{name}.err"
        out.unlink(missing_ok=True)
        asked = {
            "arguments": list(arguments),
            "folder": str(folder),
            "out": str(out),
            "err": str(err),
            "planted": planted,
            "space": None if space is None else str(space),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Child(int(self._process.stdout.readline()), name, out, err)

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()  # its children go with it
        self._process.communicate()


class Child:
    """One process."""

    def __init__(self, pid: int, name: str, out: Path, err: Path) -> None:
        self.pid = pid
        self.name = name
        self.out = out
        self.err = err

    @property
    def alive(self) -> bool:
        return not gone(self.pid)

    def ready(self) -> dict[str, Any] | None:
        """What it said when it was ready; None before."""
        try:
            line = self.out.read_text()
        except FileNotFoundError:
            return None
        return dict(json.loads(line)) if line.endswith("\n") else None

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """It is gone when this returns."""
        self.signal(signal.SIGKILL)
        until(lambda: not self.alive, f"{self.name} is gone")


def birth(asked: dict[str, Any], parent: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        die_with(parent)()
        null = os.open(os.devnull, os.O_RDONLY)
        out = os.open(asked["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        err = os.open(asked["err"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, file in enumerate((null, out, err)):
            os.dup2(file, number)
        os.chdir(asked["folder"])
        if asked["space"] is not None:
            enter(asked["space"])
        if asked["planted"] is not None:
            importlib.import_module(asked["planted"])
        from outvote.cli.main import main

        code = main(asked["arguments"])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for each in LOADED:
        importlib.import_module(each)
    gc.collect()
    gc.freeze()  # what is loaded stays shared
    print("ready", flush=True)
    parent = os.getpid()
    for line in sys.stdin:
        print(birth(json.loads(line), parent), flush=True)


if __name__ == "__main__":
    main()
