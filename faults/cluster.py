"""Engine nodes as real processes: one alone, or three that keep the log three times. They can be killed, paused,
started again on their store, and started again with none.

Their settings are those of `outvote.engine.config`. A node's ports stay when it is started again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import urllib.request
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from helpers.processes import until
from outvote.engine import config as engine_conf
from outvote.engine.process import find_binary
from outvote.processes import die_with

NOWHERE: Final = "127.0.0.1:9"
"""What a node tells the others of where it is: they know the way already, which may lead through a proxy."""
START: Final = 20.0
"""Seconds in which a node must answer, and a cluster must have agreed who leads."""
PORTS: Final = (20_000, 32_000)
NODES: Final = ("n1", "n2", "n3")
_given: Final[deque[int]] = deque(maxlen=1_000)
"""The last ports that were given: more than a run has."""


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Some that nobody has now, all different, also from those that others were given and have not begun to use; and
    none that Linux would give to somebody who connects, while the process that it belongs to is dead."""
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(*PORTS)
        if take_port(port, host):
            found.append(port)
    return found


def take_port(port: int, host: str = "127.0.0.1") -> bool:
    """Whether this one is free, and was given to nobody: now it is given."""
    if port in _given:
        return False
    with closing(socket.socket()) as tried, suppress(OSError):
        tried.bind((host, port))
        _given.append(port)
        return True
    return False


def free_pairs(count: int, offset: int) -> list[int]:
    """Ports of which the one that is `offset` above is free as well, and given."""
    found: list[int] = []
    while len(found) < count:
        [port] = free_ports(1)
        if take_port(port + offset):
            found.append(port)
    return found


class Node:
    """One engine."""

    def __init__(self, name: str, folder: Path, *, host: str, ports: Sequence[int], prefix: Sequence[str] = ()) -> None:
        """`ports` are those of clients, of other nodes, and of the monitoring pages; `prefix` starts the command."""
        self.name = name
        self.folder = folder
        self.host = host
        self.port, self.route_port, self.http_port = ports
        self.prefix = prefix
        self.store = folder / "store"
        self.log = folder / "engine.log"
        self.configuration = folder / "nats.conf"
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Does not wait until it answers."""
        assert not self.alive
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, str(find_binary().path), "--config", str(self.configuration)],
                cwd=self.configuration.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with(os.getpid()),
            )

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """It is gone when this returns."""
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def wipe(self) -> None:
        """Its disk was replaced; only of one that does not run."""
        assert not self.alive
        shutil.rmtree(self.store, ignore_errors=True)

    def page(self, path: str) -> dict[str, Any]:
        """A monitoring page; nothing if it does not answer."""
        with suppress(OSError, ValueError), urllib.request.urlopen(self._http(path), timeout=1) as answer:
            return dict(json.loads(answer.read()))
        return {}

    def _http(self, path: str) -> str:
        return f"http://{self.host}:{self.http_port}/{path}"


class Cluster:
    """All nodes; `with` starts them and leaves none behind."""

    def __init__(
        self,
        folder: Path,
        size: int,
        *,
        hosts: Sequence[str] = (),
        prefixes: Sequence[Sequence[str]] = (),
        routes: Callable[[str, str, str], str] = lambda near, far, address: address,
        stores: Callable[[str], Path | None] = lambda name: None,
    ) -> None:
        """`routes` tells by which address one node reaches another; `stores` where one keeps its log, if not in its
        folder."""
        self.folder = folder
        hosts = hosts or ["127.0.0.1"] * size
        prefixes = prefixes or [()] * size
        ports = free_ports(3 * size)
        self.nodes = {
            name: Node(name, folder / name, host=host, ports=ports[3 * place : 3 * place + 3], prefix=prefix)
            for place, (name, host, prefix) in enumerate(zip(NODES[:size], hosts, prefixes, strict=True))
        }
        for node in self.nodes.values():
            node.store = stores(node.name) or node.store
            node.configuration.write_text(engine_conf.text(self._settings(node, routes)))

    def _settings(self, node: Node, routes: Callable[[str, str, str], str]) -> dict[str, Any]:
        others = [each for each in self.nodes.values() if each is not node]
        cluster = engine_conf.Cluster(
            name="faults",
            listen=f"{node.host}:{node.route_port}",
            routes=[routes(node.name, each.name, f"{each.host}:{each.route_port}") for each in others],
            password="not-a-secret",
        )
        chosen = engine_conf.settings(
            name=node.name,
            listen=node.address,
            store=node.store,
            accounts=node.folder / "accounts",
            cluster=cluster if others else None,
        )
        chosen["http"] = f"{node.host}:{node.http_port}"
        if others:
            chosen["cluster"]["advertise"] = NOWHERE
        return chosen

    @property
    def urls(self) -> str:
        return ",".join(f"nats://{each.address}" for each in self.nodes.values())

    def __enter__(self) -> Cluster:
        try:
            for node in self.nodes.values():
                node.start()
            self.wait_ready()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def wait_ready(self) -> None:
        """Until the nodes that run are in order and have a leader; a node that lags behind its copy is not."""
        for node in self.nodes.values():
            if node.alive:
                until(lambda node=node: is_well(node), f"{node.name} is well: {node.log}", within=START)  # type: ignore[misc]

    def leader(self) -> str | None:
        """The node that leads the log's copies; None while there is none, or one alone."""
        for node in self.nodes.values():
            if node.alive:
                for account in node.page("jsz?streams=1").get("account_details", ()):
                    for stream in account.get("stream_detail", ()):
                        leader = stream.get("cluster", {}).get("leader")
                        if leader:
                            return str(leader)
        return None


def is_well(node: Node) -> bool:
    """Whether a node says so: then its copies of the log are up to date too."""
    return node.page("healthz").get("status") == "ok"
