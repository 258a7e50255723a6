"""For applications: ask the edge beside you which variant to show, and tell it what came of it.

    from outvote.client import Client

    outvote = Client("http://127.0.0.1:8700")
    with outvote.decision("shop", fallback="green") as decision:
        decision.reward(show_page(decision.variant))

With a `fallback` an edge that does not answer is no error: the application goes on. `AsyncClient` is the same for
asyncio. It needs httpx: `pip install 'outvote[client]'`.

A reward may be sent again: of all rewards for one decision the largest counts. So a reward that the edge did not answer
is repeated until the client's `timeout` is over. A decision is asked for again only where no connection came about: a
second one would count as another event.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import httpx

DEFAULT_EDGE: Final = "http://127.0.0.1:8700"
PATIENCE: Final = 1.0
"""Seconds that an edge may take: it is beside the application and answers in a fraction of a millisecond."""
FIRST_PAUSE: Final = 0.05
"""Seconds before a request is made again: doubled each time."""
UNCOUNTED: Final = "uncounted"
"""The ticket of a decision whose reward is ignored."""

_Http = TypeVar("_Http", httpx.Client, httpx.AsyncClient)

_log = logging.getLogger(__name__)


class EdgeError(Exception):
    """The edge refused a request, or did not answer. Status 409: send the reward to the edge that decided."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """Its HTTP status; None if there was no answer."""


class _Failed(EdgeError):
    """The edge, or a proxy before it, failed: status 500 or more."""


_Failures = tuple[type[Exception], ...]
_NOT_CONNECTED: Final = (httpx.ConnectError,)
"""Nothing was received. An edge that restarts is back within a second."""
_NO_ANSWER: Final = (httpx.TransportError, _Failed)
"""Nobody knows whether it was received."""


@dataclass(slots=True)
class Decision:
    """One event: what to show, and the ticket that its reward must name.

    Where the reward comes with a later request, keep this object, or keep `variant` and `ticket` and make it anew:
    `Decision("shop", variant, ticket)`.
    """

    task: str
    variant: str
    ticket: str
    """Empty if the edge did not decide."""
    value: float | None = None
    """The reward, once there is one."""

    @property
    def decided(self) -> bool:
        """False if `variant` is the fallback because no edge answered."""
        return bool(self.ticket)

    @property
    def counted(self) -> bool:
        """False if nothing is learnt from this event: the edge did not decide, the task has ended or is killed, or too
        many decisions wait. Then no reward is sent."""
        return self.ticket not in ("", UNCOUNTED)

    def reward(self, value: float) -> float:
        """What the event earned, from 0 to 1; it is sent when the `with` block ends."""
        value = float(value)
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"a reward must be a number from 0 to 1, got {value!r}")
        self.value = value
        return value


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A decision in the words of OpenFeature: the task is a flag."""

    decision: Decision
    value: str | bool
    """The variant; a flag whose variants are `true` and `false` has these as values."""
    reason: str
    """`SPLIT` while the task explores, `STATIC` once it has ended, `DISABLED` while its kill switch is on."""


class _Base(Generic[_Http]):
    """What both clients have: how they connect, and the troubles they have told, so that an outage is one line.

    No line of the log holds a variant, a ticket, a reward, or anything that the edge has said.
    """

    _kind: type[_Http]

    def __init__(
        self,
        edge: str = DEFAULT_EDGE,
        *,
        timeout: float = PATIENCE,
        token: str | None = None,
        ca: str | Path | None = None,
    ) -> None:
        """`timeout` is in seconds: for each step of a request, and for all attempts of a request together.

        `token` says who asks, where the edge wants to know; `ca` is a file with those that sign the edge's certificate,
        and nobody else is trusted then.
        """
        if not edge.startswith(("http://", "https://")):
            raise ValueError(f"the edge must be an address like {DEFAULT_EDGE}, got {edge!r}")
        self._http: _Http = self._kind(
            base_url=edge,
            timeout=timeout,
            trust_env=False,
            headers=_headers(edge, token),
            verify=True if ca is None else ssl.create_default_context(cafile=str(ca)),
        )
        self._timeout = timeout
        self._lock = threading.Lock()
        self._told: set[tuple[str, str]] = set()

    def _fall_back(self, task: str, fallback: str | None, error: EdgeError) -> Decision:
        if fallback is None:
            raise error
        self._tell(task, "decide", error, "the fallback is shown")
        return Decision(task, fallback, "")

    def _reward_failed(self, task: str, error: EdgeError, *, strict: bool) -> bool:
        self._tell(task, "reward", error, "rewards are lost")
        if strict:
            raise error
        return False

    def _went_well(self, task: str, what: str) -> None:
        if self._told:
            with self._lock:
                self._told.discard((task, what))

    def _tell(self, task: str, what: str, error: EdgeError, then: str) -> None:
        with self._lock:
            if (task, what) in self._told:
                return
            self._told.add((task, what))
        why = "no answer" if error.status is None else f"status {error.status}"
        _log.warning(
            "%s at the edge for task %r failed (%s): %s. Said once until it works again", what, task, why, then
        )


