"""The planner: its figures are those of the exact sums and of the simulation, and it says what to do."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import pytest

from outvote.core.errors import InvalidSettings
from outvote.core.registry import REGISTRY
from outvote.core.task import Task
from outvote.planner import families
from outvote.planner.estimate import Estimate
from outvote.planner.plan import Option, Plan, make, tasks
from outvote.planner.question import ask
from outvote.presenters.durations import duration
from outvote.simulation import simulate

PROBLEM_1 = (0.7, 0.5, 0.3, *(0.1,) * 7)


@functools.cache
def plan_of_the_paper(players: int, activity: str = "uniform") -> Plan:
    return make(ask(means=PROBLEM_1, sites=players, activity=activity, epsilon=0.5, seed=1))


def option(plan: Plan, protocol: str, quorum: str | None = "paper") -> Option:
    """Without a privacy budget."""
    return next(
        each
        for each in plan.options
        if each.task.protocol == protocol and each.task.quorum == quorum and each.task.privacy_budget is None
    )


def test_eta_and_pulls_are_those_of_the_paper_and_of_the_certified_rule() -> None:
    """K = 10, ε = .5, δ = .05, N = 64; tests/theory/test_theory.py has other numbers of players."""
    question = ask(means=PROBLEM_1, sites=64, epsilon=0.5)
    unknown = Estimate.never("not simulated")
    votes = {task.quorum: Option(task, unknown, None).to_json() for task in tasks(question) if task.protocol == "dme"}
    paper, certified = votes["paper"], votes["certified"]
    assert (round(paper["eta"], 3), round(certified["eta"], 3)) == (0.911, 0.329)
    assert paper["events_per_site"] == 53_403
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
        assert other.finished.share == 1
        assert chosen.estimate.draws == pytest.approx(other.finished.mean, rel=0.05)
        assert chosen.bits == other.bits.bound
    tally = option(plan, "tally", None)
    other = simulate(
        protocol="tally", means=PROBLEM_1, players=players, activity=activity, epsilon=0.5, horizon=1e6, trials=4000,
        seed=2, grid=1,
    )  # fmt: skip
    assert tally.estimate.draws == pytest.approx(other.finished.mean, rel=0.05)
    assert tally.bits == pytest.approx(other.bits.total, rel=0.05)


def test_tally_is_recommended_with_its_reason_and_the_options_say_what_they_promise() -> None:
    plan = plan_of_the_paper(64)
    assert [each.name for each in plan.options if each.recommended] == ["tally, floor 3"]
    assert "times fewer events than edme, paper quorum" in plan.reason
    told = {each.name: each.to_json() for each in plan.options}
    assert list(told) == [
        "dme, paper quorum", "dme, certified quorum", "edme, paper quorum", "edme, certified quorum", "tally, floor 3",
        "tally, floor 23, privacy budget 1",
    ]  # fmt: skip
    assert "its proof has a gap; proved is 0.674" in told["dme, paper quorum"]["guarantee"]
    assert (
        "(by the proof even within 0.125) with probability at least 0.95; proved"
        in told["dme, certified quorum"]["guarantee"]
    )
    assert "at most 9 of them, and when; no count" in told["dme, paper quorum"]["adversary_sees"]
    assert "factor of 2.72" in told["tally, floor 23, privacy budget 1"]["adversary_sees"]
    for each in told.values():
        assert each["events_low"] <= each["events"] <= each["events_high"]
        assert each["how"].startswith("simulated, ")
        assert each["days"] is None


def test_a_privacy_budget_that_is_asked_for_is_kept_by_what_is_recommended() -> None:
    plan = make(ask(variants=3, sites=10, difference=0.3, privacy_budget=0.5, floor=31))
    [chosen] = [each for each in plan.options if each.recommended]
    assert (chosen.task.privacy_budget, chosen.task.floor) == (0.5, 31)


def test_what_takes_years_is_said_with_what_would_be_bearable() -> None:
    plan = make(ask(variants=4, sites=20, baseline=0.1, difference=0.02, traffic=50_000))
    [dme] = [line for line in plan.advice if line.startswith("dme, paper quorum")]
    assert "at 50,000 events a day this needs 2.4 years; relax ε to 0.15 for " in dme
    assert any(line.startswith("tally, floor 3 needs ") for line in plan.advice)
    slow = make(ask(variants=2, sites=4, baseline=0.1, difference=0.001, traffic=1_000))
    [tally] = [line for line in slow.advice if line.startswith("tally, floor 3:")]
    assert "look for a difference of " in tally
    tallied = option(slow, "tally", None).estimate
    assert "scaled by the information-theoretic bound" in tallied.how


def test_a_quorum_that_nobody_can_reach_never_ends_and_is_not_recommended() -> None:
    plan = make(ask(variants=3, sites=4, difference=0.3, activity=[1, 1, 0, 0], active_sites=4, traffic=1_000))
    dme = option(plan, "dme")
    assert dme.to_json()["events"] is None
    assert dme.to_json()["how"] == "it never ends: fewer sites are ever active than must vote"
    assert [each.task.protocol for each in plan.options if each.recommended] == ["tally"]


@pytest.mark.parametrize(
    ("asked", "field", "code", "error"),
    [
        ({"difference": 0}, "difference", "range", "difference must be a number from 1e-06 to 1, got 0"),
        ({"difference": 1e-9}, "difference", "range", "from 1e-06 to 1, got 1e-09"),
        ({"difference": 1e-6, "baseline": 0}, "difference", "range", "at least 1e-05 if the baseline is 0, got"),
        ({"traffic": 0}, "traffic", "range", "traffic must be a number of events a day above 0, got 0"),
        ({"activity": [1, 2]}, "activity", "conflict", "one weight for each of the 8 sites, got 2"),
        ({"activity": [1, -1], "sites": 2}, "activity", "range", r"at least 0, not all 0, got \[1, -1\]"),
        ({"activity": "trace.txt"}, "activity", "choice", "'uniform', '80-20', or weights like 3,1,1, got 'trace.txt'"),
        ({"activity": [0, 0], "sites": 2}, "activity", "range", "not all 0"),
        ({"delta": 1}, "delta", "range", "delta must be a number from 1e-12 to 0.999999, got 1"),
        ({"delta": 0}, "delta", "range", "got 0"),
        (
            {"epsilon": 1.5},
            "epsilon",
            "range",
            "from 1e-06 to 0.999999, got 1.5; leave it out to look for the very best",
        ),
        ({"means": [0.5, 0.5]}, "means", "range", "a best by at least 1e-06, got 0.5 and 0.5"),
        ({"means": [0.5, 1.5]}, "means", "range", "means must be a number from 0 to 1, got 1.5"),
        ({"means": [0, 5e-6]}, "means", "range", "from 1e-05 to 1, got 5e-06, of the best variant"),
        ({"means": [0.5, 0.4], "difference": 0.1}, "means", "conflict", "leave out baseline and difference"),
        ({"means": [0.5, 0.4], "variants": 3}, "means", "conflict", "one number for each of the 3 variants, got 2"),
        ({"baseline": 0.95}, "baseline", "range", r"baseline must be a number from 0 to 0\.9, got 0\.95"),
        ({"variants": 1}, "variants", "range", "variants must be a whole number from 2 to 10,000, got 1"),
        ({"sites": 0}, "sites", "range", "sites must be a whole number from 1"),
        ({"active_sites": 9}, "active_sites", "range", "above 0 and at most the 8 sites, got 9"),
        ({"floor": 1}, "floor", "range", "floor must be a whole number from 2 to 127, got 1"),
        ({"privacy_budget": 0}, "privacy_budget", "range", "privacy_budget must be a number from 1e-06 to 20, got 0"),
        ({"tolerate": 4}, "tolerate", "range", "tolerate must be a whole number from 0 to 3, got 4: fewer than half"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_its_field(
    asked: dict[str, Any], field: str, code: str, error: str
) -> None:
    with pytest.raises(InvalidSettings, match=error) as caught:
        ask(**asked)
    assert (caught.value.field, caught.value.code) == (field, code)
    assert "--" not in str(caught.value)


def test_a_baseline_may_be_0_or_as_high_as_the_difference_leaves() -> None:
    for asked in ({"baseline": 0.93, "difference": 0.07}, {"baseline": 0, "difference": 1}):
        question = ask(**asked, sites=4)
        assert question.means == (1, asked["baseline"])
    [tally] = [each for each in make(ask(baseline=0, sites=4)).options if each.recommended]
    near = option(make(ask(baseline=1e-9, sites=4)), "tally", None)
    assert tally.estimate.draws == pytest.approx(near.estimate.draws, rel=0.05)


@pytest.mark.parametrize("means", [(0, 0, 0.1), (0.5, 0, 0, 0)])
def test_votes_never_end_where_most_variants_never_succeed(means: tuple[float, ...]) -> None:
    """No mean is below a median of 0. Tally tells the best."""
    plan = make(ask(means=means, sites=4, traffic=1_000))
    assert {each.task.protocol for each in plan.options if each.estimate.ends} == {"tally"}
    assert "sites vote against those below the median" in option(plan, "dme").estimate.how
    simulated = simulate(protocol="dme", means=means, players=4, epsilon=0.5, horizon=1e5, trials=5, seed=2, grid=1)
    assert simulated.finished.share == 0


def test_a_simulation_in_which_most_fleets_do_not_end_gives_no_number() -> None:
    plan = make(ask(baseline=0, difference=1e-4, sites=4))
    private = plan.options[-1].to_json()
    assert (private["events"], private["bits"]) == (None, None)
    assert re.match("it takes too long: .% of 20 simulated fleets had ended after ", private["how"])


def test_instances_of_a_task_are_simulated_as_they_are() -> None:
    question = ask(variants=2, sites=8, epsilon=0.7)
    few, many = (
        families.of(task).estimate(question, task)
        for task in (Task(arms=2, players=8, epsilon=0.7, protocol="edme", instances=each) for each in ([1, 2], [7, 8]))
    )
    assert few.draws > 1.5 * many.draws


def test_a_protocol_without_a_family_cannot_be_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "other", REGISTRY["tally"])
    task = Task(arms=2, players=4, protocol="other")
    with pytest.raises(InvalidSettings, match="protocol 'other' cannot be planned, only 'dme', 'edme', 'tally' can"):
        families.of(task)


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
    question = ask(variants=3, sites=5, difference=0.3, seed=3)
    told = make(question).to_json()
    assert make(question).to_json() == told
    assert math.isfinite(told["protocols"][0]["events"])
