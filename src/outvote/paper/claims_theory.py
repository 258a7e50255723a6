"""Verdicts on the lemmas and theorems: the guarantee, the bits, the pulls and the draws."""

from __future__ import annotations

from outvote import theory
from outvote.core.ledger import bits_bound
from outvote.core.votes.schedule import Schedule, paper_log_eta
from outvote.paper import statistics
from outvote.paper.statistics import Estimate
from outvote.paper.study import (
    CURVE_PLAYERS,
    FIGURE_6_PLAYERS,
    INSTANCES,
    LONG,
    SPEED_UP_PLAYERS,
    STRICT_EPSILON,
    Study,
    long_name,
    shared_name,
    strict_name,
)
from outvote.paper.verdicts import DOES_NOT, HOLDS, IN_PART, Results, Verdict
from outvote.simulation.settings import Settings

# ---- the guarantee


def _failures(results: Results, names: list[str]) -> tuple[int, int]:
    """Trials that finished with an arm that is no ε-approximation, and trials that finished."""
    failed = finished = 0
    for name in names:
        cell = results[name]
        ended = round(cell.finished.share * cell.trials)
        finished += ended
        # a trial that has not finished is not correct either, so it is taken off
        failed += ended - min(ended, round(cell.correct * cell.trials))
    return failed, finished


def lemma_1(study: Study, results: Results) -> Verdict:
    names = [long_name("dme", players) for players in SPEED_UP_PLAYERS] + ["long 80-20"]
    failed, finished = _failures(results, names)
    measured = statistics.share(failed, max(finished, 1))
    verdict = HOLDS if measured.low <= 0.05 else DOES_NOT
    return measured, verdict, (
        f"{failed} of {finished} finished trials kept an arm that is no .5-approximation; δ = .05. This setting can "
        "hardly fail: at ε = .5 three arms of Problem 1 and all ten of Problem 2 are good, and epochs are long"
    )  # fmt: skip


def lemma_1_strict(study: Study, results: Results) -> Verdict:
    names = [strict_name(protocol, problem) for protocol in ("dme", "edme") for problem in (1, 2)]
    failed, finished = _failures(results, names)
    measured = statistics.share(failed, max(finished, 1))
    verdict = HOLDS if measured.high <= 0.05 else IN_PART if measured.low <= 0.05 else DOES_NOT
    return measured, verdict, (
        f"with ε = {STRICT_EPSILON}, which leaves one good arm in Problem 1 and two in Problem 2: {failed} of {finished} "
        "finished trials of DME and Extended DME kept a bad arm; δ = .05. (The proof has a gap: it multiplies over one "
        "fixed set of voters. The measured error is far below what it allows all the same)"
    )  # fmt: skip


def algorithm_1_stop(study: Study, results: Results) -> Verdict:
    cells = [results[strict_name(protocol, problem)] for protocol in ("dme", "edme") for problem in (1, 2)]
    trials = sum(cell.trials for cell in cells)
    solved = sum(round(cell.solved.share * cell.trials) for cell in cells)
    measured = statistics.share(solved, trials)
    verdict = HOLDS if solved == trials else IN_PART if measured.value > 0.9 else DOES_NOT
    early = [
        round(cell.solved.mean / cell.finished.mean, 3) for cell in cells if cell.solved.mean and cell.finished.mean
    ]
    return measured, verdict, (
        f"share of trials in which, at ε = {STRICT_EPSILON} and {LONG} times the horizon, only ε-approximations remain to "
        f"every player; it comes at {min(early, default=0):g} to {max(early, default=0):g} of the draw at which the fleet "
        "finishes. At the paper's ε = .5 Problem 2 is solved at the first draw, with all ten arms"
    )  # fmt: skip


# ---- bits


def lemma_2(study: Study, results: Results) -> Verdict:
    cell = results[long_name("dme", CURVE_PLAYERS)]
    bits, bound = cell.per_trial.bits, cell.bits.bound or 0
    measured = statistics.mean([float(value) for value in bits])
    within = max(bits) <= bound
    exact = min(bits) == bound
    verdict = HOLDS if exact else IN_PART if within else DOES_NOT
    return measured, verdict, (
        f"bits until {CURVE_PLAYERS} players have finished: {min(bits):,} to {max(bits):,}, never above "
        f"{bound:,}. As a bound it holds; as the number sent it does not: an arm gets no more votes after the half "
        "that eliminates it, so three quarters of the bound are sent"
    )  # fmt: skip


def _printed(formula: int, printed: int, what: str) -> Verdict:
    verdict = HOLDS if formula == printed else DOES_NOT
    return statistics.exactly(formula), verdict, f"{what} is {formula:,}, printed is {printed:,}"


def printed_4736(study: Study, results: Results) -> Verdict:
    return _printed(bits_bound(study.cell().task), 4736, "2N(K−1)⌈log₂K⌉ at N = 64, K = 10")


def printed_9472(study: Study, results: Results) -> Verdict:
    task = study.cell(players=FIGURE_6_PLAYERS).task
    return _printed(bits_bound(task), 9472, "2N(K−1)⌈log₂K⌉ at N = 256, K = 10")


def printed_75776(study: Study, results: Results) -> Verdict:
    task = study.cell(protocol="edme", players=FIGURE_6_PLAYERS, instances=INSTANCES).task
    return _printed(bits_bound(task), 75776, "2NM(K−1)⌈log₂K⌉ at N = 256, M = 8, K = 10")