class Client(_Base[httpx.Client]):
    """For ordinary code; may be shared by threads. Make one for each process: connections do not survive a fork."""

    _kind = httpx.Client

    def decide(self, task: str, *, fallback: str | None = None) -> Decision:
        """A variant for one event; with a `fallback` that one, when the edge gives none. It is not asked twice then."""
        try:
            answer = self._send(_path(task, "decide"), repeat=_NOT_CONNECTED if fallback is None else ())
            found = _decision(task, answer)
        except EdgeError as error:
            return self._fall_back(task, fallback, error)
        self._went_well(task, "decide")
        return found

    def evaluate(self, task: str) -> Evaluation:
        """A decision with its reason, over OpenFeature's protocol; the edge is not asked twice, and told no context."""
        return _evaluation(task, self._send(_flag(task), {}))

    def reward(self, decision: Decision, value: float | None = None, *, strict: bool = True) -> bool:
        """What came of it: now, later, from another thread. Returns whether the edge has it.

        A decision may be rewarded again: the largest reward within the task's reward window counts. While the edge
        does not answer, the reward is sent again until the client's `timeout` is over. Nothing is sent for a decision
        that is not `counted`. With `strict=False` an edge that refuses or does not answer is no error either: it is
        logged, and the answer is False.
        """
        body = _reward_body(decision, value)
        if body is None:
            return False
        try:
            self._send(_path(decision.task, "reward"), body, repeat=_NO_ANSWER)
        except EdgeError as error:
            return self._reward_failed(decision.task, error, strict=strict)
        self._went_well(decision.task, "reward")
        return True

    @contextmanager
    def decision(self, task: str, *, otherwise: float | None = 0.0, fallback: str | None = None) -> Iterator[Decision]:
        """A decision whose reward is sent when the block ends: `otherwise`, if none was given; none after an error.

        With a `fallback` nothing that happens to the edge is an error.
        """
        found = self.decide(task, fallback=fallback)
        yield found
        if _is_due(found, otherwise):
            self.reward(found, strict=fallback is None)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _send(self, path: str, body: dict[str, Any] | None = None, *, repeat: _Failures = ()) -> httpx.Response:
        until, pause = time.monotonic() + self._timeout, FIRST_PAUSE
        while True:
            try:
                return _checked(self._http.post(path, json=body, timeout=_time_left(until)))
            except (httpx.HTTPError, EdgeError) as error:
                if not isinstance(error, repeat) or time.monotonic() + pause >= until:
                    raise _edge_error(error, self._http.base_url) from None
            time.sleep(pause)
            pause *= 2


