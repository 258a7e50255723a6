"""Arms that are told to a participant, checked. Whatever is refused here changes nothing."""

from __future__ import annotations

from outvote.core.errors import UnknownArm


def is_index(value: object, limit: int) -> bool:
    """A whole number from 0 to below the limit; neither a float nor a bool is one, though it may equal one."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit


def check_arm(arm: object, arms: int) -> None:
    """An index into the task's arms."""
    if not is_index(arm, arms):
        raise UnknownArm.of(arm, arms)
