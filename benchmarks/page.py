"""Turns `benchmarks/results.json` into `docs/performance.md`, and parts of it into what `run.py` prints.

Nothing is measured here: the same results give the same text, so a test can tell whether the page is up to date.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.dashboard import page as dashboard_page
from benchmarks.network import page as network_page
from benchmarks.tables import Target, caveats, number, power, prose, table

Results: TypeAlias = dict[str, Any]

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
PEERS_WITH_A_TARGET = ("MABWiser", "SMPyBandits", "river", "pymab")
CASES = {
    "dme": "`dme`, 64 players",
    "edme": "`edme`, 256 players",
    "me-local": "`me-local`, 64 players",
    "me-unlimited": "`me-unlimited`",
    "ucb-1": "`ucb-unlimited`, Problem 1",
    "ucb-2": "`ucb-unlimited`, Problem 2",
}


def targets(results: Results) -> list[Target]:
    """What the design promises of speed, as far as benchmarks measure it."""
    engines, core = results["engines"], results["core"]
    dme = engines["cases_ns"]["dme"]
    longest = next((each for each in engines["horizons"] if each["horizon"] == 10**9), None)
    million = [fleet for fleet in engines["fleets"] if (fleet["players"], fleet["horizon"]) == (10**6, 10**9)]
    peers = {row["name"]: row["ns"] / results["peers"]["ours_ns"] for row in (results["peers"] or {}).get("rows", [])}
    light = core["import_is_standard_library_only"]
    return [
        Target(
            "step kernel against jump kernel, final regret: `dme`, 64 players, 10⁶ draws",
            least=40, unit=" ×", measured=dme["step"] / dme["final"],
        ),
        Target(
            "step kernel against jump kernel, exact curve of 200 points: the same",
            least=10, unit=" ×", measured=dme["step"] / dme["curve"],
        ),
        Target(
            "step kernel against the bare random numbers of its draws",
            most=4, unit=" ×", measured=dme["step"] / engines["words_ns"],
        ),
        *(
            Target(f"{name}'s UCB1 against ours, Problem 1", least=1000, unit=" ×", measured=peers.get(name))
            for name in PEERS_WITH_A_TARGET
        ),
        Target(
            "one trial, 64 players, 10⁹ draws, curve of 200 points",
            most=5, unit=" ms", measured=None if longest is None else trial_ms(longest["curve"], 10**9),
        ),
        Target(
            "one trial, 10⁶ players, 10⁹ draws, final regret or curve",
            most=60, unit=" s", measured=max((fleet["seconds"] for fleet in million), default=None),
        ),
        Target(
            "memory per further player up to 10⁶, against up to 500,000 (linear: 1)",
            most=1.1, unit=" ×", measured=memory_growth(engines["fleets"]),
        ),
        Target("`decide` + `reward` in process, `dme`", most=1000, unit=" ns", measured=core["event_ns"]["dme"]),
        Target("`decide` + `reward` in process, `tally`", most=1000, unit=" ns", measured=core["event_ns"]["tally"]),
        Target(
            "`import outvote`" if light else "`import outvote`, which loads more than the standard library",
            most=60, unit=" ms", measured=core["import_ms"] if light else math.inf,
        ),
        *network_page.targets(results.get("network")),
        *dashboard_page.targets(results.get("dashboard")),
    ]  # fmt: skip


def trial_ms(ns_per_draw: float, horizon: int) -> float:
    return ns_per_draw * horizon / 1e6


def bytes_per_player(fleets: Sequence[Results]) -> dict[int, float]:
    """What each further player adds to the peak memory, from one size of fleet to the next.

    Not counted from the smallest: loading kernels takes more for a moment than some thousand players do later.
    """
    fleets = [fleet for fleet in fleets if fleet["horizon"] == 10**9 and fleet["grid"] == 1][1:]
    return {
        more["players"]: (more["peak_mib"] - less["peak_mib"]) * 2**20 / (more["players"] - less["players"])
        for less, more in itertools.pairwise(fleets)
    }


def memory_growth(fleets: Sequence[Results]) -> float | None:
    """1 where memory is linear in the number of players."""
    each = list(bytes_per_player(fleets).values())
    return each[-1] / each[0] if len(each) > 1 else None


def targets_part(results: Results) -> str:
    rows = [target.row() for target in targets(results)]
    return "## Targets\n\n" + table(["what", "target", "measured", ""], rows)


def engines_part(results: Results) -> str:
    engines = results["engines"]
    rows = [["the random numbers of a draw, nothing done with them", number(engines["words_ns"]), "–", "–", "–", "–"]]
    for name, ns in engines["cases_ns"].items():
        step = ns.get("step")
        rows.append(
            [
                CASES[name],
                number(step),
                number(ns["curve"]),
                number(ns["final"]),
                "–" if step is None else number(step / ns["curve"]) + " ×",
                "–" if step is None else number(step / ns["final"]) + " ×",
            ]
        )
    head = ["10⁶ draws", "step", "jump, 200 points", "jump, final", "step / 200 points", "step / final"]
    return f"""## Engines