class AsyncClient(_Base[httpx.AsyncClient]):
    """For asyncio."""

    _kind = httpx.AsyncClient

    async def decide(self, task: str, *, fallback: str | None = None) -> Decision:
        """A variant for one event; see `Client.decide`."""
        try:
            answer = await self._send(_path(task, "decide"), repeat=_NOT_CONNECTED if fallback is None else ())
            found = _decision(task, answer)
        except EdgeError as error:
            return self._fall_back(task, fallback, error)
        self._went_well(task, "decide")
        return found

    async def reward(self, decision: Decision, value: float | None = None, *, strict: bool = True) -> bool:
        """What came of it: now or later. Returns whether the edge has it; see `Client.reward`."""
        body = _reward_body(decision, value)
        if body is None:
            return False
        try:
            await self._send(_path(decision.task, "reward"), body, repeat=_NO_ANSWER)
        except EdgeError as error:
            return self._reward_failed(decision.task, error, strict=strict)
        self._went_well(decision.task, "reward")
        return True

    @asynccontextmanager
    async def decision(
        self, task: str, *, otherwise: float | None = 0.0, fallback: str | None = None
    ) -> AsyncIterator[Decision]:
        """A decision whose reward is sent when the block ends; see `Client.decision`."""
        found = await self.decide(task, fallback=fallback)
        yield found
        if _is_due(found, otherwise):
            await self.reward(found, strict=fallback is None)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _send(self, path: str, body: dict[str, Any] | None = None, *, repeat: _Failures = ()) -> httpx.Response:
        until, pause = time.monotonic() + self._timeout, FIRST_PAUSE
        while True:
            try:
                return _checked(await self._http.post(path, json=body, timeout=_time_left(until)))
            except (httpx.HTTPError, EdgeError) as error:
                if not isinstance(error, repeat) or time.monotonic() + pause >= until:
                    raise _edge_error(error, self._http.base_url) from None
            await asyncio.sleep(pause)
            pause *= 2


def _headers(edge: str, token: str | None) -> dict[str, str]:
    """What goes with every request; it is not told to whoever the edge might lead to, as nobody is followed."""
    if token is None:
        return {}
    if edge.startswith("http://") and httpx.URL(edge).host not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError(f"a token would go over the network in plaintext: use https, got {edge!r}")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("a token is printable ASCII without spaces: read it from its file and strip() it")
    return {"Authorization": f"Bearer {token}"}


def _path(task: str, what: str) -> str:
    return f"/v1/tasks/{quote(task, safe='')}/{what}"


def _flag(task: str) -> str:
    return f"/ofrep/v1/evaluate/flags/{quote(task, safe='')}"


def _reward_body(decision: Decision, value: float | None) -> dict[str, Any] | None:
    """What the edge is sent; None if the decision is not counted."""
    reward = decision.value if value is None else decision.reward(value)
    if reward is None:
        raise ValueError("a reward is needed: reward(decision, 1), or decision.reward(1) before")
    return {"ticket": decision.ticket, "reward": reward} if decision.counted else None


def _is_due(decision: Decision, otherwise: float | None) -> bool:
    """Whether the end of a block sends a reward."""
    if decision.value is None and otherwise is not None:
        decision.reward(otherwise)
    return decision.value is not None


def _decision(task: str, answer: httpx.Response) -> Decision:
    try:
        found = answer.json()
        return Decision(task, str(found["variant"]), str(found["ticket"]))
    except (ValueError, LookupError, TypeError):
        raise EdgeError(f"what answers at {answer.url} is no edge", answer.status_code) from None


def _evaluation(task: str, answer: httpx.Response) -> Evaluation:
    try:
        found = answer.json()
        value, reason = found["value"], str(found["reason"])
        decision = Decision(task, str(found["variant"]), str(found["metadata"]["ticket"]))
    except (ValueError, LookupError, TypeError):
        value = None
    if not isinstance(value, str | bool):
        raise EdgeError(f"what answers at {answer.url} is no edge", answer.status_code) from None
    return Evaluation(decision, value, reason)


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_success:
        return answer
    try:
        said = answer.json()
        detail = said.get("detail") or said.get("errorDetails") or answer.text
    except (ValueError, AttributeError):
        detail = answer.text
    kind = _Failed if answer.is_server_error else EdgeError
    raise kind(f"the edge answered {answer.status_code}: {detail}", answer.status_code)


def _time_left(until: float) -> float:
    return max(until - time.monotonic(), FIRST_PAUSE)


def _edge_error(error: httpx.HTTPError | EdgeError, edge: httpx.URL) -> EdgeError:
    if isinstance(error, EdgeError):
        return error
    why = str(error) or type(error).__name__
    return EdgeError(f"no edge answers at {edge}: {why}; is `outvote edge` running there?")
