"""The tables of docs/howto/delayed-rewards.md and docs/performance.md, from `measures.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Kept = Mapping[str, Any]


def faults(kept: Kept) -> str:
    """What was reported of a mean, before and now."""
    rows = ["| on real processes | variant | true | reported before | reported now |", "|---|---|---:|---:|---:|"]
    for name, now in kept["faults"].items():
        before = kept["faults before"][name]
        for variant, seen in now.items():
            if variant != "answers":
                told = before[variant]["reported"]
                rows.append(f"| {name} | {variant} | {seen['true']:.3f} | {told:.3f} | {seen['reported']:.3f} |")
    return "\n".join(rows)


def kills(kept: Kept) -> str:
    """What sites report that are killed again and again."""
    found = kept["kills"]
    answers = ", ".join(f"{count:,} × {status}" for status, count in sorted(found["answers to rewards"].items()))
    rows = [
        f"{found['kills']} kills (SIGKILL) of four sites under load, {found['decisions']:,} decisions, answers to "
        f"rewards {answers}. Of {found['messages']:,} messages **{found['taken for another decision']}** had more "
        f"successes than the visitors of their group. Of {found['acknowledged']:,} acknowledged rewards of these "
        f"groups {found['acknowledged and not counted']} do not count: they came late, or just before a kill.",
        "",
        "| variant | true mean | reported | decisions | interval |",
        "|---|---:|---:|---:|---|",
    ]
    for variant, seen in found["means"].items():
        low, high = seen["interval"]
        rows.append(f"| {variant} | {seen['true']} | {seen['reported']} | {seen['of']:,} | {low} to {high} |")
    return "\n".join(rows)


def rate(kept: Kept) -> str:
    """What a busy site costs."""
    found = kept["rate"]
    per_decision, waiting = found["bytes_a_waiting_decision"], 1_800 * found["per_second"]
    rows = (
        ("decisions, and how many a second", f"{found['decisions']:,}, {found['per_second']:,.0f}"),
        ("not counted", f"{found['uncounted']:.0f}"),
        ("decisions that wait at once", f"{found['waiting']:,}"),
        (
            "memory of the edge, at first and at most",
            f"{found['memory_mb']['first']} and {found['memory_mb']['most']} MB",
        ),
        ("bytes of memory for a waiting decision", f"{per_decision}"),
        ("bytes of a snapshot", f"{found['snapshot_bytes']:,}"),
        ("time to save; time between saves", f"{found['ms_a_save']} ms; {found['seconds_between_saves']} s"),
        ("decide: median, 99 % within", f"{found['decide_ms']['median']} ms, {found['decide_ms']['p99']} ms"),
        (
            "computed for a window of 1,800 s: waiting, memory for them, snapshot",
            f"{waiting:,.0f}, {waiting * per_decision / 1e6:.0f} MB, "
            f"{found['snapshot_bytes'] * waiting / found['waiting'] / 1e6:.1f} MB",
        ),
    )
    head = f"| one site, window of {found['window']:.0f} s | |\n|---|---:|"
    return "\n".join([head, *(f"| {what} | {value} |" for what, value in rows)])


def speed(kept: Kept) -> str:
    """Decide and reward beside the version before."""
    rows = [
        "| connections | decide, by CPU | by rate | reward, by CPU | by rate |",
        "|---:|---:|---:|---:|---:|",
    ]
    for connections, found in kept["speed"].items():
        ratios = found["against"]["before"]
        cells = [f"{ratios[verb][by]:.2f} ×" for verb in ("decide", "reward") for by in ("by_cpu", "by_rate")]
        rows.append(f"| {connections} | {' | '.join(cells)} |")
    return "\n".join(rows)


ALL: Final[dict[str, Callable[[Kept], str]]] = {
    "rewards-faults": faults,
    "rewards-kills": kills,
    "rewards-rate": rate,
    "rewards-speed": speed,
}
