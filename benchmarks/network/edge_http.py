"""What a decision and a reward cost over HTTP: our edge, beside a bare handler, Starlette and FastAPI.

Each server runs in a process of its own on one core, the generator on another; the servers take turns in short rounds,
and ratios are taken within a round. Decisions are measured first, then the rewards of exactly these decisions.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.network.processes import Child, cores, program
from benchmarks.network.served import NAME, VARIANTS
from benchmarks.timing import say

VERBS = ("decide", "reward")
EVENTS = 1_000
"""Decisions before their rewards come."""
BEARABLE = 0.85
"""Part of a server's own full load above which it is not asked to bear half of ours: it would only queue."""

Round = dict[str, Any]


def measure(*, quick: bool) -> dict[str, Any]:
    """Requests a second, CPU time per request and latencies of each server: medians over rounds."""
    rounds, turns = (4, 2) if quick else (24, 3)
    mine, theirs = cores()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="outvote-bench-")))
        load = stack.enter_context(program("load", core=theirs))
        load.hear()
        servers: dict[str, tuple[Child, int]] = {}
        for variant in VARIANTS:
            if variant == "fastapi" and find_spec("fastapi") is None:
                say("network: FastAPI is not installed, so it is left out")
                continue
            child = stack.enter_context(program("served", variant, folder, core=mine))
            servers[variant] = child, child.hear()["port"]
        full: dict[str, list[Round]] = {variant: [] for variant in servers}
        half: dict[str, list[Round]] = {variant: [] for variant in servers}

        def play(variant: str, rates: dict[str, float] | None = None) -> Round:
            child, port = servers[variant]
            asked = {"task": NAME, "port": port, "pid": child.pid, "turns": turns, "events": EVENTS, "rates": rates}
            return load.ask(asked)

        for variant in servers:
            play(variant)  # to warm it up
        for number in range(rounds):
            say(f"network: HTTP at full load, round {number + 1} of {rounds}")
            for variant in servers:
                full[variant].append(play(variant))
        at_full = {variant: summary(each) for variant, each in full.items()}
        halves = {verb: at_full["ours"][verb]["per_s"] / 2 for verb in VERBS}
        for number in range(rounds):
            say(f"network: HTTP at half of our full load, round {number + 1} of {rounds}")
            for variant, each in at_full.items():
                if all(halves[verb] < BEARABLE * each[verb]["per_s"] for verb in VERBS):
                    half[variant].append(play(variant, halves))
    return {
        "rounds": rounds,
        "requests": rounds * turns * EVENTS,
        "half_per_s": halves,
        "full": at_full,
        "half": {variant: summary(each) for variant, each in half.items() if each},
        "against": {variant: against(full["ours"], full[variant]) for variant in full if variant != "ours"},
    }


def summary(rounds: list[Round]) -> dict[str, dict[str, float]]:
    """Medians; and the 99th percentile of the calmest round, as what else a machine does shows there most."""
    return {
        verb: {key: middle(each[verb][key] for each in rounds) for key in rounds[0][verb]}
        | {"least_p99_ms": min(each[verb]["p99_ms"] for each in rounds)}
        for verb in VERBS
    }


def against(ours: list[Round], theirs: list[Round]) -> dict[str, dict[str, float]]:
    """How many times faster we are: by CPU time per request, and by requests a second; within each round."""
    pairs = list(zip(ours, theirs, strict=True))
    return {
        verb: {
            "by_cpu": middle(their[verb]["cpu_us"] / our[verb]["cpu_us"] for our, their in pairs),
            "by_rate": middle(our[verb]["per_s"] / their[verb]["per_s"] for our, their in pairs),
        }
        for verb in VERBS
    }


def middle(values: Iterable[float]) -> float:
    return float(statistics.median(values))
