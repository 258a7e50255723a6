"""What is left of a task: the planner's figure less what has happened, and what is said where that is not known.

The planner here answers what a test wants; `test_planning` asks the real one.
"""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.stories import CLOSE, SOON, Story
from outvote.core.errors import InvalidSettings, OutvoteError
from outvote.core.task import Task
from outvote.dashboard.forecast import DAY, ENOUGH, Forecast, forecast
from outvote.dashboard.planning import PlannerFailed
from outvote.planner.question import ask as question
from outvote.presenters.durations import duration
from outvote.presenters.formats import about, count
from outvote.server.admin.views import TaskDescription

PLANNED: dict[str, Any] = {"draws": 9_000.0, "low": 5_000.0, "high": 20_000.0, "how": "simulated"}


class Answering:
    """A planner that gives one answer, and knows what it was asked."""

    def __init__(self, answer: dict[str, Any] | OutvoteError | None) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    def __call__(self, world: dict[str, Any], task: Task) -> dict[str, Any] | OutvoteError | None:
        self.asked.append(world)
        question(**world)  # what it cannot be asked would be refused
        return self.answer


def reported(shown: TaskDescription) -> int:
    return sum(arm.trials for arm in shown.variants if isinstance(arm.trials, int))


def running(messages: int = 60, **task: Any) -> Story:
    return Story(**task).play(CLOSE, lambda story: story.messages >= messages)


def days_of(events: float, high: float, traffic: float) -> str:
    return f"{duration(events / traffic)} (at most {duration(high / traffic)} in 19 of 20 cases)"


# ---- tallies


def test_of_a_declared_world_what_is_left_and_what_is_reported_are_what_was_planned() -> None:
    story = running().expect(traffic=1_000, difference=0.1, baseline=0.2)
    done = reported(story.shown)
    assert 100 < done < PLANNED["low"]
    planner = Answering(PLANNED)
    found = forecast(story.shown, planner, story.now)
    low, left, high = (PLANNED[each] - done for each in ("low", "draws", "high"))
    assert found.state == "known"
    assert found.events == f"about {about(left)} ({about(low)} to {about(high)})"
    assert found.days == days_of(left, high, 1_000)
    assert found.why == (
        "the planner expects 9,000 events in all, from 5,000 to 20,000 if the best variant is better by 0.1; "
        f"{count(done)} are reported, and 1,000 a day are declared"
    )
    task = story.task
    same = {"sites": 3, "delta": task.delta, "epsilon": None, "floor": task.floor, "privacy_budget": None}
    assert planner.asked == [{"variants": 3, **same, "baseline": 0.2, "difference": 0.1}]


def test_without_a_declared_traffic_it_is_that_so_far() -> None:
    story = running().expect(difference=0.1)
    shown = story.shown
    passed = 4 * DAY
    found = forecast(shown, Answering(PLANNED), shown.created + passed)
    done = reported(shown)
    pace = done / 4
    assert found.days == days_of(9_000 - done, 20_000 - done, pace)
    assert found.why.endswith(f"{count(done)} are reported, {about(pace)} a day so far")


def test_before_the_first_event_no_days_are_said() -> None:
    story = Story().expect(difference=0.1)
    found = forecast(story.shown, Answering(PLANNED), story.now)
    assert found == Forecast(
        "known",
        events="about 9,000 (5,000 to 20,000)",
        why="the planner expects 9,000 events in all, from 5,000 to 20,000 if the best variant is better by 0.1; "
        "0 are reported",
    )


def test_without_a_declaration_the_world_is_that_of_the_tallies() -> None:
    story = running()
    shown, planner = story.shown, Answering(PLANNED)
    found = forecast(shown, planner, story.now)
    done = reported(shown)
    (world,) = planner.asked
    assert world["means"] == [round(arm.mean, 3) for arm in shown.variants if isinstance(arm.mean, float)]
    assert "variants" not in world
    assert found.events.startswith(f"about {about(9_000 - done)} (")
    assert f"if the variants' means are what they seem now; {count(done)} are reported" in found.why


def test_with_more_events_than_the_declared_world_needs_the_seen_one_is_asked_for() -> None:
    story = running().expect(difference=0.1)
    done = reported(story.shown)
    answers = iter([{**PLANNED, "draws": done / 2, "high": done}, PLANNED])
    asked: list[dict[str, Any]] = []

    def planner(world: dict[str, Any], task: Task) -> dict[str, Any]:
        asked.append(world)
        return next(answers)

    found = forecast(story.shown, planner, story.now)
    assert ["means" in world for world in asked] == [False, True]
    late = f"more events are reported ({count(done)}) than the declared difference needs; "
    assert found.why.startswith(f"{late}the planner expects 9,000 events in all, ")
    assert found.events.startswith(f"about {about(9_000 - done)} (")


