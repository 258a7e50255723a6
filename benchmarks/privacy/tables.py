"""Turns `benchmarks/privacy/measures.json` and the exact posteriors into the tables of docs/adversary.md."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.privacy import games, inference, posterior
from benchmarks.privacy.measure import ARM, BUDGETS, MEANS, PLAYERS, make_task
from benchmarks.tables import number, prose, table
from benchmarks.tally.tables import spread

Record = dict[str, Any]
SIZES = (3, 7, 23, 127)
EVENTS = (1, 2, 5, 10)


def tables(measures: Record) -> dict[str, str]:
    """Every table by its name."""
    rows = {(row["protocol"], row["budget"]): row for name, row in measures.items() if name != "games"}
    return {
        "seen": seen(rewards(measures), rows),
        "level": level(rows),
        "sizes": sizes(rows),
        "votes": votes(rewards(measures)),
        "users": users(),
    }


@dataclass(frozen=True)
class Reward:
    """The advantage on one event's reward by one protocol: computed, played and promised."""

    protocol: str
    budget: float | None
    size: int
    unknown: float
    """Computed, the other rewards unknown; of votes by the place of the arm among those that leave."""
    unknown_bound: float
    unknown_played: Record
    worst: float
    worst_bound: float
    worst_played: Record | None
    changed: Record | None
    """Of votes: how often one reward decides, the others being as they fall."""

    @property
    def above(self) -> bool:
        """Whether anything computed is above its bound, or played by more than its interval."""
        played = [(self.unknown_played, self.unknown_bound)]
        if self.worst_played is not None:
            played.append((self.worst_played, self.worst_bound))
        rounding = 1e-12
        return (
            self.unknown > self.unknown_bound + rounding
            or self.worst > self.worst_bound + rounding
            or any(2 * right["low"] - 1 > bound for right, bound in played)
        )


def rewards(measures: Record) -> list[Reward]:
    """All that is known of one event's reward."""
    return [_reward(row) for row in measures["games"]["rows"]]


def _reward(row: Record) -> Reward:
    size, mean, budget = row["size"], row["mean"], row["budget"]
    whole = inference.sum_advantage(size, mean)
    limit = 1.0 if budget is None else inference.budget_advantage(budget)
    tally = row["protocol"] == "tally"
    return Reward(
        protocol=row["protocol"],
        budget=budget,
        size=size,
        unknown=(
            posterior.others_unknown(size, mean, budget) if tally else games.rank_laws(size, tuple(MEANS), ARM)
        ).advantage,
        unknown_bound=min(whole, limit),
        unknown_played=row["unknown"],
        worst=posterior.worst_case(size, budget).advantage if tally else 1.0,
        worst_bound=limit,
        worst_played=row.get("known"),
        changed=row.get("changed"),
    )


def seen(found: list[Reward], arms: dict[tuple[str, float | None], Record]) -> str:
    head = [
        "what is seen", "best arm, from one player", "best arm, from all players",
        "one reward, others unknown", "played", "bound", "one reward, worst case", "played", "bound",
    ]  # fmt: skip
    chance = f"{100 / len(MEANS):.0f} %"
    lines = [["nothing", chance, chance, "0", "–", "0", "0", "–", "0"]]
    order = {"dme": 0, "edme": 1, "tally": 2}
    ordered = sorted(found, key=lambda reward: order[reward.protocol])
    for each in ordered:
        row = arms.get((each.protocol, each.budget))
        name = f"`{each.protocol}`" + ("" if each.budget is None else f", budget {each.budget:g}")
        lines.append(
            [
                name, told(row, "one"), told(row, "all"),
                digits(each.unknown), advantage(each.unknown_played), digits(each.unknown_bound),
                digits(each.worst),
                "–" if each.worst_played is None else advantage(each.worst_played), digits(each.worst_bound),
            ]
        )  # fmt: skip
    raw = arms.get(("tally", None))
    lines.append(["the events", told(raw, "raw_one"), told(raw, "raw_all"), "1", "–", "1", "1", "–", "1"])
    count = found[0].unknown_played["trials"]
    heard = [arms[each.protocol, each.budget] for each in ordered if (each.protocol, each.budget) in arms]
    trials = ", ".join(f"{row['one']['trials']:,}" for row in heard) + " tasks, from above"
    above = [each for each in found if each.above]
    verdict = "nothing is above its bound" if not above else f"above its bound: {len(above)} rows"
    return table(head, lines) + "\n\n" + prose(
        f"Best arm: the share of tasks of {PLAYERS} players in which the likeliest arm is the best, with exact 95 % "
        f"intervals ({trials}). One reward: the advantage; computed, for tallies exactly, for votes from the arm's "
        f"place among them; and played in {count:,} games on players, for votes on epochs, of the package itself (95 % "
        f"intervals); {verdict}. The last row has the events behind the "
        "tallies without a budget. The event is one of a tally of the floor's size and of an arm with mean .3; of "
        "votes, one of the first epoch of an arm with mean .1, six others being alike, where one reward decides most."
    )  # fmt: skip


