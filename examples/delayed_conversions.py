"""A web shop whose customers buy later, or never say no: what the reward window decides, with real processes.

    python examples/delayed_conversions.py
    python examples/delayed_conversions.py --windows 4,2,1

An engine, a server and an edge for each site are started. Visitors see one of three checkouts; who buys does so seconds
later (a second stands for ten minutes), and who does not buy never says so. The same shop runs tasks side by side that
differ in their reward window: "bought within 40 minutes", and "within 10". Which checkout is best depends on it. It
needs outvote's extras `network`, `client` and `sim`.
"""

import argparse
import asyncio
import math
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from matplotlib.figure import Figure

from outvote import OutvoteError, Task
from outvote.client import AsyncClient, Decision
from outvote.demo.fleet import Fleet
from outvote.presenters.task_fields import task_of, to_json

CHECKOUTS = {"card": (0.55, 0.2), "account": (0.15, 0.4), "invoice": (0.8, 1.6)}  # who buys, after seconds on average
COLOURS = {"card": "#0072B2", "account": "#E69F00", "invoice": "#D55E00"}
LOOK_EVERY = 0.3  # seconds
Look = tuple[float, dict[str, Any]]  # seconds since the start, the task as the server describes it


async def buy(site: AsyncClient, decision: Decision, after: float) -> None:
    """A purchase: the edge is told when it happens. Of those that do not happen nobody is told."""
    await asyncio.sleep(after)
    await site.reward(decision, 1, strict=False)


async def open_shop(tasks: list[Task], rate: float, seconds: float) -> dict[str, list[Look]]:
    """Visitors come until all tasks have their winners; what the server knew of each task, as time went by."""
    rng, purchases = random.Random(0), []
    looks: dict[str, list[Look]] = {task.name: [] for task in tasks}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        fleet = Fleet(Path(folder), tasks[0].player_names)
        try:
            await fleet.start()
            sites = [AsyncClient(edge.url("edge"), timeout=5) for edge in fleet.edges.values()]
            server = httpx.AsyncClient(base_url=fleet.server.url("server"), trust_env=False, timeout=10)
            for task in tasks:
                (await server.post("/v1/tasks", json=to_json(task))).raise_for_status()
            start, decided, now = time.monotonic(), False, 0.0
            while not decided and now < seconds:
                for task in tasks:  # a visitor
                    site = rng.choice(sites)
                    decision = await site.decide(task.name, fallback="card")
                    share, delay = CHECKOUTS[decision.variant]
                    if rng.random() < share:
                        purchases.append(asyncio.create_task(buy(site, decision, rng.expovariate(1 / delay))))
                await asyncio.sleep(1 / rate)
                now = time.monotonic() - start
                last = looks[tasks[0].name]
                if not last or now > last[-1][0] + LOOK_EVERY:
                    for task in tasks:
                        looks[task.name].append((now, (await server.get(f"/v1/tasks/{task.name}")).json()))
                    decided = all(seen[-1][1]["winner"] for seen in looks.values())
            for each in purchases:
                each.cancel()
            await asyncio.gather(server.aclose(), *(site.close() for site in sites))
        finally:
            fleet.stop()
    return looks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", default="4,1", help="seconds in which a purchase counts, by task (%(default)s)")
    parser.add_argument("--sites", default="paris,lima", help="names of sites (%(default)s)")
    parser.add_argument("--rate", type=float, default=60, help="visitors in a second, in the whole shop (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="after which it closes in any case (%(default)s)")
    parser.add_argument("--plot", type=Path, default=Path("delayed_conversions.png"), help="the picture (%(default)s)")
    options = parser.parse_args()
    if not min(options.rate, options.seconds) > 0:
        parser.error(f"--rate and --seconds must be above 0, got {options.rate:g} and {options.seconds:g}")
    try:
        asked = {"variants": list(CHECKOUTS), "sites": options.sites.split(","), "protocol": "tally"}
        windows = [float(window) for window in options.windows.split(",")]
        tasks = [task_of(asked | {"name": f"within-{each:g}-s", "reward_window": each}) for each in windows]
        options.plot.touch()
    except (OSError, ValueError, OutvoteError) as error:
        parser.error(str(error))
    looks = asyncio.run(open_shop(tasks, options.rate, options.seconds))
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
    for task, axes in zip(tasks, panels, strict=True):
        name, seen = task.name, looks[task.name]
        first = next((look for look in seen if all(arm["trials"] for arm in look[1]["variants"])), seen[-1])
        last = next((look for look in seen if look[1]["winner"]), seen[-1])
        print(f"{name}: the first tallies are in after {first[0]:.1f} s; winner after {last[0]:.1f} s:", end=" ")
        print(last[1]["winner"] or "none")
        for arm, (checkout, (share, delay)) in enumerate(CHECKOUTS.items()):
            in_time = share * (1 - math.exp(-task.reward_window / delay))
            both = (look[1]["variants"][arm] for look in (first, seen[-1]))
            told = [f"{view['successes']} of {view['trials']}" for view in both]
            print(f"  {checkout:8} {in_time:4.0%} buy in time; the first tallies say {told[0]}, all together {told[1]}")
            views = [(now, view["variants"][arm]) for now, view in seen if view["variants"][arm]["trials"]]
            times = [now for now, _ in views]
            axes.plot(times, [view["mean"] for _, view in views], color=COLOURS[checkout], label=checkout)
            low, high = ([view["interval"][side] for _, view in views] for side in (0, 1))
            axes.fill_between(times, low, high, color=COLOURS[checkout], alpha=0.15, lw=0)
            axes.axhline(in_time, color=COLOURS[checkout], lw=1, ls=":")
        axes.set(xlabel="seconds", xlim=(0, seen[-1][0]), ylim=(0, 1.02), title=f"task {name}")
    panels[0].set_ylabel("share of buyers that the fleet believes")
    panels[-1].legend(frameon=False, title="dotted: the truth\nbands: 95 %, at all times")
    figure.savefig(options.plot, dpi=150)
    print(f"picture: {options.plot}")


if __name__ == "__main__":
    main()
