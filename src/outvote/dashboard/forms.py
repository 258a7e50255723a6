"""What people fill in: from the fields of a form to a task, an expectation, and a question to the planner. Pure.

A field that is left empty is not there. What a field means is checked where a program's request is checked, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from outvote.core.task import Task
from outvote.log.expectation import Expectation
from outvote.server.admin.requests import Refused, read_expectation, read_task

DEFAULTS: Final = {"protocol": "tally", "epsilon": "0", "delta": "0.05", "arms": "classic\nbold\ngreen", "players": "8"}
WORDS: Final = ("name", "protocol", "quorum", "code", "fallback")
NUMBERS: Final = ("epsilon", "delta", "active_players", "floor", "privacy_budget", "reward_window", "tolerate")
COUNTS_OR_NAMES: Final = ("arms", "players")
EXPECTED: Final = ("traffic", "baseline", "difference")
PLANNED: Final = ("delta", "epsilon", "active_players", "floor", "privacy_budget", "tolerate", *EXPECTED)
"""Numbers that the planner is asked with."""
FIELDS: Final = (*WORDS, *NUMBERS, *COUNTS_OR_NAMES, *EXPECTED, "instances")


def fields(body: bytes) -> dict[str, str]:
    """The fields of a form as a browser sends them, without those that are empty."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=False, max_num_fields=50)
    except ValueError as error:
        raise Refused(400, "not-a-form", f"a form must be application/x-www-form-urlencoded: {error}") from None
    return {key: value.strip() for key, value in pairs if value.strip()}


def task_of(form: Mapping[str, str]) -> Task:
    """The task that a form describes; what cannot be is refused."""
    asked: dict[str, Any] = {key: form[key] for key in WORDS if key in form}
    asked |= _numbers(form, NUMBERS)
    asked |= {key: count_or_names(form[key]) for key in COUNTS_OR_NAMES if key in form}
    if "instances" in form:
        several = re.split(r"[\s,]+", form["instances"])
        asked["instances"] = [_number("instances", each) for each in several]
        if len(several) == 1:
            asked["instances"] = asked["instances"][0]
    return read_task(json.dumps(asked).encode())


def expectation_of(form: Mapping[str, str]) -> Expectation:
    """What is expected; of nothing, nothing."""
    return read_expectation(json.dumps(_numbers(form, EXPECTED)).encode())


def question_of(form: Mapping[str, str]) -> dict[str, Any]:
    """What the planner is asked for this form."""
    asked = _numbers(form, PLANNED)
    if not asked.get("epsilon"):
        asked.pop("epsilon", None)  # it looks for the very best arm
    for key in COUNTS_OR_NAMES:
        if key in form:
            value = count_or_names(form[key])
            asked[key] = value if isinstance(value, int) else len(value)
    names = {"arms": "variants", "players": "sites", "active_players": "active_sites"}
    return {names.get(key, key): value for key, value in asked.items()}


def field_of(detail: str) -> str | None:
    """The field that a refusal speaks of, as it begins with its name; or has it as its path, where a type is wrong."""
    told = re.match(r"[a-z]+(?:[_ ][a-z]+)?", detail)
    words = re.split("[_ ]", told[0]) if told else []
    path = re.match(r"Expected .* - at `\$\.(\w+)`", detail)
    named = ("_".join(words), *words[:1], path[1] if path else "")
    return next((name for name in named if name in FIELDS), None)


def count_or_names(text: str) -> int | list[str]:
    """How many, or what they are called: one in a line, or separated by commas."""
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    return [part.strip() for part in re.split(r"[\n,]+", text) if part.strip()]


def _numbers(form: Mapping[str, str], names: tuple[str, ...]) -> dict[str, float]:
    return {key: _number(key, form[key]) for key in names if key in form}


def _number(name: str, text: str) -> float:
    """As people write it: `1e6`, `.05`, `50 000`."""
    try:
        value = float(re.sub(r"(?<=\d)[\s\u202f'](?=\d)", "", text))
        whole = int(value)
    except (ValueError, OverflowError):
        detail = f"{name.replace('_', ' ')} must be a number, got {text[:50]!r}"
        raise Refused(422, "invalid-task", detail) from None
    return whole if whole == value else value
