"""The tables of faults, from what `make faults` has kept of its last full run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from generators.tables import table

KEPT = Path(__file__).parent.parent / "faults.json"
SIMULATED = Path(__file__).parent.parent / "simulated-faults.json"
MEANING = {
    "copied-store": "an edge's store is copied; two edges go on, from it and from the copy",
    "corrupt-store": "bits of an edge's store are others: anywhere, or in a number of its state",
    "cut-edge": "no way between an edge and one or all nodes",
    "cut-node": "no way between one node and the others; clients reach it",
    "cut-server": "no way between servers and one or all nodes",
    "delay": "everything is up to 0.4 s late, more and less",
    "drop": "single messages between clients and nodes are lost, 10 to 50 in 100",
    "exchange": "messages overtake others",
    "full-disk-edge": "the disk of an edge is full",
    "full-disk-node": "the disk of a node is full",
    "kill-edge": "`kill -9` of an edge",
    "kill-leader": "`kill -9` of the node that leads the log's copies",
    "kill-node": "`kill -9` of a node, the only one or one of three",
    "kill-server": "`kill -9` of one server or of both",
    "kill-together": "`kill -9` of an edge, a server and a node at once",
    "next-rules": "not injected any more: a server and an edge of another version of the rules, and a task of theirs",
    "one-way-down": "nothing comes back from one or all nodes: they store, and nobody hears of it",
    "one-way-node": "a node speaks, and hears no other node",
    "one-way-up": "nothing reaches one or all nodes",
    "pause-edge": "an edge stands still for some time",
    "pause-node": "a node stands still for some time",
    "pause-server": "a server stands still for some time",
    "repeat": "messages arrive twice, 20 to 100 in 100",
    "set-back-store": "an edge's store is set back to what it was",
    "truncate-store": "an edge's store is cut off somewhere",
    "twin-edge": "a second edge of the same name, with a store of its own",
    "vanish-node": "a node is cut off from everybody, as by a power cut: no connection is ended",
    "wipe-edge": "an edge loses its store",
    "wipe-node": "a node loses its disk, and copies the log from the others",
}
OPERATED = {
    "create-task": "a task is created, some under the name of one that was just deleted",
    "delete-task": "a task is deleted",
    "discount": "an edge is revoked, and what it has sent taken out (`outvote fleet revoke --discount`)",
    "kill-task": "a task's kill switch is used",
    "revive-task": "it is used again: the task goes on",
    "stop-task": "a task is stopped",
}


def _kept() -> dict[str, Any]:
    return dict(json.loads(KEPT.read_text(encoding="utf-8")))


def tables() -> dict[str, Callable[[], str]]:
    """All parts of docs/faults.md."""
    return {
        "faults-found": found,
        "faults-injected": injected,
        "faults-recovery": recovery,
        "faults-simulated": simulated,
        "faults-winners": winners,
    }


def found() -> str:
    """What came of it."""
    kept = _kept()
    rows = [
        ("schedules", f"{kept['runs']:,}"),
        ("faults", f"{sum(kept['faults'].values()):,}"),
        *_of_operators(kept),
        ("events of users", f"{kept['events']:,}"),
        ("messages in the logs", f"{kept['messages']:,}"),
        ("acknowledgements seen on the wire", f"{kept['acknowledgements']:,}"),
        ("messages that the proxy lost, repeated or exchanged", f"{kept['touched_messages']:,}"),
        ("damaged stores that were refused", f"{kept['refused_stores']:,}"),
        ("**acknowledged and lost**", f"**{kept['anomalies']['lost']}**"),
        ("**counted twice**", f"**{kept['anomalies']['counted twice']}**"),
        ("**disagreements**", f"**{kept['anomalies']['disagreement']}**"),
        ("eliminations without a reason", str(kept["anomalies"]["unjustified"])),
        *([("records that ought not to be there", str(kept["anomalies"]["wrong"]))] if _operations(kept) else []),
        ("processes that ended and should not have", str(kept["anomalies"]["crashed"])),
        ("runs that did not come to agree again", str(kept["anomalies"]["not recovered"])),
        (
            "seconds from the last repair until all agree, of which users come for 1 to 4: median, 95 in 100, longest",
            _three(kept["agreement"]),
        ),
    ]
    return table(["of the last full run", ""], rows)


def _operations(kept: dict[str, Any]) -> dict[str, int]:
    """By kind."""
    return dict(kept["operations"])


def _of_operators(kept: dict[str, Any]) -> list[tuple[str, str]]:
    count = sum(_operations(kept).values())
    if not count:
        return []
    return [
        ("what operators did, and what of it was acknowledged", f"{count:,}, {kept['operations_acknowledged']:,}"),
        ("requests of operators that were repeated, since an answer was lost", f"{kept['operations_repeated']:,}"),
    ]


def injected() -> str:
    kept = _kept()
    rows = [(f"`{kind}`", MEANING[kind], str(count)) for kind, count in kept["faults"].items()]
    rows += [(f"`{kind}`", f"operators: {OPERATED[kind]}", str(count)) for kind, count in _operations(kept).items()]
    return table(["fault", "what happens", "times"], rows)


def winners() -> str:
    rows = [
        (f"`{each['protocol']}`", f"{each['delta']:g}", str(each["decided"]), str(each["wrong"]))
        for each in _kept()["winners"]
    ]
    return table(["protocol", "δ", "decided", "wrong winner"], rows)


def recovery() -> str:
    rows = [
        (what, str(each["count"]), *(f"{each[key]:.1f}" for key in ("median", "p95", "max")))
        for what, each in _kept()["recovery"].items()
    ]
    return table(["lost", "times", "median", "95 in 100", "longest"], rows)


def _three(quantiles: dict[str, float]) -> str:
    return ", ".join(f"{quantiles[key]:.1f}" for key in ("median", "p95", "max"))


def simulated() -> str:
    """What came of simulated fleets, from what `make simulate-faults SIMULATED="--out …"` has kept."""
    kept = json.loads(SIMULATED.read_text(encoding="utf-8"))
    totals, findings = kept["totals"], kept["findings"]
    rows = [
        ("schedules", f"{kept['schedules']:,}, from seed {kept['first_seed']} on"),
        ("of them with an elimination", f"{totals['eliminated']:,}"),
        ("decisions", f"{totals['decisions']:,}"),
        ("faults", f"{sum(kept['faults'].values()):,}"),
        ("acts of operators", f"{totals['operations']:,}"),
        ("records in the logs", f"{totals['records']:,}"),
        *((f"**{kind}**", f"**{count}**") for kind, count in findings.items()),
        (
            f"schedules a minute, {kept['processes']} processes on two cores and a run of all tests beside them",
            f"{kept['per_minute_and_process'] * kept['processes']:,}",
        ),
    ]
    return table(("", "figure"), rows)