Nanoseconds per simulated draw, one core. The engine `fast` has two kinds of kernels. The step kernel makes every draw.
Jump kernels skip what needs no looking at, exactly in distribution: between 200 grid points for a curve of regret, or
to the horizon where only the final regret is wanted.

{table(head, rows)}"""


def scaling_part(results: Results) -> str:
    engines = results["engines"]
    players = [
        [f"{each['players']:,}", *(number(each[way]) for way in ("step", "curve", "final")), each["taken"]]
        for each in engines["players"]
    ]
    horizons = [
        [
            power(each["horizon"]),
            *(
                "–" if each[way] is None else number(trial_ms(each[way], each["horizon"]))
                for way in ("step", "curve", "final")
            ),
        ]
        for each in engines["horizons"]
    ]
    return f"""## Scaling

`dme`, Problem 1. With 10⁶ draws and a growing number of players, nanoseconds per draw; with many players each has too
few draws between two grid points for anything to be skipped, and `fast` takes the step kernel for a curve:

{table(["players", "step", "jump, 200 points", "jump, final", "`fast` takes for 200 points"], players, words=0)}

With 64 players and a growing horizon, milliseconds per trial; once one arm is left, there is nothing to do:

{table(["draws", "step", "jump, 200 points", "jump, final"], horizons, words=0)}"""


def fleets_part(results: Results) -> str:
    fleets = results["engines"]["fleets"]
    each = bytes_per_player(fleets)
    rows = []
    for fleet in fleets:
        comparable = fleet["horizon"] == 10**9 and fleet["grid"] == 1
        rows.append(
            [
                power(fleet["players"]) if fleet["players"] >= 1000 else str(fleet["players"]),
                power(fleet["horizon"]),
                str(fleet["grid"]),
                number(fleet["seconds"]),
                number(fleet["peak_mib"]),
                number(each.get(fleet["players"])) if comparable else "–",
                "yes" if fleet["finished"] else "no",
            ]
        )
    head = ["players", "draws", "grid points", "seconds", "peak MiB", "bytes a further player", "task finished"]
    return f"""## Large fleets

`dme`, Problem 1, one trial by the jump kernel, each in a process of its own. Bytes a further player are counted from
the row above. Where the task is not finished, players had too few draws each to vote all arms out but one.

{table(head, rows, words=0)}"""


def core_part(results: Results) -> str:
    core = results["core"]
    events, steps = core["event_ns"], core["step_ns"]
    names = {
        "empty": "two empty methods",
        "dme": "`dme`",
        "edme": f"`edme`, {core['instances']} instances",
        "tally": "`tally`",
    }
    event_rows = [
        [what, number(events[name]), number(events[name] / events["empty"]) + " ×"] for name, what in names.items()
    ]
    step_rows = [
        ["drawing alone" if name == "draws" else f"`{name}`", number(ns), number(ns / steps["draws"]) + " ×"]
        for name, ns in steps.items()
    ]
    return f"""## The core, in process

