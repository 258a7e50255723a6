"""The fields of a task for people: one line each, from which API, command line, form, pages and schemas are made.

`Task` has the paper's names and checks the values; people have their own names, `variants` and `sites`. This table
turns the one into the other, in values and in errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from outvote.core.errors import InvalidInput, InvalidTask
from outvote.core.registry import REGISTRY, networked
from outvote.core.task import DEFAULTS, LONGEST_WINDOW, NAME, QUORUMS, Task
from outvote.log.records import SHORTEST_WINDOW, check_protocol, check_window
from outvote.presenters.durations import span
from outvote.quantities import number, seconds

MOST_NAMES: Final = 10_000
"""Largest number of variants or instances in a network; more would not fit in a record."""


# ---- kinds of values


class Kind(NamedTuple):
    """How the values of a field are written."""

    read: Callable[[str], object]
    """From what a person wrote."""
    schema: Mapping[str, Any]
    """In JSON."""
    stored: Mapping[str, str]
    """In a record: what its path ends with, and the kind of it in the closed schemas."""
    show: Callable[[Any], str] = str
    """For a person to read."""


def _separated(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[\n,]+", text) if part.strip()]


def count_or_names(text: str) -> int | list[str]:
    """Read how many there are, or their names: one in a line, or separated by commas."""
    grouped = re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15}", text.strip())
    return int(text.replace(",", "")) if grouped else _separated(text)


def numbers(text: str) -> list[float]:
    return [number(part) for part in re.split(r"[\s,]+", text.strip())]


def count_or_numbers(text: str) -> float | list[float]:
    values = numbers(text)
    return values[0] if len(values) == 1 else values


def _listed(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, list) else f"{values:,}"


def _one_of(*values: str) -> Kind:
    return Kind(str, {"type": "string", "enum": list(values)}, {"": "choice"})


_NAME = {"type": "string", "pattern": f"^{NAME.pattern}$"}
_WORDS = {"type": "string", "minLength": 1, "maxLength": 64}
NAME_KIND: Final = Kind(str, _NAME, {"": "name"})
VARIANT: Final = Kind(str, _WORDS, {"": "words"})
VARIANTS: Final = Kind(
    count_or_names,
    {
        "anyOf": [
            {"type": "integer", "minimum": 2, "maximum": MOST_NAMES},
            {"type": "array", "items": _WORDS, "minItems": 2, "uniqueItems": True},
        ]
    },
    {"[]": "words"},
    _listed,
)
SITES: Final = Kind(
    count_or_names,
    {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 2**53},
            {"type": "array", "items": _NAME, "minItems": 1, "uniqueItems": True},
        ]
    },
    {"": "count", "[]": "name"},
    _listed,
)
PROBABILITY: Final = Kind(
    number, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, {"": "share"}, "{:g}".format
)
EPSILON: Final = Kind(
    number,
    {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    {"": "number"},
    lambda value: f"{value:g}" + ("" if value else " (the very best)"),
)
POSITIVE: Final = Kind(number, {"type": "number", "exclusiveMinimum": 0}, {"": "number"}, "{:g}".format)
WINDOW: Final = POSITIVE._replace(
    read=seconds, schema={"type": "number", "minimum": SHORTEST_WINDOW, "maximum": LONGEST_WINDOW}, show=span
)
BUDGET: Final = POSITIVE._replace(schema={"type": "number", "exclusiveMinimum": 0, "maximum": 20})
FLOOR: Final = Kind(number, {"type": "integer", "minimum": 2, "maximum": 127}, {"": "count"})
COUNT: Final = Kind(number, {"type": "integer", "minimum": 0}, {"": "count"})
WEIGHTS: Final = Kind(
    numbers, {"type": "array", "items": POSITIVE.schema, "maxItems": MOST_NAMES}, {"[]": "number"}, _listed
)
INSTANCES: Final = Kind(
    count_or_numbers,
    {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MOST_NAMES}, {**WEIGHTS.schema, "minItems": 1}]},
    {"": "number", "[]": "number"},
    _listed,
)


# ---- the table


class Field(NamedTuple):
    """One field: its name in `Task`, its name for people, and the words that explain it."""

    core: str
    name: str
    kind: Kind
    label: str
    help: str
    part: str = "more"
    """Where it stands in the form: question, answer or more; empty if the form does not ask for it."""
    example: str = ""
    """What a form shows in an empty field."""
    required: bool = False
    """It must be given on the network, though a simulation has a default."""

    @property
    def default(self) -> object:
        """None where it depends on other fields, or has to be given."""
        return None if self.required else DEFAULTS.get(self.core)

    @property
    def is_needed(self) -> bool:
        return self.required or self.core not in DEFAULTS

    @property
    def schema(self) -> dict[str, object]:
        """In JSON; null where it can be left out."""
        if self.is_needed or self.default is not None:
            return {**self.kind.schema, "description": self.help}
        return {"anyOf": [dict(self.kind.schema), {"type": "null"}], "description": self.help}


_CODES = dict.fromkeys(code for name in networked() for code in REGISTRY[name].codes)
FIELDS: Final = (
    Field("name", "name", NAME_KIND, "Name", "letters, digits, _ and -", "question", "checkout-button"),
    Field("arms", "variants", VARIANTS, "Variants", "how many, or their names", "question"),
    Field("players", "sites", SITES, "Sites", "how many, or their names", "question"),
    Field(
        "reward_window", "reward_window", WINDOW, "Reward window",
        "how long after a decision may its reward come, like 60s or 30m? Without one by then it counts 0",
        "question", "60s", required=True,
    ),
    Field("protocol", "protocol", _one_of(*networked()), "Protocol", "what sites send, and how it is judged", "answer"),
    Field("delta", "delta", PROBABILITY, "Error allowed, δ", "probability of a wrong answer", "answer", "5 %"),
    Field(
        "epsilon", "epsilon", EPSILON, "Good enough, ε",
        "how close to the best is good enough; tally: 0 is the very best", "answer", "0",
    ),
    Field(
        "tolerate", "tolerate", COUNT, "Lying sites tolerated",
        "how many may be broken or lie, and the answer is right all the same: fewer than half; it takes more events",
        example="0",
    ),
    Field(
        "fallback", "fallback", VARIANT, "Fallback variant", "what is served once the task is stopped or killed",
        example="the first that remains",
    ),
    Field("floor", "floor", FLOOR, "Floor", "tally: no message speaks of fewer events", example="3"),
    Field(
        "privacy_budget", "privacy_budget", BUDGET, "Privacy budget", "tally: differential privacy of each event",
        example="none",
    ),
    Field(
        "active_players", "active_sites", POSITIVE, "Active sites", "dme: how many sites see most of the traffic",
        example="all",
    ),
    Field(
        "instances", "instances", INSTANCES, "Instances", "edme: how many, or an increasing list of active sites",
        example="8",
    ),
    Field("quorum", "quorum", _one_of(*QUORUMS), "Quorum", "dme, edme: how long a site learns before it votes"),
    Field("code", "code", _one_of(*_CODES), "Code", "how messages name variants", part=""),
    Field(
        "code_weights", "code_weights", WEIGHTS, "Weights of the code", "huffman: how often each variant is named",
        part="",
    ),
)  # fmt: skip
BY_NAME: Final = {field.name: field for field in FIELDS}
_NAMES: Final = {field.core: field.name for field in FIELDS}


# ---- between people and `Task`


def task_of(asked: Mapping[str, object]) -> Task:
    """Make the task that people describe; what cannot be is refused under the names that they know."""
    for name in asked:
        if name not in BY_NAME:
            raise InvalidTask(f"is no field of a task: use {', '.join(BY_NAME)}", field=str(name)[:80], code="unknown")
    for field in FIELDS:
        if field.is_needed and asked.get(field.name) is None:
            raise InvalidTask(f"must be given: {field.help}", field=field.name, code="missing")
    check_window(asked["reward_window"])
    for name in ("variants", "instances"):
        value = asked.get(name)
        if isinstance(value, int) and value > MOST_NAMES:
            raise InvalidTask(f"must be at most {MOST_NAMES:,} in a network, got {value:,}", field=name, code="range")
    try:
        task = Task(**{BY_NAME[name].core: value for name, value in asked.items()})  # type: ignore[arg-type]
        check_protocol(task)
    except InvalidTask as error:
        raise error.named(_NAMES.get(error.field or "", error.field)) from None
    return task


def to_json(task: Task) -> dict[str, Any]:
    """Describe a task as people know it; `task_of` makes an equal task of it."""
    record = task.to_json()
    return {field.name: record[field.core] for field in FIELDS}


def read(field: Field, text: str) -> object:
    """Read a value as a person wrote it."""
    try:
        return field.kind.read(text)
    except InvalidInput as error:
        raise InvalidTask(error.problem, field=field.name, code=error.code) from None


def details(task: Task) -> dict[str, str]:
    """What a task was created with, by label; what is not set is left out."""
    shown = to_json(task)
    is_set = {name for name, value in shown.items() if value not in (None, [], 0)} | {"epsilon"}
    is_set -= {"name", "variants"}  # whoever shows details has said these
    return {field.label: field.kind.show(shown[field.name]) for field in FIELDS if field.name in is_set}