def level(arms: dict[tuple[str, float | None], Record]) -> str:
    head = ["protocol", "η", "level 1 − η", "an ε-optimal arm, from one player", "the best arm, from one player"]
    prior = sum(max(MEANS) - mean < 0.5 for mean in MEANS) / len(MEANS)
    lines = [["nothing is seen", "–", "–", f"{100 * prior:.0f} %", f"{100 / len(MEANS):.0f} %"]]
    for protocol in ("dme", "edme"):
        row = arms.get((protocol, None))
        least = math.exp(min(schedule.log_eta for schedule in make_task(protocol).schedules()))
        lines.append([f"`{protocol}`", digits(least), digits(1 - least), told(row, "good_one"), told(row, "one")])
    return table(head, lines) + "\n\n" + prose(
        f"{PLAYERS} players, ε = .5, δ = .05, the tasks of above; `edme` has eight instances, and the η of the one "
        "that is surest. Three of the ten arms are ε-optimal."
    )  # fmt: skip


def sizes(arms: dict[tuple[str, float | None], Record]) -> str:
    head = ["tally of", "mean", "guessed right unseen", "no budget", "certain", "budget 1", "budget .1"]
    lines = []
    for mean in (0.1, 0.3, 0.5):
        for size in SIZES:
            exact = posterior.others_unknown(size, mean)
            lines.append(
                [
                    f"{size}", f"{mean:g}", percent(max(mean, 1 - mean)), percent(exact.success(mean)),
                    percent(inference.certain(exact, mean)),
                    *(percent(posterior.others_unknown(size, mean, budget).success(mean)) for budget in (1.0, 0.1)),
                ]
            )  # fmt: skip
    run = ", ".join(
        f"{'without a budget' if budget is None else f'at a budget of {budget:g}'} "
        f"{spread(arms['tally', budget]['advantage'])}"
        for budget in BUDGETS
        if ("tally", budget) in arms
    )
    return table(head, lines) + "\n\n" + prose(
        "How often the best guess of one event's reward is right, by one who knows the arm's mean and no other reward; "
        "“certain” is how often a tally leaves no doubt. Over all events of the runs above, those of tallies that were "
        f"never sent among them, the mean advantage was: {run}."
    )  # fmt: skip


def votes(found: list[Reward]) -> str:
    head = [
        "protocol", "shortest first epoch", "others unknown: by the arm's place", "bound",
        "bound for the event least hidden", "others known, as they fall", "others known, worst case",
    ]  # fmt: skip
    lines = []
    for each in found:
        if each.changed is not None:
            least = least_hidden(each.protocol)
            lines.append(
                [
                    f"`{each.protocol}`", f"{each.size:,} pulls", digits(each.unknown), digits(each.unknown_bound),
                    f"{digits(inference.sum_advantage(least, MEANS[ARM]))}, among {least:,}",
                    interval(each.changed), digits(each.worst),
                ]
            )  # fmt: skip
    return table(head, lines)


def least_hidden(protocol: str) -> int:
    """The fewest events that all instances count alike, up to the end of the last first epoch."""
    ends = sorted(schedule.pulls(1) for schedule in make_task(protocol).schedules())
    return min(later - sooner for sooner, later in itertools.pairwise([0, *ends]))


def users() -> str:
    head = ["budget", "events m", "m·b", "e^(m·b)", "odds, m tallies", "odds, one tally", "advantage, m tallies",
            "one tally", "bound"]  # fmt: skip
    lines = []
    for budget in (0.1, 1.0):
        for events in EVENTS:
            apart = inference.combined([posterior.worst_case(23, budget)] * events)
            together = posterior.others_known(23, (23 - events) // 2, budget, events=events)
            lines.append(
                [
                    f"{budget:g}", f"{events}", f"{events * budget:g}", number(math.exp(events * budget)),
                    number(apart.largest_factor), number(together.largest_factor),
                    digits(apart.advantage), digits(together.advantage),
                    digits(inference.budget_advantage(events * budget)),
                ]
            )  # fmt: skip
    return table(head, lines)


def told(row: Record | None, kind: str) -> str:
    """A share with its exact interval, in per cent; of what was not measured nothing."""
    if row is None:
        return "–"
    low, high = (f"{100 * row[kind][end]:.3g}" for end in ("low", "high"))
    return f"{100 * row[kind]['share']:.3g} % ({low} to {high})"


def digits(value: float) -> str:
    return f"{value:.3g}" if value < 0.1 else f"{value:.3f}".removesuffix(".000")


def percent(value: float) -> str:
    return f"{100 * value:.1f} %" if value >= 5e-4 else "below .1 %"


def advantage(right: Record) -> str:
    """From the share of right answers."""
    point, low, high = (2 * right[key] - 1 for key in ("share", "low", "high"))
    return f"{point:.3f} ({low:.3f} to {high:.3f})".replace("-", "−")


def interval(value: Record | None) -> str:
    return "–" if value is None else f"{value['share']:.3f} ({value['low']:.3f} to {value['high']:.3f})"
