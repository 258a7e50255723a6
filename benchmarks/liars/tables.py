"""Turns `benchmarks/liars/measures.json` and formulas into the tables of docs/liars.md. Measures nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tables import number, prose, table
from outvote import theory

Record = dict[str, Any]


def tables(measures: Record) -> dict[str, str]:
    """Every table by its name."""
    measured = {"price": price, "tally": tally, "votes": votes, "hard": hard}
    found = {
        name: make(measures[name]["rows"]) if name in measures else "Not measured yet."
        for name, make in measured.items()
    }
    return {"claims": claims(), "most": most(), **found}


def claims() -> str:
    """What one liar must claim to have the best arm refuted, where it is believed."""
    head = ["honest sites have reported", "tallies of 3", "tallies of 7", "tallies of 127"]
    lines = []
    for what, suspect, rival in (
        ("nothing", (0, 0), (0, 0)),
        ("30 of 100 and 20 of 100", (30, 100), (20, 100)),
        ("300 of 1,000 and 200 of 1,000", (300, 1000), (200, 1000)),
        ("3,000 of 10,000 and 2,000 of 10,000", (3000, 10_000), (2000, 10_000)),
    ):
        found = [theory.claims_to_refute(size, 0.05, suspect=suspect, rival=rival) for size in (3, 7, 127)]
        lines.append([what, *(f"{each:,}" if each is not None else "–" for each in found)])
    return table(head, lines)


def most() -> str:
    """How many can be tolerated."""
    fleets = (4, 8, 16, 64, 256)
    head = ["sites", *(f"{each}" for each in fleets)]
    lines = [
        ["liars that eliminate any arm, N_γ = N, not tolerated", *(f"{theory.liars_to_eliminate(n)}" for n in fleets)],
        ["the same, N_γ = 2", *(f"{theory.liars_to_eliminate(2)}" for _ in fleets)],
        ["Tally, not tolerated", *("1" for _ in fleets)],
        ["most that can be tolerated, votes, N_γ = N", *(f"{theory.most_tolerated(n, n)}" for n in fleets)],
        ["the same, N_γ = 2", *(f"{theory.most_tolerated(n, 2)}" for n in fleets)],
        ["most that can be tolerated, Tally", *(f"{theory.most_tolerated(n)}" for n in fleets)],
    ]
    return table(head, lines)


def price(rows: list[Record]) -> str:
    head = ["draws · bits", "not tolerated", "f = 1", "f = 2", "f = 4"]
    lines = [
        [
            f"Problem {row['problem']}, {row['players']} sites, {row['activity']}",
            *(f"{_draws(row[key])} · {number(row[key]['bits'])}" for key in ("0", "1", "2", "4")),
        ]
        for row in rows
    ]
    trials = rows[0]["0"]["lost"]["trials"]
    worst = max(row[key]["lost"]["count"] for row in rows for key in ("0", "1", "2", "4"))
    told = f"The best arm was lost in at most {worst} trials of a setting." if worst else "The best arm was never lost."
    return table(head, lines) + "\n\n" + prose(f"{trials} trials of each, δ = .05, nobody lies. {told}")


def tally(rows: list[Record]) -> str:
    head = ["sites, lie", *(f"{liars} {how}" for liars in (1, 2, 4) for how in ("believed", "tolerated"))]
    lines = [
        [
            f"{row['players']}, {row['lie']}",
            *(_outcome(row[f"{liars} {how}"]) for liars in (1, 2, 4) for how in ("believed", "tolerated")),
        ]
        for row in rows
    ]
    trials = rows[0]["1 believed"]["lost"]["trials"]
    lost = sum(row[f"{liars} tolerated"]["lost"]["count"] for row in rows for liars in (1, 2, 4))
    of = 3 * trials * len(rows)
    return (
        table(head, lines)
        + "\n\n"
        + prose(
            f"Means .7, .4, .3, .3, δ = .05, {trials} trials of 6,000 draws each: in how many the best arm was lost, "
            "the decision was held back at the end, or nothing was decided; else the mean draws until one arm was "
            f"left. Where the liars were tolerated, the best arm was lost in {lost} of all {of:,} trials."
        )
    )


def votes(rows: list[Record]) -> str:
    head = ["sites, rule, N_γ", "liars", "believed", "tolerated", "votes needed"]
    lines = []
    for row in rows:
        needed = theory.liars_to_eliminate(row["active_players"], tolerate=row["liars"])
        lines.append(
            [
                f"{row['players']}, {row['quorum']}, {row['active_players']}",
                f"{row['liars']}" + (f", {row['lie']}" if row["liars"] else ""),
                _outcome(row["believed"]),
                _outcome(row["tolerated"]) if row["liars"] else "",
                f"{needed}",
            ]
        )
    trials, few = rows[0]["believed"]["lost"]["trials"], rows[-1]["believed"]["lost"]["trials"]
    return (
        table(head, lines)
        + "\n\n"
        + prose(
            f"Means .97, .05, .05, ε = .9, δ = .05, {trials} trials of each (of 64 sites {few}) of 3,500 draws for "
            "each site: in how many the best arm was lost, or nothing was decided; else the mean draws until one arm "
            "was left."
        )
    )


def hard(rows: list[Record]) -> str:
    head = ["instance", "lie", "as many as tolerated: lost", "one more: lost"]
    lines = [
        [row["name"], row["lie"], _share(row["tolerated"]["lost"]), _share(row["one more"]["lost"])] for row in rows
    ]
    trials = rows[0]["tolerated"]["lost"]["trials"]
    return (
        table(head, lines, words=2)
        + "\n\n"
        + prose(f"δ = .2, {trials} trials of 2,500 draws each; exact 95 % intervals, in per cent.")
    )


def _share(found: Record) -> str:
    """In per cent, with its exact interval."""
    value, low, high = (f"{100 * found[key]:.2g}" if found[key] < 0.995 else "100" for key in ("share", "low", "high"))
    return f"{value} % ({low} to {high})"


def _draws(found: Record) -> str:
    if found["draws"] is None:
        return "–"
    return number(found["draws"]["mean"]) + ("" if found["answered"] == 1 else f" ({found['answered']:.0%} ended)")


def _outcome(found: Record) -> str:
    """What became of the trials, the worst first."""
    trials = found["lost"]["trials"]
    lost, held = found["lost"]["count"], round(found["held"] * trials)
    open_ = trials - round(found["answered"] * trials) - held
    told = [f"lost {lost}"] if lost else []
    told += [f"held {held}"] if held else []
    told += [f"open {open_}"] if open_ > 0 else []
    return ", ".join(told) or _draws(found)
