"""Task: the frozen, validated description that all participants of one identification task share.

A `Task` that exists is sound: everything that could be wrong with one is refused here, on construction.
"""

from __future__ import annotations

import itertools
import re
import sys
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outvote.core.errors import InvalidTask, one_of
from outvote.core.registry import REGISTRY, Entry, Parameter, entry_of
from outvote.core.votes.schedule import Schedule, certified_log_eta, least_quorum, paper_log_eta

DEFAULT_PROTOCOL = "tally"
DEFAULT_DELTA = 0.05
QUORUMS = ("paper", "certified")
DEFAULT_INSTANCES = 8
"""Instances of `edme` where none are given: those of the paper's own experiment."""
LARGEST_TALLY = 127
"""Tallies grow no further."""
LEAST_BUDGET = 1e-6
"""A privacy budget below this leaves nothing but noise, which floating-point numbers cannot tell from more of it."""
MOST_BUDGET = 20.0
"""A privacy budget beyond this adds no noise in a lifetime, so it would only pretend."""
MOST_EPSILON = 0.999999
"""Where ε may be 0: means that differ by more cannot be told from 0 and 1."""
RULES = 4
"""The number of a task's record and of the rules by which participants judge it. Others are refused."""
LONGEST_WINDOW = 7 * 24 * 3600.0
"""The longest reward window: seven days."""
MAX_COUNT = 2**53
"""Nothing is counted beyond what a floating-point number can count to."""
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, init=False, slots=True, weakref_slot=True)
class Task:
    """One best-arm identification task: K arms, N players, and the protocol that they follow."""

    name: str
    protocol: str
    arms: tuple[str, ...]
    epsilon: float
    delta: float
    players: int
    player_names: tuple[str, ...]
    instances: tuple[float, ...]
    quorum: str | None
    code: str
    code_weights: tuple[float, ...]
    floor: int | None
    privacy_budget: float | None
    reward_window: float
    fallback: str | None
    tolerate: int
    own_parameters: tuple[tuple[str, Parameter], ...]

    def __init__(
        self,
        *,
        arms: int | Sequence[str],
        players: int | Sequence[str],
        name: str = "task",
        protocol: str = DEFAULT_PROTOCOL,
        epsilon: float | None = None,
        delta: float = DEFAULT_DELTA,
        active_players: float | None = None,
        instances: int | Sequence[float] | None = None,
        quorum: str | None = None,
        code: str | None = None,
        code_weights: Sequence[float] = (),
        floor: int | None = None,
        privacy_budget: float | None = None,
        reward_window: float = 0.0,
        fallback: str | None = None,
        tolerate: int = 0,
        parameters: Mapping[str, Parameter] | None = None,
    ) -> None:
        """Describe a task; anything that cannot be is refused with an `InvalidTask`.

        `arms` and `players` are a number or a list of names. `epsilon` must be given, unless the protocol can look for
        the very best arm (default: 0). `active_players` is the N_γ of `dme` (default: all players). `instances` is the
        M of `edme`, or its increasing list of N_γi (default: 8, spread evenly). `quorum` is for votes (default: paper).
        `code` names arms in messages (default: binary; for `tally` implied by a tally's place in its player's cycle).
        `floor` and `privacy_budget` are for `tally`: the fewest events that a message speaks of, and the budget of
        differential privacy (default: no noise). `reward_window` is in seconds: how long after a decision its reward
        may come (default: 0, where every decision is rewarded before the clock moves on, as in simulation).
        `fallback` is the arm that a network serves once the task was stopped (default: the first that remains).
        `tolerate` is how many players may lie and the guarantee holds all the same (docs/liars.md). `parameters` are
        those of a protocol that was registered with some.
        """
        entry = entry_of(protocol)
        _refuse_others_fields(
            protocol, active_players=active_players, instances=instances, quorum=quorum, floor=floor,
            privacy_budget=privacy_budget, tolerate=tolerate or None,
        )  # fmt: skip
        names = () if isinstance(players, int) else _player_names(players)
        count = len(names) or _count("players", players)
        arm_names = _arms(arms)
        voters = _instances(entry, count, active_players, instances)
        chosen_code = entry.codes[0] if code is None else _choice("code", code, entry.codes)
        budget = None if privacy_budget is None else _budget(privacy_budget)
        values: dict[str, object] = {
            "name": _name("name", name),
            "protocol": protocol,
            "arms": arm_names,
            "epsilon": _epsilon(epsilon, entry),
            "delta": _open_unit("delta", delta),
            "players": count,
            "player_names": names,
            "instances": voters,
            "quorum": _choice("quorum", quorum or QUORUMS[0], QUORUMS) if "quorum" in entry.takes else None,
            "code": chosen_code,
            "code_weights": _code_weights(code_weights, chosen_code, len(arm_names)),
            "floor": _floor(floor, budget, entry) if "floor" in entry.takes else None,
            "privacy_budget": budget,
            "reward_window": _window(reward_window),
            "fallback": None if fallback is None else _choice("fallback", fallback, arm_names),
            "tolerate": _tolerate(tolerate, count, voters),
            "own_parameters": _parameters(entry, parameters or {}),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        self.schedules()  # refuses an ε whose epochs are infinite

    @property
    def entry(self) -> Entry:
        """What the protocol is."""
        return entry_of(self.protocol)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of the protocol's own."""
        return dict(self.own_parameters)

    @property
    def active_players(self) -> float:
        """N_γ; for several instances the largest N_γi; for protocols that need none, all players."""
        return self.instances[-1] if self.instances else float(self.players)

    @property
    def tally_sizes(self) -> tuple[int, ...]:
        """The sizes of tallies, from the floor up: each costs one bit more than the one before."""
        sizes: list[int] = []
        size = self.floor
        while size is not None and (not sizes or size <= LARGEST_TALLY):
            sizes.append(size)
            size = 2 * size + 1
        return tuple(sizes)

    @property
    def quorums(self) -> tuple[int, ...]:
        """Votes that an arm falls with, in each instance: N_γ/2 (Algorithm 3, line 15), and those that may be lies."""
        return tuple(least_quorum(active) + self.tolerate for active in self.instances)

    def schedules(self) -> tuple[Schedule, ...]:
        """The epochs of each instance, for votes."""
        arms, instances = len(self.arms), len(self.instances)
        if self.quorum == "certified":
            certified = certified_log_eta(self.delta, self.players, arms, instances)
            return (Schedule(arms, self.epsilon, certified),) * instances
        return tuple(
            Schedule(arms, self.epsilon, paper_log_eta(self.delta, active, instances)) for active in self.instances
        )

    def to_json(self) -> dict[str, Any]:
        """The arguments that make an equal task, in plain JSON types, and the number of the rules."""
        record = {name: getattr(self, name) for name in ARGUMENTS}
        if "active_players" not in self.entry.takes:
            record["active_players"] = None
        if "instances" not in self.entry.takes:
            record["instances"] = None
        record["players"] = self.player_names or self.players
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in record.items()}
        return {"rules": RULES, **plain}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Task:
        """Read what `to_json` wrote; unknown, missing and wrong fields are refused, and so are other rules."""
        if not isinstance(data, Mapping):
            raise InvalidTask(f"a task must be an object, got {_shown(data)}", code="type")
        values = dict(data)
        rules = values.pop("rules", None)  # first: a record of other rules may have other fields
        if type(rules) is not int or rules != RULES:
            raise InvalidTask(
                f"must be {RULES}, got {_shown(rules)}: the task was made for another version of Outvote; "
                "use that version, or create the task again with this one",
                field="rules",
            )
        if set(values) != set(ARGUMENTS):
            wrong = min(set(values) ^ set(ARGUMENTS), key=str)
            unknown = wrong in values
            problem = "is no field of a task's record" if unknown else "is missing from the task's record"
            raise InvalidTask(problem, field=str(wrong)[:80], code="unknown" if unknown else "missing")
        task = cls(**values)
        for field, value in task.to_json().items():
            if value != data[field]:  # an argument can be left to its default, a record says all
                raise InvalidTask(f"must be written as {_shown(value)}, got {_shown(data[field])}", field=field)
        return task

    def fingerprint(self) -> str:
        """The same for equal tasks, on every machine; different for different ones."""
        found = _FINGERPRINTS.get(self)
        if found is None:
            found = _FINGERPRINTS[self] = _fingerprint(self)
        return found


