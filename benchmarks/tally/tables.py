"""Turns `benchmarks/tally/measures.json` into the tables of docs/tally.md. Nothing is measured here."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tables import number, prose, table
from outvote.core.protocols import REGISTRY

Record = dict[str, Any]
_, DEFAULT_FLOOR, DEFAULT_PRIVATE_FLOOR = REGISTRY["tally"].floors


def tables(measures: Record) -> dict[str, str]:
    """Every table by its name."""
    return {
        "targets": targets(measures["targets"]["rows"]),
        "others": others(measures["others"]["rows"]),
        "many": many(measures["many"]["rows"]),
        "privacy": privacy(measures["privacy"]["rows"]),
        "errors": errors([*measures["errors"]["rows"], *measures["delays"]["rows"]]),
        "sites": sites(measures["sites"]),
    }


def targets(rows: list[Record]) -> str:
    """Figures beside each other for the four settings."""
    head = ["", *(f"Problem {row['problem']}, {row['activity']}" for row in rows)]

    def line(what: str, cells: list[str]) -> list[str]:
        return [what, *cells]

    lines = [
        line("regret at 10⁶ draws (95 % interval)", [spread(row["regret"]) for row in rows]),
        line("the same of UCB1, unlimited communication", [number(row["ucb_regret"]) for row in rows]),
        line("ratio", [f"{row['regret']['mean'] / row['ucb_regret']:.2f}" for row in rows]),
        line("asked", ["at most .9" if row["problem"] == 1 else "at most .5" for row in rows]),
        line("regret of DME", [number(row["dme_regret"]) for row in rows]),
        line("bits up and down, arm implied (asked: at most 2,304)", [number(row["bits"]) for row in rows]),
        line("bits, had every tally named its arm", [number(row["bits_with_arm"]) for row in rows]),
        line("bits of DME, which does not finish", [number(row["dme_bits"]) for row in rows]),
        line("draws until one arm is left (95 % interval)", [spread(row["draws"]) for row in rows]),
        line("lower bound for any algorithm", [number(row["bound"]) for row in rows]),
        line("ratio (asked: 8, then 5)", [f"{row['draws']['mean'] / row['bound']:.2f}" for row in rows]),
        line("best arm lost (δ = .05)", [share(row["wrong"]) for row in rows]),
    ]
    return table(head, lines) + "\n\n" + prose(f"{rows[0]['trials']:,} trials of each setting.")


def others(rows: list[Record]) -> str:
    head = ["setting", "draws", "× lower bound", "regret", "× UCB1's", "bits", "with arm", "best arm lost"]
    lines = [
        [
            row["name"],
            spread(row["draws"]),
            f"{row['draws']['mean'] / row['bound']:.2f}",
            number(row["regret"]["mean"]),
            f"{row['regret']['mean'] / row['ucb_regret']:.2f}",
            number(row["bits"]),
            number(row["bits_with_arm"]),
            share(row["wrong"]),
        ]
        for row in rows
    ]
    return table(head, lines) + "\n\n" + prose(f"{rows[0]['trials']:,} trials of each setting.")


def many(rows: list[Record]) -> str:
    head = ["", *(f"Problem {row['problem']}" for row in rows)]
    lines = [
        ["draws of Tally (95 % interval)", *(spread(row["draws"]) for row in rows)],
        ["draws of DME until one arm is left", *(number(row["dme_draws"]) for row in rows)],
        ["times fewer (asked: 100)", *(number(row["dme_draws"] / row["draws"]["mean"]) for row in rows)],
        ["regret of Tally at 10⁶ draws", *(spread(row["regret"]) for row in rows)],
        ["bits of Tally", *(number(row["bits"]) for row in rows)],
    ]
    return table(head, lines)


def privacy(rows: list[Record]) -> str:
    """Each budget beside both figures without one: at its own floor, and at the default's."""
    plain = [row["default"]["draws"]["mean"] for row in rows]
    head = ["draws until one arm is left", *(f"Problem {row['problem']}, {row['activity']}" for row in rows)]
    lines = [[f"**no budget, floor {DEFAULT_FLOOR}** (the default)", *map(number, plain)]]
    least = [math.inf] * len(rows)
    for floor in [int(key.removeprefix("without, floor ")) for key in rows[0] if key.startswith("without")]:
        same = [row[f"without, floor {floor}"]["draws"]["mean"] for row in rows]
        lines.append([f"no budget, floor {floor}", *map(number, same)])
        for budget in ("1", "0.5"):
            name = f"budget {budget}, floor {floor}"
            draws = [row[name]["draws"]["mean"] for row in rows]
            if budget == "1":
                least = list(map(min, least, draws))
            kept = (budget, floor) == ("1", DEFAULT_PRIVATE_FLOOR)
            lines.append(
                [
                    f"**{name}** (the default with a budget)" if kept else name,
                    *(
                        f"{number(each)} ({each / at_floor:.2f} ×, {each / at_default:.2f} ×)"
                        for each, at_floor, at_default in zip(draws, same, plain, strict=True)
                    ),
                ]
            )
    kept_draws = [row[f"budget 1, floor {DEFAULT_PRIVATE_FLOOR}"]["draws"]["mean"] for row in rows]
    at_floor = [row[f"without, floor {DEFAULT_PRIVATE_FLOOR}"]["draws"]["mean"] for row in rows]
    wrong = max(cell["wrong"]["share"] for row in rows for cell in row.values() if isinstance(cell, dict))
    return (
        table(head, lines)
        + "\n\n"
        + prose(
            "In brackets: times the draws without a budget, first at the same floor, then of the default without one. "
            f"Asked of a budget of 1: at most 1.6 ×. Its default is at {factors(kept_draws, at_floor)} × the draws at "
            f"the same floor, and at {factors(kept_draws, plain)} × those of the default without a budget; the best "
            f"floor here for each setting would be at {factors(least, plain)} × those. The best arm was lost in at "
            f"most {100 * wrong:.2g} % of {rows[0]['default']['trials']:,} trials."
        )
    )


