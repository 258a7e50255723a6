"""Task: the frozen, validated description that all participants of one identification task share.

A `Task` that exists is sound: everything that could be wrong with one is refused here, on construction.
"""

from __future__ import annotations

import itertools
import re
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from outvote.core.errors import InvalidTask, one_of
from outvote.core.votes.schedule import Schedule, certified_log_eta, least_quorum, paper_log_eta

PROTOCOLS = ("dme", "edme", "tally")
QUORUMS = ("paper", "certified")
CODES = ("binary", "truncated", "huffman", "implied")
DEFAULT_INSTANCES = 8
"""Instances of `edme` where none are given: those of the paper's own experiment."""
DEFAULT_FLOOR = 3
"""Events that the smallest tally speaks of, where nothing is asked for."""
DEFAULT_PRIVATE_FLOOR = 23
"""The same with a privacy budget: noise weighs less in a larger tally."""
LARGEST_TALLY = 127
"""Tallies grow no further."""
LEAST_BUDGET = 1e-6
"""A privacy budget below this leaves nothing but noise, which floating-point numbers cannot tell from more of it."""
MOST_BUDGET = 20.0
"""A privacy budget beyond this adds no noise in a lifetime, so it would only pretend."""
MOST_EPSILON = 0.999999
"""Of Tally: means that differ by more cannot be told from 0 and 1."""
RULES = 2
"""The number of a task's record and of the rules by which participants judge it. Others are refused."""
MOST = 2**53
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
    quorum: str
    code: str
    code_weights: tuple[float, ...]
    floor: int | None
    privacy_budget: float | None
    reward_window: float | None
    fallback: str | None
    rules: int
    tolerate: int

    def __init__(
        self,
        *,
        arms: int | Sequence[str],
        players: int | Sequence[str],
        epsilon: float,
        delta: float,
        protocol: str = "dme",
        active_players: float | None = None,
        instances: int | Sequence[float] | None = None,
        quorum: str = "paper",
        code: str | None = None,
        code_weights: Sequence[float] = (),
        floor: int | None = None,
        privacy_budget: float | None = None,
        reward_window: float | None = None,
        fallback: str | None = None,
        name: str = "task",
        rules: int = RULES,
        tolerate: int = 0,
    ) -> None:
        """Describe a task; anything that cannot be is refused with an `InvalidTask`.

        `arms` and `players` are a number or a list of names. `active_players` is the N_γ of `dme` (default: all
        players). `instances` is the M of `edme`, or its increasing list of N_γi (default: 8, spread evenly).
        `code` names arms in messages (default: binary; for `tally` implied by a tally's place in its player's cycle).
        `floor` and `privacy_budget` are for `tally`: the fewest events that a message speaks of, and the budget of
        differential privacy (default: no noise). `reward_window` is in seconds: see `outvote.core.batches`.
        `fallback` is the arm that a network serves once the task was stopped (default: the first that remains).
        `tolerate` is how many players may lie and the guarantee holds all the same (docs/liars.md).
        """
        put: Callable[[str, object], None] = lambda field, value: object.__setattr__(self, field, value)  # noqa: E731
        put("name", _name("name", name))
        put("protocol", _choice("protocol", protocol, PROTOCOLS))
        put("arms", _arms(arms))
        tally = protocol == "tally"
        put("epsilon", _epsilon(epsilon) if tally else _open_unit("epsilon", epsilon))
        put("delta", _open_unit("delta", delta))
        names = () if isinstance(players, int) else _player_names(players)
        put("player_names", names)
        put("players", len(names) if names else _count("players", players))
        put("instances", self._instances(active_players, instances))
        put("quorum", _choice("quorum", quorum, QUORUMS))
        put("code", _choice("code", ("implied" if tally else "binary") if code is None else code, CODES))
        put("code_weights", self._code_weights(code_weights))
        put("privacy_budget", None if privacy_budget is None else _budget(privacy_budget))
        put("floor", self._floor(floor))
        self._refuse_what_the_protocol_lacks()
        put("reward_window", None if reward_window is None else _positive("reward_window", reward_window))
        if fallback is not None and fallback not in self.arms:
            raise InvalidTask(f"fallback must be one of the arms {one_of(self.arms)}, got {_shown(fallback)}")
        put("fallback", fallback)
        put("rules", _rules(rules))
        put("tolerate", self._tolerate(tolerate))
        self.schedules()  # refuses an ε whose epochs are infinite

    @property
    def active_players(self) -> float:
        """N_γ; for several instances the largest N_γi; for `tally`, which needs none, all players."""
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
        """The epochs of each instance; `tally` has none."""
        arms, instances = len(self.arms), len(self.instances)
        if self.quorum == "certified":
            certified = certified_log_eta(self.delta, self.players, arms, instances)
            return (Schedule(arms, self.epsilon, certified),) * instances
        return tuple(
            Schedule(arms, self.epsilon, paper_log_eta(self.delta, active, instances)) for active in self.instances
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types; `Task.from_json` is the inverse."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    def fingerprint(self) -> str:
        """The same for equal tasks, on every machine; different for different ones."""
        found = _FINGERPRINTS.get(self)
        if found is None:
            found = _FINGERPRINTS[self] = _fingerprint(self)
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Task:
        """Read what `to_json` wrote; unknown, missing and wrong fields are refused, and so are other rules."""
        if isinstance(data, Mapping) and "rules" in data:
            _rules(data["rules"])  # first: a record of other rules may have other fields
        if not is_record(data):
            given = sorted(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
            fields = sorted(cls.__dataclass_fields__)
            raise InvalidTask(f"a task must have exactly the fields {fields}, got {str(given)[:200]}")
        values = dict(data)
        instances = values.pop("instances")
        players, names = values.pop("players"), values.pop("player_names")
        for field, value in (("arms", values["arms"]), ("player_names", names), ("instances", instances)):
            if not isinstance(value, list):
                raise InvalidTask(f"{field} must be a list, got {_shown(value)}")
        players = _count("players", players)
        if names and len(names) != players:
            raise InvalidTask(f"players must be the number of player_names, {len(names)}, got {_shown(players)}")
        if values["protocol"] == "dme" and len(instances) == 1:
            return cls(players=names or players, active_players=instances[0], **values)
        if values["protocol"] == "tally" and not instances:
            return cls(players=names or players, **values)
        return cls(players=names or players, instances=instances, **values)

    def _instances(self, active_players: float | None, instances: int | Sequence[float] | None) -> tuple[float, ...]:
        """N_γ of each instance: one for `dme`; for `edme` N·i/M (Algorithm 4, line 1) or the list given."""
        if self.protocol == "tally":
            for field, value in (("active_players", active_players), ("instances", instances)):
                if value is not None:
                    raise InvalidTask(
                        f"{field} is for 'dme' or 'edme', got {_shown(value)}: 'tally' needs to know none"
                    )
            return ()
        if self.protocol == "dme":
            if instances is not None:
                raise InvalidTask(
                    f"instances are for protocol 'edme', got {_shown(instances)} for 'dme'; use active_players"
                )
            return (self._active("active_players", self.players if active_players is None else active_players),)
        if active_players is not None:
            raise InvalidTask(
                f"active_players is for protocol 'dme', got {_shown(active_players)} for 'edme'; use instances"
            )
        if instances is None:
            instances = DEFAULT_INSTANCES
        if isinstance(instances, int):
            count = _count("instances", instances)
            return tuple(self.players * i / count for i in range(1, count + 1))
        values = tuple(self._active("instances", value) for value in _sequence("instances", instances))
        if not values or any(a >= b for a, b in itertools.pairwise(values)):
            raise InvalidTask(
                f"instances must be a number ≥ 1 or an increasing list of N_γ, got {_shown(list(instances))}"
            )
        return values

    def _floor(self, floor: int | None) -> int | None:
        if self.protocol != "tally":
            if floor is not None:
                raise InvalidTask(f"floor is for protocol 'tally', got {_shown(floor)} for {self.protocol!r}")
            return None
        if floor is None:
            return DEFAULT_FLOOR if self.privacy_budget is None else DEFAULT_PRIVATE_FLOOR
        if isinstance(floor, bool) or not isinstance(floor, int) or not 2 <= floor <= LARGEST_TALLY:
            raise InvalidTask(f"floor must be a whole number from 2 to {LARGEST_TALLY}, got {_shown(floor)}")
        return floor

    def _tolerate(self, liars: int) -> int:
        """So many may lie that the others can still decide, should those say nothing at all."""
        if isinstance(liars, bool) or not isinstance(liars, int) or not 0 <= 2 * liars < max(self.players, 1):
            most = (self.players - 1) // 2
            raise InvalidTask(
                f"tolerate must be a whole number from 0 to {most}, less than half of the {self.players} players, "
                f"got {_shown(liars)}"
            )
        quorum = min((least_quorum(active) for active in self.instances), default=0)
        if liars and quorum + liars > self.players - liars:
            raise InvalidTask(
                f"tolerate {liars} needs {quorum} + {liars} votes against an arm, and if {liars} of the {self.players} "
                f"players say nothing there are {self.players - liars}: got too many to tolerate; use fewer, more "
                f"players, or {'smaller instances' if self.protocol == 'edme' else 'fewer active_players'}"
            )
        return liars

    def _refuse_what_the_protocol_lacks(self) -> None:
        if self.protocol == "tally":
            if self.quorum != "paper":
                raise InvalidTask(f"quorum is for 'dme' and 'edme', got {self.quorum!r}: 'tally' counts no votes")
        else:
            if self.privacy_budget is not None:
                raise InvalidTask(
                    f"privacy_budget is for 'tally', got {_shown(self.privacy_budget)} for {self.protocol!r}"
                )
            if self.code == "implied":
                raise InvalidTask(f"code 'implied' is for protocol 'tally', got it for {self.protocol!r}")

    def _active(self, field: str, value: object) -> float:
        return _number(field, value, most=self.players, allowed=f"above 0 and at most players = {self.players}")

    def _code_weights(self, weights: Sequence[float]) -> tuple[float, ...]:
        values = tuple(_positive("code_weights", weight) for weight in _sequence("code_weights", weights))
        if self.code != "huffman" and values:
            raise InvalidTask(f"code_weights are for code 'huffman', got {_shown(list(values))} for {self.code!r}")
        if self.code == "huffman" and len(values) != len(self.arms):
            raise InvalidTask(
                f"code 'huffman' needs one weight for each of the {len(self.arms)} arms, got {len(values)} weights"
            )
        return values


def is_record(data: object) -> bool:
    """Whether it has the fields of what `to_json` writes."""
    return isinstance(data, Mapping) and set(data) == set(Task.__dataclass_fields__)


_FINGERPRINTS: weakref.WeakKeyDictionary[Task, str] = weakref.WeakKeyDictionary()
"""Every snapshot asks for one, and a task never changes. None keeps a task that is gone: it may name thousands."""


def _fingerprint(task: Task) -> str:
    import hashlib  # slow to import, and needed by those alone who take snapshots
    import json

    return hashlib.sha256(json.dumps(task.to_json(), sort_keys=True).encode()).hexdigest()[:16]


def _rules(rules: object) -> int:
    if type(rules) is not int or rules != RULES:
        raise InvalidTask(
            f"rules must be {RULES}, got {_shown(rules)}: the task was made for another version of Outvote; "
            "use that version, or create the task again with this one"
        )
    return rules


def _number(field: str, value: object, *, most: float, allowed: str, excluded: bool = False) -> float:
    """A number above 0 and up to `most`, which itself may be excluded."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= most or (excluded and value == most):  # type: ignore[operator]
        raise InvalidTask(f"{field} must be a number {allowed}, got {_shown(value)}")
    return float(value)  # type: ignore[arg-type]  # a number, as was just checked


def _open_unit(field: str, value: object) -> float:
    return _number(field, value, most=1.0, excluded=True, allowed="above 0 and below 1")


def _epsilon(value: object) -> float:
    """Tally can look for the very best arm."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return 0.0
    epsilon = _number("epsilon", value, most=1.0, excluded=True, allowed="of at least 0 and below 1")
    if epsilon > MOST_EPSILON:
        raise InvalidTask(f"epsilon must be at most {MOST_EPSILON} for 'tally', got {epsilon!r}: any arm would do")
    return epsilon


def _budget(value: object) -> float:
    budget = _number("privacy_budget", value, most=MOST_BUDGET, allowed=f"above 0 and at most {MOST_BUDGET:g}")
    if budget < LEAST_BUDGET:
        raise InvalidTask(f"privacy_budget must be at least {LEAST_BUDGET:g}, got {budget!r}: less is all noise")
    return budget


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
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise InvalidTask(f"{field} must be a whole number of at least {least} and at most {MOST}, got {_shown(value)}")
    return value


def _choice(field: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise InvalidTask(f"{field} must be one of {one_of(allowed)}, got {_shown(value)}")
    return value


def _sequence(field: str, value: object) -> Sequence[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise InvalidTask(f"{field} must be a whole number or a list, got {_shown(value)}")
    return value


def _name(field: str, value: str) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidTask(f"{field} must be 1 to 64 letters, digits, '_' or '-', got {_shown(value)}")
    return value


def _unique(field: str, values: tuple[str, ...]) -> tuple[str, ...]:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise InvalidTask(f"{field} must be different from each other, got {_shown(value)} twice")
        seen.add(value)
    return values


def _arms(arms: int | Sequence[str]) -> tuple[str, ...]:
    if isinstance(arms, int):
        return tuple(str(arm) for arm in range(_count("arms", arms, least=2)))
    names = tuple(_sequence("arms", arms))
    for name in names:
        if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= 64:
            raise InvalidTask(f"an arm's name must be 1 to 64 printable characters, got {_shown(name)}")
    if len(names) < 2:
        raise InvalidTask(f"arms must be at least 2, got {len(names)}")
    return _unique("arms", names)


def _player_names(players: Sequence[str]) -> tuple[str, ...]:
    names = tuple(_name("a player's name", player) for player in _sequence("players", players))
    if not names:
        raise InvalidTask("players must be at least 1, got 0")
    return _unique("players", names)