DEFAULTS: Mapping[str, Any] = Task.__init__.__kwdefaults__ or {}
"""Of each argument that need not be given. None: it depends on the others."""
ARGUMENTS = ("arms", "players", *DEFAULTS)
_FINGERPRINTS: weakref.WeakKeyDictionary[Task, str] = weakref.WeakKeyDictionary()
"""Every snapshot asks for one, and a task never changes. None keeps a task that is gone: it may name thousands."""


def _fingerprint(task: Task) -> str:
    import hashlib  # slow to import, and needed by those alone who take snapshots
    import json

    # Without what is not set: a field that is new changes nothing for tasks that do not have it.
    record = {name: value for name, value in task.to_json().items() if value not in (None, [], {})}
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


# ---- fields that only some protocols have


def _refuse_others_fields(protocol: str, **given: object) -> None:
    for field, value in given.items():
        if value is not None and field not in REGISTRY[protocol].takes:
            takers = one_of(name for name, entry in REGISTRY.items() if field in entry.takes)
            raise InvalidTask(f"is for {takers}, got {_shown(value)} for {protocol!r}", field=field, code="conflict")


def _epsilon(value: object, entry: Entry) -> float:
    if not entry.exact:
        if value is None:
            raise InvalidTask("must be given: how close to the best is good enough", field="epsilon", code="missing")
        return _open_unit("epsilon", value)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value == 0):
        return 0.0
    epsilon = _number("epsilon", value, most=1.0, excluded=True, allowed="of at least 0 and below 1")
    if epsilon > MOST_EPSILON:
        raise InvalidTask(
            f"must be at most {MOST_EPSILON}, got {epsilon!r}: any would do", field="epsilon", code="range"
        )
    return epsilon


