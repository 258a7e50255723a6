"""What a protocol is: one entry each, by name. `protocols` has ours; `register` takes others.

Whoever needs to know something about a protocol asks its entry, or the objects that the entry makes. What people are
told about a protocol is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from outvote.core.errors import InvalidTask, one_of

if TYPE_CHECKING:
    import random

    from outvote.core.codes import Codebook
    from outvote.core.decisions import Decisions, Ticket
    from outvote.core.messages import Elimination, PlayerId, UpMessage
    from outvote.core.task import Task

Parameter: TypeAlias = bool | int | float | str
"""A value that a protocol of one's own may take."""


class Player(Protocol):
    """What a site does: it decides, learns, and now and then has something to send.

    Times (`now`) are whole milliseconds since 1970; see `outvote.core.decisions`.
    """

    player: PlayerId
    decisions: Decisions

    def decide(self, now: int) -> Ticket: ...
    def reward(self, ticket: Ticket, reward: float, now: int) -> None: ...
    def tick(self, now: int) -> Sequence[UpMessage]: ...
    def receive(self, message: Elimination) -> None: ...
    def resume(self, now: int, *, crashed: bool) -> None: ...
    def candidates(self, instance: int = 0) -> tuple[int, ...]: ...
    def snapshot(self) -> dict[str, Any]: ...
    @property
    def remaining(self) -> tuple[int, ...]: ...
    @property
    def finished(self) -> bool: ...
    @property
    def status(self) -> str: ...


class Server(Protocol):
    """What the fleet knows: it counts, and announces. `Announced` has a part that all share.

    `at` is when the log stored the message, in whole milliseconds since 1970.
    """

    def receive(self, player: PlayerId, message: Any, at: int, *, incarnation: str = "") -> list[Elimination]: ...
    def snapshot(self) -> dict[str, Any]: ...
    def adopt(self, eliminated: Sequence[int]) -> list[Elimination]: ...
    @property
    def remaining(self) -> tuple[int, ...]: ...
    @property
    def eliminated(self) -> tuple[int, ...]: ...
    @property
    def winner(self) -> int | None: ...
    @property
    def finished(self) -> bool: ...
    @property
    def held(self) -> bool: ...
    @property
    def hold_reason(self) -> str | None: ...
    @property
    def reported(self) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One protocol: how its participants are made and restored, what a task of it has, and what its messages cost."""

    summary: str
    player: Callable[[Task, PlayerId, random.Random | None], Player]
    server: Callable[[Task], Server]
    restore_player: Callable[[Task, Mapping[str, Any], random.Random | None], Player]
    restore_server: Callable[[Task, Mapping[str, Any]], Server]
    codebook: Callable[[Task], Codebook]
    """The bits of its messages."""
    bits_bound: Callable[[Task, int | None], int | None]
    """The most bits that a task can cost in so many draws (None: however many). None where nothing bounds them."""
    first_message: Callable[[Task], int] | None = None
    """About how many decisions a site makes before its first message, if that can be said."""
    on_network: bool = True
    """Sites and servers can follow it; otherwise it is for simulation only."""
    floors: tuple[int, int, int] = (2, 3, 23)
    """The least floor, the default, and the default with a privacy budget."""
    takes: frozenset[str] = frozenset()
    """The fields of `Task` that this protocol has and some others do not."""
    exact: bool = False
    """It can look for the very best arm: ε may be 0, and is by default."""
    codes: tuple[str, ...] = ("binary", "truncated", "huffman")
    """How its messages can name arms; the first is the default."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    """Parameters of its own, with their defaults."""


REGISTRY: dict[str, Entry] = {}


def register(name: str, entry: Entry) -> None:
    """Add a protocol. A name that is taken is refused, unless by this very entry."""
    if REGISTRY.setdefault(name, entry) is not entry:
        raise InvalidTask(f"must be a new name, got {name!r}, which is registered", field="protocol", code="duplicate")


def networked() -> tuple[str, ...]:
    """The protocols that sites and servers can follow."""
    return tuple(name for name, entry in REGISTRY.items() if entry.on_network)


def entry_of(protocol: object) -> Entry:
    """Return the entry of a protocol, by its name."""
    entry = REGISTRY.get(protocol) if isinstance(protocol, str) else None
    if entry is None:
        got = repr(protocol)[:80]
        raise InvalidTask(f"must be one of {one_of(REGISTRY)}, got {got}", field="protocol", code="choice")
    return entry
