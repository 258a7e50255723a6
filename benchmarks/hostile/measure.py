"""What hostile clients cost, and what the defence costs everybody else: `make hostile` writes `measures.json`.

With `--before DIR`, another checkout of this repository, its listener is measured in the same run. The listener has a
core of its own; attackers have another one, and share it with the somebody who only wants to be served.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.hostile import tables
from benchmarks.hostile.attackers import CLIENTS, attacks, request
from benchmarks.hostile.memory import peak_mib, resident_mib, start_peak
from benchmarks.network.edge_http import EVENTS, against, summary
from benchmarks.network.processes import ROOT, Child, allow_connections, command, cores
from benchmarks.network.served import NAME
from benchmarks.timing import say
from outvote.core.task import Task
from outvote.edge.store import EdgeStore

HERE = Path(__file__).parent
TARGETS = ("site", "site over HTTPS", "server over HTTPS")
CONNECTIONS = (1, 16, 64, 256)
IDLE = "connections that do nothing"
EARLIER = ("pipelined requests, answers unread", "unfinished heads of tiny fields", "2,000 fields in a head", IDLE)
"""Attacks that the version before is measured with, too: it bore the others."""
AFTER = 11.0
"""Seconds until memory was given back, if it is."""
PATIENCE = 10.0
"""Seconds after which somebody gives up."""
EVERY = 0.01
"""Seconds between two requests of somebody who only wants to be served."""
TASK = Task(
    name="shop", arms=["red", "green"], players=["ams"], epsilon=0, delta=0.05, protocol="tally", reward_window=60.0,
    floor=100,
)  # fmt: skip
HOST = b"Host: localhost\r\n"
ODD = {
    "2,000 fields": b"GET /healthz HTTP/1.1\r\n" + HOST + b"a: b\r\n" * 2000 + b"\r\n",
    "a head of 70 KB": b"GET /healthz HTTP/1.1\r\n" + HOST + b"a: " + b"b" * 70_000 + b"\r\n\r\n",
    "two `Host` fields": b"GET /healthz HTTP/1.1\r\n" + HOST * 2 + b"\r\n",
    "no `Host`": b"GET /healthz HTTP/1.1\r\n\r\n",
    "the full address of another host": b"GET http://other/healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "a body after `Upgrade`": b"POST /v1/tasks/shop/decide HTTP/1.1\r\n"
    + HOST
    + b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 38\r\n\r\nGET /healthz HTTP/1.1\r\nHost: hidden\r\n\r\n",
}
"""By name: requests that should not be answered as if nothing were wrong."""


@dataclass
class Target:
    pid: int
    port: int
    posts_to: str
    honest: bytes
    """A request that must be served."""
    ca: Path | None = None

    def connect(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        if self.ca is None:
            return plain
        context = ssl.create_default_context(cafile=str(self.ca))
        return context.wrap_socket(plain, server_hostname="127.0.0.1")


def main() -> int:
    options = read_options()
    allow_connections(10_000)
    trees = {"after": ROOT} if options.before is None else {"before": options.before.resolve(), "after": ROOT}
    with suppress(OSError):
        os.nice(-5)  # the one who measures shares a core with the attackers
    try:
        measured: dict[str, Any] = {
            "clients": CLIENTS,
            "seconds": options.seconds,
            "attacked": {label: attacked(tree, options.seconds) for label, tree in trees.items()},
            "odd": {label: odd(tree) for label, tree in trees.items()},
            "speed": speed(trees, rounds=options.rounds),
            "lines": {label: lines(tree) for label, tree in trees.items()},
        }
    except KeyboardInterrupt:
        say("stopped; nothing was written")
        return 130
    print("\n\n".join(make(measured) for make in tables.ALL.values()))
    if options.out is not None:
        options.out.write_text(json.dumps(tables.rounded(measured), indent=1) + "\n")
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--before", type=Path, metavar="DIR", help="another checkout, to be measured as well")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each attack (5)")
    parser.add_argument("--rounds", type=int, default=12, help="of decisions and rewards (12)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the figures go (nowhere)")
    return parser.parse_args()


# ---- under attack


def attacked(tree: Path, seconds: float) -> dict[str, Any]:
    """By target and attack. Each attack meets a new process, so that none has what another left behind."""
    mine, theirs = cores()
    found: dict[str, Any] = {}
    with command(["-m", "benchmarks.hostile.attack"], "attackers", core=theirs) as attackers:
        attackers.hear()
        for kind in TARGETS:
            names = [*(attack.name for attack in attacks("", "")), IDLE]
            for name in names if tree == ROOT else EARLIER:
                with listening(kind, tree, mine) as target:
                    say(f"hostile: {tree.name}, {kind}: {name}")
                    found.setdefault(kind, {})[name] = suffer(target, attackers, name, seconds)
    return found


def suffer(target: Target, attackers: Child, name: str, seconds: float) -> dict[str, float]:
    asked = {
        "port": target.port,
        "path": "/openapi.json",
        "posts_to": target.posts_to,
        "attack": name,
        "clients": 9_000 if name == IDLE else None,
        "ca": str(target.ca) if target.ca else "",
        "seconds": seconds,
    }
    if name == IDLE and target.ca is not None:
        asked["clients"] = 3_000
    rest = resident_mib(target.pid)
    start_peak(target.pid)
    attackers.tell(asked)
    connected = attackers.hear(300)["connected"]
    waits = served_meanwhile(target, seconds * 0.8)
    attackers.hear(300)
    peak = peak_mib(target.pid)
    time.sleep(AFTER)
    return {
        "connections": connected,
        "rest_mib": rest,
        "peak_mib": peak,
        "after_mib": resident_mib(target.pid),
        "p50_ms": waits[len(waits) // 2] * 1e3,
        "p99_ms": waits[len(waits) * 99 // 100] * 1e3,
        "served": len(waits),
    }


def served_meanwhile(target: Target, seconds: float) -> list[float]:
    """How long somebody waited for each answer; every tenth is on a new connection."""
    waits: list[float] = []
    until = time.monotonic() + seconds
    connection = None
    while time.monotonic() < until or not waits:
        start = time.perf_counter()
        try:
            if connection is None:
                connection = target.connect()
            connection.sendall(target.honest)
            good = read_answer(connection).startswith(b"HTTP/1.1 200")
        except OSError:
            good = False
        waits.append(time.perf_counter() - start if good else PATIENCE)
        if connection is not None and (not good or len(waits) % 10 == 0):
            connection.close()
            connection = None
        time.sleep(EVERY)
    if connection is not None:
        connection.close()
    return sorted(waits)


def read_answer(connection: socket.socket) -> bytes:
    """One whole answer of a known length."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        some = connection.recv(65536)
        if not some:
            raise ConnectionError
        answer += some
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
    while len(body) < length:
        some = connection.recv(65536)
        if not some:
            raise ConnectionError
        body += some
    return answer


