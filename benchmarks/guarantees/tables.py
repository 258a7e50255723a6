"""Turns `benchmarks/guarantees/measures.json` and formulas into the tables of docs/guarantees.md. Measures nothing."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tables import number, prose, table
from benchmarks.tally.tables import share, spread
from outvote import theory
from outvote.core.votes.schedule import Schedule, certified_log_eta, paper_log_eta

Record = dict[str, Any]
ARMS, EPSILON, DELTA = 10, 0.5, 0.05
EXAMPLE: Record = {"failure": 0.391, "players": 64, "quorum": 32}
"""A fleet whose players fail as often as a majority of 64 can bear at δ = .05, by the paper's way of counting."""


def tables(measures: Record) -> dict[str, str]:
    """Every table by its name."""
    return {
        "rules": rules(measures["rules"]["rows"]),
        "speed-up": speed_up(measures["rules"]["rows"]),
        "hard": hard(measures["hard"]["rows"]),
        "quorums": quorums(measures["quorums"]["rows"]),
        "split": split(),
        "pulls": pulls(),
    }


def schedule(rule: str, players: int) -> Schedule:
    log_eta = paper_log_eta(DELTA, players) if rule == "paper" else certified_log_eta(DELTA, players, ARMS)
    return Schedule(ARMS, EPSILON, log_eta)


def rules(rows: list[Record]) -> str:
    """What each rule for η asks for, promises, and gives."""
    head = ["N = N_γ", *(f"{row['players']:,}" for row in rows)]
    lines = []
    for rule, name in (("paper", "paper's"), ("certified", "certified")):
        found = [schedule(rule, row["players"]) for row in rows]
        proved = [
            theory.accurate_fleet_error(theory.inaccuracy(each), row["players"])
            for each, row in zip(found, rows, strict=True)
        ]
        lines += [
            [f"{name} η", *(number(math.exp(each.log_eta)) for each in found)],
            ["– pulls of each arm in epoch 1", *(f"{each.pulls(1):,}" for each in found)],
            ["– pulls per player, all epochs", *(f"{theory.pulls_per_player(each):,}" for each in found)],
            ["– proved bound on the error", *(number(each) for each in proved)],
            ["– measured error (exact 95 % interval)", *(share(row[rule]["wrong"]) for row in rows)],
            ["– draws until the end", *(number(row[rule]["draws"]["mean"]) for row in rows)],
        ]
    first = [
        schedule("certified", row["players"]).pulls(1) / schedule("paper", row["players"]).pulls(1) for row in rows
    ]
    draws = [row["certified"]["draws"]["mean"] / row["paper"]["draws"]["mean"] for row in rows]
    lines += [
        ["certified against the paper's: epoch 1", *map(change, first)],
        ["– draws until the end", *map(change, draws)],
    ]
    trials = rows[0]["paper"]["wrong"]["trials"]
    return (
        table(head, lines) + "\n\n" + prose(f"Problem 1, K = 10, ε = .5, δ = .05, uniform; {trials:,} trials of each.")
    )


def change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f} %".replace("-", "−")


def speed_up(rows: list[Record]) -> str:
    """Printed, computed and measured."""
    head = ["N = N_γ", *(f"{row['players']:,}" for row in rows)]
    counts = [row["players"] for row in rows]
    lines = [
        ["printed: N·ln(1/δ)/ln(K/δ)", *(number(theory.theorem_2_printed(ARMS, DELTA, each)) for each in counts)],
    ]
    for rule, name in (("paper", "paper's η"), ("certified", "certified η")):
        computed = [theory.proposition_1(schedule(rule, each), DELTA) for each in counts]
        measured = [row["alone"]["draws"]["mean"] / row[rule]["draws"]["mean"] for row in rows]
        lines += [
            [f"computed, {name}", *(f"{each:.2f}" for each in computed)],
            [f"measured, {name}", *(f"{each:.2f}" for each in measured)],
        ]
    lines.append(["draws until all have finished alone", *(spread(row["alone"]["draws"]) for row in rows)])
    return table(head, lines)


def hard(rows: list[Record]) -> str:
    head = ["instance", "N", "δ", "wrong, paper's η", "wrong, certified η", "draws, paper's", "draws, certified"]
    lines = [
        [
            row["name"],
            f"{row['players']}",
            f"{row['delta']:g}",
            share(row["paper"]["wrong"]),
            share(row["certified"]["wrong"]),
            number(row["paper"]["draws"]["mean"]),
            number(row["certified"]["draws"]["mean"]),
        ]
        for row in rows
    ]
    trials = rows[0]["paper"]["wrong"]["trials"]
    return table(head, lines) + "\n\n" + prose(f"{trials:,} trials of each; exact 95 % intervals, in per cent.")


def quorums(rows: list[Record]) -> str:
    head = ["N_γ", "votes needed", "draws, uniform", "draws, 80-20", "bits, uniform", "wrong"]
    lines = []
    for row in rows:
        wrong = max((row["uniform"]["wrong"], row["80-20"]["wrong"]), key=lambda each: float(each["share"]))
        lines.append(
            [
                f"{row['active_players']}",
                f"{math.ceil(row['active_players'] / 2)}",
                spread(row["uniform"]["draws"]),
                spread(row["80-20"]["draws"]),
                number(row["uniform"]["bits"]),
                share(wrong),
            ]
        )
    trials = rows[0]["uniform"]["wrong"]["trials"]
    return (
        table(head, lines)
        + "\n\n"
        + prose(
            f"64 players, certified η, Problem 1, ε = .5, δ = .05, {trials:,} trials of each. Under 80-20 thirteen of "
            "the 64 players make four fifths of the events. The last column is the larger of both."
        )
    )


def split() -> str:
    """The constructed example."""
    head = ["good arms", "the fleet votes out all of them"]
    lines = [[f"{good}", f"{theory.split_fleet_error(**EXAMPLE, good_arms=good):.3f}"] for good in (1, 2, 3, 9)]
    return table(head, lines)


def pulls() -> str:
    """What one player needs under the paper's rule: the sum behind Lemma 3, and what the lemma prints of it."""
    counts = (4, 16, 64, 256, 1024)
    alone = Schedule(ARMS, EPSILON, math.log(DELTA))
    found = [alone, *(schedule("paper", each) for each in counts)]
    printed = [theory.lemma_3_printed(ARMS, EPSILON, DELTA, each) for each in (1, *counts)]
    head = ["N = N_γ", "1, alone (η = δ)", *(f"{each:,}" for each in counts)]
    lines = [
        ["pulls of all arms in epoch 1", *(f"{ARMS * each.pulls(1):,}" for each in found)],
        ["pulls in all epochs", *(f"{theory.pulls_per_player(each):,}" for each in found)],
        ["times fewer than alone", *(f"{theory.proposition_1(each, DELTA):.2f}" for each in found)],
        ["times fewer, as Lemma 3 prints it", *(f"{printed[0] / each:,.0f}" for each in printed)],
    ]
    return table(head, lines)
