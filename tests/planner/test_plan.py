"""The planner: its figures are those of the exact sums and of the simulation, and it says what to do."""

from __future__ import annotations

import functools
import math

import pytest

from outvote.core.errors import InvalidTask
from outvote.planner.duration import duration
from outvote.planner.plan import Option, Plan, make, tasks
from outvote.planner.question import ask
from outvote.simulation import simulate

PROBLEM_1 = (0.7, 0.5, 0.3, *(0.1,) * 7)


@functools.cache
def plan_of_the_paper(players: int, activity: str = "uniform") -> Plan:
    return make(ask(means=PROBLEM_1, players=players, activity=activity, epsilon=0.5, seed=1))


def option(plan: Plan, protocol: str, quorum: str = "paper") -> Option:
    """Without a privacy budget."""
    return next(
        each
        for each in plan.options
        if each.task.protocol == protocol and each.task.quorum == quorum and each.task.privacy_budget is None
    )


def test_eta_and_pulls_are_those_of_the_paper_and_of_the_certified_rule() -> None:
    """K = 10, ε = .5, δ = .05, N = 64; tests/theory/test_theory.py has other numbers of players."""
    question = ask(means=PROBLEM_1, players=64, epsilon=0.5)
    votes = {task.quorum: Option(task, None, None).to_json() for task in tasks(question) if task.protocol == "dme"}
    paper, certified = votes["paper"], votes["certified"]
    assert (round(paper["eta"], 3), round(certified["eta"], 3)) == (0.911, 0.329)
    assert (paper["pulls_epoch_1"], paper["pulls_per_player"]) == (10_730, 53_403)
    assert certified["pulls_epoch_1"] == 13_330
    assert paper["error_bound"] == pytest.approx(0.33, abs=5e-3)
    assert certified["error_bound"] <= 0.05 * (1 + 1e-9)


@pytest.mark.parametrize("players", [16, 64])
@pytest.mark.parametrize("activity", ["uniform", "80-20"])
def test_planned_draws_are_those_of_a_simulation_and_planned_bits_its_bound(players: int, activity: str) -> None:
    """Within 5 %: more than five standard errors of the two means, so a false alarm in 10⁶ runs; seeds 1 and 2."""
    plan = plan_of_the_paper(players, activity)
    for rule in ("paper", "certified"):
        chosen = option(plan, "dme", rule)
        other = simulate(
            protocol="dme", means=PROBLEM_1, players=players, activity=activity, epsilon=0.5, quorum=rule, horizon=1e7,
            trials=300, seed=2, grid=1,
        )  # fmt: skip
        assert chosen.estimate is not None
        assert other.finished.share == 1
        assert chosen.estimate.draws == pytest.approx(other.finished.mean, rel=0.05)
        assert chosen.bits == other.bits.bound
    tally = option(plan, "tally")
    other = simulate(
        protocol="tally", means=PROBLEM_1, players=players, activity=activity, epsilon=0.5, horizon=1e6, trials=4000,
        seed=2, grid=1,
    )  # fmt: skip
    assert tally.estimate is not None
    assert tally.estimate.draws == pytest.approx(other.finished.mean, rel=0.05)
    assert tally.bits == pytest.approx(other.bits.total, rel=0.05)


def test_tally_is_recommended_with_its_reason_and_the_options_say_what_they_promise() -> None:
    plan = plan_of_the_paper(64)
    assert [each.name for each in plan.options if each.recommended] == ["tally, floor 3"]
    assert "times fewer events than dme" in plan.reason
    told = {each.name: each.to_json() for each in plan.options}
    assert list(told) == [
        "dme, paper quorum", "edme, paper quorum", "dme, certified quorum", "edme, certified quorum", "tally, floor 3",
        "tally, floor 23, privacy budget 1",
    ]  # fmt: skip
    assert "its proof has a gap; proved is 0.674" in told["dme, paper quorum"]["guarantee"]
    assert (
        "(by the proof even within 0.125) with probability at least 0.95; proved"
        in told["dme, certified quorum"]["guarantee"]
    )
    assert "at most 9 names, and when; no count" in told["dme, paper quorum"]["adversary_sees"]
    assert "factor of 2.72" in told["tally, floor 23, privacy budget 1"]["adversary_sees"]
    for each in told.values():
        assert each["draws_low"] <= each["draws"] <= each["draws_high"]
        assert "engine fast" in each["how"]
        assert each["days"] is None


