"""Verdicts on what the paper reads off its figures."""

from __future__ import annotations

from outvote.core.votes.schedule import Schedule, paper_log_eta
from outvote.paper import statistics
from outvote.paper.statistics import Estimate
from outvote.paper.study import (
    ACTIVE_PLAYERS,
    CURVE_PLAYERS,
    FIGURE_6_PLAYERS,
    INSTANCES,
    OVER,
    PLAYERS,
    Study,
    active_name,
    over_name,
    panel_name,
)
from outvote.paper.verdicts import DOES_NOT, HOLDS, IN_PART, Results, Verdict


def _regret(results: Results, protocol: str, problem: int, activity: str, players: int) -> list[float]:
    """At the horizon, trial by trial."""
    return results[panel_name(protocol, problem, activity, players)].per_trial.regret


def _ratio(results: Results, top: str, bottom: str, problem: int, activity: str, players: int) -> Estimate:
    """Of two regrets."""
    where = problem, activity, players
    return statistics.ratio(_regret(results, top, *where), _regret(results, bottom, *where))


def behind_unlimited(study: Study, results: Results) -> Verdict:
    ratios = {
        (problem, players): _ratio(results, "dme", "me-unlimited", problem, "uniform", players)
        for problem in (1, 2)
        for players in PLAYERS
    }
    least = min(ratios.values(), key=lambda estimate: estimate.value)
    behind = sum(estimate.low > 1 for estimate in ratios.values())
    verdict = HOLDS if behind == len(ratios) else IN_PART if behind else DOES_NOT
    return least, verdict, (
        f"smallest regret of DME over that of Median Elimination with unlimited communication; DME is behind in {behind} of "
        f"{len(ratios)} cells (both problems, N from 2 to 1024, uniform)"
    )  # fmt: skip


def nothing_at_1024(study: Study, results: Results) -> Verdict:
    cells = [
        results[panel_name(protocol, problem, "uniform", 1024)]
        for protocol in ("dme", "me-local")
        for problem in (1, 2)
    ]
    messages = max(cell.messages.up for cell in cells)
    ended = sum(round(cell.first_elimination.share * cell.trials) for cell in cells)
    trials = sum(cell.trials for cell in cells)
    verdict = HOLDS if not ended and not messages else DOES_NOT
    needed = Schedule(10, 0.5, paper_log_eta(0.05, 1024)).pulls(1) * 10
    return statistics.share(ended, trials), verdict, (
        f"share of trials with an elimination at 1024 players, and {messages:g} votes: a player has "
        f"{study.horizon / 1024:,.0f} draws on average, its first epoch needs {needed:,}"
    )  # fmt: skip


def ahead_of_local(study: Study, results: Results) -> Verdict:
    ahead = []
    for players in PLAYERS[:-1]:
        gains = [
            statistics.difference(
                _regret(results, "me-local", problem, "uniform", players),
                _regret(results, "dme", problem, "uniform", players),
            )
            for problem in (1, 2)
        ]
        if all(gain.low > 0 for gain in gains):
            ahead.append(players)
    most = max(ahead, default=0)
    verdict = HOLDS if ahead == list(PLAYERS[:-1]) else IN_PART if ahead else DOES_NOT
    return statistics.exactly(most), verdict, (
        f"the largest N at which DME has less regret than Median Elimination on each player in both problems; it has at N = "
        f"{', '.join(map(str, ahead)) or 'none'}. From 128 players on neither ends its first epoch within the horizon"
    )  # fmt: skip


def ahead_at_64(study: Study, results: Results) -> Verdict:
    ratios = [_ratio(results, "me-local", "dme", problem, "uniform", CURVE_PLAYERS) for problem in (1, 2)]
    least = min(ratios, key=lambda estimate: estimate.value)
    verdict = HOLDS if least.low > 1 else DOES_NOT
    return least, verdict, (
        f"regret of Median Elimination on each player over that of DME at 64 players: {ratios[0].value:.3g} in Problem 1, "
        f"{ratios[1].value:.3g} in Problem 2; the smaller is given"
    )  # fmt: skip


def _ucb_ratio(results: Results, problem: int) -> Estimate:
    return _ratio(results, "me-unlimited", "ucb-unlimited", problem, "uniform", CURVE_PLAYERS)


def ucb_far_ahead(study: Study, results: Results) -> Verdict:
    measured = _ucb_ratio(results, 1)
    return measured, HOLDS if measured.low > 2 else DOES_NOT, (
        "regret of Median Elimination over that of UCB1, both with unlimited communication, Problem 1"
    )  # fmt: skip


def ucb_near(study: Study, results: Results) -> Verdict:
    measured, first = _ucb_ratio(results, 2), _ucb_ratio(results, 1)
    closer = measured.high < first.low
    verdict = HOLDS if measured.low < 2 else IN_PART if closer else DOES_NOT
    compared = "small would be below 2. It is smaller" if closer else "it is not smaller"
    return measured, verdict, f"the same ratio in Problem 2; {compared} than in Problem 1 ({first.value:.3g})"


