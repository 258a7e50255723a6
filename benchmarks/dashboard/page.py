"""The dashboard's part of `docs/performance.md`, and its promises. Nothing is measured here."""

from __future__ import annotations

from typing import Any, TypeAlias

from benchmarks.tables import Target, caveats, number, prose, table

Results: TypeAlias = dict[str, Any]

PAGES = {"tasks": "all tasks", "task": "one task", "fleet": "the fleet"}


def targets(dashboard: Results | None) -> list[Target]:
    """What the design promises of pages; without results, as not measured."""
    found = dashboard or {"loads": {}, "updates": {}}
    return [
        *(
            Target(
                f"the page of {what} is loaded, in a window that was never there",
                most=1_000, unit=" ms", measured=found["loads"].get(name, {}).get("cold", {}).get("load_ms"),
            )
            for name, what in PAGES.items()
        ),
        *(
            Target(
                f"the page of {what} is never busy for longer, while 20 tasks change each second",
                most=100, unit=" ms", measured=found["updates"].get(name, {}).get("longest_task_ms"),
            )
            for name, what in PAGES.items()
        ),
    ]  # fmt: skip


def part(dashboard: Results | None) -> str:
    if dashboard is None:
        return "## Dashboard\n\nIt was not measured in this run."
    return "\n\n".join(["## Dashboard", *loads_part(dashboard), *updates_part(dashboard)])


def loads_part(dashboard: Results) -> list[str]:
    machine = dashboard["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    states = ", ".join(f"{count} {state}" for state, count in sorted(dashboard["statuses"].items()))
    about = f"""A real server with {dashboard["tasks"]} tasks of all protocols ({states}) and {dashboard["edges"]:,}
    edges, whose messages are those of real players, and a real Chromium on the same {machine["cores"]} cores
    ({machine["cpu"]}; Python {machine["python"]}, {versions}). Medians of {dashboard["rounds"]} loads, from the start
    of the navigation. Cold is a window that was never there: all files come anew. Warm is the same page once more."""
    about += caveats(machine["load"], dashboard["quick"])
    rows = [
        [f"{PAGES[name]}, {way}", *(number(each[way][key]) for key in ("paint_ms", "load_ms", "drawn_ms", "kib"))]
        for name, each in dashboard["loads"].items()
        for way in ("cold", "warm")
    ]
    return [prose(about), table(["page", "first paint ms", "loaded ms", "figures drawn ms", "KiB"], rows)]


def updates_part(dashboard: Results) -> list[str]:
    about = f"""Each page for {dashboard["seconds"]} s in which {dashboard["busy"]} tasks get a message every second.
    The longest task is the longest time for which the page could not answer its user; the longest frame also counts
    what else the machine did. The delay is from the engine's answer that a message is stored until the page shows it; a
    page looks again at most twice a second, and the server tells at most four times a second that something changed."""
    keys = (
        "longest_task_ms", "longest_frame_ms", "delay_p50_ms", "delay_p95_ms", "server_cpu", "answer_p50_ms",
        "answer_worst_ms", "kib_per_s",
    )  # fmt: skip
    head = [
        "page", "longest task ms", "longest frame ms", "delay, half ms", "19 of 20 ms", "server's share of a core",
        "API answers, half ms", "the worst ms", "KiB a second",
    ]  # fmt: skip
    rows = [[PAGES[name], *(number(each[key]) for key in keys)] for name, each in dashboard["updates"].items()]
    return ["### Pages that change", prose(about), table(head, rows)]