def factors(draws: list[float], reference: list[float]) -> str:
    """From the smallest ratio to the largest."""
    ratios = [each / beside for each, beside in zip(draws, reference, strict=True)]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def errors(rows: list[Record]) -> str:
    """One line for each instance, both δ beside each other."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    by_key = {(row["name"], row["delta"]): row for row in rows}
    head = ["instance", "trials", "lost at δ = .05", "decided", "lost at δ = .2", "decided"]
    lines = []
    for name in names:
        cells = [name, f"{by_key[name, 0.05]['wrong']['trials']:,}"]
        for delta in (0.05, 0.2):
            row = by_key[name, delta]
            cells += [share(row["wrong"]), f"{100 * row['finished']:.0f} %"]
        lines.append(cells)
    return table(head, lines)


def sites(measures: Record) -> str:
    head = ["setting", "logit spread", "held at the end", "best arm lost", "best arm lost, were nothing held"]
    lines = [
        [
            row["name"],
            f"{row['spread']:g}",
            f"{100 * row['with']['held']:.0f} %",
            share(row["with"]["lost"]),
            share(row["without"]["lost"]),
        ]
        for row in measures["rows"]
    ]
    equal = measures["equal"]
    worst = max(row["held"]["share"] for row in equal)
    trials = equal[0]["held"]["trials"]
    return (
        table(head, lines)
        + "\n\n"
        + prose(
            f"Sites with equal means, {trials:,} trials of each setting: a decision was still held back after 8,000 "
            f"draws in at most {100 * worst:.2g} % of trials (the stated rate for being held at any time is "
            f"{100 * measures['false_alarm']:g} %)."
        )
    )


def spread(value: Record | None) -> str:
    """A mean with half its interval."""
    if value is None:
        return "–"
    half = (value["high"] - value["low"]) / 2
    return f"{number(value['mean'])} ± {number(half)}"


def share(value: Record) -> str:
    """A share with its exact interval, in per cent."""
    return f"{100 * value['share']:.2g} % ({100 * value['low']:.2g} to {100 * value['high']:.2g})"
