"""Numbers and times as people read them, and the one function that the page's script has, too."""

from __future__ import annotations

import importlib.resources
import json
import re
import shutil
import subprocess

import pytest

from dashboard.html import Page
from outvote.dashboard import formats as times
from outvote.presenters import formats
from outvote.presenters.durations import since

SCRIPT = importlib.resources.files("outvote.dashboard").joinpath("static", "outvote.js").read_text()
AGES = [-3, 0, 0.4, 0.6, 1, 59.9, 60, 119, 119.5, 119.99, 120, 179.9, 180, 3_599, 7_199.9, 7_200, 172_799, 172_800, 1e7]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0.0 %"), (0.1234, "12.3 %"), (1.0, "100.0 %"), (0.01, "1.0 %"), (0.00321, "0.32 %")],
)
def test_of_small_means_more_digits_are_shown(value: float | None, text: str) -> None:
    assert formats.percent(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.0123, "+1.2"), (-0.05, "−5.0"), (0.0, "+0.0"), (1.0, "+100.0")])
def test_points_have_a_sign(value: float, text: str) -> None:
    assert formats.points(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "∞"), (0.05, "+5.0 %"), (-0.05, "−5.0 %"), (0.5, "+50 %"), (-0.5, "−50 %"), (12, "+1,200 %")],
)
def test_a_relative_lift_may_be_without_a_bound(value: float | None, text: str) -> None:
    assert formats.lift_percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7.4, "7"),
        (99.4, "99"),
        (100, "100"),
        (104, "100"),
        (995, "1,000"),
        (12_345, "12,000"),
        (1e9, "1,000,000,000"),
    ],
)
def test_an_estimate_has_two_figures(value: float, text: str) -> None:
    assert formats.about(value) == text


def test_one_is_not_many() -> None:
    assert [formats.plural(number, "site") for number in (0, 1, 2, 1_000)] == [
        "0 sites",
        "1 site",
        "2 sites",
        "1,000 sites",
    ]
    assert formats.plural(2, "has", "have") == "2 have"


def test_many_names_are_cut_to_a_few() -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    told = [formats.listed(names[:number]) for number in range(1, 7)]
    assert told == ["a", "a and b", "a, b and c", "a, b, c and d", "a, b, c, d and 1 more", "a, b, c, d and 2 more"]


# ---- how long ago


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s ago"),
        (119.9, "119 s ago"),
        (120, "2 min ago"),
        (7_200, "2 h ago"),
        (172_800, "2 d ago"),
        (1e7, "115 d ago"),
    ],
)
def test_how_long_ago_is_in_whole_units_that_have_passed(seconds: float, text: str) -> None:
    assert since(seconds) == text


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which runs the page's script")
def test_the_script_says_the_same_of_every_age() -> None:
    """A page is made here and kept up to date there: a text must not change when the script takes over."""
    found = re.search(r"^function since\(seconds\) \{.*?^\}", SCRIPT, re.MULTILINE | re.DOTALL)
    assert found is not None
    program = f"{found[0]}\nconsole.log(JSON.stringify({json.dumps(AGES)}.map(since)));"
    said = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert json.loads(said) == [since(age) for age in AGES]


# ---- elements


def test_a_time_ago_is_an_element_that_the_script_can_go_on_with() -> None:
    made = Page(times.ago(1_700_000_000.4, 1_700_000_300.0)).one("time")
    assert made.attributes == {"datetime": "2023-11-14T22:13:20+00:00", "data-since": "1700000000"}
    assert made.text == "4 min ago"
    assert times.ago(None, 5.0) == "never"


def test_a_moment_is_an_element_with_its_zone() -> None:
    made = Page(times.moment(1_700_000_000.4)).one("time")
    assert made.attributes == {"datetime": "2023-11-14T22:13:20+00:00", "data-moment": ""}
    assert made.text == "2023-11-14 22:13:20 UTC"
