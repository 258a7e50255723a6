"""A provider for OpenFeature: flags are tasks, and `track` sends their rewards.

    from openfeature import api
    from openfeature.evaluation_context import EvaluationContext
    from outvote.openfeature import OutvoteProvider

    api.set_provider_and_wait(OutvoteProvider("http://127.0.0.1:8700"))
    flags, visitor = api.get_client(), EvaluationContext(targeting_key="visitor 17")
    show_page(flags.get_string_value("shop", "green", visitor))
    flags.track("shop", visitor)  # they bought

A context never leaves the process. Its targeting key only finds the decision again that `track` rewards, and is
forgotten with it. It needs `pip install 'outvote[openfeature]'`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import (
    FlagNotFoundError,
    GeneralError,
    OpenFeatureError,
    ParseError,
    ProviderNotReadyError,
    TypeMismatchError,
)
from openfeature.flag_evaluation import FlagResolutionDetails, FlagValueType
from openfeature.provider import AbstractProvider, Metadata
from openfeature.track import TrackingEventDetails

from outvote.client import DEFAULT_EDGE, PATIENCE, Client, Decision, EdgeError

MOST_DECISIONS: Final = 10_000
"""Decisions that are remembered for their rewards; of more the oldest are forgotten."""

Value = TypeVar("Value", str, bool)
Structure = Sequence[FlagValueType] | Mapping[str, FlagValueType]


class OutvoteProvider(AbstractProvider):
    """Evaluates flags at the edge beside the application; may be shared by threads.

    An evaluation is one decision of the task. A flag has the variant as a string, or as a boolean if the variants are
    `true` and `false`. An edge that does not answer is no error to the application: it gets its default value.
    """

    def __init__(
        self,
        edge: str = DEFAULT_EDGE,
        *,
        timeout: float = PATIENCE,
        token: str | None = None,
        ca: str | Path | None = None,
    ) -> None:
        """`timeout`, `token` and `ca` are as `Client` has them."""
        super().__init__()
        self._connect: Callable[[], Client] = lambda: Client(edge, timeout=timeout, token=token, ca=ca)
        """It holds the token, and does not show it."""
        self._client: Client | None = self._connect()
        self._lock = threading.Lock()
        self._decisions: OrderedDict[tuple[str, str], Decision] = OrderedDict()
        """By flag and targeting key: the last decision, the oldest first."""

    # ---- its life

    def get_metadata(self) -> Metadata:
        return Metadata(name="outvote")

    def initialize(self, evaluation_context: EvaluationContext) -> None:
        """Asks nothing: an edge that is not there yet is used as soon as it is."""
        with self._lock:
            if self._client is None:
                self._client = self._connect()

    def shutdown(self) -> None:
        """Forgets all decisions: their rewards can be sent no more."""
        with self._lock:
            client, self._client = self._client, None
            self._decisions.clear()
        if client is not None:
            client.close()

    # ---- flags

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        return self._resolve(flag_key, str, evaluation_context)

    async def resolve_string_details_async(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        return await asyncio.to_thread(self._resolve, flag_key, str, evaluation_context)

    def resolve_boolean_details(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        return self._resolve(flag_key, bool, evaluation_context)

    async def resolve_boolean_details_async(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        return await asyncio.to_thread(self._resolve, flag_key, bool, evaluation_context)

    def resolve_integer_details(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        _no_such_type(flag_key, "an integer")

    def resolve_float_details(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        _no_such_type(flag_key, "a number")

    def resolve_object_details(
        self, flag_key: str, default_value: Structure, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[Structure]:
        _no_such_type(flag_key, "an object")

    # ---- rewards

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """The last decision of the flag of this name for this targeting key has earned so much: 1, if no value is said.

        It may be tracked again: the largest reward within the task's reward window counts. Where there is no decision,
        nothing happens: events of other names may be tracked too. A reward that the edge does not take is logged.
        """
        with self._lock:
            client, decision = self._client, self._decisions.get(_place(tracking_event_name, evaluation_context))
        if client is not None and decision is not None:
            told = None if tracking_event_details is None else tracking_event_details.value
            client.reward(decision, 1.0 if told is None else told, strict=False)

    # ---- how it works

    def _resolve(
        self, flag: str, wanted: type[Value], context: EvaluationContext | None
    ) -> FlagResolutionDetails[Value]:
        place, client = _place(flag, context), self._client
        with self._lock:
            self._decisions.pop(place, None)  # whatever is shown now, a reward is no longer that of the one before
        if client is None:
            raise ProviderNotReadyError("the provider was shut down")
        try:
            found = client.evaluate(flag)
        except EdgeError as error:
            raise _error(error) from error
        if not isinstance(found.value, wanted):
            raise TypeMismatchError(
                f"flag {flag!r} is of type {type(found.value).__name__}, asked for {wanted.__name__}"
            )
        self._remember(place, found.decision)
        ticket: Any = found.decision.ticket
        return FlagResolutionDetails(
            found.value, reason=found.reason, variant=found.decision.variant, flag_metadata={"ticket": ticket}
        )

    def _remember(self, place: tuple[str, str], decision: Decision) -> None:
        with self._lock:
            self._decisions.pop(place, None)  # another thread may have asked for the same visitor
            self._decisions[place] = decision
            while len(self._decisions) > MOST_DECISIONS:
                self._decisions.popitem(last=False)


def _place(flag: str, context: EvaluationContext | None) -> tuple[str, str]:
    return flag, (context.targeting_key if context is not None else None) or ""


def _no_such_type(flag: str, wanted: str) -> NoReturn:
    """Refused without asking the edge: no decision is wasted."""
    raise TypeMismatchError(f"a flag of Outvote is a string or a boolean, asked for {wanted} of {flag!r}")


def _error(error: EdgeError) -> OpenFeatureError:
    if error.status is None:
        return ProviderNotReadyError(str(error))
    if error.status == 404:
        return FlagNotFoundError(str(error))
    return ParseError(str(error)) if error.status < 400 else GeneralError(str(error))
