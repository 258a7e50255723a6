"""The network's part of `docs/performance.md`, and its promises. Nothing is measured here."""

from __future__ import annotations

from typing import Any, TypeAlias

from benchmarks.tables import Target, caveats, number, power, prose, table

Results: TypeAlias = dict[str, Any]

VERBS = ("decide", "reward")
SERVERS = {
    "ours": "our edge",
    "bare": "a bare handler",
    "starlette": "our edge behind Starlette",
    "fastapi": "our edge behind FastAPI",
}
PROMISED_LOG = 1_000_000
PROMISED_FLEETS = {1_000: 50.0, 5_000: 200.0}
"""Milliseconds until the last of so many edges knows."""


def targets(network: Results | None) -> list[Target]:
    """What the design promises of the network; without results, as not measured."""
    found = network or {"http": {"against": {}, "half": {}}, "log": {}, "fan_out": {"fleets": []}}
    http, log = found["http"], found["log"]
    against, half = http["against"], http["half"].get("ours", {})
    last = {fleet["edges"]: fleet["last_ms"] for fleet in found["fan_out"]["fleets"]}
    return [
        *(
            Target(
                f"`{verb}` over HTTP against a bare handler, by CPU time",
                least=0.8, unit=" ×", measured=against.get("bare", {}).get(verb, {}).get("by_cpu"),
            )
            for verb in VERBS
        ),
        *(
            Target(
                f"`{verb}` over HTTP against the same behind FastAPI, by CPU time",
                least=3, unit=" ×", measured=against.get("fastapi", {}).get(verb, {}).get("by_cpu"),
            )
            for verb in VERBS
        ),
        *(
            Target(
                f"`{verb}` over HTTP at half of the full load, 99 of 100 within",
                most=2, unit=" ms", measured=half.get(verb, {}).get("p99_ms"),
            )
            for verb in VERBS
        ),
        Target(
            "messages a second that a server folds from its log",
            least=20_000, measured=log.get("folded_per_s"),
        ),
        Target(
            f"a fresh server has read a log of {power(PROMISED_LOG)} messages",
            most=60, unit=" s", measured=log["seconds"] if log.get("messages") == PROMISED_LOG else None,
        ),
        *(
            Target(
                f"the last of {edges:,} edges hears of an elimination",
                most=most, unit=" ms", measured=last.get(edges),
            )
            for edges, most in PROMISED_FLEETS.items()
        ),
    ]  # fmt: skip


def part(network: Results | None) -> str:
    if network is None:
        return "## Network\n\nIt was not measured in this run."
    return "\n\n".join(
        [
            "## Network",
            machine_part(network),
            http_part(network["http"]),
            log_part(network["log"]),
            fan_out_part(network["fan_out"]["fleets"]),
            memory_part(network["memory"]),
        ]
    )


