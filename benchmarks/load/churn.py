"""Thousands of tasks that come and go at one edge: what is left of each? `python benchmarks/load/churn.py`

A real server with its engine and one real `outvote edge`. One task after the other is created, played, stopped and
deleted; every so often the memory of both is noted. A line through the second half tells what each task leaves behind.
Ctrl-C ends all of it, leaves nothing behind and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.load.slopes import line
from benchmarks.load.world import NotEnough, delete, edge_options, server_options
from benchmarks.network import parts
from benchmarks.network.memory import ask
from benchmarks.network.processes import ChildFailed, memory_mib, outvote
from benchmarks.run import machine_alone, tidy, write
from benchmarks.timing import say

from outvote.client import Client, EdgeError

RESULTS = Path(__file__).with_name("churn.json")
TASKS = 6_000
EVENTS = 12
"""Of each task: enough for a tally."""
SAMPLES = 120
PATIENCE = 30.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", type=int, default=TASKS, help=f"how many ({TASKS:,})")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where results go (of all: churn.json beside this)")
    options = parser.parse_args()
    if options.tasks < SAMPLES:
        parser.error(f"--tasks must be at least {SAMPLES}, got {options.tasks}: there are so many samples")
    try:
        found = churn(options.tasks)
    except KeyboardInterrupt:
        say("stopped; nothing was written, and nothing is left behind")
        return 130
    except (NotEnough, ChildFailed) as error:
        print(f"churn.py: error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found, indent=1))
    out: Path | None = options.out or (RESULTS if options.tasks >= TASKS else None)
    if out is not None:
        write(out, json.dumps(found, indent=1) + "\n")
        say(f"wrote {out.name}")
    return 0


def churn(tasks: int) -> dict[str, Any]:
    about = machine_alone(parts.versions())
    rng = random.Random(3)
    samples: list[dict[str, float]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="outvote-churn-")))
        server = stack.enter_context(outvote("server", *server_options(folder)))
        urls = server.hear()["urls"]
        edge = stack.enter_context(outvote("edge", "one", *edge_options(folder, "one", urls["nats"])))
        client = stack.enter_context(Client(edge.hear()["urls"]["edge"]))
        for number in range(tasks):
            if number % (tasks // SAMPLES) == 0:
                used = {name: memory_mib(pid)["rss_mib"] for name, pid in (("edge", edge.pid), ("server", server.pid))}
                samples.append({"tasks": number, **used})
                if len(samples) % (SAMPLES // 6) == 1:
                    say(f"{number:,} tasks: edge {used['edge']:.2f} MiB, server {used['server']:.2f} MiB")
            come_and_go(urls["server"], client, f"task-{number}", rng)
    later = samples[len(samples) // 2 :]
    at = [each["tasks"] for each in later]
    measured: dict[str, Any] = tidy(
        {
            "machine": about,
            "tasks": tasks,
            "events": EVENTS,
            "samples": samples,
            "bytes_a_task": {name: line(at, [each[name] * 2**20 for each in later]) for name in ("edge", "server")},
        }
    )
    return measured


def come_and_go(server_url: str, client: Client, name: str, rng: random.Random) -> None:
    told = {"name": name, "protocol": "tally", "arms": 3, "players": ["one", "two"], "epsilon": 0, "delta": 0.05}
    task_id = ask(f"{server_url}/v1/tasks", told)["id"]
    until = time.monotonic() + PATIENCE
    played = 0
    while played < EVENTS:
        try:
            decision = client.decide(name)
        except EdgeError as error:
            if error.status != 404 or time.monotonic() > until:
                raise ChildFailed(f"the edge does not play {name}: {error}") from None
            time.sleep(0.002)
            continue
        decision.reward(float(rng.random() < 0.5))
        client.reward(decision)
        played += 1
    ask(f"{server_url}/v1/tasks/{task_id}/stop", {})
    delete(f"{server_url}/v1/tasks/{task_id}")


if __name__ == "__main__":
    sys.exit(main())
