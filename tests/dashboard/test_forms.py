"""From the fields of a form to a task, an expectation and a question: what people write, and what is refused of it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.errors import InvalidInput
from outvote.core.protocols import REGISTRY
from outvote.core.task import Task
from outvote.dashboard import forms
from outvote.log.expectation import Expectation
from outvote.planner.plan import left_out, tasks
from outvote.planner.question import Question, ask
from outvote.presenters.task_fields import BY_NAME, count_or_names
from outvote.server.admin.requests import Refused

WHOLE = {
    "name": "shop",
    "protocol": "tally",
    "variants": "red\ngreen",
    "sites": "4",
    "reward_window": "60s",
    "epsilon": "0",
    "delta": "0.05",
}


# ---- fields


def test_empty_fields_are_not_there_and_others_are_trimmed() -> None:
    assert forms.fields(b"name=+shop+&floor=&quorum=++&variants=a%0D%0Ab") == {"name": "shop", "variants": "a\r\nb"}


@pytest.mark.parametrize(
    ("body", "detail"),
    [(b"name=\xff", "'utf-8' codec can't decode byte 0xff"), (b"a=1&" * 51, "Max number of fields exceeded")],
)
def test_what_is_no_form_is_refused(body: bytes, detail: str) -> None:
    with pytest.raises(Refused) as caught:
        forms.fields(body)
    assert caught.value.problem.status == 400
    assert caught.value.problem.detail.startswith("a form must be application/x-www-form-urlencoded: " + detail)


# ---- tasks


def test_a_form_gives_the_task_that_a_program_would_ask_for() -> None:
    given = {
        **WHOLE,
        "floor": "7",
        "privacy_budget": "1.5",
        "reward_window": "1 min",
        "fallback": "green",
        "traffic": "9",
    }
    given["tolerate"] = "1"
    assert forms.task_of(given) == Task(
        name="shop",
        protocol="tally",
        arms=["red", "green"],
        players=4,
        epsilon=0,
        delta=0.05,
        floor=7,
        privacy_budget=1.5,
        reward_window=60,
        fallback="green",
        tolerate=1,
    )


@pytest.mark.parametrize("written", ["red\ngreen", "red\r\ngreen\r\n", "red, green", " red ,\n\n, green,", "red,green"])
def test_names_are_separated_by_lines_and_commas(written: str) -> None:
    assert forms.task_of({**WHOLE, "variants": written}).arms == ("red", "green")


def test_a_name_may_hold_blanks_and_a_list_may_be_of_digits() -> None:
    assert count_or_names("light red\n2") == ["light red", "2"]
    assert count_or_names("12\n13") == ["12", "13"]


def test_a_number_alone_is_how_many() -> None:
    task = forms.task_of({**WHOLE, "variants": "3", "sites": "ams\nfra"})
    assert (task.arms, task.players, task.player_names) == (("0", "1", "2"), 2, ("ams", "fra"))
    assert count_or_names("²") == ["²"]  # a digit to Python, and no number
    assert count_or_names("9" * 16) == ["9" * 16]


@pytest.mark.parametrize(
    ("written", "value"), [("3", [1, 2, 3]), ("1 3", [1, 3]), ("1,3", [1, 3]), ("0.5,\n 1e0 ,2.5", [0.5, 1, 2.5])]
)
def test_instances_are_how_many_or_a_list(written: str, value: list[float]) -> None:
    asked = {**WHOLE, "protocol": "edme", "epsilon": "0.5", "sites": "3", "instances": written}
    assert list(forms.task_of(asked).instances) == value


@pytest.mark.parametrize(
    ("changed", "detail"),
    [
        ({"name": "a shop"}, "name must be 1 to 64 letters, digits, '_' or '-', got 'a shop'"),
        ({"variants": ""}, "variants must be given: how many, or their names"),
        ({"variants": ","}, "variants must be at least 2, got 0"),
        ({"sites": ","}, "sites must be at least 1, got 0"),
        ({"reward_window": ""}, "reward_window must be given: how long after a decision may its reward come"),
        ({"reward_window": "0"}, "reward_window must be from 1 second to 7 days (1 to 604800, in seconds), got 0"),
        (
            {"reward_window": "8d"},
            "reward_window must be from 1 second to 7 days (1 to 604800, in seconds), got 691200",
        ),
        ({"reward_window": "soon"}, "reward_window must be a duration like 90, 60s, 30m, 2h or 1d, got 'soon'"),
        ({"delta": "2"}, "delta must be a number above 0 and below 1, got 2"),
        ({"floor": "2.5"}, "floor must be a whole number from 2 to 127, got 2.5"),
        ({"instances": "1,,x"}, "instances must be a number like 50000, 50,000, 0.05 or 5%, got 'x'"),
        (
            {"privacy_budget": "9" * 400},
            f"privacy_budget must be a number like 50000, 50,000, 0.05 or 5%, got '{'9' * 50}'",
        ),
        ({"tolerate": "2"}, "tolerate must be"),
        ({"sites": "8", "tolerate": "3", "protocol": "dme", "epsilon": "0.5"}, "tolerate must leave enough votes"),
        ({"active_sites": "2"}, "active_sites is for 'dme'"),
        ({"traffic": "-1"}, "traffic must be"),
        ({"traffic": "many"}, "traffic must be a number like 50000, 50,000, 0.05 or 5%, got 'many'"),
        ({"baseline": "0.9", "difference": "0.5"}, "difference must be"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field_and_what_is_wrong(changed: dict[str, str], detail: str) -> None:
    form = forms.fields(urlencode({**WHOLE, **changed}).encode())
    with pytest.raises(Refused) as caught:
        forms.expectation_of(form if forms.task_of(form) else {})
    problem = caught.value.problem
    assert (problem.status, problem.field) == (422, detail.split()[0])
    assert problem.code
    assert problem.detail.startswith(detail)


# ---- what the planner is asked


def test_the_planner_is_asked_how_many_and_for_the_best_arm_without_an_epsilon() -> None:
    asked = forms.question_of({**WHOLE, "sites": "ams\nfra", "traffic": "5 000", "difference": "0.02", "floor": "7"})
    assert asked == {"variants": 2, "sites": 2, "delta": 0.05, "traffic": 5_000, "difference": 0.02, "floor": 7}
    assert forms.question_of({"epsilon": "0.1", "variants": "5"}) == {"epsilon": 0.1, "variants": 5}
    assert isinstance(ask(**asked), Question)


@pytest.mark.parametrize("players", [1, 2, 3, 8, 16, 17, 40])
def test_of_every_number_of_liars_that_tally_tolerates_there_is_a_plan(players: int) -> None:
    for liars in range((players + 1) // 2):
        question = ask(**forms.question_of({"sites": str(players), "tolerate": str(liars)}))
        found = Counter(task.protocol for task in tasks(question))
        assert found["tally"] == 2
        assert len(found) + len(list(left_out(question))) == 3


# ---- any form

FIELDS = (*BY_NAME, *forms.EXPECTED, "other")
NUMBER = st.one_of(
    st.integers(-2, 200).map(str),
    st.floats(allow_nan=True, allow_infinity=True).map(str),
    st.sampled_from(["1e308", "1e400", "0x1", "1_0", "٣", "50 000", "9" * 5_000, "-0", "1e-320"]),
)
TEXT = st.one_of(st.text(max_size=80), NUMBER, st.lists(st.text(max_size=5), max_size=4).map("\n".join))
LIKELY: dict[str, st.SearchStrategy[str]] = {
    "protocol": st.sampled_from(list(REGISTRY)),
    "variants": st.sampled_from(["2", "red\ngreen", "a,b,c"]),
    "sites": st.sampled_from(["3", "ams\nfra"]),
    "epsilon": st.sampled_from(["0", "0.5"]),
    "delta": st.just("0.1"),
}


@st.composite
def any_form(draw: st.DrawFn) -> dict[str, str]:
    """Mostly a task, with some fields that may hold anything."""
    form = {name: draw(likely) for name, likely in LIKELY.items() if draw(st.integers(0, 9))}
    return form | draw(st.dictionaries(st.sampled_from(FIELDS), TEXT, max_size=3))


def outcome(read: Callable[[dict[str, str]], object], body: bytes) -> object:
    """What a form gives, or the status with which it is refused; any other error is a fault."""
    try:
        return read(forms.fields(body))
    except Refused as error:
        return error.problem.status


@examples(400)
@given(any_form())
def test_any_form_gives_a_task_or_is_refused(form: dict[str, str]) -> None:
    body = urlencode(form, errors="replace").encode()
    for read, kind in ((forms.task_of, Task), (forms.expectation_of, Expectation), (forms.question_of, dict)):
        found = outcome(read, body)
        assert isinstance(found, kind) or found in (400, 413, 422)
        if isinstance(found, dict):  # the planner takes it, or says what is wrong
            with contextlib.suppress(InvalidInput):
                ask(**found)


@examples(200)
@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_are_refused(body: bytes) -> None:
    found = outcome(lambda fields: fields, body)
    assert found == 400 or (
        isinstance(found, dict) and all(value and value == value.strip() for value in found.values())
    )