def _instances(
    entry: Entry, players: int, active_players: float | None, instances: int | Sequence[float] | None
) -> tuple[float, ...]:
    """N_γ of each instance: one for `dme`; for `edme` N·i/M (Algorithm 4, line 1) or the list given."""

    def active(field: str, value: object) -> float:
        return _number(field, value, most=players, allowed=f"above 0 and at most {players}, all of them")

    if "active_players" in entry.takes:
        return (active("active_players", players if active_players is None else active_players),)
    if "instances" not in entry.takes:
        return ()
    if instances is None:
        instances = DEFAULT_INSTANCES
    if isinstance(instances, int):
        count = _count("instances", instances)
        return tuple(players * i / count for i in range(1, count + 1))
    values = tuple(active("instances", value) for value in _sequence("instances", instances))
    if not values or any(a >= b for a, b in itertools.pairwise(values)):
        raise InvalidTask(
            f"must be a number ≥ 1 or an increasing list of N_γ, got {_shown(list(instances))}", field="instances"
        )
    return values


def _floor(floor: int | None, budget: float | None, entry: Entry) -> int:
    least, default, private = entry.floors
    if floor is None:
        return default if budget is None else private
    if isinstance(floor, bool) or not isinstance(floor, int) or not least <= floor <= LARGEST_TALLY:
        raise InvalidTask(
            f"must be a whole number from {least} to {LARGEST_TALLY}, got {_shown(floor)}", field="floor", code="range"
        )
    return floor


def _tolerate(liars: int, players: int, voters: tuple[float, ...]) -> int:
    """So many may lie that the others can still decide, should those say nothing at all."""
    if isinstance(liars, bool) or not isinstance(liars, int) or not 0 <= 2 * liars < max(players, 1):
        raise InvalidTask(
            f"must be a whole number from 0 to {(players - 1) // 2}, fewer than half of all {players}, "
            f"got {_shown(liars)}",
            field="tolerate",
            code="range",
        )
    quorum = min((least_quorum(active) for active in voters), default=0)
    if liars and quorum + liars > players - liars:
        raise InvalidTask(
            f"must leave enough votes, got {liars}: a decision needs {quorum} + {liars} votes, and if {liars} of "
            f"{players} say nothing there are {players - liars}; tolerate fewer, or declare fewer as active",
            field="tolerate",
            code="conflict",
        )
    return liars


def _window(value: object) -> float:
    """In seconds, 0 included; less than a millisecond cannot be told from it."""
    allowed = f"from 0.001 to {LONGEST_WINDOW:.0f}, in seconds, or 0"
    if value == 0 and isinstance(value, int | float) and not isinstance(value, bool):
        return 0.0
    window = _number("reward_window", value, most=LONGEST_WINDOW, allowed=allowed)
    if window < 0.001:
        raise InvalidTask(f"must be a number {allowed}, got {_shown(value)}", field="reward_window", code="range")
    return window


