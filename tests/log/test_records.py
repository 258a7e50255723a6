"""Records of tasks: what the core would take and no network does, is read by nobody."""

from __future__ import annotations

import json
from typing import Any

import pytest

from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.log.catch_up import Question
from outvote.log.events import TaskUnreadable
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.records import check_window, read_task, task_record

RECORD: dict[str, Any] = Task(arms=2, players=2, epsilon=0, delta=0.05, protocol="tally", name="shop").to_json()
WINDOWS = {
    "nothing": 0,
    "below a second": 0.999,
    "below nothing": -60,
    "null": None,
    "a year": 365 * 86_400,
    "more than seven days": 604_800.5,
    "a string": "60",
    "a boolean": True,
    "a list": [60],
    "no number": float("nan"),
    "endless": float("inf"),
}


@pytest.mark.parametrize("window", [1, 1.0, 20.5, 604_800])
def test_a_task_with_a_window_from_a_second_to_seven_days_is_read_as_it_was_written(window: float) -> None:
    task = Task.from_json({**RECORD, "reward_window": window})
    assert read_task(task_record(task)) == task
    assert task.reward_window == window


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_a_task_with_any_other_window_is_none_of_the_network(window: object) -> None:
    payload = json.dumps({**RECORD, "reward_window": window}).encode()
    with pytest.raises(InvalidTask, match="reward_window"):
        read_task(payload)
    state = LogState()
    [event] = state.apply(Record("outvote.down.shop-1.task", payload, 1, 0.0))
    assert isinstance(event, TaskUnreadable)
    assert "reward_window" in state.unreadable["shop-1"]
    assert (state.tasks, state.catch_up("ams", Question("life", {})).tasks) == ({}, {})


def test_a_record_without_a_window_is_refused() -> None:
    del (record := dict(RECORD))["reward_window"]
    with pytest.raises(InvalidTask, match="reward_window"):
        read_task(json.dumps(record).encode())


@pytest.mark.parametrize(("window", "code"), [(0, "range"), (604_801, "range"), ("20s", "type"), (None, "type")])
def test_what_is_wrong_with_a_window_is_said_with_what_is_allowed(window: object, code: str) -> None:
    with pytest.raises(InvalidTask) as refusal:
        check_window(window)
    allowed = "reward_window must be from 1 second to 7 days (1 to 604800, in seconds)"
    assert str(refusal.value) == f"{allowed}, got {window!r}"
    assert (refusal.value.field, refusal.value.code) == ("reward_window", code)
