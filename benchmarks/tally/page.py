"""Turns `benchmarks/tally/ideas.json` into the tables of a document: one for each idea, what was kept in bold.

Nothing is measured here: the same results give the same text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tables import number, prose, table

RESULTS = Path(__file__).with_name("ideas.json")

Record: TypeAlias = dict[str, Any]


def tables(ideas: Record) -> dict[str, str]:
    """A table for each idea, by its key, with a line below that says how sure the figures are."""
    return {idea["key"]: one_table(idea, ideas["means"]) for idea in ideas["ideas"]}


def one_table(idea: Record, means: Record) -> str:
    """Variants below each other; beside each other where there are more settings than a line can hold."""
    what, cell = CELLS.get(idea["key"], (MOSTLY, draws_regret_bits))
    variants: list[Record] = idea["variants"]
    places = [place(setting, variants[0]["settings"], means) for setting in variants[0]["settings"]]
    if len(places) > len(variants):
        head = [what, *(bold(each["name"], each["kept"]) for each in variants)]
        rows = [
            [places[i], *(bold(cell(each["settings"][i]), each["kept"]) for each in variants)]
            for i in range(len(places))
        ]
    else:
        head = [what, *places]
        rows = [
            [bold(text, each["kept"]) for text in (each["name"], *map(cell, each["settings"]))] for each in variants
        ]
    return table(head, rows) + "\n\n" + prose(sureness(variants))


def place(setting: Record, among: Sequence[Record], means: Record) -> str:
    """A setting by what tells it from the others; the paper's problems have numbers."""
    problem = setting["problem"]
    parts = [f"Problem {problem}" if problem.isdigit() else " ".join(f"{mean:g}"[1:] for mean in means[problem])]
    if len({each["players"] for each in among}) > 1:
        parts.append(f"{setting['players']:,} players")
    if len({each["activity"] for each in among}) > 1:
        parts.append(setting["activity"])
    return ", ".join(parts)


def draws_regret_bits(setting: Record) -> str:
    return f"{draws(setting)} · {number(setting['regret'])} · {number(setting['bits'])}"


def draws(setting: Record) -> str:
    """Where some trials were given up, more than so many."""
    return ("> " if setting["unfinished"] else "") + number(setting["draws"])


def bits_both_ways(setting: Record) -> str:
    return (
        f"{number(setting['bits_up'])} + {number(setting['bits_down'])} = {number(setting['bits'])}; "
        f"{number(setting['bits_arm_sent'])}"
    )


def sureness(variants: Sequence[Record]) -> str:
    every = [setting for each in variants for setting in each["settings"]]
    error = max(setting["draws_error"] / setting["draws"] for setting in every)
    wrong = max(setting["wrong"] for setting in every)
    return (
        f"Standard errors of draws are at most {100 * error:.1f} %; "
        + (f"the wrong arm was left in at most {100 * wrong:.2g} % of trials." if wrong else "no wrong arm was left.")
    )  # fmt: skip


def bold(text: str, kept: bool) -> str:
    return f"**{text}**" if kept else text


MOSTLY = "draws · regret · bits"
CELLS: dict[str, tuple[str, Callable[[Record], str]]] = {
    "priors": ("draws", draws),
    "arm-sent": ("bits up + down; had tallies named their arms", bits_both_ways),
}
"""What the tables say that do not say draws, regret and bits."""


def main() -> int:
    """Print all tables of the results that are there."""
    for key, text in tables(json.loads(RESULTS.read_text(encoding="utf-8"))).items():
        print(f"## {key}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