@contextmanager
def listening(kind: str, tree: Path, core: int | None) -> Iterator[Target]:
    """A process of that tree's package, on a core of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="outvote-hostile-")))
        arguments = ["edge", "ams", "--nats", "nats://127.0.0.1:1", "--store", str(folder / "ams.db"), "--port", "0"]
        ca, token = None, ""
        if "HTTPS" in kind:
            engine, server = free_port(), free_port()
            addresses = ["--engine", f"127.0.0.1:{engine}", "--server", f"127.0.0.1:{server}"]
            fleet = folder / "fleet"
            env = {**os.environ, "PYTHONPATH": str(tree / "src")}
            outvote = [sys.executable, "-m", "outvote.cli.main", "fleet", "--folder", str(fleet)]
            subprocess.run([*outvote, "init", *addresses], check=True, capture_output=True, env=env)
            ca, token = fleet / "ca.pem", (fleet / "operator" / "token").read_text().strip()
            if kind.startswith("server"):
                ports = ["--port", str(server), "--engine-port", str(engine)]
                arguments = ["server", "--kit", str(fleet / "server"), "--store", str(folder / "log"), *ports]
            else:
                add = [*outvote, "add", "ams", "--https", "127.0.0.1", "--json"]
                added = subprocess.run(add, check=True, capture_output=True, env=env).stdout
                token = json.loads(added)["edges"][0]["token"]
                arguments += ["--kit", str(fleet / "edges" / "ams")]
        if kind.startswith("site"):
            with EdgeStore(folder / "ams.db") as store:
                store.put_task("shop-1", json.dumps(TASK.to_json()))
        child = stack.enter_context(
            command(
                ["-m", "outvote.cli.main", *arguments, "--log-level", "error", "--json"], kind, core=core, tree=tree
            )
        )
        ready = child.hear()
        is_site = kind.startswith("site")
        url = ready["urls"]["edge" if is_site else "server"]
        fields = [f"Authorization: Bearer {token}"] if token else []
        if is_site:
            honest = request("/v1/tasks/shop/decide", *fields, "Content-Length: 0", method="POST")
        else:
            honest = request("/v1/tasks", *fields)
        posts_to = "/v1/tasks/shop/reward" if is_site else "/v1/tasks"
        yield Target(child.pid, int(url.rpartition(":")[2]), posts_to, honest + b"\r\n", ca)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def odd(tree: Path) -> dict[str, str]:
    """The statuses of odd requests; several if one was taken for several."""
    found = {}
    with listening("site", tree, None) as target:
        for name, sent in ODD.items():
            with target.connect() as connection:
                connection.settimeout(2)
                answer = b""
                with suppress(OSError):
                    connection.sendall(sent)
                    while some := connection.recv(65536):
                        answer += some
                statuses = [part[:3].decode() for part in answer.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]
                found[name] = ", ".join(statuses) or "closed"
    return found


# ---- what it costs everybody else


def speed(trees: dict[str, Path], *, rounds: int) -> dict[str, Any]:
    """Decisions and rewards at several numbers of connections: our edge of each tree, and a bare handler.

    The servers take turns within a round, and ratios are taken within rounds.
    """
    mine, theirs = cores()
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="outvote-hostile-"))
        load = stack.enter_context(command(["-m", "benchmarks.network.load"], "load", core=theirs))
        load.hear()
        plain = stack.enter_context(command(["-m", "benchmarks.hostile.plain"], "plain uvicorn", core=mine))
        servers = {"plain": (plain, plain.hear()["port"])}
        for label, tree in trees.items():
            (Path(folder) / label).mkdir()
            for variant in ("ours", "bare") if label == "after" else ("ours",):
                arguments = ["-m", "benchmarks.network.served", variant, str(Path(folder) / label)]
                child = stack.enter_context(command(arguments, variant, core=mine, tree=tree))
                servers["bare" if variant == "bare" else label] = child, child.hear()["port"]
        for connections in CONNECTIONS:
            played: dict[str, list[Any]] = {name: [] for name in servers}
            for number in range(rounds + 1):
                say(f"hostile: {connections} connections, round {number} of {rounds}")
                for name, (child, port) in servers.items():
                    asked = {"task": NAME, "port": port, "pid": child.pid, "turns": 2, "events": EVENTS, "rates": None}
                    result = load.ask({**asked, "connections": connections, "variant": name == "before"})
                    if number:  # the first warms it up
                        played[name].append(result)
            found[str(connections)] = {
                "full": {name: summary(each) for name, each in played.items()},
                "against": {name: against(played["after"], each) for name, each in played.items() if name != "after"},
            }
    return found


def lines(tree: Path) -> int:
    """Of our own code between a socket and an application."""
    names = ("acceptor", "connections", "limits", "listener")
    return sum(len((tree / f"src/outvote/web/{name}.py").read_text().splitlines()) for name in names)


if __name__ == "__main__":
    sys.exit(main())