def _gap(results: Results, behind: str, ahead: str, problem: int, activity: str) -> list[float]:
    """Difference of regrets at 64 players, trial by trial."""
    both = (_regret(results, protocol, problem, activity, CURVE_PLAYERS) for protocol in (behind, ahead))
    return [a - b for a, b in zip(*both, strict=True)]


def _gaps(results: Results, behind: str, ahead: str) -> list[Estimate]:
    """The gap under 80-20 over that under uniform players, for each problem."""
    return [
        statistics.ratio(
            _gap(results, behind, ahead, problem, "80-20"), _gap(results, behind, ahead, problem, "uniform")
        )
        for problem in (1, 2)
    ]


def gap_to_unlimited(study: Study, results: Results) -> Verdict:
    ratios = _gaps(results, "dme", "me-unlimited")
    most = max(ratios, key=lambda estimate: estimate.value)
    reduced = sum(estimate.high < 1 for estimate in ratios)
    verdict = (DOES_NOT, IN_PART, HOLDS)[reduced]
    return most, verdict, (
        "gap in regret between DME and unlimited Median Elimination at 64 players, 80-20 over uniform: "
        f"{ratios[0].value:.3g} in Problem 1, {ratios[1].value:.3g} in Problem 2; the larger is given"
    )  # fmt: skip


def gap_to_local(study: Study, results: Results) -> Verdict:
    ratios = _gaps(results, "me-local", "dme")
    least = min(ratios, key=lambda estimate: estimate.value)
    increased = sum(estimate.low > 1 for estimate in ratios)
    verdict = (DOES_NOT, IN_PART, HOLDS)[increased]
    return least, verdict, (
        "gap in regret between Median Elimination on each player and DME at 64 players, 80-20 over uniform: "
        f"{ratios[0].value:.3g} in Problem 1, {ratios[1].value:.3g} in Problem 2; the smaller is given"
    )  # fmt: skip


def _against_local(results: Results) -> dict[tuple[int, int], Estimate]:
    """Figure 6: regret of DME over that of players alone, by problem and N_γ."""
    return {
        (problem, active): statistics.ratio(
            results[active_name(problem, active)].per_trial.regret,
            _regret(results, "me-local", problem, "80-20", FIGURE_6_PLAYERS),
        )
        for problem in (1, 2)
        for active in ACTIVE_PLAYERS
    }


def wide_range(study: Study, results: Results) -> Verdict:
    ratios = _against_local(results)
    better = {
        problem: [active for active in ACTIVE_PLAYERS if ratios[problem, active].high < 0.999] for problem in (1, 2)
    }
    widest = min(max(values, default=0) for values in better.values())
    verdict = HOLDS if widest >= FIGURE_6_PLAYERS / 4 else IN_PART if widest else DOES_NOT
    ranges = "; ".join(
        f"Problem {problem}: {min(values)} to {max(values)}" if values else f"Problem {problem}: nowhere"
        for problem, values in better.items()
    )
    return statistics.exactly(widest), verdict, (
        f"the largest N_γ at which DME beats players alone by a thousandth or more, the smaller of both problems, of "
        f"{FIGURE_6_PLAYERS}: {ranges}; "
        "wide means a quarter of the players or more"
    )  # fmt: skip


def overestimated(study: Study, results: Results) -> Verdict:
    ratios = _against_local(results)
    worst = max(ratios, key=lambda key: ratios[key].value)
    later = statistics.ratio(
        results[over_name("dme")].per_trial.regret, results[over_name("me-local")].per_trial.regret
    )
    within = ratios[worst].low > 1
    verdict = HOLDS if within else IN_PART if later.low > 1 else DOES_NOT
    return later, verdict, (
        f"regret of DME with N_γ = {FIGURE_6_PLAYERS} (true: 51) over that of players alone at {OVER} times the paper's "
        f"horizon, Problem 1. At the paper's own horizon the largest ratio is {ratios[worst].value:.4g} (Problem {worst[0]}, "
        f"N_γ = {worst[1]})" + ("" if within else ": no player alone ends its first epoch there, so nobody can be worse")
    )  # fmt: skip


def extended_equals_best(study: Study, results: Results) -> Verdict:
    ratios, local = [], []
    for problem in (1, 2):
        extended = _regret(results, "edme", problem, "80-20", FIGURE_6_PLAYERS)
        best = min(
            (
                results[active_name(problem, FIGURE_6_PLAYERS * i // INSTANCES)].per_trial.regret
                for i in range(1, INSTANCES + 1)
            ),
            key=sum,
        )
        alone = _regret(results, "me-local", problem, "80-20", FIGURE_6_PLAYERS)
        ratios.append(statistics.ratio(extended, best))
        local.append(statistics.ratio(alone, extended))
    worst = max(ratios, key=lambda estimate: estimate.value)
    better = min(local, key=lambda estimate: estimate.value)
    same, ahead = worst.low <= 1.05, better.low > 1
    verdict = HOLDS if same and ahead else IN_PART if ahead else DOES_NOT
    return worst, verdict, (
        f"regret of Extended DME over that of its best instance as DME: {ratios[0].value:.3g} in Problem 1, "
        f"{ratios[1].value:.3g} in Problem 2 (the same up to 1.05); its δ/M makes epochs longer. Players alone have "
        f"{better.value:.3g} times its regret or more"
    )  # fmt: skip