def unlimited_bits(study: Study, results: Results) -> Verdict:
    bits = results[shared_name("ucb-unlimited", 1)].bits.total
    expected = 256 * study.horizon
    return statistics.exactly(bits), HOLDS if bits == expected else DOES_NOT, (
        f"N·T·⌈log₂K⌉ with N = 64, T = {study.horizon:,}: each of T draws told to all players"
    )  # fmt: skip


def million_times_fewer(study: Study, results: Results) -> Verdict:
    unlimited = results[shared_name("ucb-unlimited", 1)].bits.total
    dme = results[long_name("dme", CURVE_PLAYERS)]
    used = [float(bits) for bits in dme.per_trial.bits]
    measured = statistics.ratio([unlimited], used)
    verdict = HOLDS if measured.value >= 5e5 else DOES_NOT
    return measured, verdict, (
        f"{unlimited:.3g} bits over what DME sends until it has finished; over its bound the ratio is "
        f"{unlimited / (dme.bits.bound or 0):.3g}"
    )  # fmt: skip


def bits_and_horizon(study: Study, results: Results) -> Verdict:
    short = results[long_name("dme", CURVE_PLAYERS)].per_trial.bits
    long = results[long_name("dme", CURVE_PLAYERS, factor=10)].per_trial.bits
    measured = statistics.ratio([float(b) for b in long], [float(b) for b in short])
    verdict = HOLDS if measured.low <= 1 <= measured.high else DOES_NOT
    return measured, verdict, (
        f"mean bits at {10 * LONG} times the horizon over those at {LONG} times: after its end a fleet sends nothing"
    )  # fmt: skip


# ---- pulls, speed-up, draws


def _pulls(active: float) -> int:
    return theory.pulls_per_player(Schedule(10, 0.5, paper_log_eta(0.05, active)))


def lemma_3(study: Study, results: Results) -> Verdict:
    few, many = SPEED_UP_PLAYERS[0], SPEED_UP_PLAYERS[-1]
    measured = statistics.exactly(_pulls(few) / _pulls(many))
    promised = many / few
    verdict = HOLDS if measured.value >= promised / 2 else DOES_NOT
    return measured, verdict, (
        f"pulls per player at N_γ = {few} over those at N_γ = {many}: 1/N_γ would give {promised:g}. ln(K/η) with η = "
        "δ^(2/N_γ) is ln K + (2/N_γ)·ln(1/δ): the ln K does not shrink"
    )  # fmt: skip


def theorem_2(study: Study, results: Results) -> Verdict:
    def speed_up(players: int) -> Estimate:
        alone = [draw for draw in results[long_name("me-local", players)].per_trial.finished if draw]
        together = [draw for draw in results[long_name("dme", players)].per_trial.finished if draw]
        return statistics.ratio(alone, together) if alone and together else statistics.exactly(float("nan"))

    found = {players: speed_up(players) for players in SPEED_UP_PLAYERS}
    first, last = found[SPEED_UP_PLAYERS[0]], found[SPEED_UP_PLAYERS[-1]]
    promised = SPEED_UP_PLAYERS[-1] / SPEED_UP_PLAYERS[0]
    verdict = HOLDS if last.value / first.value >= promised / 2 else DOES_NOT
    listed = ", ".join(f"{estimate.value:.2f} at N = {players}" for players, estimate in found.items())
    return last, verdict, (
        f"draws until all players have finished alone over draws until DME has, Problem 1, uniform: {listed}. It does not "
        f"grow with N (from {SPEED_UP_PLAYERS[0]} to {SPEED_UP_PLAYERS[-1]} players a factor {promised:g} is claimed)"
    )  # fmt: skip


def _theorem_3_bound(settings: Settings, busy: float) -> float:
    share = busy / settings.active_players
    return theory.draws_bound(_pulls(settings.active_players), share, settings.active_players, settings.task.delta)


def theorem_3(study: Study, results: Results) -> Verdict:
    worst = statistics.exactly(0.0)
    for name, settings, busy in (
        (long_name("dme", CURVE_PLAYERS), study.cell(), 1.0),
        ("long 80-20", study.cell(activity="80-20"), 0.8),
    ):
        bound = _theorem_3_bound(settings, busy)
        draws = [float(draw) / bound for draw in results[name].per_trial.finished if draw]
        if draws:
            worst = max(worst, statistics.mean(draws), key=lambda estimate: estimate.value)
    verdict = DOES_NOT if worst.low > 1 or worst.value == 0 else IN_PART
    return worst, verdict, (
        "draws to the end over t/γ + √(t/2·ln(2N_γ/δ)) with the exact t, the larger of uniform and 80-20 at 64 players: the "
        "bound holds. The printed order does not: it takes t to fall as 1/N_γ (see Lemma 3)"
    )  # fmt: skip


def theorem_4(study: Study, results: Results) -> Verdict:
    extended = [float(draw) for draw in results["long edme"].per_trial.finished if draw]
    instances = [
        [float(draw) for draw in results[f"long instance {instance}"].per_trial.finished if draw]
        for instance in range(1, INSTANCES + 1)
    ]
    reached = [draws for draws in instances if len(draws) == len(extended)]
    best = min(reached, key=lambda draws: sum(draws) / len(draws))
    measured = statistics.ratio(extended, best)
    verdict = HOLDS if measured.low <= 1.02 else IN_PART if measured.low <= 1.25 else DOES_NOT
    return measured, verdict, (
        f"draws until Extended DME finishes over those of the best of its {INSTANCES} instances run alone with δ/M (80-20, "
        f"{FIGURE_6_PLAYERS} players, N_γ = {FIGURE_6_PLAYERS * (1 + instances.index(best)) // INSTANCES}); "
        "holds up to 1.02"
    )  # fmt: skip
