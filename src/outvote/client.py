"""For applications: ask the edge beside you which variant to show, and tell it what came of it.

    from outvote.client import Client

    outvote = Client("http://127.0.0.1:8700")
    with outvote.decision("shop") as decision:
        decision.reward(show_page(decision.arm))

`AsyncClient` is the same for asyncio. It needs httpx: `pip install 'outvote[client]'`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import httpx

DEFAULT_EDGE = "http://127.0.0.1:8700"
PATIENCE = 1.0
"""Seconds that an edge may take: it is beside the application and answers in a fraction of a millisecond."""


class EdgeError(Exception):
    """The edge refused a request, or did not answer; `status` is its HTTP status, None if there was no answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Decision:
    """One event: what to show, and what its reward must name."""

    task: str
    arm: str
    index: int
    ticket: str
    value: float | None = field(default=None)
    """The reward, once there is one."""

    def reward(self, value: float) -> None:
        """What the event earned, from 0 to 1; it is sent when the `with` block ends."""
        self.value = float(value)

    def body(self) -> dict[str, Any]:
        return {"arm": self.arm, "ticket": self.ticket, "reward": self.value}


class Client:
    """For ordinary code; may be shared by threads."""

    def __init__(self, edge: str = DEFAULT_EDGE, *, timeout: float = PATIENCE) -> None:
        self._http = httpx.Client(base_url=edge, timeout=timeout)

    def decide(self, task: str) -> Decision:
        """A variant for one event."""
        return _decision(task, _checked(self._send(f"/v1/tasks/{task}/decide")))

    def reward(self, decision: Decision, value: float | None = None) -> None:
        """What came of it: now, later, from another thread; once."""
        if value is not None:
            decision.reward(value)
        _checked(self._send(f"/v1/tasks/{decision.task}/reward", decision.body()))

    @contextmanager
    def decision(self, task: str, *, otherwise: float | None = 0.0) -> Iterator[Decision]:
        """A decision whose reward is sent when the block ends: `otherwise`, if none was given; none after an error."""
        found = self.decide(task)
        yield found
        if found.value is None:
            found.value = otherwise
        if found.value is not None:
            self.reward(found)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        try:
            return self._http.post(path, json=body)
        except httpx.HTTPError as error:
            raise _no_answer(self._http.base_url, error) from error


class AsyncClient:
    """For asyncio."""

    def __init__(self, edge: str = DEFAULT_EDGE, *, timeout: float = PATIENCE) -> None:
        self._http = httpx.AsyncClient(base_url=edge, timeout=timeout)

    async def decide(self, task: str) -> Decision:
        """A variant for one event."""
        return _decision(task, _checked(await self._send(f"/v1/tasks/{task}/decide")))

    async def reward(self, decision: Decision, value: float | None = None) -> None:
        """What came of it: now or later, once."""
        if value is not None:
            decision.reward(value)
        _checked(await self._send(f"/v1/tasks/{decision.task}/reward", decision.body()))

    @asynccontextmanager
    async def decision(self, task: str, *, otherwise: float | None = 0.0) -> AsyncIterator[Decision]:
        """A decision whose reward is sent when the block ends: `otherwise`, if none was given; none after an error."""
        found = await self.decide(task)
        yield found
        if found.value is None:
            found.value = otherwise
        if found.value is not None:
            await self.reward(found)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        try:
            return await self._http.post(path, json=body)
        except httpx.HTTPError as error:
            raise _no_answer(self._http.base_url, error) from error


def _decision(task: str, answer: httpx.Response) -> Decision:
    found = answer.json()
    return Decision(task, found["arm"], found["index"], found["ticket"])


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_success:
        return answer
    try:
        detail = answer.json().get("detail") or answer.text
    except (ValueError, AttributeError):
        detail = answer.text
    raise EdgeError(f"the edge answered {answer.status_code}: {detail}", answer.status_code)


def _no_answer(edge: httpx.URL, error: httpx.HTTPError) -> EdgeError:
    return EdgeError(f"no edge answers at {edge}: {error or type(error).__name__}; is `outvote edge` running there?")
