"""What `simulate` can run, by name: protocols, which the core's registry has, and baselines, which have no server.

Names are looked up when they are used, so it does not matter when something is registered.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NoReturn, Protocol

from outvote.core.codes import Codebook
from outvote.core.errors import InvalidSettings, MalformedSnapshot, one_of
from outvote.core.messages import PlayerId
from outvote.core.protocols import REGISTRY, Entry, Player, Server, register
from outvote.core.registry import Parameter
from outvote.core.task import NAME, Task
from outvote.simulation.baselines import LocalMedian, Ucb1


class Learner(Protocol):
    """The player of a baseline: it decides, learns from its own rewards, and may give up arms."""

    def decide(self) -> int:
        """Return the arm to play now. Its reward comes before the next decision."""

    def reward(self, arm: int, reward: float, /) -> Sequence[int] | None:
        """Learn from a reward. Return the arms that are given up because of it, if any."""


@dataclass(frozen=True)
class Baseline:
    """An algorithm without a server: players on their own, or one that sees every draw."""

    summary: str
    player: Callable[..., Learner]
    shared: bool
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


OUR_BASELINES: Final = MappingProxyType(
    {
        "me-local": Baseline("Median Elimination on each player, no communication", LocalMedian, False),
        "me-unlimited": Baseline("one Median Elimination fed by all draws, unlimited communication", LocalMedian, True),
        "ucb-unlimited": Baseline("one UCB1 fed by all draws, unlimited communication", Ucb1, True),
    }
)
BASELINES: dict[str, Baseline] = dict(OUR_BASELINES)


def names() -> tuple[str, ...]:
    """Return the names of all that `simulate` can run now."""
    return (*REGISTRY, *BASELINES)


def register_protocol(
    name: str,
    *,
    player: Callable[[Task, PlayerId, random.Random | None], Player],
    server: Callable[[Task], Server],
    restore_player: Callable[[Task, Mapping[str, Any], random.Random | None], Player] | None = None,
    restore_server: Callable[[Task, Mapping[str, Any]], Server] | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    bits_bound: Callable[[Task, int | None], int | None] | None = None,
    codebook: Callable[[Task], Codebook] | None = None,
    takes: Iterable[str] = (),
    summary: str = "",
) -> None:
    """Register a protocol of your own, so that `Task` and `simulate` know it by its name.

    Parameters:
        name: 1 to 64 letters, digits, "_" or "-". What is registered already keeps its name.
        player: makes a player from the task, the player's number and a generator of its own random numbers.
        server: makes the server from the task.
        restore_player, restore_server: make them from a snapshot; a simulation needs neither.
        parameters: names and defaults of parameters of the protocol's own: `simulate(parameters={...})` sets them,
            `task.parameters` has them.
        bits_bound: from the task and a number of draws (None: however many) to the most bits that can be sent.
        codebook: makes the code of its messages; by default a vote and an elimination name an arm in binary.
        takes: the fields of `Task` that it has besides those of all protocols: "active_players", "instances",
            "quorum", "tolerate".
        summary: what it is, in a line.

    Raises `InvalidSettings` if the name cannot be, or something else has it. The very same may be registered again.

    >>> from outvote.core.votes.player import MedianPlayer
    >>> from outvote.core.votes.server import VoteServer
    >>> from outvote.simulation import register_protocol, simulate
    >>> def player(task, number, rng):
    ...     return MedianPlayer(task, number)
    >>> register_protocol("mine", player=player, server=VoteServer, takes=["active_players", "quorum"])
    >>> simulate(protocol="mine", players=4, horizon=100, trials=1).engine
    'core'
    """
    entry = Entry(
        summary=summary or name,
        player=player,
        server=server,
        restore_player=restore_player or _cannot_restore,
        restore_server=restore_server or _cannot_restore,
        codebook=codebook or Codebook,
        bits_bound=bits_bound or _no_bound,
        takes=frozenset(takes),
        parameters=check_parameters(parameters or {}),
    )
    fields = {field for other in REGISTRY.values() for field in other.takes}
    if not entry.takes <= fields:
        raise InvalidSettings(f"must be of {one_of(sorted(fields))}, got {takes!r}", field="takes", code="choice")
    if _is_new(name, entry):
        register(name, entry)


def register_baseline(
    name: str,
    player: Callable[..., Learner],
    *,
    shared: bool = False,
    parameters: Mapping[str, Parameter] | None = None,
    summary: str = "",
) -> None:
    """Register an algorithm to compare with, which has no server, so that `simulate` knows it by its name.

    Parameters:
        name: as for `register_protocol`.
        player: called as `player(task, number, rng, **parameters)`, it makes a player with two methods. `decide()`
            returns the arm to play. `reward(arm, reward)` learns, and returns the arms that it gives up, if any.
        shared: one player sees the draws of all (its bits: every draw is reported, and told to all others); by
            default each player is on its own and sends nothing.
        parameters: names and defaults of what `simulate(parameters={...})` sets.
        summary: what it is, in a line.

    Raises `InvalidSettings` if the name cannot be, or something else has it. The very same may be registered again.

    >>> from outvote.simulation import register_baseline, simulate
    >>> class Stubborn:
    ...     def __init__(self, task, number, rng, arm):
    ...         self.arm = arm
    ...     def decide(self):
    ...         return self.arm
    ...     def reward(self, arm, reward):
    ...         pass
    >>> register_baseline("stubborn", Stubborn, parameters={"arm": 0})
    >>> simulate(protocol="stubborn", parameters={"arm": 1}, means=(1, 0), horizon=50, trials=1).regret.mean[-1]
    50.0
    """
    baseline = Baseline(summary or name, player, shared, check_parameters(parameters or {}))
    if _is_new(name, baseline):
        BASELINES[name] = baseline


def check_parameters(values: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return them, if they can be written down."""
    for name, value in values.items():
        if not isinstance(value, bool | int | float | str):
            problem = f"must be numbers and texts, got {value!r} for {name!r}"
            raise InvalidSettings(problem, field="parameters", code="type")
    return dict(values)


def _is_new(name: str, thing: Entry | Baseline) -> bool:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidSettings(f"must be 1 to 64 letters, digits, '_' or '-', got {name!r}", field="name")
    there = REGISTRY.get(name) or BASELINES.get(name)
    if there is not None and there != thing:
        problem = f"must be new, got {name!r}, which something else has ({there.summary}): choose another"
        raise InvalidSettings(problem, field="name", code="duplicate")
    return there is None


def _cannot_restore(task: Task, *data: object) -> NoReturn:
    raise MalformedSnapshot(f"protocol {task.protocol!r} was registered without a way to restore snapshots")


def _no_bound(task: Task, draws: int | None) -> None:
    """Nothing is known of its bits."""
