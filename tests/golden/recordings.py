"""What must not change while walls move: results of the core, a replayed log, and the OpenAPI documents.

`PYTHONPATH=tests python -m golden.recordings` records them anew, `test_recordings.py` compares. They are deleted when
the rooms stand.
"""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from outvote.core import protocols
from outvote.core.task import Task
from outvote.edge import openapi as edge_openapi
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.records import Coder, DownSubject, UpSubject, task_record
from outvote.server.admin import openapi as admin_openapi

HERE = Path(__file__).parent
SIMULATED = ("dme", "edme", "tally", "me-local", "me-unlimited", "ucb-unlimited")
REPLAYED = ("dme", "edme", "tally")
CORE_ENGINE = "core"
NOT_COMPARED = ("engine", "seconds", "outvote")
"""A name that is about to change, and what differs from run to run."""


def simulated(protocol: str) -> Any:
    """What the engine that drives the real objects says of twelve players."""
    asked = ["--protocol", protocol, "--means", ".9,.5,.3,.2", "--players", "12", "--horizon", "20000", "--trials", "2"]
    asked += ["--delta", ".1", "--seed", "5", "--engine", CORE_ENGINE, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "outvote.cli.main", "simulate", *asked], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return {key: value for key, value in found.items() if key not in NOT_COMPARED}


def replayed(protocol: str) -> Any:
    """A log of three sites with one fold as its server, and what that has come to."""
    epsilon, delta = (0.0, 0.05) if protocol == "tally" else (0.5, 0.5)
    task = Task(arms=("red", "green", "blue"), players=3, epsilon=epsilon, delta=delta, protocol=protocol, name="shop")
    fold, coder, rng, task_id = LogState(), Coder(task), random.Random(9), "shop-00000001"
    records: list[tuple[str, bytes]] = [(str(DownSubject(task_id, "task")), task_record(task))]
    fold.apply(Record(*records[0], 1, 0.0))
    players = {name: protocols.player(task, name, rng=random.Random(index)) for index, name in enumerate("abc")}
    for _ in range(30_000):
        name = rng.choice("abc")
        player = players[name]
        if len(player.remaining) == 1:
            break
        arm, ticket = player.decide()
        outcome = float(rng.random() < (0.9, 0.5, 0.2)[arm])
        for message in player.reward(arm, outcome, ticket=ticket):
            records.append((str(UpSubject(name, task_id, "life", message.sequence)), coder.up(message)))
            fold.apply(Record(*records[-1], len(records), 0.0))
            while (proposal := fold.tasks[task_id].proposal()) is not None:
                records.append((proposal.subject, proposal.payload))
                fold.apply(Record(*records[-1], len(records), 0.0))
                for each in players.values():
                    each.receive(fold.tasks[task_id].eliminations[-1])
    folded = fold.tasks[task_id]
    return {
        "records": len(records),
        "last": [(subject, payload.hex()) for subject, payload in records[-5:]],
        "announced": folded.announced,
        "eliminations": [dataclasses.asdict(each) for each in folded.eliminations],
        "bits": {"up": folded.ledger.up_bits, "down": folded.ledger.down_bits, "bound": folded.ledger.bound},
        "snapshots": {name: player.snapshot() for name, player in players.items()},
    }


ALL: dict[str, Callable[[], Any]] = {
    **{f"simulate-{name}": partial(simulated, name) for name in SIMULATED},
    **{f"replay-{name}": partial(replayed, name) for name in REPLAYED},
    "openapi-edge": edge_openapi.openapi,
    "openapi-server": admin_openapi.openapi,
}


def path_of(name: str) -> Path:
    return HERE / f"{name}.json"


if __name__ == "__main__":
    for name, make in ALL.items():
        path_of(name).write_text(json.dumps(make(), indent=1, sort_keys=True) + "\n")
