"""The tables and figures of docs/scale.md, from what was measured and simulated. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from benchmarks.tables import caveats, number, power, prose, table
from outvote.log.catch_up import ASK_EVERY
from outvote.server.liveness import QUESTIONS

Results: TypeAlias = dict[str, Any]

STEPS = ((5_000, 50), (50_000, 500), (1_000_000, 10_000))
"""Edges, and tasks a day."""
GIB = 2**30


def tables(speed: Results, measures: Results, load: Results, soak: Results, churn: Results) -> dict[str, str]:
    """By the name of the generated part, without `scale-`: from benchmarks/results.json, and from measures.json,
    load.json, soak.json and churn.json of `scale` and `load`."""
    limits = Limits(speed["network"], measures["wire"], load)
    day = measures["day"]
    return {
        "measured": measured(limits),
        "steps": steps(limits, day),
        "day": of_a_day(limits, day),
        "alone": alone(day, limits),
        "questions": questions(limits, measures["wire"], day),
        "load": load_part(load, speed["network"]),
        "soak": soak_part(soak, limits),
        "churn": churn_part(churn),
    }


class Limits:
    """What one of each was measured to bear or to cost."""

    def __init__(self, network: Results, wire: Results, load: Results) -> None:
        self.stored = float(network["log"]["stored_per_s"])
        self.folded = float(network["log"]["folded_per_s"])
        self.connection = float(network["memory"]["connection"]["kib_each"]) * 1024
        largest = max(network["fan_out"]["fleets"], key=lambda each: int(each["edges"]))
        self.fan_out_edges = int(largest["edges"])
        self.delivered = largest["edges"] / (largest["bare"]["last_ms"] / 1e3)
        self.last_ms = float(largest["last_ms"])
        self.message = float(wire["message_bytes"])
        self.news = float(wire["news_bytes"])
        few = next(each for each in wire["questions"] if each["others"] == 100)
        self.answers = 1e3 / float(few["cpu_ms"])
        self.on_disk = load["log_bytes"] / load["records"]
        self.in_memory = float(network["log"]["engine_mib"]) * 2**20 / float(network["log"]["messages"])
        self.tried = int(load["size"]["edges"])


def measured(limits: Limits) -> str:
    rows = [
        ["messages that one log stores, each on the disk before it counts", number(limits.stored) + " /s"],
        ["messages that one server folds from its log, on one core", number(limits.folded) + " /s"],
        [
            f"news that one engine delivers to {limits.fan_out_edges:,} connections, all on two cores",
            number(limits.delivered) + " /s",
        ],
        ["an idle connection, in the engine's memory", number(limits.connection / 1024) + " KiB"],
        ["a message on the wire, with its acknowledgement and all headers", number(limits.message) + " bytes"],
        ["a piece of news on the wire, to one edge", number(limits.news) + " bytes"],
        ["a record of the log, on the engine's disk", number(limits.on_disk) + " bytes"],
        ["the same, in the engine's memory", number(limits.in_memory) + " bytes"],
        ["questions that one core answers, server and asking edge together, 110 tasks", number(limits.answers) + " /s"],
    ]
    return table(["one of each", "measured"], rows)


def steps(limits: Limits, day: Results) -> str:
    """What each step needs, and what gives out first."""
    columns = [step(limits, day, edges, tasks) for edges, tasks in STEPS]
    rows = [[name, *(each[name] for each in columns)] for name in columns[0]]
    head = ["", *(f"{_count(edges)} edges, {tasks:,} tasks a day" for edges, tasks in STEPS)]
    return table(head, rows)


def step(limits: Limits, day: Results, edges: int, tasks: int) -> dict[str, str]:
    share = tasks / day["tasks"]
    up, news = day["up"]["peak"] * share, day["news"]["peak_minute"] * share
    asked = edges / ASK_EVERY
    own = day["deliveries"]["peak_minute"] * share
    loads = {
        "the log": up / limits.stored,
        "the server": up / limits.folded,
        "news to everybody": news * edges / limits.delivered,
        "questions every 30 s": asked / QUESTIONS,
    }
    first = max(loads, key=loads.__getitem__)
    gives_out = f"{first}: {_times(loads[first])}" if loads[first] > 1 else f"nothing; most used: {first}"
    return {
        "messages up, busiest second": number(up),
        "of what one log stores": _share(loads["the log"]),
        "of what one server folds": _share(loads["the server"]),
        "connections in the engines' memory": number(edges * limits.connection / GIB) + " GiB",
        f"engines that hold them, {limits.tried:,} each as tried": number(-(-edges // limits.tried)),
        "news delivered a second in the busiest minute, everybody hears all": number(news * edges),
        "of what one engine delivers": _share(loads["news to everybody"]),
        "the same, each edge hears of its own tasks": _share(own / limits.delivered),
        "questions a second, every 30 s": number(asked),
        "what a lone server tells edges to wait": number(max(ASK_EVERY, edges / QUESTIONS)) + " s",
        "servers that keep it at 30 s": number(max(1, -(-asked // QUESTIONS))),
        "the log grows on the disk, a day": _bytes(day["up"]["day"] * share * limits.on_disk),
        "and in the engine's memory, a day": _bytes(day["up"]["day"] * share * limits.in_memory),
        "**what gives out first**": f"**{gives_out}**",
    }


def of_a_day(limits: Limits, day: Results) -> str:
    kinds = [
        [
            each["name"],
            f"`{each['protocol']}`",
            *(number(each[key]) for key in ("tasks", "players", "events", "messages", "seconds")),
        ]
        for each in day["kinds"]
    ]
    about = f"""{_count(day["edges"])} edges, each with {day["events_a_day"]:,} events a day for each of its tasks;
    traffic swings by {100 * day["swing"]:.0f} % around its mean with the sun. {_count(day["tasks"])} tasks begin
    through the day, more where there is more traffic, and are deleted when they end; an edge has
    {number(day["hosted"])} of them in a day. Messages as a function of events, and the events until the end, are
    those of the simulator ({day["trials"]} trials of each kind); {number(day["running"]["mean"])} tasks run at a
    time."""
    wire = [
        ["messages up", day["up"], limits.message],
        ["news, everybody hears all", _times_edges(day["news"], day["edges"]), limits.news],
        ["news, each edge hears of its own tasks", day["deliveries"], limits.news],
    ]
    rows = [
        [
            what,
            *(number(found[key]) for key in ("mean", "p99", "peak_minute", "peak")),
            number(found["day"]),
            _bytes(found["day"] * each),
        ]
        for what, found, each in wire
    ]
    tasks = ["kind", "protocol", "tasks", "edges each", "events each", "messages each", "seconds each"]
    a_second = ["a second", "mean", "99 of 100", "busiest minute", "busiest second", "in a day", "bytes in a day"]
    return "\n\n".join([prose(about), table(tasks, kinds, words=2), table(a_second, rows)])


def alone(day: Results, limits: Limits) -> str:
    rows = [
        [
            _count(each["players"]),
            str(each["floor"]),
            *(number(each[key]) for key in ("events", "seconds", "messages", "peak")),
            _share(each["peak"] / limits.stored),
        ]
        for each in day["alone"]
    ]
    head = ["edges", "floor", "events", "seconds", "messages", "busiest second", "of what one log stores"]
    return table(head, rows, words=0)


def questions(limits: Limits, wire: Results, day: Results) -> str:
    rows = []
    for each in wire["questions"]:
        asked = day["edges"] / ASK_EVERY
        rows.append(
            [
                number(each["others"]) if each["others"] else "none",
                number(each["bytes"]),
                number(each["cpu_ms"]),
                _bytes(asked * each["bytes"]) + "/s",
                number(asked * each["cpu_ms"] / 1e3),
                _bytes(QUESTIONS * each["bytes"]) + "/s",
                number(QUESTIONS * each["cpu_ms"] / 1e3),
            ]
        )
    head = [
        "tasks of others", "bytes", "CPU ms, both sides", f"{_count(day['edges'])} edges every 30 s", "cores",
        f"a server at {QUESTIONS:.0f} a second", "cores ",
    ]  # fmt: skip
    about = f"""An edge that has {wire["hosted"]} tasks and knows all there is asks again; server and edge in one
    process, bytes both ways with all headers."""
    return prose(about) + "\n\n" + table(head, rows, words=0)


# ---- load


def load_part(load: Results, network: Results) -> str:
    size, edges, tasks = load["size"], load["edges"], load["tasks"]
    about = f"""{size["edges"]:,} edges and {size["commands"]} `outvote edge` processes on one engine and one server,
    {size["tasks"]} tasks at once of `dme`, `edme` and `tally`, {load["seconds"] / 60:.3g} minutes of traffic:
    {edges["events"]:,} events, {load["check"]["messages"]:,} messages, {tasks["created"]} tasks created,
    {tasks["finished"]} finished ({tasks["wrong_winners"]} with another arm than the best, where δ = .05 allows
    {number(0.05 * tasks["finished"])}) and {tasks["deleted"]} deleted.
    {machine(load["machine"])} The engine's log is on its disk, and every message on it before it counts. All of it
    connected in {number(load["connecting_seconds"])} s."""
    plain = f"""**{size["edges"]:,} `outvote edge` processes do not fit on one machine.** So the edges are real `Edge`
    objects, each with a store of its own and a connection of its own, in {size["processes"]} processes; they look
    every {size["tick"]:g} s for what there is to send, where a real one does so five times a second; their stores are
    in memory, as each site has a disk and this machine has one. Events come in bursts of up to {size["events"]:,} at
    one edge."""
    kinds = {
        "server": "`outvote server`",
        "engine": "the engine",
        "edges": f"{size['edges']:,} edges in {size['processes']} processes",
        "command": f"{size['commands']} `outvote edge`",
    }
    usage = [
        [
            what,
            *(number(load["usage"][kind][key]) for key in ("rss_mib_before", "rss_mib_after", "cores", "files")),
        ]
        for kind, what in kinds.items()
    ]
    base = network["memory"]["engine"]["rss_mib"]
    there = load["usage"]
    connected = size["edges"] + size["commands"]
    each_engine = (there["engine"]["rss_mib_before"] - base) * 1024 / connected
    each_edge = there["edges"]["rss_mib_before"] * 1024 / size["edges"]
    after = f"""Of the engine's memory {number(each_engine)} KiB are for each connection, before any traffic; an edge
    with its store, its connection and {number(edges["hosted"] / size["edges"])} tasks takes {number(each_edge)} KiB of
    a process that it shares. The server was at most {number(load["behind"]["most"])} records behind when it was looked
    at."""
    largest = max(network["fan_out"]["fleets"], key=lambda each: int(each["edges"]))
    alone_ms = f"""All processes shared {load["machine"]["cores"]} cores, and what an elimination waits for is mostly
    the processor: without traffic, the last of {largest["edges"]:,} edges had one after {number(largest["last_ms"])} ms
    ([Performance](performance.md#an-elimination-on-its-way))."""
    lags = [
        ["a message: from stored to folded", *_spread(load["lag_ms"])],
        ["an elimination: from stored to the last edge", *_spread(load["eliminations"]["last_ms"])],
    ]
    check = load["check"]
    checks = [
        ["messages that the engine acknowledged to edges", f"{check['acknowledged']:,}", "lost", f"{check['lost']:,}"],
        ["messages in the stores of edges at the end", f"{check['made']:,}", "not in the log", f"{check['missing']:,}"],
        ["messages in the log", f"{check['messages']:,}", "there or counted twice", f"{check['twice']:,}"],
        [
            f"tasks at {check['edges']:,} edges and at the server, against the log folded anew",
            f"{check['states']:,}",
            "disagreements",
            f"{check['disagreements']:,}",
        ],
    ]
    return "\n\n".join(
        [
            prose(about),
            prose(plain),
            table(["process", "RSS MiB before", "after", "cores", "open files"], usage),
            prose(after),
            table(["milliseconds", "half", "9 of 10", "99 of 100", "999 of 1000", "most"], lags),
            prose(alone_ms),
            table(["compared", "count", "found", "count "], checks),
        ]
    )


def _spread(found: Mapping[str, float]) -> list[str]:
    return [number(found.get(key)) for key in ("p50", "p90", "p99", "p999", "most")]


# ---- soak

GROWING: tuple[tuple[str, str, str], ...] = (
    ("server rss_mib", "`outvote server`, RSS", "MiB"),
    ("command-0 rss_mib", "an `outvote edge`, RSS", "MiB"),
    ("command-1 rss_mib", "another, RSS", "MiB"),
    ("engine rss_mib", "the engine, RSS", "MiB"),
    ("server files", "the server's open files", ""),
    ("command-0 files", "an edge's open files", ""),
    ("engine files", "the engine's open files", ""),
    ("server threads", "the server's threads", ""),
    ("command-0 threads", "an edge's threads", ""),
    ("engine threads", "the engine's threads", ""),
    ("command-0 store_kib", "an edge's store", "KiB"),
    ("command-1 store_kib", "another's store", "KiB"),
    ("log mib", "the log on the disk", "MiB"),
    ("records", "records in the log", ""),
)


def soak_part(soak: Results, limits: Limits) -> str:
    size, tasks, check = soak["size"], soak["tasks"], soak["check"]
    about = f"""{soak["seconds"] / 60:.3g} minutes with one server, one engine and {size["commands"]} `outvote edge`
    processes that run through, and {size["edges"]} of {size["edges"] + size["away"]} other edges there at a time:
    {soak["edges"]["swaps"]} times one left and another came back to its store. {tasks["created"]} tasks were created,
    {tasks["finished"]} found their winner, {tasks["stopped"]} were stopped and {tasks["deleted"]} deleted. Operators
    looked at every page and every task every ten seconds. {machine(soak["machine"])}"""
    growth = soak["growth"]
    rows = [
        [
            what + (f", {unit}" if unit else ""),
            *(number(growth[key][name]) for name in ("first", "last", "least", "most")),
            _signed(growth[key]["slope"]),
            f"{_signed(growth[key]['low'])} to {_signed(growth[key]['high'])}",
        ]
        for key, what, unit in GROWING
        if key in growth and "slope" in growth[key]
    ]
    each = growth["engine bytes a record"]
    after = f"""The log is never shortened, so the engine grows with it: by {_signed(each["slope"])} bytes of memory for
    each record (95 % interval {_signed(each["low"])} to {_signed(each["high"])}), where a log of a million records
    needs {number(limits.in_memory)} each. At the end {check["acknowledged"]:,} acknowledged messages were compared:
    {check["lost"]} lost, {check["twice"]} counted twice; of {check["states"]:,} states of tasks at edges and server
    {check["disagreements"]} disagreed."""
    head = ["after the warm-up", "at first", "at last", "least", "most", "growth an hour", "95 % interval"]
    return "\n\n".join([prose(about), table(head, rows), prose(after)])


def churn_part(churn: Results) -> str:
    """What is left of tasks that came and went, at first and in the end."""
    samples, left = churn["samples"], churn["bytes_a_task"]
    shown = [samples[share * (len(samples) - 1) // 20] for share in (0, 1, 2, 4, 6, 10, 15, 20)]
    rows = [[f"{each['tasks']:,}", f"{each['edge']:.2f}", f"{each['server']:.2f}"] for each in shown]
    words = {
        name: f"{_signed(found['slope'])} bytes (95 % interval {_signed(found['low'])} to {_signed(found['high'])})"
        for name, found in left.items()
    }
    about = f"""{churn["tasks"]:,} tasks of all protocols, {churn["alive"]} at a time, each created, stopped and deleted
    in turn at one `outvote edge` and its server; for each, {churn["events"]} events at those that were there, and one
    new connection. {machine(churn["machine"])}"""
    after = f"""In the second half each task left {words["edge"]} at the edge and {words["server"]} at the server."""
    head = ["tasks that came and went", "`outvote edge`, RSS, MiB", "`outvote server`, RSS, MiB"]
    return "\n\n".join([prose(about), table(head, rows), prose(after)])


# ---- words


def machine(about: Results) -> str:
    said = f"""{about["cpu"]}, {about["cores"]} cores, {about["system"]}; Python {about["python"]}, nats-server
    {about["versions"]["nats-server"]}."""
    return said + caveats(about["load"])


def _count(value: int) -> str:
    return power(value) if value >= 10_000 else f"{value:,}"


def _share(value: float) -> str:
    return f"{number(100 * value)} %" if value < 2 else _times(value)


def _times(value: float) -> str:
    return f"{number(value)} ×"


def _signed(value: float) -> str:
    return ("−" if value < 0 else "") + number(abs(value)) if abs(value) >= 1e-9 else "0"


def _bytes(value: float) -> str:
    units = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
    unit, least = next((each for each in units if value >= each[1]), ("bytes", 1.0))
    return f"{number(value / least)} {unit}"


def _times_edges(found: Results, edges: int) -> Results:
    return {key: value * edges for key, value in found.items()}