`decide` + `reward` of one player, as an edge calls them:

{table(["an event", "ns", "against empty methods"], event_rows)}

A server of `tally`, ten arms that stay contenders: {number(core["tally_server_us"])} µs for each tally, that is
{number(1e6 / core["tally_server_us"])} a second.

The engine `core` (`--engine core`), which drives core objects and is the reference for the kernels, 64 players:

{table(["a draw", "ns", "against drawing alone"], step_rows)}"""


def peers_part(results: Results) -> str:
    peers = results["peers"]
    if peers is None:
        return "## Other libraries\n\nThey were not measured in this run."
    ours = peers["ours_ns"]
    rows = [
        [
            f"{row['name']} {row['version']}",
            row["call"],
            f"{row['horizon']:,}",
            number(row["ns"]),
            number(row["ns"] / ours) + " ×",
            number(row["ns"] / row["ours_ns_at_its_horizon"]) + " ×",
            f"{row['regret']:.0f} / {row['our_regret']:.0f}{'' if row['agrees'] else ', **differs**'}",
        ]
        for row in peers["rows"]
    ]
    horizon = f"{peers['horizon']:,}"
    rows.append([f"outvote {results['outvote']}", "`ucb-unlimited`", horizon, number(ours), "1 ×", "1 ×", "–"])
    head = ["library", "called by", "draws", "ns a draw", "against ours", "at that horizon", "regret, theirs / ours"]
    about = f"""UCB1, index μ̂ + √(2 ln t / pulls), Bernoulli rewards, Problem 1 (means .7, .5, .3 and seven of .1), one
    core, one run. They make every draw; ours adds the plays of a leader that cannot be overtaken all at once,
    exactly in distribution, so a draw costs it less the longer the horizon. Hence two ratios: to ours with
    {power(peers["horizon"])} draws ({peers["trials"]} trials), and to ours at the horizon that the library was given.
    Mean regrets are compared so that it is sure that the same problem was solved; "differs" stands beside one that is
    more than five standard errors off."""
    left_out = [f"Left out: {each['name']}, {each['why']}." for each in peers["left_out"]]
    return "\n\n".join(["## Other libraries", prose(about), table(head, rows, words=2), *left_out])


def machine_part(results: Results) -> str:
    machine = results["machine"]
    about = f"""{machine["cpu"]}, {machine["cores"]} cores, {machine["system"]}; Python {machine["python"]}, NumPy
    {machine["numpy"]}, Numba {machine["numba"]}; outvote {results["outvote"]}. Each figure is the best of several
    rounds in which all parts take turns, kernels compiled, one core. Times depend on the machine; ratios are within one
    run and depend on it much less."""
    return prose(about + caveats(machine["load"], results["quick"]))


def network_part(results: Results) -> str:
    return network_page.part(results.get("network"))


def dashboard_part(results: Results) -> str:
    return dashboard_page.part(results.get("dashboard"))


PARTS = (targets_part, engines_part, scaling_part, fleets_part, peers_part, core_part, network_part, dashboard_part)


def page(results: Results) -> str:
    """The whole document."""
    return "\n\n".join(
        [
            "<!-- Written by `make bench` from benchmarks/results.json: do not edit. -->",
            "# Performance",
            machine_part(results),
            *(part(results) for part in PARTS),
            "## To measure it again\n\n"
            + prose(
                """`make bench` measures everything in a quarter of an hour and writes this page; the libraries compared
                with are installed from PyPI into `.env-peers` on the first run. `make bench BENCH='--only network'`
                measures the network alone and leaves the other results as they are; `--only dashboard` does so with
                the pages, in Debian's Chromium. `python benchmarks/run.py --quick`
                takes two minutes and only prints; `--no-peers` leaves the other libraries out."""
            ),
        ]
    ) + "\n"  # fmt: skip


def main() -> int:
    """Write the page from the results that are there."""
    PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
