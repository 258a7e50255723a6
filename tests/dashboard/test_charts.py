"""Figures hold what the description of a task holds, no more and no less, and can be drawn in every theme."""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from dashboard.stories import CLOSE, GOOD, SOON, Story
from outvote.dashboard import charts
from outvote.server.admin.views import TaskDescription

STYLES = importlib.resources.files("outvote.dashboard").joinpath("static", "outvote.css").read_text()
SCRIPT = importlib.resources.files("outvote.dashboard").joinpath("static", "charts.js").read_text()
LATER = 1_700_900_000.0


def running(**task: Any) -> TaskDescription:
    return Story(**task).play(CLOSE, lambda story: story.messages >= 12).shown


def voting(**task: Any) -> TaskDescription:
    return Story(**{**SOON, **task}).play(GOOD, lambda story: story.messages > 0, "ams").shown


def many(good: int) -> TaskDescription:
    """More arms than have a place, of which so many remain: the last ones."""
    arms = 2 * charts.MOST_ROWS + 10
    means = (*(0.02,) * (arms - good), *(0.9,) * good)
    shown = Story(arms=arms, floor=15).play(means, lambda story: bool(story.found.eliminations)).shown
    assert shown.remaining == shown.task.arms[-good:]
    return shown


def figure_of(draw: Callable[[TaskDescription], charts.Figure | None], shown: TaskDescription) -> charts.Figure:
    figure = draw(shown)
    assert figure is not None
    return figure


def names(figure: charts.Figure) -> list[str]:
    found = figure["layout"]["yaxis"]["ticktext"]
    assert figure["layout"]["yaxis"]["tickvals"] == list(range(len(found)))
    return list(found)


def ends(trace: dict[str, Any]) -> list[tuple[float, float]]:
    """The low and the high end of each row's interval."""
    error = trace["error_x"]
    assert not error["symmetric"]
    rows = zip(trace["x"], error["arrayminus"], error["array"], strict=True)
    return [(middle - low, middle + high) for middle, low, high in rows]


def in_points(pairs: list[Any]) -> list[Any]:
    return [pytest.approx((100 * low, 100 * high)) for low, high in pairs]


def seconds(date: str) -> float:
    return datetime.fromisoformat(date).timestamp()


# ---- means and lifts


def test_means_and_their_intervals_are_those_of_the_description() -> None:
    shown = running()
    figure = figure_of(charts.means, shown)
    (trace,) = figure["data"]
    assert names(figure) == [arm.variant for arm in shown.variants]
    assert trace["y"] == [0, 1, 2]
    assert trace["x"] == [pytest.approx(100 * arm.mean) for arm in shown.variants if isinstance(arm.mean, float)]
    assert ends(trace) == in_points([arm.interval for arm in shown.variants])
    assert trace["marker"]["color"] == [
        "@leader" if arm.variant == shown.leader else "@remaining" for arm in shown.variants
    ]


def test_an_arm_of_which_nothing_is_known_has_a_row_and_no_mark() -> None:
    shown = Story().play(CLOSE, lambda story: story.messages > 0).shown
    (known,) = [arm.index for arm in shown.variants if isinstance(arm.mean, float)]
    figure = figure_of(charts.means, shown)
    (trace,) = figure["data"]
    assert len(names(figure)) == 3
    assert trace["y"] == [known]
    assert len(trace["x"]) == len(trace["marker"]["color"]) == len(trace["error_x"]["array"]) == 1


def test_of_a_finished_task_the_winner_and_those_that_are_out_have_their_colours() -> None:
    shown = Story().finish().shown
    (trace,) = figure_of(charts.means, shown)["data"]
    assert trace["marker"]["color"] == ["@leader", "@eliminated", "@eliminated"]


def test_lifts_are_those_of_the_description_against_a_line_at_nothing() -> None:
    shown = running()
    figure = figure_of(charts.lifts, shown)
    (trace,) = figure["data"]
    lifts = sorted(shown.lifts, key=lambda each: each.difference)
    assert names(figure) == [each.rival for each in lifts]
    assert trace["x"] == [pytest.approx(100 * each.difference) for each in lifts]
    assert ends(trace) == in_points([each.difference_interval for each in lifts])
    assert [(line["x0"], line["x1"]) for line in figure["layout"]["shapes"]] == [(0, 0)]
    assert str(shown.leader) in figure["layout"]["xaxis"]["title"]["text"]
    (gone,) = figure_of(charts.lifts, Story().finish().shown)["data"]
    assert {"@eliminated"} <= set(gone["marker"]["color"])


# ---- votes


def test_votes_stand_against_those_that_are_needed() -> None:
    shown = voting()
    figure = figure_of(charts.votes, shown)
    (bars,) = figure["data"]
    assert bars["x"] == [arm.votes[0] for arm in shown.variants if isinstance(arm.votes, tuple)]
    assert 1 in bars["x"]
    assert [(line["x0"], line["x1"]) for line in figure["layout"]["shapes"]] == [(2, 2)]  # of three sites
    assert figure["layout"]["annotations"][0]["x"] == 2
    low, high = figure["layout"]["xaxis"]["range"]
    assert low == 0
    assert high > 2  # the line is seen before it is reached
    assert figure["layout"]["xaxis"]["dtick"] == 1


