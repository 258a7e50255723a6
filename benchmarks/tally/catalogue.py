"""The ideas that Tally's design was chosen from: each is a question, the variant that was kept, and the others.

A variant differs from the kept one in what its idea is about and in nothing else. `ideas.py` measures them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from benchmarks.tally.payments import Prior
from benchmarks.tally.variants import Setting, Variant, sizes_from

from outvote.core.bets import CENTRES, EFFECTS
from outvote.core.task import DEFAULT_PRIVATE_FLOOR
from outvote.simulation.environments import PROBLEMS

MEANS = {
    "1": PROBLEMS[1],
    "2": PROBLEMS[2],
    "close": (0.5, 0.45),
    "rare": (0.02, 0.01, 0.01, 0.01),
}
"""The paper's problems, and two that a prior may not have been made for."""

KEPT = Variant()


@dataclass(frozen=True)
class Try:
    """One variant of an idea."""

    name: str
    description: str
    variant: Variant
    kept: bool = False
    reachable: bool = True
    """False for a reference that no protocol can be."""


@dataclass(frozen=True)
class Idea:
    """A question, and what was tried; the kept one first."""

    key: str
    title: str
    tries: tuple[Try, ...]
    settings: tuple[Setting, ...]


def settings(
    problems: Iterable[str] = ("1", "2"),
    players: Iterable[int] = (64,),
    activities: Iterable[str] = ("uniform", "80-20"),
) -> tuple[Setting, ...]:
    return tuple(
        Setting(MEANS[problem], count, activity) for problem in problems for count in players for activity in activities
    )


def prior(centres: dict[float, float], effects: dict[float, float]) -> Prior:
    """Bets on all pairs of a centre and an effect, both in log odds with their weights."""

    def mean(log_odds: float) -> float:
        return 1 / (1 + math.exp(-log_odds))

    return tuple(
        (mean(centre - effect / 2), mean(centre + effect / 2), stake * part)
        for centre, stake in centres.items()
        for effect, part in effects.items()
    )


def evenly(values: Iterable[float]) -> dict[float, float]:
    """All with the same weight."""
    return dict.fromkeys(values, 1.0)


def with_prior(centres: dict[float, float], effects: dict[float, float]) -> Variant:
    return replace(KEPT, prior=prior(centres, effects))


def with_floor(floor: int, budget: float | None = None) -> Variant:
    return replace(KEPT, sizes=sizes_from(floor), budget=budget)


EVIDENCE = (
    Try("bets against the leader", "Rounds; each arm's wealth is bet on the leader being better.", KEPT, kept=True),
    Try("weights 1/E⁴", "Rounds; stakes on rivals fall with the fourth power of the evidence against them.",
        replace(KEPT, evidence="power", power=4.0)),
    Try("weights 1/E", "Rounds; stakes on rivals fall with the evidence against them.",
        replace(KEPT, evidence="power", power=1.0)),
    Try("mean over rivals", "Rounds; the wealth of an arm is the mean of its bets against all contenders.",
        replace(KEPT, evidence="mean")),
    Try("pairs, union bound", "No rounds; each pair of arms has bets of its own, any of which refutes at (K − 1)/δ.",
        replace(KEPT, evidence="pairs")),
    Try("Jeffreys, mean", "Pooled counts; mixture over best fit for each pair, the mean over rivals refutes at 1/δ.",
        replace(KEPT, evidence="jeffreys-mean")),
    Try("Jeffreys, union bound", "Pooled counts; mixture over best fit for each pair, any refutes at (K − 1)/δ.",
        replace(KEPT, evidence="jeffreys-union")),
    Try("one bet, means known", "Rounds against the leader with one bet, on the very means of the two best arms.",
        replace(KEPT, knows_means=True), reachable=False),
)  # fmt: skip

PRIORS = (
    Try("5 centres, 4 effects", "Centres −4 to 4, effects .1 to 2.7 in log odds, more on the middle ones.", KEPT,
        kept=True),
    Try("3 centres", "Centres −2, 0 and 2.", with_prior(evenly((-2.0, 0.0, 2.0)), EFFECTS)),
    Try("3 effects", "Effects .25, .75 and 2.2.", with_prior(CENTRES, evenly((0.25, 0.75, 2.2)))),
    Try("5 effects", "Effects .1, .25, .6, 1.5 and 3.5, more on the middle ones.",
        with_prior(CENTRES, {0.1: 1.0, 0.25: 2.0, 0.6: 4.0, 1.5: 4.0, 3.5: 2.0})),
    Try("equal weights", "The same bets, all with the same weight.", with_prior(evenly(CENTRES), evenly(EFFECTS))),
    Try("very wide", "Centres −8 to 8, effects .01 to 6.4, all with the same weight.",
        with_prior(evenly(range(-8, 9, 2)), evenly((0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)))),
    Try("very narrow", "One bet, on arms about ½ that differ by .9 in log odds.",
        with_prior(evenly((0.0,)), evenly((0.9,)))),
)  # fmt: skip

SIZES = (
    Try("3, 7, 15, …", "K tallies of 3 events, 3K of 7, 12K of 15, and so on.", KEPT, kept=True),
    Try("3, growth 2", "K tallies of 3, K of 7, 2K of 15, and so on.", replace(KEPT, growth=2)),
    Try("3, growth 16", "K tallies of 3, 15K of 7, 240K of 15, and so on.", replace(KEPT, growth=16)),
    Try("3, by place", "Growth by the place in the cycle, which skips the arms that are gone.",
        replace(KEPT, by_place=True)),
    Try("always 3", "All tallies have 3 events.", replace(KEPT, sizes=(3,))),
    Try("7, 15, 31, …", "The same growth from 7.", with_floor(7)),
    Try("always 7", "All tallies have 7 events.", replace(KEPT, sizes=(7,))),
    Try("always 15", "All tallies have 15 events.", replace(KEPT, sizes=(15,))),
)  # fmt: skip