def test_a_declared_world_may_take_as_long_as_its_longest_case() -> None:
    """Beyond what is expected, but not beyond what may be: nothing else is asked for."""
    story = running().expect(difference=0.1)
    done = reported(story.shown)
    planner = Answering({"draws": done - 50, "low": 10, "high": done + 40})
    found = forecast(story.shown, planner, story.now)
    assert ["means" in world for world in planner.asked] == [False]
    assert found.events == "about 0 (0 to 40)"


def test_with_more_events_than_any_plan_it_should_have_ended() -> None:
    story = running()
    found = forecast(story.shown, Answering({"draws": 10, "low": 5, "high": 20}), story.now)
    assert (found.state, found.events, found.days) == ("known", "it should have ended", "")


def test_too_few_events_say_nothing_and_nobody_is_asked() -> None:
    planner = Answering(PLANNED)
    for story in (Story(), running(4)):
        assert any(not isinstance(arm.trials, int) or arm.trials < ENOUGH for arm in story.shown.variants)
        found = forecast(story.shown, planner, story.now)
        why = "no difference is declared; the tallies do not tell yet which variant is better, or have too few events"
        assert found == Forecast("unknown", why=why)
    assert planner.asked == []


def test_too_few_events_after_a_declared_world_that_needs_fewer_say_so() -> None:
    story = running(4).expect(difference=0.4)
    found = forecast(story.shown, Answering({"draws": 2, "low": 1, "high": 3}), story.now)
    done = reported(story.shown)
    assert found.state == "unknown"
    assert found.why == (
        f"more events are reported ({done}) than the declared difference needs; "
        "the tallies do not tell yet which variant is better, or have too few events"
    )


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (None, Forecast("working", why="the planner is at work")),
        (InvalidSettings("no such world"), Forecast("unknown", why="no such world")),
        (PlannerFailed("it is gone"), Forecast("unknown", why="it is gone")),
        ({"never": "it never ends"}, Forecast("unknown", why="it never ends")),
    ],
)
def test_without_an_answer_of_the_planner_that_is_said(declared: bool, answer: Any, found: Forecast) -> None:
    story = running().expect(difference=0.1) if declared else running()
    assert forecast(story.shown, Answering(answer), story.now) == found
    votes = Story(**SOON)
    assert forecast(votes.shown, Answering(answer), votes.now) == found


def test_a_private_task_is_asked_for_as_it_is() -> None:
    story = running(9, privacy_budget=1.0, epsilon=0.05)
    planner = Answering(PLANNED)
    forecast(story.shown, planner, story.now)
    (world,) = planner.asked
    assert (world["privacy_budget"], world["epsilon"], world["floor"]) == (1.0, 0.05, story.task.floor)


# ---- votes


def test_of_votes_without_a_traffic_only_the_whole_is_said() -> None:
    story = Story(**SOON)
    planner = Answering(PLANNED)
    found = forecast(story.shown, planner, story.now)
    assert (found.state, found.events, found.days) == ("known", "9,000 in all", "")
    assert found.why.endswith("votes do not tell how many there were: declare the traffic")
    (world,) = planner.asked
    assert (world["variants"], world["epsilon"], world["difference"]) == (3, 0.99, None)  # variants that differ by ε


def test_of_votes_with_a_traffic_what_has_happened_is_that_times_the_days() -> None:
    story = Story(**SOON).expect(traffic=500, difference=0.3)
    shown, planner = story.shown, Answering(PLANNED)
    found = forecast(shown, planner, shown.created + 4 * DAY)
    left, low, high = 9_000 - 2_000, 5_000 - 2_000, 20_000 - 2_000
    assert found.events == f"about {about(left)} ({about(low)} to {about(high)})"
    assert found.days == days_of(left, high, 500) == "2 weeks (at most 5.1 weeks in 19 of 20 cases)"
    assert found.why.endswith("; at 500 a day about 2,000 have happened")
    assert planner.asked[0]["difference"] == 0.3


def test_a_clock_that_is_behind_the_engines_does_not_divide_by_nothing() -> None:
    story = running()
    found = forecast(story.shown, Answering(PLANNED), story.shown.created - 100)
    assert found.state == "known"
    assert f"{about(reported(story.shown) * DAY)} a day so far" in found.why