def _code_weights(weights: Sequence[float], code: str, arms: int) -> tuple[float, ...]:
    values = tuple(_positive("code_weights", weight) for weight in _sequence("code_weights", weights))
    needed = arms if code == "huffman" else 0
    if len(values) != needed:
        raise InvalidTask(
            f"must be {needed or 'no'} numbers with code {code!r}, got {_shown(list(values))}",
            field="code_weights",
            code="conflict",
        )
    return values


def _parameters(entry: Entry, given: Mapping[str, Parameter]) -> tuple[tuple[str, Parameter], ...]:
    if not isinstance(given, Mapping):
        raise InvalidTask(f"must be an object, got {_shown(given)}", field="parameters", code="type")
    for name, value in given.items():
        if name not in entry.parameters:
            allowed = one_of(entry.parameters) or "none"
            raise InvalidTask(f"must be of {allowed}, got {_shown(name)}", field="parameters", code="unknown")
        if not isinstance(value, bool | int | float | str):
            raise InvalidTask(f"must be numbers and texts, got {_shown(value)}", field="parameters", code="type")
    return tuple((name, given.get(name, default)) for name, default in entry.parameters.items())


def _budget(value: object) -> float:
    budget = _number("privacy_budget", value, most=MOST_BUDGET, allowed=f"above 0 and at most {MOST_BUDGET:g}")
    if budget < LEAST_BUDGET:
        raise InvalidTask(
            f"must be at least {LEAST_BUDGET:g}, got {budget!r}: less is all noise",
            field="privacy_budget",
            code="range",
        )
    return budget


# ---- values


def _number(field: str, value: object, *, most: float, allowed: str, excluded: bool = False) -> float:
    """A number above 0 and up to `most`, which itself may be excluded."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= most or (excluded and value == most):  # type: ignore[operator]
        code = "range" if number else "type"
        raise InvalidTask(f"must be a number {allowed}, got {_shown(value)}", field=field, code=code)
    return float(value)  # type: ignore[arg-type]  # a number, as was just checked


def _open_unit(field: str, value: object) -> float:
    return _number(field, value, most=1.0, excluded=True, allowed="above 0 and below 1")


def _positive(field: str, value: object) -> float:
    return _number(field, value, most=sys.float_info.max, allowed="above 0")


def _shown(value: object) -> str:
    """A value that was received, cut to what fits on a line; some numbers are too long even to be written."""
    if isinstance(value, int) and value.bit_length() > 10_000:
        return "a number too long to write"
    try:
        return repr(value)[:200]
    except RecursionError:
        return "something nested too deep to write"


def _count(field: str, value: object, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_COUNT:
        large = isinstance(value, int) and value > MAX_COUNT
        allowed = f"a whole number of at {f'most {MAX_COUNT}' if large else f'least {least}'}"
        raise InvalidTask(f"must be {allowed}, got {_shown(value)}", field=field, code="range")
    return value


def _choice(field: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise InvalidTask(f"must be one of {one_of(allowed)}, got {_shown(value)}", field=field, code="choice")
    return value


def _sequence(field: str, value: object) -> Sequence[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise InvalidTask(f"must be a whole number or a list, got {_shown(value)}", field=field, code="type")
    return value


def _name(field: str, value: str, *, must: str = "must be") -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidTask(f"{must} 1 to 64 letters, digits, '_' or '-', got {_shown(value)}", field=field)
    return value


def _unique(field: str, values: tuple[str, ...]) -> tuple[str, ...]:
    [(value, count)] = Counter(values).most_common(1)
    if count > 1:
        problem = f"must be different from each other, got {_shown(value)} twice"
        raise InvalidTask(problem, field=field, code="duplicate")
    return values


def _arms(arms: int | Sequence[str]) -> tuple[str, ...]:
    if isinstance(arms, int):
        return tuple(str(arm) for arm in range(_count("arms", arms, least=2)))
    names = tuple(_sequence("arms", arms))
    for name in names:
        if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= 64:
            raise InvalidTask(f"must have names of 1 to 64 printable characters, got {_shown(name)}", field="arms")
    if len(names) < 2:
        raise InvalidTask(f"must be at least 2, got {len(names)}", field="arms", code="range")
    return _unique("arms", names)


def _player_names(players: Sequence[str]) -> tuple[str, ...]:
    names = tuple(_name("players", name, must="must have names of") for name in _sequence("players", players))
    if not names:
        raise InvalidTask("must be at least 1, got 0", field="players", code="range")
    return _unique("players", names)
