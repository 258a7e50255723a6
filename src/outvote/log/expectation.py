"""What operators expect of a task: its traffic and its rewards. Shown to people; no decision uses it. Pure.

It is a log record separate from the task, so operators can add or replace it later.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec

from outvote.core.errors import InvalidTask, MalformedMessage

MOST_TRAFFIC: Final = 1e15
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Decisions a day in the whole fleet; the mean reward of all arms but the best, and the lead of the best arm."""

    traffic: Annotated[float, msgspec.Meta(gt=0, le=MOST_TRAFFIC)] | None = None
    baseline: Share | None = None
    difference: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None

    def __post_init__(self) -> None:
        if self.baseline is not None and self.difference is not None and self.baseline + self.difference > 1:
            raise InvalidTask(
                f"must be at most 1 together with baseline, got {self.difference:g} and {self.baseline:g}",
                field="difference",
                code="conflict",
            )

    def record(self) -> bytes:
        return msgspec.json.encode(self)


_decode = msgspec.json.Decoder(Expectation).decode


def read_expectation(payload: bytes) -> Expectation:
    try:
        return _decode(payload)
    except msgspec.ValidationError as error:
        path = re.search(r"`\$\.(\w+)`$", str(error))  # msgspec has the field in its words only
        if path is None:
            raise InvalidTask(f"{error}; an expectation is like {EXAMPLE}") from None
        problem = str(error).removesuffix(f" - at {path[0]}")
        raise InvalidTask(f"is wrong: {problem[0].lower()}{problem[1:]}", field=path[1], code="range") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"an expectation must be JSON, like {EXAMPLE}: {error}") from None


EXAMPLE: Final = '{"traffic": 50000, "baseline": 0.1, "difference": 0.02}'