def test_votes_of_several_instances_are_shares_of_what_each_needs() -> None:
    shown = voting(protocol="edme", instances=[1, 3])
    assert shown.votes_needed == (1, 2)
    figure = figure_of(charts.votes, shown)
    (bars,) = figure["data"]
    expected = [max(arm.votes[0] / 1, arm.votes[1] / 2) for arm in shown.variants if isinstance(arm.votes, tuple)]
    assert bars["x"] == expected
    assert max(expected) > 0
    assert figure["layout"]["shapes"][0]["x0"] == 1
    assert "share" in figure["layout"]["xaxis"]["title"]["text"]


# ---- time


def spans(shown: TaskDescription, now: float) -> list[tuple[float, float]]:
    (bars,) = charts.timeline(shown, now)["data"]
    starts = [seconds(base) for base in bars["base"]]
    stops = [start + length / 1000 for start, length in zip(starts, bars["x"], strict=True)]
    assert [seconds(each) for each in bars["customdata"]] == [pytest.approx(stop, abs=2e-3) for stop in stops]
    return list(zip(starts, stops, strict=True))


def test_an_arm_is_in_the_race_until_it_is_out_and_the_others_until_now() -> None:
    story = Story(**{**SOON, "active_players": 1})
    shown = story.play(GOOD, lambda story: bool(story.found.eliminations), "ams").shown
    for arm, (start, stop) in zip(shown.variants, spans(shown, LATER), strict=True):
        assert start == shown.created
        assert stop == pytest.approx(LATER if arm.eliminated is None else arm.eliminated.at)


def test_the_race_of_a_stopped_task_has_ended_then() -> None:
    shown = Story().stop().shown
    assert spans(shown, LATER) == [(shown.created, shown.stopped_at)] * 3


@pytest.mark.parametrize("stopped", [False, True])
def test_the_winner_has_won_when_the_last_other_was_out(stopped: bool) -> None:
    story = Story().finish()
    last = max(arm.eliminated.at for arm in story.shown.variants if arm.eliminated is not None)
    shown = story.stop().shown if stopped else story.shown
    assert spans(shown, LATER)[0] == (shown.created, last)


def test_a_clock_that_is_behind_the_engines_draws_nothing_backwards() -> None:
    shown = Story().shown
    assert [stop - start for start, stop in spans(shown, shown.created)] == [0, 0, 0]
    (bars,) = charts.timeline(shown, shown.created - 60)["data"]
    assert bars["x"] == [0, 0, 0]


# ---- many arms, and what they are called


@pytest.mark.parametrize("left", [charts.MOST_ROWS + 5, 10])
def test_of_too_many_arms_those_that_remain_are_kept(left: int) -> None:
    shown = many(left)
    for figure in (figure_of(charts.means, shown), charts.timeline(shown, LATER)):
        kept = names(figure)
        assert len(kept) == charts.MOST_ROWS
        assert kept == sorted(kept, key=int)  # in the order of the task
        assert len(set(kept) & set(shown.remaining)) == min(left, charts.MOST_ROWS)
        assert str(shown.leader) in kept
    assert len(names(figure_of(charts.lifts, shown))) == charts.MOST_ROWS


def test_names_are_cut_and_are_no_markup() -> None:
    long, exact = "x" * 64, "y" * charts.LONGEST_NAME
    shown = (
        Story(arms=["<b>bold</b>", "a & b", long, exact]).play((0.9, 0.1, 0.1, 0.1), lambda s: s.messages >= 8).shown
    )
    cut = "x" * (charts.LONGEST_NAME - 1) + "…"
    for figure in (figure_of(charts.means, shown), charts.timeline(shown, LATER)):
        assert names(figure) == ["&lt;b&gt;bold&lt;/b&gt;", "a &amp; b", cut, exact]
    assert shown.leader == "<b>bold</b>"
    lifts = figure_of(charts.lifts, shown)
    assert "<" not in lifts["layout"]["xaxis"]["title"]["text"] + "".join(names(lifts))


# ---- everything that is drawn


@functools.cache
def figures() -> tuple[charts.Figure, ...]:
    return tuple(_figures())


def _figures() -> Iterator[charts.Figure]:
    for shown in (running(), Story().finish().shown, Story().stop().shown, many(10), running(privacy_budget=1.0)):
        yield charts.timeline(shown, LATER)
        yield from filter(None, (charts.means(shown), charts.lifts(shown)))
    for shown in (Story(**SOON).shown, voting(), voting(protocol="edme", instances=2)):
        yield figure_of(charts.votes, shown)


def texts(value: object) -> Iterator[str]:
    """All strings in a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def test_every_figure_is_json_without_numbers_that_are_none() -> None:
    for figure in figures():
        assert json.loads(json.dumps(figure, allow_nan=False)) == figure


TOKENS = {name: value for name, value in re.findall(r"^  --([\w-]+): (.+);$", STYLES, re.MULTILINE)}
"""The variables of the style sheet."""


def test_every_colour_of_a_figure_is_one_of_the_page() -> None:
    drawn = {text.removeprefix("@") for figure in figures() for text in texts(figure) if text.startswith("@")}
    assert drawn == {"leader", "remaining", "eliminated", "text", "faint"}
    assert (drawn | set(re.findall(r'colour\("(\w+)"\)', SCRIPT))) <= TOKENS.keys()
