"""Measures every idea of Tally's design and writes `benchmarks/tally/ideas.json`: `python benchmarks/tally/ideas.py`.

All variants meet the same draws and rewards, trial by trial, so differences are much surer than the figures themselves.
Nothing is written before all is measured.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tally.catalogue import IDEAS, MEANS, Idea, Try
from benchmarks.tally.variants import DELTA, Outcome, Setting, Variant, run
from benchmarks.timing import say

from outvote import __version__
from outvote.core.codes import fixed_width
from outvote.simulation.arrays import Floats
from outvote.simulation.executors import cores

RESULTS = Path(__file__).with_name("ideas.json")
QUICK_TRIALS = 40
SURE = 2.0
"""Standard errors by which a difference counts."""
MATTERS = 0.01
"""A smaller part of the kept one's figure is no reason to change anything."""

Outcomes: TypeAlias = dict[tuple[Variant, Setting], Outcome]


def main() -> int:
    options = read_options()
    trials = QUICK_TRIALS if options.quick else options.trials
    out: Path | None = options.out or (None if options.quick else RESULTS)
    start = time.perf_counter()
    try:
        outcomes = play(IDEAS, trials)
    except KeyboardInterrupt:
        say("stopped; nothing was written")
        return 130
    results: dict[str, Any] = {
        "outvote": __version__,
        "trials": trials,
        "delta": DELTA,
        "means": MEANS,
        "ideas": [described(idea, outcomes) for idea in IDEAS],
    }
    for line in better_in_everything(results["ideas"]):
        say(line)
    text = json.dumps(tidy(results), indent=1, ensure_ascii=False) + "\n"
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")
    say(f"done in {time.perf_counter() - start:.0f} s" + (f"; wrote {out.name}" if out else ""))
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=400, help="of each variant in each setting (default: 400)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_TRIALS} trials; prints, writes nothing")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where results go (default: beside this file)")
    return parser.parse_args()


def play(ideas: Sequence[Idea], trials: int) -> Outcomes:
    """Every variant in its settings, once even where several ideas have it; threads share the cores."""
    found: Outcomes = {}
    say("compiling")
    run(ideas[0].tries[0].variant, ideas[0].settings[0], range(1, 2))
    with ThreadPoolExecutor(cores()) as pool:
        for idea in ideas:
            jobs = [(each.variant, setting) for each in idea.tries for setting in idea.settings]
            jobs = [job for job in dict.fromkeys(jobs) if job not in found]
            say(f"{idea.key}: {len(jobs)} runs of {trials} trials")
            running = [pool.submit(run, variant, setting, range(1, trials + 1)) for variant, setting in jobs]
            found.update((job, each.result()) for job, each in zip(jobs, running, strict=True))
    return found


def described(idea: Idea, outcomes: Outcomes) -> dict[str, Any]:
    kept = idea.tries[0]
    return {
        "key": idea.key,
        "title": idea.title,
        "variants": [
            {
                "name": each.name,
                "description": each.description,
                "kept": each.kept,
                "reachable": each.reachable,
                "settings": [measured(each, kept, setting, outcomes) for setting in idea.settings],
            }
            for each in idea.tries
        ],
    }


def measured(each: Try, kept: Try, setting: Setting, outcomes: Outcomes) -> dict[str, Any]:
    """Means over trials, and how they compare with the kept variant's; errors are standard errors of a mean."""
    found, reference = outcomes[each.variant, setting], outcomes[kept.variant, setting]
    arm_bits = fixed_width(len(setting.means))
    bits = found.up + found.down
    return {
        "problem": next(name for name, means in MEANS.items() if means == setting.means),
        "players": setting.players,
        "activity": setting.activity,
        "regret": found.regret.mean(),
        "draws": found.draws.mean(),
        "draws_error": error(found.draws),
        "bits_up": found.up.mean(),
        "bits_down": found.down.mean(),
        "bits": bits.mean(),
        "bits_arm_sent": (bits + arm_bits * found.tallies).mean(),
        "wrong": (found.ended - found.won).mean(),
        "unfinished": 1 - found.ended.mean(),
        "against_kept": {
            "regret": against(found.regret, reference.regret),
            "draws": against(found.draws, reference.draws),
            "bits": against(bits, reference.up + reference.down),
        },
    }


def error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def against(values: Floats, reference: Floats) -> dict[str, float]:
    """By what part of the kept one's mean a variant's is higher, from the differences of equal trials."""
    mean = reference.mean()
    return {"more": (values.mean() - mean) / mean, "error": error(values - reference) / mean}


def better_in_everything(ideas: Sequence[dict[str, Any]]) -> list[str]:
    """Variants that are worse in nothing and nowhere, as far as one can tell, and better in something that matters."""
    lines = []
    for idea in ideas:
        for variant in idea["variants"]:
            every = [each for setting in variant["settings"] for each in setting["against_kept"].values()]
            worse = any(each["more"] > SURE * each["error"] for each in every)
            better = any(each["more"] < -max(SURE * each["error"], MATTERS) for each in every)
            if variant["reachable"] and better and not worse:
                lines.append(f"{idea['key']}: nothing speaks against {variant['name']!r}")
    return lines or ["no variant is better than the kept one in one thing and worse in none"]


def tidy(value: Any) -> Any:
    """Four significant digits: no figure here is surer."""
    if isinstance(value, dict):
        return {key: tidy(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float | np.floating) else value


if __name__ == "__main__":
    sys.exit(main())
