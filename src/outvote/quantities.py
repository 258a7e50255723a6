"""Numbers and durations as people write them: 50,000, 5%, 1e6, 30m. Whatever is no finite number is refused."""

from __future__ import annotations

import math
import re
from typing import Final

from outvote.core.errors import InvalidInput

_GROUPED: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}([,'’_ \u00a0\u2009\u202f])[0-9]{3}(?:\1[0-9]{3})*(?:\.[0-9]+)?")
"""A number whose thousands are set apart, all by the same sign."""
_UNIT: Final = re.compile(
    r"(?:s(?:ec(?:onds?)?)?|m(?:in(?:utes?)?)?|h(?:ours?)?|d(?:ays?)?|w(?:eeks?)?)$", re.IGNORECASE
)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def number(text: str) -> float:
    """Read one number; a whole one, however written, becomes an int.

    >>> number("50,000"), number("1e6"), number("5%")
    (50000, 1000000, 0.05)
    """
    digits, percent, rest = text.strip().partition("%")
    digits = digits.rstrip() if percent else digits
    if grouped := _GROUPED.fullmatch(digits):
        digits = digits.replace(grouped[1], "")
    try:
        value = float(f"{digits}e-2" if percent else digits)
        if rest or not digits.isascii() or not math.isfinite(value):
            raise ValueError
        if digits.lstrip("+-").isdigit() and not percent:
            return int(digits)  # a float would lose the last digits of a long seed
    except ValueError:
        raise InvalidInput(f"must be a number like 50000, 50,000, 0.05 or 5%, got {text[:50]!r}", code="type") from None
    return int(value) if value.is_integer() else value


def seconds(text: str) -> float:
    """Read a duration, in seconds unless it names another unit.

    >>> seconds("90"), seconds("30m"), seconds("1.5 hours")
    (90.0, 1800.0, 5400.0)
    """
    unit = _UNIT.search(text.strip())
    try:
        return float(number(_UNIT.sub("", text.strip())) * _SECONDS[unit[0][0].lower() if unit else "s"])
    except (InvalidInput, OverflowError):
        allowed = "must be a duration like 90, 60s, 30m, 2h or 1d"
        raise InvalidInput(f"{allowed}, got {text[:50]!r}", code="type") from None
