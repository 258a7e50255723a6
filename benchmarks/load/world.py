"""A server with its engine, edges in a few processes and some as commands of their own, and tasks that come and go.

Everything is in a folder that is removed, and every process ends with this one: however a run ends, nothing is left.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec

from benchmarks.load import check
from benchmarks.load.edges import FILES, Options
from benchmarks.load.tasks import ARMS, best_of, describe, means_of
from benchmarks.network.memory import ask
from benchmarks.network.processes import Child, command, cpu_seconds, memory_mib, outvote
from benchmarks.timing import say
from outvote.client import Client, EdgeError

START = 600.0
"""Seconds in which all edges of a process must have connected."""
ANSWER = 120.0
KEPT_FINISHED = 15.0
"""Seconds for which a finished task stays before it is deleted and another is created."""


MEMORY = Path("/dev/shm")
"""Where the stores of the edges in processes are, if it is there: each site has a disk, and this machine has one, which
is the engine's."""


class NotEnough(Exception):
    """This machine does not allow what was asked for."""


@dataclass(frozen=True)
class Size:
    """How large a world is."""

    edges: int
    tasks: int
    processes: int
    commands: int
    """`outvote edge` as a process of its own, beside the others."""
    visits: float
    """A second, in all."""
    events: int
    """Of a visit, at most."""
    tick: float
    away: int = 0
    """Edges besides that are away at a time."""
    swap: float = 0.0
    task_seconds: float = 0.0
    """Seconds after which a task that has found no winner is stopped; 0 is never."""


