"""Tables of what `measure.py` found, for the documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

AIM_MS = 50
VERBS = ("decide", "reward")


def rounded(value: Any) -> Any:
    """To four digits, wherever numbers are."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def under_attack(measured: dict[str, Any]) -> str:
    before, after = measured["attacked"].get("before"), measured["attacked"]["after"]
    rows = [["attack", "on", "connections", "at rest", "peak", "later", "others' p50, p99"]]
    for kind, attacks in after.items():
        for name, now in attacks.items():
            then = before and before[kind].get(name)
            rows.append(
                [
                    name,
                    kind,
                    f"{now['connections']:,}",
                    *(change(then, now, key, "MB") for key in ("rest_mib", "peak_mib", "after_mib")),
                    f"{change(then, now, 'p50_ms', 'ms')}; {change(then, now, 'p99_ms', 'ms')}",
                ]
            )
    return table(rows)


def odd_requests(measured: dict[str, Any]) -> str:
    before, after = measured["odd"].get("before", {}), measured["odd"]["after"]
    rows = [["request", "before", "now"]]
    return table(rows + [[name, before.get(name, "–"), status] for name, status in after.items()])


def speed(measured: dict[str, Any]) -> str:
    rows = [["connections", "", "µs of CPU", "a second", "p99", "CPU against before", "against a bare handler"]]
    for connections, found in measured["speed"].items():
        for verb in VERBS:
            now, ratios = found["full"]["after"][verb], found["against"]
            earlier = f"{1 / ratios['before'][verb]['by_cpu']:.2f} ×" if "before" in ratios else "–"
            rows.append(
                [
                    connections,
                    verb,
                    f"{now['cpu_us']:.0f}",
                    f"{now['per_s']:,.0f}",
                    f"{now['p99_ms']:.1f} ms",
                    earlier,
                    f"{1 / ratios['plain'][verb]['by_cpu']:.2f} ×",
                ]
            )
    return table(rows)


def change(then: dict[str, float] | None, now: dict[str, float], key: str, unit: str) -> str:
    after = number(now[key])
    return f"{after} {unit}" if then is None else f"{number(then[key])} → {after} {unit}"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def table(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


ALL: dict[str, Callable[[dict[str, Any]], str]] = {
    "hostile-memory": under_attack,
    "hostile-odd": odd_requests,
    "hostile-speed": speed,
}
