"""What a reader of the log makes of what the engine says, where the order of both matters."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from nats.js.errors import APIError

from outvote.engine.follower import ALREADY_THERE, CERTAIN, IN_PROCESS, NOT_THERE, Follower, LogReplaced


async def ignore(subject: str, payload: bytes, sequence: int, stored: float) -> None:
    """Nobody reads here."""


class Engine:
    """Says how far its log reaches; meanwhile more is read of it."""

    def __init__(self, end: int, read_meanwhile: int, cluster: str = "") -> None:
        self.follower: Follower | None = None
        self._end = end
        self._read = read_meanwhile
        self._cluster = SimpleNamespace(name=cluster)

    async def stream_info(self, name: str) -> Any:
        assert self.follower is not None
        self.follower.read += self._read
        return SimpleNamespace(state=SimpleNamespace(last_seq=self._end), cluster=self._cluster)


def look(*, read: int, end: int, meanwhile: int, cluster: str = "") -> Follower:
    engine = Engine(end, meanwhile, cluster)
    follower = Follower(engine, "OUTVOTE", ignore, doubt=ignore)  # type: ignore[arg-type]  # all that is asked of it here
    engine.follower = follower
    follower.read = read
    asyncio.run(follower._look())
    return follower


def test_records_that_come_while_the_end_is_asked_for_do_not_make_another_log() -> None:
    follower = look(read=180, end=183, meanwhile=5)
    assert follower.read == 185
    assert follower.current


def test_a_log_that_ends_before_what_was_read_is_another_one() -> None:
    with pytest.raises(LogReplaced, match="180 records were read of the log OUTVOTE, which now ends at 100"):
        look(read=180, end=100, meanwhile=0)


def test_a_cluster_is_believed_only_after_a_while_that_its_log_is_shorter_than_what_was_read() -> None:
    """A node that copies the log anew may tell of an empty one. Only if it stays so it was replaced."""
    follower = look(read=3, end=0, meanwhile=0, cluster="outvote")
    assert follower._short_since is not None
    follower._short_since -= CERTAIN
    with pytest.raises(LogReplaced, match="3 records were read of the log OUTVOTE, which now ends at 0"):
        asyncio.run(follower._look())


class Refusing:
    """Refuses what it is asked to store."""

    def __init__(self, code: int) -> None:
        self._code = code

    async def publish(self, *arguments: object, **options: object) -> None:
        raise APIError(code=400, err_code=self._code, description="no")


def ask_to_store(code: int) -> None:
    follower = Follower(Refusing(code), "OUTVOTE", ignore, doubt=ignore)  # type: ignore[arg-type]  # all that is asked of it here
    follower._stored = "outvote.down.shop.task", 1
    asyncio.run(follower._ask_to_store())


@pytest.mark.parametrize("code", [ALREADY_THERE, NOT_THERE, IN_PROCESS])
def test_an_engine_that_refuses_what_must_not_be_stored_stores(code: int) -> None:
    """In a cluster an edge can have the engine say that it is busy with any subject."""
    ask_to_store(code)


def test_an_engine_that_refuses_it_for_another_reason_does_not() -> None:
    with pytest.raises(APIError, match="no"):
        ask_to_store(10008)