def allow_files(size: Size) -> None:
    """Enough open files for the engine, and for each process of edges; or say what to do."""
    needed = 300 + max(size.edges + size.commands, FILES * -(-(size.edges + size.away) // size.processes))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise NotEnough(
            f"{size.edges:,} edges need {needed:,} open files in one process, and this machine allows {hard:,} "
            f"(ulimit -Hn): raise it (`ulimit -n {needed}` as root, or LimitNOFILE), or ask for fewer --edges"
        )
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class World:
    """What runs, and what can be asked of it."""

    def __init__(self, folder: Path, stores: Path, size: Size, seed: int) -> None:
        self.folder = folder
        self.stores = stores
        self.lags = folder / "lags.bin"
        """Where a server that notes its lags writes them."""
        self.size = size
        self.edges: list[Child] = []
        self.commands: dict[str, tuple[Child, str]] = {}
        self.server_url = ""
        self.nats_url = ""
        self.pids: dict[str, int] = {}
        self.created = 0
        self.deleted = 0
        self.finished = 0
        self.stopped = 0
        self.wrong_winners = 0
        self.command_events = 0
        self.end_server: Callable[[], None] = lambda: None
        """Ends it in order, before all the rest."""
        self._names = [f"edge-{number}" for number in range(size.edges + size.away)]
        self._rng = random.Random(seed)
        self._since: dict[str, float] = {}
        """By the id of a task: when it was created, or seen to have ended."""
        self._ended: set[str] = set()
        self._clients: dict[str, Client] = {}

    # ---- tasks

    def create(self) -> None:
        body = describe(self.created, self._names, sorted(self.commands))
        self.created += 1
        made = ask(f"{self.server_url}/v1/tasks", body)
        self._since[made["id"]] = time.monotonic()

    def look_at_tasks(self) -> dict[str, Any]:
        """Delete what has been finished for a while, and create another; returns what there is."""
        listed: dict[str, Any] = ask(f"{self.server_url}/v1/tasks")
        now = time.monotonic()
        for task in listed["tasks"]:
            task_id, over = task["id"], task["winner"] is not None or task["stopped"]
            since = self._since.setdefault(task_id, now)
            if over and task_id not in self._ended:
                self._ended.add(task_id)
                self._since[task_id] = now
                if task["winner"] is not None:
                    self.finished += 1
                    self.wrong_winners += task["winner"] != best_of(task["name"])
            elif over and now - since > KEPT_FINISHED:
                delete(f"{self.server_url}/v1/tasks/{task_id}")
                self._since.pop(task_id)
                self._ended.discard(task_id)
                self.deleted += 1
                self.create()
            elif not over and self.size.task_seconds and now - since > self.size.task_seconds:
                ask(f"{self.server_url}/v1/tasks/{task_id}/stop", {})
                self.stopped += 1
        return listed

    # ---- edges that are processes of their own

    def visit_commands(self, events: int) -> None:
        """Some events at each, over HTTP, by the client that applications use."""
        for name, (_, url) in self.commands.items():
            client = self._clients.setdefault(name, Client(url))
            with suppress(EdgeError):
                tasks = [each["name"] for each in ask(f"{url}/v1/tasks")["tasks"] if not each["finished"]]
                if not tasks:
                    continue
                task = self._rng.choice(tasks)
                means = means_of(task)
                for _ in range(events):
                    decision = client.decide(task)
                    decision.reward(1.0 if self._rng.random() < means[ARMS.index(decision.variant)] else 0.0)
                    client.reward(decision)
                    self.command_events += 1

    def end_edges(self) -> None:
        """At once: to take leave in order would take thousands of them minutes, and their stores are thrown away."""
        for child in self.edges:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)

    def close_clients(self) -> None:
        for client in self._clients.values():
            client.close()

    # ---- measuring

    def sample(self) -> dict[str, Any]:
        """Memory, processor, files and threads of each process, and the sizes of what is on the disk."""
        processes = dict(self.pids)
        processes |= {f"edges-{number}": child.pid for number, child in enumerate(self.edges)}
        processes |= {name: child.pid for name, (child, _) in self.commands.items()}
        return {
            "at": time.time(),
            "processes": {name: usage(pid) for name, pid in processes.items()},
            "log_bytes": size_of(self.folder / "engine"),
            "store_bytes": {
                name: sum(path.stat().st_size for path in self.folder.glob(f"{name}.db*")) for name in self.commands
            },
        }

    def report(self) -> dict[str, Any]:
        """Sums over all processes of edges."""
        reports = [child.ask({"do": "report"}, ANSWER) for child in self.edges]
        found: dict[str, Any] = {key: sum(each[key] for each in reports) for key in reports[0] if key != "behind"}
        return found | {"behind": max(each["behind"] for each in reports)}

    def figures(self) -> dict[str, float]:
        """The server's own, without those of single edges and tasks."""
        text = httpx.get(f"{self.server_url}/metrics", timeout=ANSWER).text
        lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines if "{" not in name}

    # ---- the end

    def settle(self, patience: float) -> int:
        """No more events; until all that was made is stored, and the server has read it. How many messages still wait
        after so many seconds."""
        for child in self.edges:
            child.ask({"do": "quiet"}, START)
        until = time.monotonic() + patience
        while True:
            waiting = int(self.report()["waiting"]) + self.commands_waiting()
            if not (waiting or self.figures()["outvote_log_records_behind"]) or time.monotonic() > until:
                return waiting
            time.sleep(0.5)

    def commands_waiting(self) -> int:
        return sum(
            each["messages_waiting"] for _, url in self.commands.values() for each in ask(f"{url}/v1/tasks")["tasks"]
        )

    def compare(self, patience: float) -> tuple[check.Log, check.Findings]:
        """Until everyone agrees, for so long; then what is found is what is wrong."""
        until = time.monotonic() + patience
        while True:
            log = asyncio.run(check.read_log(self.nats_url))
            found = check.Findings()
            check.check_acknowledged(found, log, self.stores.glob("edges-*/acknowledged.txt"))
            for child in self.edges:
                path = Path(child.ask({"do": "state"}, ANSWER)["state"])
                check.check_edges(found, log, json.loads(path.read_text(encoding="utf-8"))["edges"])
            tasks, edges = ask(f"{self.server_url}/v1/tasks"), ask(f"{self.server_url}/v1/sites")
            check.check_server(found, log, tasks, edges)
            self._check_commands(found, log)
            if found.clean or time.monotonic() > until:
                return log, found
            time.sleep(2.0)

    def _check_commands(self, found: check.Findings, log: check.Log) -> None:
        for name, (_, url) in self.commands.items():
            found.edges += 1
            for each in ask(f"{url}/v1/tasks")["tasks"]:
                found.states += 1
                task = log.state.tasks.get(each["id"])
                said = None if task is None else [task.task.arms[arm] for arm in task.announced]
                if task is None or said != list(each["remaining"]) or task.stopped != each["stopped"]:
                    found.disagreements += 1
                    found.wrong(f"{name} says of {each['id']} {each['remaining']}, the log {said}")


