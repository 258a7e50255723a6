import os

from openfeature.api import get_client, set_provider_and_wait
from openfeature.evaluation_context import EvaluationContext
from openfeature.track import TrackingEventDetails

from outvote.openfeature import OutvoteProvider

EDGE = os.environ.get("OUTVOTE_EDGE", "http://127.0.0.1:8700")

set_provider_and_wait(OutvoteProvider(EDGE))
flags = get_client()


def button(visitor: str) -> str:
    return flags.get_string_value("shop", "green", EvaluationContext(visitor))


def earned(visitor: str, reward: float) -> None:
    """What the last button of this visitor earned, from 0 to 1."""
    flags.track("shop", EvaluationContext(visitor), TrackingEventDetails(reward))