def test_a_privacy_budget_that_is_asked_for_is_kept_by_what_is_recommended() -> None:
    plan = make(ask(arms=3, players=10, difference=0.3, privacy_budget=0.5, floor=31))
    [chosen] = [each for each in plan.options if each.recommended]
    assert (chosen.task.privacy_budget, chosen.task.floor) == (0.5, 31)


def test_what_takes_years_is_said_with_what_would_be_bearable() -> None:
    plan = make(ask(arms=4, players=20, baseline=0.1, difference=0.02, traffic=50_000))
    [dme] = [line for line in plan.advice if line.startswith("dme, paper quorum")]
    assert "at 50,000 events a day this needs 2.4 years; relax ε to 0.15 for " in dme
    assert any(line.startswith("tally, floor 3 needs ") for line in plan.advice)
    slow = make(ask(arms=2, players=4, baseline=0.1, difference=0.001, traffic=1_000))
    [tally] = [line for line in slow.advice if line.startswith("tally, floor 3:")]
    assert "look for a difference of " in tally
    tallied = option(slow, "tally").estimate
    assert tallied is not None
    assert "scaled by the information-theoretic bound" in tallied.how


def test_a_quorum_that_nobody_can_reach_never_ends_and_is_not_recommended() -> None:
    plan = make(ask(arms=3, players=4, difference=0.3, activity=[1, 1, 0, 0], active_players=4, traffic=1_000))
    dme = option(plan, "dme")
    assert dme.estimate is None
    assert dme.to_json()["draws"] is None
    assert dme.to_json()["how"].startswith("it never ends")
    assert [each.task.protocol for each in plan.options if each.recommended] == ["tally"]


def test_traffic_of_each_site_says_who_is_active() -> None:
    question = ask(arms=2, players=3, traffic=[900, 50, 50], difference=0.2)
    assert question.traffic == 1000
    assert question.activity.shares().tolist() == [0.9, 0.05, 0.05]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"difference": 0}, "difference must be a number above 0 and below 1, got 0"),
        ({"traffic": 0}, "traffic must be a number of events a day above 0, got 0"),
        ({"activity": "trace.txt"}, "activity must be 'uniform', '80-20' or weights like 3,1,1 in a plan"),
        ({"traffic": [1, 2]}, "one for each of the 8 players, got 2"),
        ({"delta": 1}, "delta must be a number above 0 and below 1, got 1"),
        ({"delta": 0}, "delta must be"),
        ({"epsilon": 1.5}, "epsilon must be a number above 0 and below 1, got 1.5"),
        ({"means": [0.5, 0.5]}, "two arms are best"),
        ({"means": [0.5, 1.5]}, "a mean must be a number from 0 to 1, got 1.5"),
        ({"means": [0.5, 0.4], "difference": 0.1}, "leave out --baseline and --difference"),
        ({"means": [0.5, 0.4], "arms": 3}, "one for each of the 3 arms, got 2"),
        ({"baseline": 0.95}, r"from 0 to 1 − difference = 0\.9, got 0\.95"),
        ({"arms": 1}, "arms must be a whole number from 2"),
        ({"players": 0}, "players must be a whole number from 1"),
        ({"active_players": 9}, "active_players must be"),
        ({"floor": 1}, "floor must be a whole number from 2 to 127, got 1"),
        ({"privacy_budget": 0}, "privacy_budget must be"),
        ({"difference": 1e-9}, "the best arm must be better by at least 1e-06 in a plan, got 1e-09"),
        ({"means": (0.5, 0.5 - 1e-9)}, "the best arm must be better by at least 1e-06"),
        ({"epsilon": 1e-7}, "epsilon must be at least 1e-06 in a plan, got 1e-07"),
        ({"delta": 1e-300}, "delta must be at least 1e-12 in a plan, got 1e-300"),
    ],
)
def test_what_cannot_be_planned_is_refused(asked: dict[str, object], error: str) -> None:
    with pytest.raises(InvalidTask, match=error):
        ask(**asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (14 * 365.25, "14 years"), (2.4 * 365.25, "2.4 years"), (21, "3 weeks"), (5.4, "5.4 days"), (0.5, "12 hours"),
        (1 / 48, "30 minutes"), (1e-5, "a minute or less"), (1 / 1440, "1 minute"), (1.5 / 1440, "2 minutes"),
    ],
)  # fmt: skip
def test_durations_are_said_as_people_say_them(days: float, said: str) -> None:
    assert duration(days) == said


def test_the_plan_is_the_same_for_the_same_seed() -> None:
    question = ask(arms=3, players=5, difference=0.3, seed=3)
    told = make(question).to_json()
    assert make(question).to_json() == told
    assert math.isfinite(told["protocols"][0]["draws"])
