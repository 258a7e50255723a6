"""Events that were logged, as tests look at them."""

from __future__ import annotations

from typing import Any

import pytest


def events(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """Name and fields of each event of ours."""
    logged = [dict(record.msg) for record in caplog.records if isinstance(record.msg, dict)]
    return [(event.pop("event"), event) for event in logged]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The same as `name key=value`."""
    return [" ".join([name, *(f"{key}={value}" for key, value in fields.items())]) for name, fields in events(caplog)]
