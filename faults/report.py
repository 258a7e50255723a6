"""What many runs come to: a report as JSON and as text. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

FALSE_ALARM: Final = 1e-3
"""How often a protocol that keeps its δ would be said not to."""
ANOMALIES: Final = ("lost", "counted twice", "disagreement", "unjustified", "wrong", "not recovered", "crashed")


def at_least(wrong: int, runs: int, delta: float) -> float:
    """The probability that so many of the runs, or more, are wrong, if each is with probability δ."""
    return math.fsum(math.comb(runs, k) * delta**k * (1 - delta) ** (runs - k) for k in range(wrong, runs + 1))


def summary(results: Sequence[dict[str, Any]], *, first_seed: int, engine: str) -> dict[str, Any]:
    """Everything, in plain JSON types."""
    faults: Counter[str] = Counter()
    for each in results:
        faults.update(each["faults"])
    operations: Counter[str] = Counter()
    for each in results:
        operations.update(each["operations"])
    found = [(each["seed"], *finding) for each in results for finding in each["findings"]]
    kinds = Counter(kind for _, kind, _ in found)
    return {
        "engine": engine,
        "first_seed": first_seed,
        "runs": len(results),
        "seconds": round(sum(each["seconds"] for each in results), 1),
        "seconds_of_a_run": quantiles([each["seconds"] for each in results]),
        "events": sum(each["events"] for each in results),
        "messages": sum(each["records"] for each in results),
        "acknowledgements": sum(each["acknowledged"] for each in results),
        "touched_messages": sum(each["touched"] for each in results),
        "refused_stores": sum(each["refused_stores"] for each in results),
        "faults": dict(sorted(faults.items())),
        "operations": dict(sorted(operations.items())),
        "operations_acknowledged": sum(each["operations_acknowledged"] for each in results),
        "operations_repeated": sum(each["operations_repeated"] for each in results),
        "anomalies": {kind: kinds[kind] for kind in ANOMALIES},
        "found": [{"seed": seed, "kind": kind, "what": what} for seed, kind, what in found],
        "winners": winners(results),
        "recovery": recovery(results),
        "agreement": quantiles([each["settled"] for each in results if each["settled"]]),
    }


def winners(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each protocol: how often it decided, how often wrongly, and whether δ allows that."""
    decided: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for each in results:
        for protocol, delta, is_wrong in each["decided"]:
            decided[protocol, delta] += 1
            wrong[protocol, delta] += is_wrong
    return [
        {
            "protocol": protocol,
            "delta": float(delta),
            "decided": count,
            "wrong": wrong[protocol, delta],
            "allowed": at_least(wrong[protocol, delta], count, float(delta)) >= FALSE_ALARM,
        }
        for (protocol, delta), count in sorted(decided.items())
    ]


def recovery(results: Iterable[dict[str, Any]]) -> dict[str, dict[str, float]]:
    times: dict[str, list[float]] = {}
    for each in results:
        for what, seconds in each["recoveries"]:
            times.setdefault(what, []).append(seconds)
    return {what: quantiles(found) for what, found in sorted(times.items())}


def quantiles(values: Iterable[float]) -> dict[str, float]:
    """Median, the value that 95 of 100 do not exceed, and the largest."""
    ordered = sorted(values)
    if not ordered:
        return {"count": 0}

    def at(share: float) -> float:
        return round(ordered[math.ceil(share * len(ordered)) - 1], 2)

    return {"count": len(ordered), "median": at(0.5), "p95": at(0.95), "max": at(1.0)}


def is_well(report: dict[str, Any]) -> bool:
    return not report["found"] and all(each["allowed"] for each in report["winners"])


def text(report: dict[str, Any]) -> str:
    """For people, in Markdown."""
    anomalies = ", ".join(f"{kind} {count}" for kind, count in report["anomalies"].items())
    lines = [
        "# Faults",
        "",
        f"{report['runs']} runs from seed {report['first_seed']}, {report['seconds']:.0f} s of them, with nats-server "
        f"{report['engine']}: {report['events']:,} events, {report['messages']:,} messages in logs, "
        f"{report['acknowledgements']:,} acknowledgements seen on the wire.",
        "",
        f"Anomalies: {anomalies}.",
        "",
        *(f"- seed {each['seed']}: {each['kind']}: {each['what']}" for each in report["found"]),
        *([""] if report["found"] else []),
        "| fault | injected |",
        "|---|---|",
        *(f"| {kind} | {count} |" for kind, count in report["faults"].items()),
        "",
        "| operators | did |",
        "|---|---|",
        *(f"| {kind} | {count} |" for kind, count in report["operations"].items()),
        f"| acknowledged | {report['operations_acknowledged']} |",
        f"| asked again | {report['operations_repeated']} |",
        "",
        "| protocol | δ | decided | wrong | δ allows it |",
        "|---|---|---|---|---|",
        *(
            f"| {each['protocol']} | {each['delta']} | {each['decided']} | {each['wrong']} | {each['allowed']} |"
            for each in report["winners"]
        ),
        "",
        "| seconds to recover from the loss of | times | median | 95 % | longest |",
        "|---|---|---|---|---|",
        *(
            f"| {what} | {each['count']} | {each['median']} | {each['p95']} | {each['max']} |"
            for what, each in report["recovery"].items()
        ),
        "",
    ]
    return "\n".join(lines)