def machine_part(network: Results) -> str:
    machine = network["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    about = f"""Real processes on one machine: {machine["cpu"]}, {machine["cores"]} cores, {machine["system"]}; Python
    {machine["python"]}, {versions}. Where processes are compared they take turns in one run, and ratios are medians of
    the ratios within each round."""
    return prose(about + caveats(machine["load"], network["quick"]))


def http_part(http: Results) -> str:
    shown = [(verb, name) for verb in VERBS for name in SERVERS if name in http["full"]]
    full = []
    for verb, name in shown:
        each, ratio = http["full"][name][verb], http["against"].get(name, {}).get(verb)
        full.append(
            [
                f"`{verb}`, {SERVERS[name]}",
                *(number(each[key]) for key in ("per_s", "cpu_us", "p50_ms", "p99_ms")),
                *("–" if ratio is None else number(ratio[key]) + " ×" for key in ("by_cpu", "by_rate")),
            ]
        )
    half = [
        [
            f"`{verb}`, {SERVERS[name]}",
            number(http["half_per_s"][verb]),
            *(number(http["half"][name][verb][key]) for key in ("cpu_us", "p50_ms", "p99_ms", "least_p99_ms")),
        ]
        for verb, name in shown
        if name in http["half"]
    ]
    head = ["full load", "requests a second", "CPU µs each", "p50 ms", "p99 ms", "ours against, by CPU", "by rate"]
    about = f"""A server on one core with uvicorn, uvloop and httptools, and a generator on another with 24 connections
    that stay open. A thousand decisions, then their thousand rewards, and so on: {http["requests"]:,} of each in
    {http["rounds"]} rounds, in which the servers take turns. The bare handler answers constant bytes. The edges save
    their state to disk as in production. CPU time says more than requests a second: the generator and the rest of the
    machine have no part in it."""
    calm = """At half of our own full load, requests come at fixed times, and a latency counts from that time; servers
    that could hardly bear that load are left out. A request that comes alone costs more CPU time than one of many that
    wait. What else the machine does shows in the 99th percentile of all of them, the bare handler's too; in the calmest
    round it shows least."""
    return "\n\n".join(
        [
            "### Decisions and rewards over HTTP",
            prose(about),
            table(head, full),
            prose(calm),
            table(["half load", "requests a second", "CPU µs each", "p50 ms", "p99 ms", "in the calmest round"], half),
        ]
    )


def log_part(log: Results) -> str:
    messages = power(log["messages"])
    best = min(log["recoveries"], key=lambda each: float(each["seconds"]))
    rows = [
        ["folded in memory, without NATS", number(log["fold_per_s"]), "–", "–"],
        [
            f"folded by a fresh server, {messages} messages",
            number(log["folded_per_s"]),
            number(best["seconds"]),
            number(best["cpu_seconds"]),
        ],
        [
            "the same from the start of its process",
            number(log["messages"] / log["seconds"]),
            number(log["seconds"]),
            "–",
        ],
        ["stored by the engine, each on the disk before it counts", number(log["stored_per_s"]), "–", "–"],
    ]
    about = f"""Messages of `tally` from {log["edges"]} sites and {log["tasks"]} tasks whose ten arms stay contenders,
    so that every message has to be weighed; the best of {len(log["recoveries"])} recoveries."""
    after = f"""The server had {number(log["peak_mib"])} MiB at most, the engine {number(log["engine_mib"])} MiB; the
    engine itself needed {number(log["engine_seconds"])} s to start on that log. One message speaks of up to 127 events,
    so what the engine stores is far fewer than what sites decide."""
    return "\n\n".join(
        [
            "### The log",
            prose(about),
            table(["tally messages", "a second", "seconds", "of CPU"], rows),
            prose(after),
        ]
    )


def fan_out_part(fleets: list[Results]) -> str:
    rows = []
    for fleet in fleets:
        for what, each in (("as an edge hears it", fleet), ("the bytes alone", fleet["bare"])):
            rows.append(
                [
                    f"{fleet['edges']:,} edges, {what}",
                    *(number(each[key]) for key in ("stored_ms", "p50_ms", "p99_ms", "last_ms", "worst_last_ms")),
                ]
            )
    rounds = fleets[0]["rounds"] if fleets else 0
    about = f"""From the call that stores an elimination until each of so many connections has it, in milliseconds:
    medians of {rounds} rounds, and the last edge of the worst round. The connections are real and made as an edge makes
    them; but the engine and all of them share the cores of this machine, where a fleet has one for each. "The bytes
    alone" are connections that note when something comes and do nothing with it: what the engine and the system
    take."""
    head = ["an elimination reaches", "stored", "half", "99 of 100", "the last", "the worst round"]
    return "\n\n".join(["### An elimination on its way", prose(about), table(head, rows)])


def memory_part(memory: Results) -> str:
    names = {"edge": "`outvote edge`, one task", "server": "`outvote server`, one task", "engine": "its engine"}
    rows = [[what, *(number(memory[name][key]) for key in ("rss_mib", "pss_mib"))] for name, what in names.items()]
    connection = memory["connection"]
    about = f"""An idle edge's connection costs the engine {number(connection["kib_each"])} KiB, counted from
    {connection["from"]:,} to {connection["to"]:,} of them. Of a process, RSS counts all its pages, and PSS those that
    it shares divided among who shares them: here the mean of {memory["edges"]} edges beside a server on one machine."""
    return "\n\n".join(["### Memory", prose(about), table(["process", "RSS MiB", "PSS MiB"], rows)])
