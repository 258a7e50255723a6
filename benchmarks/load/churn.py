"""Thousands of tasks that come and go at one edge: what is left of each? `python benchmarks/load/churn.py`

A real server with its engine and one real `outvote edge`. Tasks of all protocols are created, played, stopped and
deleted, a dozen there at a time, and somebody connects anew for each to look at them. Every so often the memory of both
is noted; a line through the second half tells what each task leaves behind.
Ctrl-C ends all of it, leaves nothing behind and writes nothing.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.load import measured
from benchmarks.load.slopes import line
from benchmarks.load.tasks import ARMS, describe, means_of
from benchmarks.load.world import delete, edge_options, server_options
from benchmarks.network import parts
from benchmarks.network.memory import ask
from benchmarks.network.processes import memory_mib, outvote
from benchmarks.run import machine_alone, tidy
from benchmarks.timing import say
from outvote.client import Client, EdgeError

RESULTS = Path(__file__).with_name("churn.json")
TASKS = 6_000
ALIVE = 12
EVENTS = 30
"""For each task that is created, at those that are there."""
OTHERS = tuple(f"edge-{number}" for number in range(60))
"""Names of sites that take part in the tasks as well."""
SAMPLES = 120


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", type=int, default=TASKS, help=f"how many ({TASKS:,})")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where results go (of all: churn.json beside this)")
    options = parser.parse_args()
    if options.tasks < SAMPLES:
        parser.error(f"--tasks must be at least {SAMPLES}, got {options.tasks}: there are so many samples")
    out: Path | None = options.out or (RESULTS if options.tasks >= TASKS else None)
    return measured.run(lambda: churn(options.tasks), out)


def churn(tasks: int) -> dict[str, Any]:
    about = machine_alone(parts.versions())
    rng = random.Random(3)
    samples: list[dict[str, float]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="outvote-churn-")))
        server = stack.enter_context(outvote("server", *server_options(folder)))
        urls = server.hear()["urls"]
        edge = stack.enter_context(outvote("edge", "one", *edge_options(folder, "one", urls["nats"])))
        edge_url = edge.hear()["urls"]["edge"]
        client = stack.enter_context(Client(edge_url))
        there: list[tuple[str, str]] = []
        for number in range(tasks):
            if number % (tasks // SAMPLES) == 0:
                used = {name: memory_mib(pid)["rss_mib"] for name, pid in (("edge", edge.pid), ("server", server.pid))}
                samples.append({"tasks": number, **used})
                if len(samples) % (SAMPLES // 6) == 1:
                    say(f"{number:,} tasks: edge {used['edge']:.2f} MiB, server {used['server']:.2f} MiB")
            made = describe(number, OTHERS, ["one"])
            there.append((made["name"], ask(f"{urls['server']}/v1/tasks", made)["id"]))
            ask(f"{edge_url}/v1/tasks")
            play(client, rng.choice(there)[0], rng)
            if len(there) > ALIVE:
                end(urls["server"], there.pop(0)[1])
    later = samples[len(samples) // 2 :]
    at = [each["tasks"] for each in later]
    results: dict[str, Any] = tidy(
        {
            "machine": about,
            "tasks": tasks,
            "alive": ALIVE,
            "events": EVENTS,
            "samples": samples,
            "bytes_a_task": {name: line(at, [each[name] * 2**20 for each in later]) for name in ("edge", "server")},
        }
    )
    return results


def play(client: Client, task: str, rng: random.Random) -> None:
    means = means_of(task)
    with suppress(EdgeError):  # one that was created just now is perhaps not known yet
        for _ in range(EVENTS):
            decision = client.decide(task)
            decision.reward(float(rng.random() < means[ARMS.index(decision.variant)]))
            client.reward(decision)


def end(server_url: str, task_id: str) -> None:
    ask(f"{server_url}/v1/tasks/{task_id}/stop", {})
    delete(f"{server_url}/v1/tasks/{task_id}")


if __name__ == "__main__":
    sys.exit(main())