@contextmanager
def world(size: Size, *, seed: int, server: Sequence[str] | None = None, tasks_first: bool = True) -> Iterator[World]:
    """All of it, started; `server` is how to start one instead of `outvote server`."""
    allow_files(size)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends us by it wants nothing left behind, too
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="outvote-load-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
        memory = tempfile.TemporaryDirectory(
            prefix="outvote-load-", ignore_cleanup_errors=True, dir=MEMORY if MEMORY.is_dir() else None
        )
        found = World(folder, Path(stack.enter_context(memory)), size, seed)
        options = server_options(folder)
        starting = (
            outvote("server", *options)
            if server is None
            else command([*server, str(found.lags), "server", *options], "the server")
        )
        at_last = stack.enter_context(ExitStack())
        started = at_last.enter_context(starting)
        found.end_server = at_last.close
        ready = started.hear()
        found.server_url, found.nats_url = ready["urls"]["server"], ready["urls"]["nats"]
        found.pids = {"server": started.pid, "engine": ready["pids"]["engine"]}
        for number in range(size.commands):
            name = f"command-{number}"
            child = stack.enter_context(outvote("edge", name, *edge_options(folder, name, found.nats_url)))
            found.commands[name] = child, child.hear()["urls"]["edge"]
        say(f"a server with its engine, and {size.commands} edges as processes of their own")
        if tasks_first:
            for _ in range(size.tasks):
                found.create()
        stack.callback(found.close_clients)
        for number, names in enumerate(parts(found._names, size.processes)):
            place = found.stores / f"edges-{number}"
            place.mkdir()
            asked = Options(
                names=tuple(names),
                up=len(names) - size.away // size.processes,
                visits=size.visits / size.processes,
                events=size.events,
                tick=size.tick,
                swap=size.swap * size.processes,
                seed=seed * 1000 + number,
            )
            told = msgspec.json.encode(asked).decode()
            what = ["-m", "benchmarks.load.edges", found.nats_url, str(place), told]
            found.edges.append(stack.enter_context(command(what, "a process of edges")))
        stack.callback(found.end_edges)
        for number, child in enumerate(found.edges):
            heard = child.hear(START)
            if "error" in heard:
                raise NotEnough(heard["error"])
            say(f"process {number + 1} of {size.processes}: {heard['connected']:,} edges are connected")
        yield found


def server_options(folder: Path) -> list[str]:
    """With an engine of its own, at free ports, quiet, and telling where it is."""
    return ["--store", str(folder / "engine"), "--port", "0", "--engine-port", "0", "--json", "--log-level", "error"]


def edge_options(folder: Path, name: str, nats_url: str) -> list[str]:
    store = str(folder / f"{name}.db")
    return ["--nats", nats_url, "--store", store, "--port", "0", "--json", "--log-level", "error"]


def parts(names: Sequence[str], count: int) -> list[Sequence[str]]:
    """Nearly equal ones."""
    return [names[number::count] for number in range(count)]


def usage(pid: int) -> dict[str, float]:
    """What a process has now, and has used."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    threads = next(int(line.split()[1]) for line in status if line.startswith("Threads:"))
    return {
        **memory_mib(pid),
        "cpu_s": cpu_seconds(pid),
        "files": sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        "threads": threads,
    }


def size_of(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # it may be gone by now
            total += path.stat().st_size
    return total


def delete(url: str) -> None:
    httpx.delete(url, timeout=ANSWER).raise_for_status()