FLOORS = (
    Try("floor 3", "The smallest tallies have 3 events.", KEPT, kept=True),
    Try("floor 7", "The smallest tallies have 7 events.", with_floor(7)),
    Try("floor 15", "The smallest tallies have 15 events.", with_floor(15)),
)

SMALL_AGAIN = (
    Try("never", "Sizes depend on how many tallies a player has opened, and on nothing else.", KEPT, kept=True),
    Try("2 arms left", "Tallies are of the floor's size again once at most 2 arms are left.",
        replace(KEPT, small_again=2)),
    Try("3 arms left", "Tallies are of the floor's size again once at most 3 arms are left.",
        replace(KEPT, small_again=3)),
    Try("5 arms left", "Tallies are of the floor's size again once at most 5 arms are left.",
        replace(KEPT, small_again=5)),
)  # fmt: skip

EARLY = (
    Try("never", "A tally is sent when it is full.", KEPT, kept=True),
    *(
        Try(f"{left} arms left",
            f"An announcement that leaves at most {left} arms makes players send their open tallies "
            "of 3 events or more at once, with their size.", replace(KEPT, early=left))
        for left in (2, 3, 5)
    ),
    Try("5, cut to usual sizes", "The same at 5 arms, cut down to 3, 7, 15, …; what is above is lost.",
        replace(KEPT, early=5, cut=True)),
    Try("5 arms left, Jeffreys", "The same at 5 arms with evidence that uses tallies of all sizes: Jeffreys, mean.",
        replace(KEPT, early=5, evidence="jeffreys-mean")),
    Try("never, Jeffreys", "A tally is sent when it is full, with that evidence.",
        replace(KEPT, evidence="jeffreys-mean")),
)  # fmt: skip

SUBSETS = (
    Try("all arms", "Every player tries all arms in turn.", KEPT, kept=True),
    *(
        Try(f"{count} arm{'s' if count > 1 else ''}",
            f"Every player tries {count} of the arms until none of them is left, then all that are.",
            replace(KEPT, subset=count))
        for count in (5, 2, 1)
    ),
)  # fmt: skip

NEXT_ARM = (
    Try("in turn", "Players try all arms that are left in turn.", KEPT, kept=True),
    Try("leader in between", "Announcements name the leader, and every other tally is the leader's.",
        replace(KEPT, follows_leader=True)),
    Try("the same, Jeffreys", "The same with evidence that uses all tallies of the leader: Jeffreys, mean.",
        replace(KEPT, follows_leader=True, evidence="jeffreys-mean")),
    Try("in turn, Jeffreys", "All arms in turn with that evidence.", replace(KEPT, evidence="jeffreys-mean")),
)  # fmt: skip

ANNOUNCEMENTS = (
    Try("masks at ½", "The survivors are announced once at most half are left of those before.", KEPT, kept=True),
    Try("masks at ¾", "Once at most three quarters are left.", replace(KEPT, share=0.75)),
    Try("masks at ⅓", "Once at most a third is left.", replace(KEPT, share=1 / 3)),
    Try("each arm at once", "Every arm is named as it falls.", replace(KEPT, share=1.0, masks=False)),
    Try("the winner alone", "Nothing is announced but the one arm that is left.", replace(KEPT, share=0.0)),
)

ARM_SENT = (
    Try("floor 3", "A tally's place in its player's cycle tells its arm.", KEPT, kept=True),
    Try("floor 7", "The same with tallies from 7 events.", with_floor(7)),
    Try("floor 15", "The same with tallies from 15 events.", with_floor(15)),
)


def under_budget(budget: float | None, floor: int) -> Try:
    return Try(
        f"{'no budget' if budget is None else f'budget {budget:g}'}, floor {floor}",
        f"{'No noise' if budget is None else f'Two-sided geometric noise of budget {budget:g}'}, "
        f"tallies from {floor} events.",
        with_floor(floor, budget),
        kept=(budget, floor) == (1.0, DEFAULT_PRIVATE_FLOOR),
        reachable=budget is not None,
    )


PRIVACY = (
    under_budget(1.0, DEFAULT_PRIVATE_FLOOR),
    *(
        under_budget(budget, floor)
        for budget in (1.0, 0.5, None)
        for floor in sorted({7, 15, 31, DEFAULT_PRIVATE_FLOOR})
        if (budget, floor) != (1.0, DEFAULT_PRIVATE_FLOOR)
    ),
)

IDEAS = (
    Idea("evidence", "How evidence is weighed", EVIDENCE, settings()),
    Idea("priors", "What is bet on", PRIORS, settings() + settings(("close", "rare"), activities=("uniform",))),
    Idea("sizes", "How large tallies are", SIZES, settings()),
    Idea("players", "How large the smallest tallies are, by the number of players", FLOORS,
         settings(players=(4, 16, 64, 256, 1024), activities=("uniform",))),
    Idea("small-again", "Small tallies again when few arms are left", SMALL_AGAIN, settings()),
    Idea("early", "Early tallies when little is missing", EARLY,
         settings() + settings(("rare",), activities=("uniform",))),
    Idea("subsets", "Fewer arms for each player", SUBSETS, settings(players=(64, 1024))),
    Idea("next-arm", "Which arm comes next", NEXT_ARM, settings()),
    Idea("announcements", "When and how survivors are announced", ANNOUNCEMENTS, settings()),
    Idea("arm-sent", "Whether a tally names its arm", ARM_SENT, settings()),
    Idea("privacy", "What noise costs, and which floor it wants", PRIVACY, settings()),
)  # fmt: skip
