"""Figures hold what the description of a task holds, in its place over a scale of round numbers."""

from __future__ import annotations

import importlib.resources
import re
from typing import Any, get_args

import pytest

from dashboard.stories import CLOSE, GOOD, SOON, Story
from outvote.dashboard import charts
from outvote.server.admin.views import TaskDescription

LATER = 1_700_900_000.0


def running() -> TaskDescription:
    return Story().play(CLOSE, lambda story: story.messages >= 12).shown


def voting(**task: Any) -> TaskDescription:
    return Story(**{**SOON, **task}).play(GOOD, lambda story: story.messages > 0, "ams").shown


def many(good: int) -> TaskDescription:
    """More variants than have a place, of which so many remain: the last ones."""
    arms = 2 * charts.MOST_ROWS + 10
    means = (*(0.02,) * (arms - good), *(0.9,) * good)
    shown = Story(arms=arms, floor=15).play(means, lambda story: bool(story.found.eliminations)).shown
    assert shown.remaining == shown.task.arms[-good:]
    return shown


def read(figure: charts.Figure | None) -> list[tuple[str, Any, Any, Any]]:
    """The name, the low and high ends and the mark of each row, as somebody reads them off the axis."""
    assert figure is not None
    (first, low), (last, high) = figure.ticks[0], figure.ticks[-1]
    assert (first, last) == (0, 100)
    per_place = (float(high) - float(low)) / 100

    def value(place: float | None) -> Any:
        return None if place is None else pytest.approx(float(low) + per_place * place, abs=0.01 * per_place)

    return [(row.name, value(row.low), value(row.high), value(row.mark)) for row in figure.rows]


def colours(figure: charts.Figure | None) -> list[str]:
    assert figure is not None
    return [row.colour for row in figure.rows]


# ---- values


def test_means_and_their_intervals_are_those_of_the_description() -> None:
    shown = running()
    for row, each in zip(read(charts.means(shown)), shown.variants, strict=True):
        assert isinstance(each.interval, tuple)
        assert isinstance(each.mean, float)
        assert (each.variant, *(100 * end for end in each.interval), 100 * each.mean) == row
    expected = ["leader" if each.variant == shown.leader else "remaining" for each in shown.variants]
    assert colours(charts.means(shown)) == expected


def test_a_variant_of_which_nothing_is_known_has_a_row_and_no_mark() -> None:
    shown = Story().play(CLOSE, lambda story: story.messages > 0).shown
    marked = [row.name for row in getattr(charts.means(shown), "rows", ()) if row.mark is not None]
    assert marked == [each.variant for each in shown.variants if isinstance(each.mean, float)]
    assert len(read(charts.means(shown))) == 3
    assert charts.means(Story().shown) is None


def test_of_a_finished_task_the_winner_and_those_that_are_out_have_their_colours() -> None:
    shown = Story().finish().shown
    assert colours(charts.means(shown)) == ["leader", "eliminated", "eliminated"]
    assert set(colours(charts.lifts(shown))) == {"eliminated"}


def test_lifts_are_those_of_the_description_against_a_line_at_nothing() -> None:
    shown = running()
    figure = charts.lifts(shown)
    lifts = sorted(shown.lifts, key=lambda each: each.difference)
    for row, each in zip(read(figure), lifts, strict=True):
        assert (each.rival, *(100 * end for end in each.difference_interval), 100 * each.difference) == row
    assert figure is not None
    assert dict(figure.ticks)[figure.line or 0] == "0"


def test_votes_stand_against_those_that_are_needed() -> None:
    shown = voting()
    figure = charts.votes(shown)
    assert [row[:3] for row in read(figure)] == [(each.variant, 0, each.votes[0]) for each in shown.variants]  # type: ignore[index]
    assert figure.ticks == ((0, "0"), (50, "1"), (100, "2"))  # of three sites two are needed
    assert figure.line == 100


def test_votes_of_several_instances_are_shares_of_what_each_needs() -> None:
    shown = voting(protocol="edme", instances=[1, 3])
    assert shown.votes_needed == (1, 2)
    figure = charts.votes(shown)
    expected = [max(each.votes[0] / 1, each.votes[1] / 2) for each in shown.variants if isinstance(each.votes, tuple)]
    assert [row[2] for row in read(figure)] == expected
    assert max(expected) > 0
    assert (figure.line, figure.ticks[-1]) == (100, (100, "1"))


# ---- time


def test_a_variant_is_in_the_race_until_it_is_out_and_the_others_until_now() -> None:
    story = Story(**{**SOON, "active_players": 1})
    shown = story.play(GOOD, lambda story: bool(story.found.eliminations), "ams").shown
    whole = LATER - shown.created
    for row, each in zip(charts.timeline(shown, LATER).rows, shown.variants, strict=True):
        stop = LATER if each.eliminated is None else each.eliminated.at
        assert row.low == 0
        assert row.high == pytest.approx(100 * (stop - shown.created) / whole, abs=0.01)


@pytest.mark.parametrize("stopped", [False, True])
def test_the_race_ends_with_its_winner_or_when_it_is_stopped(stopped: bool) -> None:
    story = Story().finish()
    shown = story.stop().shown if stopped else story.shown
    assert max(row.high or 0 for row in charts.timeline(shown, LATER).rows[1:]) == 100
    ended = charts.timeline(Story().stop().shown, LATER)
    assert ([row.high for row in ended.rows], ended.ticks[1][1]) == ([100, 100, 100], "after a minute or less")


def test_a_clock_that_is_behind_the_engines_draws_nothing_backwards() -> None:
    shown = Story().shown
    assert [row.high for row in charts.timeline(shown, shown.created - 60).rows] == [0, 0, 0]


# ---- any figure


@pytest.mark.parametrize("left", [charts.MOST_ROWS + 5, 10])
def test_of_too_many_variants_those_that_remain_are_kept(left: int) -> None:
    shown = many(left)
    for figure in (charts.means(shown), charts.timeline(shown, LATER)):
        assert figure is not None
        kept = [row.name for row in figure.rows]
        assert len(kept) == charts.MOST_ROWS
        assert kept == sorted(kept, key=int)  # in the order of the task
        assert len(set(kept) & set(shown.remaining)) == min(left, charts.MOST_ROWS)
        assert shown.leader in kept
    assert len(read(charts.lifts(shown))) == charts.MOST_ROWS


def test_every_colour_of_a_figure_is_one_of_the_page() -> None:
    styles = importlib.resources.files("outvote.dashboard").joinpath("static", "outvote.css").read_text()
    assert set(get_args(charts.Colour)) <= set(re.findall(r"^\.chart \.(\w+) \{ fill: ", styles, re.MULTILINE))
    assert set(re.findall(r"var\(--([\w-]+)\)", styles)) <= set(re.findall(r"^  --([\w-]+): ", styles, re.MULTILINE))
